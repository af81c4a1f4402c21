/* SPDX-License-Identifier: MIT
 * tests/support/file_worker.c - see file_worker.h.
 */
#include "tests/support/file_worker.h"

#include "electors/file.h"
#include "tests/support/support.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static struct worker *workers;

uint64_t worker_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static coord_ms now_ms(void)
{
    return worker_now_ns() / 1000000;
}

static void nap(void)
{
    const struct timespec little = {.tv_nsec = 200000};
    nanosleep(&little, NULL);
}

/* ---------------------------------------------------------------- the worker's own process */

static void note_yes(struct worker *worker, struct coord_elector *elector, int64_t offset_ms)
{
    const uint64_t now = worker_now_ns();
    const struct coord_claim claim = coord_lease_claim(coord_elector_lease(elector), now / 1000000);
    atomic_store(&worker->leads, claim.leading);
    if (!claim.leading) {
        return;
    }
    const uint64_t at = now - (uint64_t)(offset_ms * 1000000);
    unsigned count = atomic_load(&worker->count);
    if (count == 0 || atomic_load(&worker->terms[count - 1].fence) != claim.fence) {
        if (count == WORKER_TERMS) {
            _exit(3);
        }
        struct worker_term *term = &worker->terms[count];
        atomic_store(&term->fence, claim.fence);
        atomic_store(&term->first, at);
        atomic_store(&term->last, at);
        atomic_store(&worker->count, count + 1);
    } else {
        atomic_store(&worker->terms[count - 1].last, at);
    }
}

static void obey(struct worker *worker, struct coord_elector *elector,
                 const struct worker_options *options)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    const coord_ms now = now_ms();
    const unsigned count = atomic_load(&worker->count);
    struct coord_edge edge;
    while (coord_lease_next_edge(lease, &edge)) {
        coord_lease_edge_done(lease, now);
    }
    if (atomic_exchange(&worker->withdraw, false)) {
        coord_lease_withdraw(lease, now);
    }
    if (atomic_exchange(&worker->stand_again, false)) {
        coord_lease_stand(lease, now);
    }
    if (options->hold_ms > 0 && count > 0 && coord_elector_leading_at(elector, now)) {
        const uint64_t first = atomic_load(&worker->terms[count - 1].first);
        if (worker_now_ns() - (uint64_t)(options->clock_offset_ms * 1000000) - first >
            (uint64_t)options->hold_ms * 1000000) {
            COORD_IGNORE(coord_lease_step_down(lease, NULL, now), "it has ended just now");
        }
    }
    coord_ms for_ms = 0;
    atomic_store(&worker->reason, (unsigned)coord_lease_reason(lease, now, &for_ms));
    atomic_store(&worker->settled, coord_lease_settled(lease));
    if (lease->error.code != COORD_OK) {
        atomic_store(&worker->code, (int)lease->error.code);
    }
}

static struct coord_elector *make(unsigned index, const struct worker_options *options)
{
    static struct coord_uri uri;
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    struct coord_elector *elector = NULL;
    char identity[32];
    snprintf(identity, sizeof identity, "worker %u", index);
    if (coord_uri_parse(options->uri, &uri, NULL) != COORD_OK) {
        _exit(4);
    }
    config.uri = &uri;
    config.name = options->name;
    config.name_bytes = strlen(options->name);
    config.identity = identity;
    config.identity_bytes = strlen(identity);
    config.ttl = options->ttl;
    config.seed = (uint64_t)getpid();
    memcpy(config.owner, &config.seed, sizeof config.seed);
    if (coord_elector_new(coord_file_elector(), &config, now_ms(), &elector, NULL) != COORD_OK) {
        _exit(5);
    }
    return elector;
}

static _Noreturn void work(unsigned index, const struct worker_options *options)
{
    struct worker *worker = &workers[index];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (options->before != NULL) {
        options->before(options->ctx);
    }
    struct coord_elector *elector = make(index, options);
    coord_lease_stand(coord_elector_lease(elector), now_ms());
    for (;;) {
        struct coord_descriptor wanted[COORD_DESCRIPTORS_MAX];
        struct pollfd fds[COORD_DESCRIPTORS_MAX];
        coord_elector_process(elector, now_ms());
        obey(worker, elector, options);
        note_yes(worker, elector, options->clock_offset_ms);
        const size_t count = coord_elector_descriptors(elector, wanted);
        for (size_t i = 0; i < count; i++) {
            fds[i] = (struct pollfd){.fd = wanted[i].fd, .events = POLLIN};
        }
        const coord_ms wait = coord_ms_sub(coord_elector_deadline(elector), now_ms());
        const coord_ms most = atomic_load(&worker->leads) ? 1 : 10;
        poll(fds, (nfds_t)count, (int)coord_ms_min(wait, most));
        note_yes(worker, elector, options->clock_offset_ms);
    }
}

/* ---------------------------------------------------------------- the test's process */

void workers_init(void)
{
    workers = mmap(NULL, WORKERS * sizeof *workers, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(workers, MAP_FAILED);
}

void workers_fini(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_kill(&workers[i]);
    }
    munmap(workers, WORKERS * sizeof *workers);
    workers = NULL;
}

struct worker *worker_at(unsigned index)
{
    return &workers[index];
}

struct worker *worker_start(unsigned index, const struct worker_options *options)
{
    struct worker *worker = &workers[index];
    assert_int_equal(worker->pid, 0);
    atomic_store(&worker->leads, false);
    atomic_store(&worker->code, 0);
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        work(index, options);
    }
    worker->pid = pid;
    return worker;
}

void worker_signal(struct worker *worker, int signal)
{
    assert_true(worker->pid > 0);
    assert_int_equal(kill(worker->pid, signal), 0);
}

void worker_kill(struct worker *worker)
{
    if (worker->pid <= 0) {
        return;
    }
    kill(worker->pid, SIGKILL);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    worker->pid = 0;
    atomic_store(&worker->leads, false);
}

static void guard(uint64_t since, const char *what)
{
    if (worker_now_ns() - since > (uint64_t)WORKER_PATIENCE_MS * 1000000) {
        fail_msg("%s: it did not come", what);
    }
}

void worker_wait_leads(const struct worker *worker, bool leads)
{
    const uint64_t since = worker_now_ns();
    while (atomic_load(&worker->leads) != leads) {
        guard(since, leads ? "a worker is to lead" : "a worker is to stop leading");
        nap();
    }
}

struct worker *workers_wait_leader(uint64_t above, const struct worker *other)
{
    const uint64_t since = worker_now_ns();
    for (;;) {
        for (unsigned i = 0; i < WORKERS; i++) {
            struct worker *worker = &workers[i];
            const unsigned count = atomic_load(&worker->count);
            if (worker != other && worker->pid > 0 && atomic_load(&worker->leads) && count > 0 &&
                atomic_load(&worker->terms[count - 1].fence) > above) {
                return worker;
            }
        }
        guard(since, "somebody is to lead");
        nap();
    }
}

uint64_t workers_highest_fence(void)
{
    uint64_t highest = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        const unsigned count = atomic_load(&workers[i].count);
        for (unsigned k = 0; k < count; k++) {
            const uint64_t fence = atomic_load(&workers[i].terms[k].fence);
            highest = fence > highest ? fence : highest;
        }
    }
    return highest;
}

static int by_fence(const void *a, const void *b)
{
    const uint64_t x = atomic_load(&((const struct worker_term *)a)->fence);
    const uint64_t y = atomic_load(&((const struct worker_term *)b)->fence);
    return x < y ? -1 : x > y;
}

unsigned workers_check(void)
{
    static struct worker_term all[WORKERS * WORKER_TERMS];
    size_t total = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        const unsigned count = atomic_load(&workers[i].count);
        for (unsigned k = 0; k < count; k++) {
            atomic_store(&all[total].fence, atomic_load(&workers[i].terms[k].fence));
            atomic_store(&all[total].first, atomic_load(&workers[i].terms[k].first));
            atomic_store(&all[total].last, atomic_load(&workers[i].terms[k].last));
            total++;
        }
    }
    qsort(all, total, sizeof all[0], by_fence);
    for (size_t i = 1; i < total; i++) {
        assert_true(all[i].fence > all[i - 1].fence);
        /* In the order of their fences each began when the one before had said its last yes. */
        if (all[i].first <= all[i - 1].last) {
            fail_msg("two leaders for %llu us",
                     (unsigned long long)(all[i - 1].last - all[i].first) / 1000);
        }
    }
    return (unsigned)total;
}

void worker_wait_stopped(const struct worker *worker)
{
    int status = 0;
    assert_int_equal(waitpid(worker->pid, &status, WUNTRACED), worker->pid);
    assert_true(WIFSTOPPED(status));
}
