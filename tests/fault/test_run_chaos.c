/* SPDX-License-Identifier: MIT
 * tests/fault/test_run_chaos.c - several `coordctl run --restart` while coordctl and guardians are
 * killed and stopped at random times: work of two terms never overlaps.
 *
 * COORD_CHAOS_ROUNDS and COORD_CHAOS_SEED say how much and which; both are printed.
 */
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    FLEET = 4,
    ROUNDS = 16,
    SMALL_PAUSE_MS = 400, /* past some deadlines of a lease of 500 ms, and not past others */
    LONG_STOP_MS = 900    /* past its end */
};

struct fleet {
    struct scene scene;
    struct coordctl members[FLEET];
    uint64_t random;
    unsigned started;
};

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static unsigned draw(struct fleet *fleet, unsigned below)
{
    fleet->random = fleet->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(fleet->random >> 33) % below;
}

static void let_time_pass(unsigned ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static void start_member(struct fleet *fleet, unsigned i)
{
    static const char *const work[] = {"beat", "deaf", "daemon", "polite"};
    char id[16];
    snprintf(id, sizeof id, "m%u", fleet->started++);
    coordctl_run(&fleet->scene, &fleet->members[i], id, work[draw(fleet, 4)], WORDS("--restart"));
}

static int set_up(void **state)
{
    static struct fleet fleet;
    scene_open(&fleet.scene, "coord.ttl=500ms");
    fleet.random = from_environment("COORD_CHAOS_SEED", (uint64_t)time(NULL));
    print_message("COORD_CHAOS_SEED=%llu\n", (unsigned long long)fleet.random);
    for (unsigned i = 0; i < FLEET; i++) {
        start_member(&fleet, i);
    }
    *state = &fleet;
    return 0;
}

static int tear_down(void **state)
{
    scene_close(&((struct fleet *)*state)->scene);
    return 0;
}

/* One whose guardian was killed again and again, right after its start, gives up and says so. */
static void replace_who_gave_up(struct fleet *fleet)
{
    for (unsigned i = 0; i < FLEET; i++) {
        char text[COORDCTL_TEXT];
        if (coordctl_ended(&fleet->members[i])) {
            coordctl_output(fleet->members[i].err, text);
            if (coordctl_wait(&fleet->members[i]) != 125 ||
                strstr(text, "processes named coord-guardian") == NULL) {
                fail_msg("a member has ended: %s", text);
            }
            start_member(fleet, i);
        }
    }
}

/* Whoever leads is the one worth hurting; the others take their turn. */
static unsigned choose(struct fleet *fleet)
{
    unsigned best = draw(fleet, FLEET);
    for (unsigned i = 0; i < FLEET && draw(fleet, 4) != 0; i++) {
        const pid_t guardian = guardian_of(&fleet->members[i]);
        if (has_child(guardian)) {
            best = i;
        }
    }
    return best;
}

/* One of the two, never both: that is what is promised. */
static void hurt(struct fleet *fleet)
{
    const unsigned i = choose(fleet);
    struct coordctl *member = &fleet->members[i];
    const pid_t victim = draw(fleet, 2) == 0 ? member->pid : guardian_of(member);
    if (draw(fleet, 2) == 0) {
        kill(victim, SIGKILL);
        if (victim == member->pid) {
            coordctl_wait(member);
            start_member(fleet, i);
        }
        return;
    }
    kill(victim, SIGSTOP);
    let_time_pass(draw(fleet, 2) == 0 ? LONG_STOP_MS : draw(fleet, SMALL_PAUSE_MS));
    kill(victim, SIGCONT);
}

static void test_run__chaos_never_makes_work_overlap(void **state)
{
    struct fleet *fleet = *state;
    const uint64_t rounds = from_environment("COORD_CHAOS_ROUNDS", ROUNDS);
    uint64_t fence = work_wait(&fleet->scene, 0, 1);
    for (uint64_t round = 0; round < rounds; round++) {
        let_time_pass(draw(fleet, SMALL_PAUSE_MS));
        replace_who_gave_up(fleet);
        hurt(fleet);
        work_check(&fleet->scene);
    }
    const unsigned before = atomic_load(&fleet->scene.work->count);
    for (unsigned i = 0; i < FLEET; i++) {
        kill(fleet->members[i].pid, SIGKILL);
        coordctl_wait(&fleet->members[i]);
    }
    work_wait_gone(&fleet->scene, UINT64_MAX);
    work_check(&fleet->scene);
    assert_true(before > 0);
    assert_true(fence > 0);
    print_message("%llu rounds, %u processes of work\n", (unsigned long long)rounds, before);
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run__chaos_never_makes_work_overlap, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
