/* SPDX-License-Identifier: MIT
 * tests/fault/test_file_processes.c - the file elector among real processes: killed, stopped,
 * forked, in another time namespace; twenty at once.
 *
 * What each answered lies in shared memory; workers_check() fails if two ever said yes at once.
 */
#include "electors/file.h"
#include "tests/support/file_worker.h"
#include "tests/support/fleet.h"
#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define TTL 1000

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static char base[64];
static char uri[128];

static void init_record(void)
{
    static struct fleet fleet;
    fleet_init(&fleet, coord_file_elector());
    struct fleet_member *member =
        fleet_add(&fleet, &(struct fleet_member_options){
                              .name = "jobs", .identity = "operator", .uri = uri, .ttl = TTL});
    assert_non_null(member);
    assert_int_equal(fleet_query(&fleet, member, &(struct coord_request){.verb = COORD_VERB_INIT}),
                     COORD_DONE);
    fleet_fini(&fleet);
}

static int setup(void **state)
{
    (void)state;
    scratch_make("file", base, sizeof base);
    snprintf(uri, sizeof uri, "file:%s", base);
    workers_init();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    workers_fini();
    scratch_remove(base);
    return 0;
}

static struct worker *start(unsigned index)
{
    return worker_start(index, &(struct worker_options){.uri = uri, .name = "jobs", .ttl = TTL});
}

static struct worker *start_leader(unsigned index)
{
    struct worker *worker = start(index);
    worker_wait_leads(worker, true);
    return worker;
}

static void sleep_ms(unsigned ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static uint64_t last_fence(const struct worker *worker)
{
    return atomic_load(&worker->terms[atomic_load(&worker->count) - 1].fence);
}

static uint64_t last_yes(const struct worker *worker)
{
    return atomic_load(&worker->terms[atomic_load(&worker->count) - 1].last);
}

static uint64_t first_yes(const struct worker *worker)
{
    return atomic_load(&worker->terms[atomic_load(&worker->count) - 1].first);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---------------------------------------------------------------- killed */

static void test_file__a_killed_leader_is_followed_at_once(void **state)
{
    (void)state;
    enum {
        KILLS = 40
    };
    uint64_t took[KILLS];
    init_record();
    start(0);
    start(1);
    start(2);
    struct worker *leader = workers_wait_leader(0, NULL);
    for (unsigned i = 0; i < KILLS; i++) {
        const uint64_t fence = last_fence(leader);
        sleep_ms(20); /* so that the others are waiting */
        const uint64_t killed = worker_now_ns();
        worker_signal(leader, SIGKILL);
        struct worker *next = workers_wait_leader(fence, leader);
        took[i] = (first_yes(next) - killed) / 1000;
        worker_kill(leader);
        start((unsigned)(leader - worker_at(0)));
        leader = next;
    }
    qsort(took, KILLS, sizeof took[0], by_number);
    print_message("kill -9 to leads: median %llu us, worst %llu us\n",
                  (unsigned long long)took[KILLS / 2], (unsigned long long)took[KILLS - 1]);
    assert_true(workers_check() > KILLS);
}

static void test_file__a_resignation_is_followed_at_once(void **state)
{
    (void)state;
    enum {
        TIMES = 40
    };
    uint64_t took[TIMES];
    init_record();
    start(0);
    start(1);
    struct worker *leader = workers_wait_leader(0, NULL);
    for (unsigned i = 0; i < TIMES; i++) {
        const uint64_t fence = last_fence(leader);
        sleep_ms(20);
        atomic_store(&leader->withdraw, true);
        struct worker *next = workers_wait_leader(fence, leader);
        took[i] = (first_yes(next) - last_yes(leader)) / 1000;
        while (!atomic_load(&leader->settled)) {
            sleep_ms(1);
        }
        atomic_store(&leader->stand_again, true);
        leader = next;
    }
    qsort(took, TIMES, sizeof took[0], by_number);
    print_message("last yes to next yes: median %llu us, worst %llu us\n",
                  (unsigned long long)took[TIMES / 2], (unsigned long long)took[TIMES - 1]);
    assert_true(workers_check() > TIMES);
}

/* Told by SIGUSR1 a worker forks a child, which does nothing but keep what is open. */
static void on_usr1(int signal)
{
    (void)signal;
    if (fork() == 0) {
        alarm(60); /* should nobody end it */
        for (;;) {
            pause();
        }
    }
}

static void arm_usr1(void *ctx)
{
    const struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
    (void)ctx;
    sigaction(SIGUSR1, &action, NULL);
}

static pid_t child_of(pid_t pid)
{
    char name[64];
    char text[64] = "";
    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    for (int i = 0; i < 5000; i++) {
        const int fd = open(name, O_RDONLY | O_CLOEXEC);
        const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0) {
            close(fd);
        }
        if (got > 0) {
            text[got] = '\0';
            return (pid_t)strtol(text, NULL, 10);
        }
        sleep_ms(1);
    }
    return 0;
}

static void test_file__a_child_that_keeps_the_descriptor_delays_by_one_lease(void **state)
{
    (void)state;
    init_record();
    struct worker *a = worker_start(
        0, &(struct worker_options){.uri = uri, .name = "jobs", .ttl = TTL, .before = arm_usr1});
    worker_wait_leads(a, true);
    struct worker *b = start(1);
    sleep_ms(20);
    worker_signal(a, SIGUSR1);
    const pid_t child = child_of(a->pid);
    assert_true(child > 0);
    const uint64_t died = worker_now_ns();
    worker_kill(a);
    worker_wait_leads(b, true);
    assert_true(first_yes(b) > died + 100 * UINT64_C(1000000)); /* it held; not at once */
    kill(child, SIGKILL);
    workers_check();
}

/* ---------------------------------------------------------------- stopped */

static void test_file__a_stopped_leader_is_followed_when_its_lease_is_over(void **state)
{
    (void)state;
    init_record();
    struct worker *a = start_leader(0);
    struct worker *b = start(1);
    sleep_ms(50);
    worker_signal(a, SIGSTOP);
    worker_wait_stopped(a);
    worker_wait_leads(b, true);
    worker_signal(a, SIGCONT);
    worker_wait_leads(a, false);
    sleep_ms(TTL);
    assert_true(atomic_load(&b->leads));
    assert_int_equal(workers_check(), 2);
}

/* With one lock for all terms this makes two leaders: the kernel frees it when the old one dies. */
static void test_file__a_stopped_leader_that_is_killed_at_last_changes_nothing(void **state)
{
    (void)state;
    init_record();
    struct worker *a = start_leader(0);
    struct worker *b = start(1);
    struct worker *c = start(2);
    sleep_ms(50);
    worker_signal(a, SIGSTOP);
    worker_wait_stopped(a);
    struct worker *next = workers_wait_leader(last_fence(a), a);
    worker_kill(a);
    sleep_ms(2 * TTL);
    assert_true(atomic_load(&next->leads));
    assert_false(atomic_load(&(next == b ? c : b)->leads));
    assert_int_equal(workers_check(), 2);
}

static void test_file__a_stopped_leader_comes_back_after_150_terms(void **state)
{
    (void)state;
    init_record();
    struct worker *a = start_leader(0);
    sleep_ms(50);
    worker_signal(a, SIGSTOP);
    worker_wait_stopped(a);
    start(1);
    start(2);
    struct worker *leader = workers_wait_leader(last_fence(a), a);
    for (unsigned i = 0; i < 150; i++) {
        const uint64_t fence = last_fence(leader);
        atomic_store(&leader->withdraw, true);
        struct worker *next = workers_wait_leader(fence, leader);
        while (!atomic_load(&leader->settled)) {
            sleep_ms(1);
        }
        atomic_store(&leader->stand_again, true);
        leader = next;
    }
    worker_signal(a, SIGCONT);
    worker_wait_leads(a, false);
    sleep_ms(TTL);
    assert_true(atomic_load(&leader->leads));
    worker_kill(leader);
    workers_wait_leader(last_fence(leader), leader);
    assert_true(workers_check() >= 153);
}

/* ---------------------------------------------------------------- another clock */

struct shift {
    int64_t ms;
};

static atomic_bool *not_permitted;

/* A process is in a new time namespace only after its next fork, or when it enters it. */
static void shift_clock(void *ctx)
{
    const struct shift *shift = ctx;
    char text[64];
    const int bytes =
        snprintf(text, sizeof text, "boottime %lld %lld\n", (long long)(shift->ms / 1000), 0LL);
    bool ok = unshare(CLONE_NEWTIME) == 0;
    if (ok) {
        const int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
        ok = fd >= 0 && write(fd, text, (size_t)bytes) == bytes;
        if (fd >= 0) {
            close(fd);
        }
    }
    if (ok) {
        const int ns = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
        ok = ns >= 0 && setns(ns, CLONE_NEWTIME) == 0;
        if (ns >= 0) {
            close(ns);
        }
    }
    if (!ok) {
        atomic_store(not_permitted, true);
        _exit(0);
    }
}

static struct worker *start_shifted(unsigned index, struct shift *shift)
{
    return worker_start(index, &(struct worker_options){.uri = uri,
                                                        .name = "jobs",
                                                        .ttl = TTL,
                                                        .clock_offset_ms = shift->ms,
                                                        .before = shift_clock,
                                                        .ctx = shift});
}

static void test_file__a_rival_in_another_time_namespace_is_no_danger(void **state)
{
    (void)state;
    struct shift shift = {.ms = 1000 * 1000};
    not_permitted = mmap(NULL, sizeof *not_permitted, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(not_permitted, MAP_FAILED);
    init_record();
    struct worker *a = start_leader(0);
    struct worker *b = start_shifted(1, &shift);
    sleep_ms(4 * TTL); /* by its clock the leader's lease is long over */
    if (atomic_load(not_permitted)) {
        munmap(not_permitted, sizeof *not_permitted);
        skip_because("needs the right to make a time namespace");
    }
    assert_true(atomic_load(&a->leads));
    assert_false(atomic_load(&b->leads));
    /* A stopped one is passed when it has not moved for a lease, a dead one at once. */
    worker_signal(a, SIGSTOP);
    worker_wait_stopped(a);
    worker_wait_leads(b, true);
    worker_signal(a, SIGCONT);
    worker_wait_leads(a, false);
    sleep_ms(2 * TTL);
    assert_true(atomic_load(&b->leads));
    worker_kill(b);
    worker_wait_leads(a, true);
    workers_check();
    munmap(not_permitted, sizeof *not_permitted);
}

/* ---------------------------------------------------------------- many */

static uint64_t random_state = 20250101;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

static void test_file__twenty_workers_in_a_storm(void **state)
{
    (void)state;
    enum {
        MANY = 20
    };
    bool stopped[MANY] = {false};
    const struct worker_options options = {.uri = uri, .name = "jobs", .ttl = 200, .hold_ms = 700};
    for (unsigned i = 0; i < MANY; i++) {
        worker_start(i, &options);
    }
    const uint64_t end = worker_now_ns() + UINT64_C(12) * 1000000000;
    while (worker_now_ns() < end) {
        const unsigned i = draw(MANY);
        struct worker *worker = worker_at(i);
        /* Leaders more often than others. */
        if (!atomic_load(&worker->leads) && draw(4) > 0) {
            sleep_ms(1);
            continue;
        }
        if (stopped[i]) {
            worker_signal(worker, SIGCONT);
            stopped[i] = false;
        } else if (draw(3) == 0) {
            worker_kill(worker);
            worker_start(i, &options);
        } else {
            worker_signal(worker, SIGSTOP);
            stopped[i] = true;
        }
        sleep_ms(draw(60));
    }
    for (unsigned i = 0; i < MANY; i++) {
        if (stopped[i]) {
            worker_signal(worker_at(i), SIGCONT);
        }
    }
    /* After the faults there is a leader. */
    workers_wait_leader(workers_highest_fence(), NULL);
    const unsigned terms = workers_check();
    print_message("%u terms\n", terms);
    assert_true(terms > 10);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_file__##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_killed_leader_is_followed_at_once),
        T(a_resignation_is_followed_at_once),
        T(a_child_that_keeps_the_descriptor_delays_by_one_lease),
        T(a_stopped_leader_is_followed_when_its_lease_is_over),
        T(a_stopped_leader_that_is_killed_at_last_changes_nothing),
        T(a_stopped_leader_comes_back_after_150_terms),
#ifndef __SANITIZE_THREAD__
        T(a_rival_in_another_time_namespace_is_no_danger),
#endif
        T(twenty_workers_in_a_storm),
    };
#undef T
#ifdef __SANITIZE_THREAD__
    print_message("a_rival_in_another_time_namespace_is_no_danger is left to the other builds: a "
                  "process with the sanitizer's thread in it cannot enter a namespace\n");
    (void)test_file__a_rival_in_another_time_namespace_is_no_danger;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
