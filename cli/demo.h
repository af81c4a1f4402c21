/* SPDX-License-Identifier: MIT
 * cli/demo.h - `coordctl demo`, between its files: demo.c tells the story, demo_worker.c is one of
 * its workers, demo_check.c judges what they recorded.
 */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "coord/base.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    CLI_DEMO_WORKERS = 4,
    CLI_DEMO_TERMS = 32, /* far more than the story has */
    CLI_DEMO_FOLDER = 256
};

/** A time at which a worker was surely told "yes, you lead", and every time in between. */
struct cli_demo_term {
    _Atomic int worker; /* written last; 0: empty, else the worker's number + 1 */
    _Atomic uint64_t fence;
    _Atomic uint64_t from;  /* ns: read after the first yes */
    _Atomic uint64_t until; /* ns: read before the last yes */
};

/** Shared by all processes of a demo; zero at first. */
struct cli_demo_page {
    struct cli_demo_term terms[CLI_DEMO_TERMS];
    _Atomic unsigned term_count;
    _Atomic unsigned ready; /* workers that stand */
    _Atomic int successor;  /* whom a leader that is asked to hand over names */
    _Atomic int hand_over;  /* the number + 1 of the worker that is asked to */
    _Atomic int failed;     /* an enum coord_err that a worker met */
    struct {
        _Atomic uint64_t looked; /* ns: when it last asked itself */
        _Atomic int leading;     /* what it heard */
    } workers[CLI_DEMO_WORKERS];
};

/** Names of the workers. */
extern const char *const cli_demo_names[CLI_DEMO_WORKERS];

/** Nanoseconds of the clock that all of them share. */
uint64_t cli_demo_now(void);

/** Be a worker, in a process of its own, until killed. */
_Noreturn void cli_demo_work(struct cli_demo_page *page, int worker, const char *uri);

/** Do two terms overlap? @return how many pairs; *first and *second tell the first one. */
unsigned cli_demo_overlaps(const struct cli_demo_page *page, unsigned *first, unsigned *second);

/** Does each later term have the greater fence? */
bool cli_demo_fences_rise(const struct cli_demo_page *page);

#endif /* CLI_DEMO_H */
