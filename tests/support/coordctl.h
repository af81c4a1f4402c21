/* SPDX-License-Identifier: MIT
 * tests/support/coordctl.h - coordctl as tests run it: real processes, whose output lies in files,
 * and work that tells by a shared file when it ran.
 */
#ifndef TEST_COORDCTL_H
#define TEST_COORDCTL_H

#include "tests/support/process.h"

#include <stdatomic.h>

enum {
    COORDCTL_PATH = 256,
    COORDCTL_TEXT = 8192,
    WORK_BEATS = 1024
};

/** One test's folder, its election and its work. */
struct scene {
    char folder[COORDCTL_PATH / 2];
    char uri[COORDCTL_PATH];
    char log[COORDCTL_PATH];
    struct work_log *work;
    unsigned started;
};

/** One coordctl. */
struct coordctl {
    pid_t pid; /* 0: ended and waited for */
    char out[COORDCTL_PATH];
    char err[COORDCTL_PATH];
};

/** One process of work: it certainly ran at `first`, at `last`, and perhaps in between. */
struct work_beat {
    _Atomic uint64_t fence;
    _Atomic uint64_t first; /* ns of CLOCK_BOOTTIME */
    _Atomic uint64_t last;
    _Atomic int pid;
    _Atomic uint64_t started; /* ticks: with pid, who it is */
    _Atomic int signal;       /* the last one that it got */
};

struct work_log {
    _Atomic unsigned count;
    struct work_beat beats[WORK_BEATS];
};

/** Arguments for what follows. */
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- scenes; setup and teardown of cmocka are made of these ---- */

/** @param options  what follows the URI, such as "coord.ttl=1s". With a clear record: no wait. */
void scene_open(struct scene *scene, const char *options);

/** Ends and reaps every process below this one, and removes the folder. */
void scene_close(struct scene *scene);

/** Setup and teardown where that is all: the state is a scene with coord.ttl=1s. */
int scene_set_up(void **state);
int scene_tear_down(void **state);

/** A path in the folder. @return out. */
const char *scene_path(const struct scene *scene, const char *name, char out[COORDCTL_PATH]);

/* ---- coordctl ---- */

/** Start it with the given arguments, the last one NULL. Its standard input is empty. */
void coordctl_start(const struct scene *scene, struct coordctl *out, const char *const *arguments);

/** The same with a standard input and with environment: "A=B", ..., NULL; both may be absent. */
void coordctl_start_with(const struct scene *scene, struct coordctl *out, int input,
                         const char *const *environment, const char *const *arguments);

/** `run` on the scene's election with this work; extra options end with NULL, or NULL. */
void coordctl_run(const struct scene *scene, struct coordctl *out, const char *id, const char *work,
                  const char *const *options);

/** Wait for its end. @return its exit status as of a shell, 128 + signal included. */
int coordctl_wait(struct coordctl *coordctl);

/** Start, wait, and give back what it printed. @return the exit status. */
int coordctl_call(const struct scene *scene, char out[COORDCTL_TEXT], const char *const *arguments);

/** The same for a verb about the scene's election. @param option  and its value may be NULL. */
int coordctl_ask(const struct scene *scene, char out[COORDCTL_TEXT], const char *verb,
                 const char *option, const char *value);

/** What it has printed so far. @return out. */
const char *coordctl_output(const char *path, char out[COORDCTL_TEXT]);

/** Wait until a file has a text in it. */
void wait_for_text(const char *path, const char *text);

/** Has it ended? coordctl_wait() still has its status. */
bool coordctl_ended(const struct coordctl *coordctl);

/** The one child of coordctl, once it is there; fails where coordctl has ended. */
pid_t guardian_of(const struct coordctl *coordctl);

/* ---- work ---- */

/**
 * To be called first in main(): when the program was started as work it works, and never returns.
 * Modes: "beat" works until it is killed; "deaf" ignores every signal that can be; "daemon" also
 * leaves a deaf grandchild in a session of its own; "leave" does that and exits with 7; "exit"
 * exits with 7; "polite" works on until SIGTERM, notes it, and exits with 0.
 */
void work_if_asked(int argc, char **argv);

/** Wait until `count` processes of work have beaten under a fence above this one. @return it. */
uint64_t work_wait(const struct scene *scene, uint64_t above, unsigned count);

/** Fail if work of two fences was ever at work at the same time, or if the fences fell. */
void work_check(const struct scene *scene);

/** Wait until no process that ever worked under this fence or a lower one lives. */
void work_wait_gone(const struct scene *scene, uint64_t fence);

/** Did anybody under this fence get the signal? */
bool work_got(const struct scene *scene, uint64_t fence, int signal);

#endif /* TEST_COORDCTL_H */
