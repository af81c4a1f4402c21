/* SPDX-License-Identifier: MIT
 * tests/support/work.c - the work that coordctl runs in tests, and what it tells; see coordctl.h.
 */
#include "tests/support/coordctl.h"
#include "tests/support/guard.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

static struct work_beat *own_beat;

static void note_signal(int signal)
{
    atomic_store(&own_beat->signal, signal);
}

static struct work_beat *begin_beat(struct work_log *log)
{
    const unsigned mine = atomic_fetch_add(&log->count, 1);
    const char *fence = getenv("COORD_FENCE");
    if (mine >= WORK_BEATS) {
        _exit(98);
    }
    struct work_beat *beat = &log->beats[mine];
    atomic_store(&beat->pid, (int)getpid());
    atomic_store(&beat->started, process_look(getpid()).started);
    atomic_store(&beat->first, now_ns());
    atomic_store(&beat->last, now_ns());
    atomic_store(&beat->fence, fence != NULL ? strtoull(fence, NULL, 10) : 0);
    return beat;
}

static void beat_on(struct work_beat *beat)
{
    const struct timespec time = {.tv_nsec = 200000};
    for (;;) {
        atomic_store(&beat->last, now_ns());
        nanosleep(&time, NULL);
    }
}

static void be_deaf(struct work_log *log)
{
    for (int signal = 1; signal < 32; signal++) {
        if (signal != SIGKILL && signal != SIGSTOP) {
            struct sigaction ignore = {.sa_handler = SIG_IGN};
            sigaction(signal, &ignore, NULL);
        }
    }
    beat_on(begin_beat(log));
}

/* Not in COMMAND's group, not in its session, and not its child any more. */
static void leave_daemon(struct work_log *log)
{
    const unsigned before = atomic_load(&log->count);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            be_deaf(log);
        }
        _exit(0);
    }
    while (atomic_load(&log->count) == before) {
        nap();
    }
}

_Noreturn static void work(struct work_log *log, const char *mode)
{
    if (strcmp(mode, "deaf") == 0) {
        be_deaf(log);
    }
    if (strcmp(mode, "daemon") == 0 || strcmp(mode, "leave") == 0) {
        leave_daemon(log);
    }
    own_beat = begin_beat(log);
    if (strcmp(mode, "leave") == 0 || strcmp(mode, "exit") == 0) {
        _exit(7);
    }
    if (strcmp(mode, "polite") == 0) {
        struct sigaction note = {.sa_handler = note_signal};
        sigaction(SIGTERM, &note, NULL);
        sigaction(SIGHUP, &note, NULL);
        sigaction(SIGUSR1, &note, NULL);
        sigaction(SIGUSR2, &note, NULL);
        while (atomic_load(&own_beat->signal) != SIGTERM) {
            atomic_store(&own_beat->last, now_ns());
            nap();
        }
        _exit(0);
    }
    beat_on(own_beat);
    _exit(0);
}

void work_if_asked(int argc, char **argv)
{
    if (argc != 4 || strcmp(argv[1], "--work") != 0) {
        return;
    }
    const int fd = open(argv[2], O_RDWR | O_CLOEXEC);
    struct work_log *log = mmap(NULL, sizeof *log, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (log == MAP_FAILED) {
        _exit(97);
    }
    work(log, argv[3]);
}

static unsigned beats_above(const struct scene *scene, uint64_t above, uint64_t *fence)
{
    const unsigned count = atomic_load(&scene->work->count);
    unsigned found = 0;
    for (unsigned i = 0; i < count && i < WORK_BEATS; i++) {
        const uint64_t its = atomic_load(&scene->work->beats[i].fence);
        if (its > above) {
            *fence = its;
            found++;
        }
    }
    return found;
}

uint64_t work_wait(const struct scene *scene, uint64_t above, unsigned count)
{
    const struct guard guard = guard_for("work to begin");
    uint64_t fence = 0;
    while (beats_above(scene, above, &fence) < count) {
        wait_on(&guard);
    }
    return fence;
}

static void check_pair(const struct work_beat *former, const struct work_beat *later)
{
    if (atomic_load(&former->fence) == 0 ||
        atomic_load(&former->fence) >= atomic_load(&later->fence)) {
        return;
    }
    const uint64_t last = atomic_load(&former->last);
    const uint64_t first = atomic_load(&later->first);
    if (last >= first) {
        fail_msg("work of fence %" PRIu64 " (pid %d) ran %" PRIu64
                 " us after that of fence %" PRIu64 " (pid %d) had begun",
                 atomic_load(&former->fence), atomic_load(&former->pid), (last - first) / 1000,
                 atomic_load(&later->fence), atomic_load(&later->pid));
    }
}

void work_check(const struct scene *scene)
{
    const unsigned count = atomic_load(&scene->work->count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            check_pair(&scene->work->beats[a], &scene->work->beats[b]);
        }
    }
}

void work_wait_gone(const struct scene *scene, uint64_t fence)
{
    const unsigned count = atomic_load(&scene->work->count);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t its = atomic_load(&scene->work->beats[i].fence);
        const bool begins = its == 0 && fence != UINT64_MAX; /* ... and may be of a later term */
        if (its <= fence && !begins) {
            wait_for_end_of(atomic_load(&scene->work->beats[i].pid),
                            atomic_load(&scene->work->beats[i].started));
        }
    }
}

bool work_got(const struct scene *scene, uint64_t fence, int signal)
{
    const unsigned count = atomic_load(&scene->work->count);
    for (unsigned i = 0; i < count; i++) {
        if (atomic_load(&scene->work->beats[i].fence) == fence &&
            atomic_load(&scene->work->beats[i].signal) == signal) {
            return true;
        }
    }
    return false;
}
