/* SPDX-License-Identifier: MIT
 * tests/fault/test_file.c - the file elector on real files, attacked from within one process.
 */
#include "electors/file.h"
#include "tests/support/file_scene.h"
#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- what it is for */

static void test_file__two_of_one_process_exclude_each_other(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    fleet_drive(&fleet, 3 * TTL);
    assert_true(fleet_leads(a));
    assert_false(fleet_leads(b));
    assert_int_equal(fleet_reason(b), COORD_REASON_HELD);
    assert_string_equal(b->lease->leader.identity, "a");
    coord_lease_withdraw(a->lease, fleet_now());
    fleet_until(&fleet, fleet_leads, b);
    assert_int_equal(a->lease->release, COORD_RELEASE_RELEASED);
    assert_int_equal(a->started, 1);
    assert_int_equal(b->started, 1);
}

static void test_file__a_new_folder_is_made_private_and_owes_a_lease(void **state)
{
    (void)state;
    struct stat st;
    struct fleet_member *a = add("a");
    const coord_ms begun = fleet_now();
    stand(a);
    fleet_drive(&fleet, TTL / 4);
    assert_int_equal(fleet_reason(a), COORD_REASON_TAKING_OVER);
    fleet_until(&fleet, fleet_leads, a);
    assert_true(fleet_now() >= begun + TTL);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    find_path();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(st.st_blocks * 512 >= st.st_size); /* reserved */
}

static void test_file__who_only_observes_makes_nothing(void **state)
{
    (void)state;
    struct fleet_member *a = add("a");
    assert_int_equal(query(a, COORD_VERB_OBSERVE), COORD_FREE);
    assert_int_not_equal(access(folder, F_OK), 0);
    struct fleet_member *b = leader("b");
    assert_int_equal(query(a, COORD_VERB_OBSERVE), COORD_HELD);
    assert_true(a->lease->leader.leading);
    assert_string_equal(a->lease->leader.identity, "b");
    assert_int_equal(a->lease->leader.fence, b->fence);
    assert_in_range(a->lease->leader.remaining, 1, TTL);
}

static void test_file__a_request_to_step_down_is_heard(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    struct fleet_member *c = add("c");
    stand(b);
    stand(c);
    struct fleet_member *d = add("d");
    assert_int_equal(fleet_query(&fleet, d,
                                 &(struct coord_request){.verb = COORD_VERB_ASK,
                                                         .fence = a->fence,
                                                         .successor = "c",
                                                         .reserve = 2 * TTL}),
                     COORD_DONE);
    fleet_until(&fleet, fleet_leads, c);
    assert_int_equal(b->started, 0);
    assert_int_equal(a->lease->last_end, COORD_END_STEPPED_DOWN);
}

static void test_file__no_renewal_wakes_those_who_watch(void **state)
{
    (void)state;
    leader("a");
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF) >= 0);
    fleet_drive(&fleet, 2 * TTL);
    char events[256];
    assert_int_equal(read(watch, events, sizeof events), -1);
    close(watch);
}

static void test_file__a_thousand_terms_leave_nothing(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    unsigned fds = 0;
    size_t heap = 0;
    for (int i = 0; i < 1000; i++) {
        struct fleet_member *from = i % 2 == 0 ? a : b;
        struct fleet_member *to = i % 2 == 0 ? b : a;
        coord_lease_withdraw(from->lease, fleet_now());
        fleet_until(&fleet, fleet_leads, to);
        fleet_until(&fleet, fleet_settled, from);
        coord_lease_stand(from->lease, fleet_now());
        if (i == 10) {
            fds = files_in("/proc/self/fd");
            heap = mallinfo2().uordblks;
        }
    }
    assert_int_equal(files_in("/proc/self/fd"), fds);
    assert_in_range(mallinfo2().uordblks, 0, heap + 4096);
    assert_true(a->started + b->started >= 1000);
}

/* ---------------------------------------------------------------- files that change */

static bool lost_a_term(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->stopped > 0;
}

/* In all of these the fleet watches that nobody ever leads beside another. */
static void after_the_attack(struct fleet_member *a, struct fleet_member *b)
{
    fleet_until(&fleet, lost_a_term, a);
    coord_lease_withdraw(a->lease, fleet_now());
    fleet_until(&fleet, fleet_leads, b);
    assert_true(b->fence > a->fence);
}

static void test_file__a_file_removed_under_its_leader(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    fleet_drive(&fleet, 20);
    assert_int_equal(unlink(path), 0);
    after_the_attack(a, b);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
    assert_true(fleet_logged(&fleet, "removed while it was held"));
}

static void test_file__a_folder_removed_under_a_stopped_leader(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    fleet_drive(&fleet, 20);
    a->stuck = true; /* it believes until its lease is over */
    remove_tree(folder);
    struct fleet_member *b = add("b");
    stand(b);
    fleet_until(&fleet, fleet_leads, b);
    a->stuck = false;
    after_the_attack(a, b);
}

static void test_file__a_folder_moved_away(void **state)
{
    (void)state;
    char away[128];
    struct fleet_member *a = leader("a");
    snprintf(away, sizeof away, "%s.away", folder);
    assert_int_equal(rename(folder, away), 0);
    struct fleet_member *b = add("b");
    stand(b);
    after_the_attack(a, b);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
}

static void copy_file(const char *from, const char *to, int flags)
{
    static char bytes[1 << 20];
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = open(to, O_WRONLY | O_CLOEXEC | flags, 0600);
    assert_true(in >= 0);
    assert_true(out >= 0);
    const ssize_t got = read(in, bytes, sizeof bytes);
    assert_true(got > 0);
    assert_int_equal(write(out, bytes, (size_t)got), got);
    close(in);
    close(out);
}

/* As sed -i, rsync and a restore do it: valid slots, no locks. */
static void test_file__a_copy_put_in_its_place(void **state)
{
    (void)state;
    char copy[600];
    struct fleet_member *a = leader("a");
    fleet_drive(&fleet, 20);
    a->stuck = true;
    snprintf(copy, sizeof copy, "%s.copy", path);
    copy_file(path, copy, O_CREAT);
    assert_int_equal(rename(copy, path), 0);
    struct fleet_member *b = add("b");
    stand(b);
    fleet_until(&fleet, fleet_leads, b);
    a->stuck = false;
    after_the_attack(a, b);
}

/* As cp does it: the same inode, older content. The leader's byte is still locked. */
static void test_file__an_old_copy_written_over_it(void **state)
{
    (void)state;
    char copy[600];
    struct fleet_member *a = leader("a");
    snprintf(copy, sizeof copy, "%s/copy", base);
    copy_file(path, copy, O_CREAT);
    coord_lease_withdraw(a->lease, fleet_now());
    fleet_until(&fleet, fleet_settled, a);
    stand(a);
    fleet_until(&fleet, fleet_leads, a);
    copy_file(copy, path, O_TRUNC);
    struct fleet_member *b = add("b");
    stand(b);
    fleet_drive(&fleet, 2 * TTL);
    assert_true(fleet_leads(a)); /* its next renewal wrote its slot again */
    coord_lease_withdraw(a->lease, fleet_now());
    fleet_until(&fleet, fleet_leads, b);
}

static void test_file__truncated_under_a_stopped_leader(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    fleet_drive(&fleet, 20);
    a->stuck = true;
    assert_int_equal(truncate(path, 0), 0);
    struct fleet_member *b = add("b");
    stand(b);
    fleet_until(&fleet, fleet_leads, b);
    a->stuck = false;
    fleet_until(&fleet, lost_a_term, a);
}

static void test_file__truncated_under_a_living_leader(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    assert_int_equal(truncate(path, 0), 0);
    fleet_drive(&fleet, 2 * TTL);
    assert_true(fleet_leads(a));
    assert_int_equal(a->started, 1);
}

/* ---------------------------------------------------------------- descriptors */

static void test_file__a_host_that_closes_the_descriptor_loses_the_term(void **state)
{
    (void)state;
    int pair[2];
    struct fleet_member *a = leader("a");
    const int fd = coord_file_elector_liveness_fd(a->elector);
    assert_true(fd >= 0);
    /* The number is another file's now: it is neither written to nor closed. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(dup2(pair[0], fd), fd);
    close(pair[0]);
    fleet_until(&fleet, lost_a_term, a);
    assert_true(fleet_logged(&fleet, "daemonising"));
    fleet_until(&fleet, fleet_leads, a); /* and it stands again, with a new descriptor */
    char byte;
    assert_int_equal(read(pair[1], &byte, 1), -1);
    fleet_drop(a);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(pair[1], &byte, 1), 1);
    close(fd);
    close(pair[1]);
}

static void test_file__a_copy_of_the_descriptor_holds_the_term(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    const int copy = dup(coord_file_elector_liveness_fd(a->elector));
    const coord_ms died = fleet_now();
    fleet_drop(a);
    fleet_drive(&fleet, TTL / 4);
    assert_false(fleet_leads(b));
    close(copy); /* the guardian has done its work */
    fleet_until(&fleet, fleet_leads, b);
    assert_true(fleet_now() < died + 20 * TTL);
}

static int freed_in_child(void)
{
    coord_elector_free(fleet.members[0].elector, true);
    return 0;
}

static void test_file__a_forked_child_that_frees_it_changes_nothing(void **state)
{
    (void)state;
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    assert_int_equal(in_child(freed_in_child), 0);
    fleet_drive(&fleet, 2 * TTL);
    assert_true(fleet_leads(a));
    assert_int_equal(b->started, 0);
    coord_lease_withdraw(a->lease, fleet_now());
    fleet_until(&fleet, fleet_leads, b);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_file__##name, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        T(two_of_one_process_exclude_each_other),
        T(a_new_folder_is_made_private_and_owes_a_lease),
        T(who_only_observes_makes_nothing),
        T(a_request_to_step_down_is_heard),
        T(no_renewal_wakes_those_who_watch),
        T(a_thousand_terms_leave_nothing),
        T(a_file_removed_under_its_leader),
        T(a_folder_removed_under_a_stopped_leader),
        T(a_folder_moved_away),
        T(a_copy_put_in_its_place),
        T(an_old_copy_written_over_it),
        T(truncated_under_a_stopped_leader),
        T(truncated_under_a_living_leader),
        T(a_host_that_closes_the_descriptor_loses_the_term),
        T(a_copy_of_the_descriptor_holds_the_term),
        T(a_forked_child_that_frees_it_changes_nothing),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
