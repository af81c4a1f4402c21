/* SPDX-License-Identifier: MIT
 * coord/backend.h - the implementer's face of an elector: a table of I/O operations.
 *
 * The base object (coord/elector.h) owns every piece of role state: the lease machine, edges,
 * fence, deadlines, last error. A backend carries one request at a time to its store and reports
 * through the calls at the end of this header. It never decides who leads.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_BACKEND_H
#define COORD_BACKEND_H

#include "coord/log.h"
#include "coord/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_elector;
struct coord_elector_config;
struct coord_uri;

enum {
    COORD_BACKEND_ABI = 1, /* changes when a member's meaning changes; members are only appended */
    COORD_DESCRIPTORS_MAX = 4 /* of one elector */
};

/** What to wait for. Two electors may name one descriptor: they share a connection. */
struct coord_descriptor {
    int fd;
    bool read;
    bool write;
    uint64_t generation; /* no two open files of one loop have both number and generation alike,
                            whoever opened them: one that was closed may give its number on */
};

/**
 * A backend. All operations are required and get the elector that they serve; their state is
 * coord_backend_state(elector), zeroed before init(). None blocks. None but process() may call
 * coord_backend_reply(), _hint() or _lost(): a request is never answered synchronously.
 *
 * `now` was read before the call, and the process may have been stopped since. A `now` that is
 * larger than that of an earlier process() was read after that call had returned: what happened
 * within it, happened before. init() gets no time, as it has to wait for nothing.
 */
struct coord_backend_ops {
    size_t size;      /* sizeof(struct coord_backend_ops) */
    unsigned abi;     /* COORD_BACKEND_ABI */
    const char *name; /* static, such as "redis" */
    size_t state_bytes;
    coord_ms default_ttl; /* ms */
    coord_ms hint_jitter; /* ms; most spread of tries after a hint: 4 by a network, 0 on one host */
    const char *const *options; /* names under `coord.` that it takes itself; NULL-terminated */

    /* Check everything that can be checked without waiting. On failure fini() is not called. */
    enum coord_err (*init)(struct coord_elector *elector, const struct coord_elector_config *config,
                           struct coord_error *error);
    /* Close without a word to the store. Also called in a forked child (`forked`): then close
     * descriptors and do not write, unlock or shut anything down. */
    void (*fini)(struct coord_elector *elector, bool forked);
    /* Begin one request; there is no other outstanding. Connect first where needed. */
    void (*request)(struct coord_elector *elector, const struct coord_request *request,
                    coord_ms now);
    /* The outstanding request took too long: forget it and what it is stuck on. */
    void (*abandon)(struct coord_elector *elector, coord_ms now);
    /* Do what can be done without waiting; report. */
    void (*process)(struct coord_elector *elector, coord_ms now);
    /* Fill in what to wait for, at most COORD_DESCRIPTORS_MAX. @return how many. */
    size_t (*descriptors)(struct coord_elector *elector, struct coord_descriptor *out);
    /* When process() is to be called without an event; COORD_NEVER. A time that has passed: at
     * once. */
    coord_ms (*deadline)(struct coord_elector *elector);
};

/** The backend's own state, of ops->state_bytes, aligned for any type. Thread: confined. */
COORD_API void *coord_backend_state(struct coord_elector *elector);

/* ---- reports, from process() only ---- */

/** The answer to the outstanding request; one that was abandoned is ignored. Thread: confined. */
COORD_API void coord_backend_reply(struct coord_elector *elector, const struct coord_reply *reply,
                                   coord_ms now);

/** Something may have changed in the store. Thread: confined. */
COORD_API void coord_backend_hint(struct coord_elector *elector, coord_ms now);

/** See coord_lease_renew_along(); its process() is to be called then. Thread: confined. */
COORD_API bool coord_backend_renew_along(struct coord_elector *elector, coord_ms now);

/** What was held is surely gone: the session ended, the file was replaced. Thread: confined. */
COORD_API void coord_backend_lost(struct coord_elector *elector, const struct coord_error *why,
                                  coord_ms now);

/* ---- what a backend may want to know; all borrowed until fini(), all Thread: confined ---- */

COORD_API const char *coord_backend_name(const struct coord_elector *elector);     /* escaped */
COORD_API const char *coord_backend_identity(const struct coord_elector *elector); /* escaped */
COORD_API const char *coord_backend_owner(const struct coord_elector *elector);    /* 32 hex */
COORD_API const void *coord_backend_raw_name(const struct coord_elector *elector, size_t *bytes);
COORD_API const void *coord_backend_metadata(const struct coord_elector *elector, size_t *bytes);
COORD_API const struct coord_log *coord_backend_log(const struct coord_elector *elector);
COORD_API coord_ms coord_backend_lease(const struct coord_elector *elector);   /* L */
COORD_API coord_ms coord_backend_attempt(const struct coord_elector *elector); /* A */

#ifdef __cplusplus
}
#endif
#endif /* COORD_BACKEND_H */
