/* SPDX-License-Identifier: MIT
 * cli/demo.h - `coordctl demo`, between its files: demo.c tells the story, demo_worker.c is one of
 * its workers, demo_check.c judges what they recorded; then demo_fleet.c tells of a fleet, and
 * demo_member.c is one of its members.
 */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "coord/error.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    CLI_DEMO_WORKERS = 4,
    CLI_DEMO_TERMS = 32, /* far more than the story has */
    CLI_DEMO_FOLDER = 256,
    CLI_DEMO_URI = CLI_DEMO_FOLDER + 32,
    CLI_DEMO_WORKS = 3,     /* of the fleet; the last worker has none at first */
    CLI_DEMO_TIMEOUT = 2000 /* ms, of the fleet */
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
    struct {
        _Atomic int begun;      /* it may join the fleet */
        _Atomic unsigned works; /* a bit for each of cli_demo_works that it serves */
    } members[CLI_DEMO_WORKERS];
};

/** What is told, and who does it. */
struct cli_demo {
    struct cli_demo_page *page;
    char folder[CLI_DEMO_FOLDER];
    char uri[CLI_DEMO_URI];
    char bus[CLI_DEMO_URI];
    pid_t workers[CLI_DEMO_WORKERS]; /* 0: not running */
    uint64_t began;
    bool colour;
};

#define CLI_DEMO_PLAIN  "0"
#define CLI_DEMO_GREEN  "32"
#define CLI_DEMO_RED    "31"
#define CLI_DEMO_YELLOW "33"

/** One line of the story, with its time. */
void cli_demo_print(const struct cli_demo *demo, const char *colour, const char *format, ...)
    COORD_PRINTF(3, 4);

/** Was ^C pressed? */
bool cli_demo_interrupted(void);

/** Start a worker, or a member of the fleet. @return false: errno says why. */
bool cli_demo_start(struct cli_demo *demo, int worker, bool member);

/** kill -9, if it runs. */
void cli_demo_end(struct cli_demo *demo, int worker);

/** The second part: heartbeats, a preemption notice, a crash. @return false: it failed, as said. */
bool cli_demo_tell_fleet(struct cli_demo *demo);

/** Be a member of the fleet, in a process of its own, until killed or told to leave. */
_Noreturn void cli_demo_be_member(struct cli_demo_page *page, int worker, const char *uri,
                                  const char *bus);

/** Names of the workers. */
extern const char *const cli_demo_names[CLI_DEMO_WORKERS];

/** Names of what the fleet works on. */
extern const char *const cli_demo_works[CLI_DEMO_WORKS];

/** Nanoseconds of the clock that all of them share. */
uint64_t cli_demo_now(void);

/** Be a worker, in a process of its own, until killed. */
_Noreturn void cli_demo_work(struct cli_demo_page *page, int worker, const char *uri);

/** Do two terms overlap? @return how many pairs; *first and *second tell the first one. */
unsigned cli_demo_overlaps(const struct cli_demo_page *page, unsigned *first, unsigned *second);

/** Does each later term have the greater fence? */
bool cli_demo_fences_rise(const struct cli_demo_page *page);

/** Judge by both, and say so. @return the exit status: CLI_DONE or CLI_FAILED. */
int cli_demo_judge(const struct cli_demo *demo);

#endif /* CLI_DEMO_H */
