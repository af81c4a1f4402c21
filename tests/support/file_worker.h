/* SPDX-License-Identifier: MIT
 * tests/support/file_worker.h - electors in real processes, which can be killed and stopped, and
 * what they answered, in memory that outlives them.
 */
#ifndef TEST_FILE_WORKER_H
#define TEST_FILE_WORKER_H

#include "coord/elector.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    WORKERS = 24,
    WORKER_TERMS = 2048,
    WORKER_PATIENCE_MS = 20000 /* a guard against hanging, no measure of anything */
};

/** A term that a worker led: it certainly said yes at `first` and at `last`. */
struct worker_term {
    _Atomic uint64_t fence;
    _Atomic uint64_t first; /* ns of CLOCK_BOOTTIME, of the first time namespace */
    _Atomic uint64_t last;
};

struct worker {
    pid_t pid; /* 0: not running */
    atomic_bool withdraw;
    atomic_bool stand_again; /* also after it stood down */
    atomic_bool leads;       /* it said so when it last looked */
    atomic_bool settled;
    atomic_uint reason; /* enum coord_reason */
    atomic_int code;    /* enum coord_err, of its last failure */
    _Atomic unsigned count;
    struct worker_term terms[WORKER_TERMS];
};

struct worker_options {
    const char *uri;
    const char *name;
    coord_ms ttl;
    int64_t clock_offset_ms;   /* of its time namespace */
    unsigned hold_ms;          /* > 0: it steps down after leading for so long, and stands again */
    void (*before)(void *ctx); /* called in the child before anything is opened */
    void *ctx;
};

/** Memory for all workers of one test. */
void workers_init(void);

/** Kill and reap all of them, also stopped ones. */
void workers_fini(void);

struct worker *worker_at(unsigned index);

/** Fork one; its place must be free. */
struct worker *worker_start(unsigned index, const struct worker_options *options);

void worker_signal(struct worker *worker, int signal);

/** kill -9, and reap. */
void worker_kill(struct worker *worker);

/** Wait until it leads (or until it says that it does not). */
void worker_wait_leads(const struct worker *worker, bool leads);

/** Wait until any but `other` leads under a fence above this one. @return it. */
struct worker *workers_wait_leader(uint64_t above, const struct worker *other);

/** The highest fence that anybody led with. */
uint64_t workers_highest_fence(void);

/** Fail if two ever said yes at once, or if fences fell. @return the number of terms. */
unsigned workers_check(void);

uint64_t worker_now_ns(void);

/** Is a process stopped? Waits until it is. */
void worker_wait_stopped(const struct worker *worker);

#endif /* TEST_FILE_WORKER_H */
