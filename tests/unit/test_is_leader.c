/* SPDX-License-Identifier: MIT
 * tests/unit/test_is_leader.c - asking whether one leads makes no system call.
 */
#include "electors/memory.h"
#include "runtime/election.h"
#include "tests/support/sanitized.h"
#include "tests/support/support.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    CALLS = 100000,
    GUARD = 30000, /* ms */
    NO_SECCOMP = 3,
    NO_LEADER = 4
};

#if !SANITIZED

/*
 * From here on any system call but exit ends this process. The strict mode of seccomp would do so
 * for the processor's time stamp as well, by which clocks are read without a call.
 */
static bool forbid_calls(void)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

_Noreturn static void leave(int status)
{
    for (;;) {
        syscall(SYS_exit, status); /* _exit() makes another call */
    }
}

_Noreturn static void read_the_clock(void)
{
    coord_clock_now(); /* the first one looks for it */
    if (!forbid_calls()) {
        leave(NO_SECCOMP);
    }
    for (int i = 0; i < CALLS; i++) {
        coord_clock_now();
    }
    leave(0);
}

/* Without a thread: it would outlive the one that leaves. */
_Noreturn static void ask_often(void)
{
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_election *election = NULL;
    int yes = 0;
    config.name = "jobs";
    config.name_bytes = 4;
    config.ttl = 600000;
    if (coord_runtime_new(NULL, &runtime, NULL) != COORD_OK ||
        coord_election_open_backend(runtime, coord_memory_elector(), NULL, &config, &election,
                                    NULL) != COORD_OK ||
        coord_election_try_acquire(election, GUARD, NULL) != COORD_OK ||
        !coord_election_is_leader(election)) {
        leave(NO_LEADER);
    }
    if (!forbid_calls()) {
        leave(NO_SECCOMP);
    }
    for (int i = 0; i < CALLS; i++) {
        yes += coord_election_is_leader(election);
    }
    leave(yes == CALLS ? 0 : NO_LEADER);
}

_Noreturn static void make_a_call(void)
{
    if (!forbid_calls()) {
        leave(NO_SECCOMP);
    }
    syscall(SYS_getppid);
    leave(0);
}

/* @return its wait status. */
static int status_of_child(void (*run)(void))
{
    int status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run();
        leave(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void skip_without_seccomp(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SECCOMP) {
        skip_because("no seccomp filter can be set: use a kernel with CONFIG_SECCOMP_FILTER");
    }
}

static void test_is_leader__makes_no_system_call(void **state)
{
    (void)state;
    const int clock = status_of_child(read_the_clock);
    skip_without_seccomp(clock);
    if (WIFSIGNALED(clock)) {
        skip_because("this machine's clock is itself a system call: use one with a clock in the "
                     "vDSO (/sys/devices/system/clocksource)");
    }
    const int status = status_of_child(ask_often);
    assert_false(WIFSIGNALED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_is_leader__a_system_call_would_be_noticed(void **state)
{
    (void)state;
    const int status = status_of_child(make_a_call);
    skip_without_seccomp(status);
    assert_true(WIFSIGNALED(status));
}

#else

/* A sanitizer makes calls of its own. */
static void test_is_leader__is_looked_at_in_the_plain_build(void **state)
{
    (void)state;
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if SANITIZED
        cmocka_unit_test(test_is_leader__is_looked_at_in_the_plain_build),
#else
        cmocka_unit_test(test_is_leader__makes_no_system_call),
        cmocka_unit_test(test_is_leader__a_system_call_would_be_noticed),
#endif
    };
    return cmocka_run_group_tests_name("is_leader", tests, NULL, NULL);
}
