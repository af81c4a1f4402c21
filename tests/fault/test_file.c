/* SPDX-License-Identifier: MIT
 * tests/fault/test_file.c - the file elector on real files, attacked from within one process.
 *
 * tests/fault/test_file_processes.c has the attacks that need more than one.
 */
#include "electors/file.h"
#include "tests/support/fleet.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TTL 600

static struct fleet fleet;
static char base[64];   /* of this test */
static char folder[80]; /* of the election */
static char uri[160];
static char path[512]; /* of its file, once it is there */

/* ---------------------------------------------------------------- a scene */

static int setup(void **state)
{
    (void)state;
    snprintf(base, sizeof base, "/tmp/coord-file-XXXXXX");
    assert_non_null(mkdtemp(base));
    snprintf(folder, sizeof folder, "%s/election", base);
    snprintf(uri, sizeof uri, "file:%s", folder);
    fleet_init(&fleet, coord_file_elector());
    return 0;
}

static void remove_tree(const char *top)
{
    DIR *dir = opendir(top);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        snprintf(inner, sizeof inner, "%s/%s", top, entry->d_name);
        if (unlink(inner) != 0) {
            remove_tree(inner);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(top);
}

static int teardown(void **state)
{
    (void)state;
    fleet_fini(&fleet);
    remove_tree(base);
    return 0;
}

static struct fleet_member *add(const char *identity)
{
    struct fleet_member *member =
        fleet_add(&fleet, &(struct fleet_member_options){
                              .name = "jobs", .identity = identity, .uri = uri, .ttl = TTL});
    assert_non_null(member);
    return member;
}

static void stand(struct fleet_member *member)
{
    coord_lease_stand(member->lease, fleet_now());
}

static enum coord_outcome query(struct fleet_member *member, enum coord_verb verb)
{
    return fleet_query(&fleet, member, &(struct coord_request){.verb = verb});
}

static void find_path(void)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    path[0] = '\0';
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(dir);
}

static unsigned files_in(const char *where)
{
    DIR *dir = opendir(where);
    const struct dirent *entry;
    unsigned count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* One leads, on a clear record. */
static struct fleet_member *leader(const char *identity)
{
    struct fleet_member *member = add(identity);
    assert_int_equal(query(member, COORD_VERB_INIT), COORD_DONE);
    stand(member);
    fleet_until(&fleet, fleet_leads, member);
    find_path();
    return member;
}

static bool has_error(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code != COORD_OK;
}

static void assert_refused(struct fleet_member *member, enum coord_err code, const char *cure)
{
    stand(member);
    fleet_until(&fleet, has_error, member);
    if (member->lease->error.code != code || strstr(member->lease->error.text, cure) == NULL) {
        fail_msg("%s, not %s: %s", coord_err_name(member->lease->error.code), coord_err_name(code),
                 member->lease->error.text);
    }
}

/* Run something in a child, which may change itself for good. @return its exit status. */
static int in_child(int (*body)(void))
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* What in_child() gives back when this machine does not permit what it needs. */
enum {
    NOT_PERMITTED = 77
};

static void assert_child(int (*body)(void), const char *needs)
{
    const int status = in_child(body);
    if (status == NOT_PERMITTED) {
        skip_because(needs);
    }
    assert_int_equal(status, 0);
}

/* In a child, where an assert of cmocka would run the rest of the tests a second time. */
#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            print_message("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                             \
        }                                                                         \
    } while (0)

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

/* ---------------------------------------------------------------- names */

static void add_named(const char *name)
{
    struct fleet_member *member = fleet_add(
        &fleet,
        &(struct fleet_member_options){.name = name, .identity = "a", .uri = uri, .ttl = TTL});
    assert_non_null(member);
    snprintf(member->name, sizeof member->name, "%zu", fleet.count); /* the fleet's would be cut */
    assert_int_equal(query(member, COORD_VERB_INIT), COORD_DONE);
    stand(member);
    fleet_until(&fleet, fleet_leads, member);
}

static void test_file__every_name_has_a_file_of_its_own(void **state)
{
    (void)state;
    char longest[256];
    memset(longest, 'x', 255);
    longest[255] = '\0';
    char other[256];
    memcpy(other, longest, sizeof other);
    other[254] = 'y';
    add_named("a/b");
    add_named("a_b");
    add_named("../../etc");
    add_named(".");
    add_named("\xc3\xbc \n{}%");
    add_named(longest);
    add_named(other);
    assert_int_equal(files_in(folder), 7);
    assert_int_equal(files_in(base), 1);
}

static void test_file__a_file_of_another_name_is_refused(void **state)
{
    (void)state;
    char there[512];
    leader("a");
    snprintf(there, sizeof there, "%s", path);
    assert_int_equal(rename(path, "/tmp/coord-file-kept"), 0);
    fleet_fini(&fleet);
    fleet_init(&fleet, coord_file_elector());
    add_named("other");
    find_path();
    assert_int_equal(rename(path, there), 0);
    unlink("/tmp/coord-file-kept");
    assert_refused(add("b"), COORD_E_KEY_COLLISION, "another folder");
}

/* ---------------------------------------------------------------- what lies in the way */

static void test_file__something_else_under_the_path_is_refused(void **state)
{
    (void)state;
    leader("a");
    fleet_fini(&fleet);
    fleet_init(&fleet, coord_file_elector());
    struct fleet_member *b = add("b");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "this is the diary of somebody else\n");
    fclose(f);
    assert_refused(b, COORD_E_FOREIGN_RECORD, "remove it");
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_refused(add("c"), COORD_E_FOREIGN_RECORD, "symbolic link");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(add("d"), COORD_E_FOREIGN_RECORD, "no regular file");
}

static void test_file__a_newer_header_is_refused(void **state)
{
    (void)state;
    leader("a");
    fleet_fini(&fleet);
    fleet_init(&fleet, coord_file_elector());
    /* Kind, format 2, 12 bytes, and the checksum of these eight. */
    static const unsigned char newer[12] = {'c', 'N', 'A',  'M',  2,    0,
                                            12,  0,   0xa3, 0xb4, 0xa9, 0x4d};
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, newer, sizeof newer, 0), sizeof newer);
    close(fd);
    assert_refused(add("b"), COORD_E_NEWER_FORMAT, "update");
}

static void test_file__a_folder_without_a_parent_is_refused(void **state)
{
    (void)state;
    snprintf(uri, sizeof uri, "file:%s/no/such", base);
    assert_refused(add("a"), COORD_E_NOT_INITIALISED, "make the folder");
}

static void test_file__options_are_checked(void **state)
{
    (void)state;
    struct fleet_member_options options = {.name = "jobs", .identity = "a", .ttl = TTL};
    options.uri = "file:/tmp/x?coord.fs=maybe";
    assert_null(fleet_add(&fleet, &options));
    assert_int_equal(fleet.error.code, COORD_E_BAD_OPTION);
    options.uri = "file:";
    assert_null(fleet_add(&fleet, &options));
    options.uri = "file:/tmp/x?coord.pooler=session";
    assert_null(fleet_add(&fleet, &options));
    assert_int_equal(fleet.error.code, COORD_E_UNKNOWN_OPTION);
}

/* ---------------------------------------------------------------- files that change under a leader */

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

/* ---------------------------------------------------------------- what the system refuses */

static bool failed_with(enum coord_err code, const char *cure)
{
    struct fleet_member *member = fleet_add(
        &fleet,
        &(struct fleet_member_options){.name = "jobs", .identity = "x", .uri = uri, .ttl = TTL});
    if (member == NULL) {
        return false;
    }
    stand(member);
    fleet_until(&fleet, has_error, member);
    const struct coord_error *error = &member->lease->error;
    if (error->code != code || strstr(error->text, cure) == NULL) {
        print_message("%s: %s\n", coord_err_name(error->code), error->text);
        return false;
    }
    return true;
}

static int as_nobody(void)
{
    REQUIRE(mkdir(folder, 0755) == 0);
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return NOT_PERMITTED;
    }
    REQUIRE(failed_with(COORD_E_NO_RIGHT, "run as the one who owns it"));
    REQUIRE(files_in(folder) == 0);
    return 0;
}

static void test_file__a_folder_that_may_not_be_written(void **state)
{
    (void)state;
    chmod(base, 0755);
    assert_child(as_nobody, "needs root, to become an ordinary user");
}

static bool own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int on_read_only(void)
{
    mkdir(folder, 0700);
    if (!own_mounts() || mount("none", folder, "tmpfs", MS_RDONLY, NULL) != 0) {
        return NOT_PERMITTED;
    }
    REQUIRE(failed_with(COORD_E_READ_ONLY, "mounted read-only"));
    return 0;
}

static void test_file__a_file_system_that_is_read_only(void **state)
{
    (void)state;
    assert_child(on_read_only, "needs the right to mount in a namespace of its own");
}

static int observe_on_read_only(void)
{
    mkdir(folder, 0700);
    if (!own_mounts() || mount("none", folder, "tmpfs", 0, NULL) != 0) {
        return NOT_PERMITTED;
    }
    struct fleet_member *a = fleet_add(
        &fleet,
        &(struct fleet_member_options){.name = "jobs", .identity = "a", .uri = uri, .ttl = TTL});
    REQUIRE(a != NULL);
    REQUIRE(query(a, COORD_VERB_INIT) == COORD_DONE);
    fleet_drop(a);
    REQUIRE(mount("none", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) == 0);
    struct fleet_member *b = fleet_add(
        &fleet,
        &(struct fleet_member_options){.name = "jobs", .identity = "b", .uri = uri, .ttl = TTL});
    REQUIRE(b != NULL);
    REQUIRE(query(b, COORD_VERB_OBSERVE) == COORD_FREE);
    REQUIRE(b->lease->leader.last_fence > 0);
    return 0;
}

static void test_file__what_cannot_be_written_can_still_be_observed(void **state)
{
    (void)state;
    assert_child(observe_on_read_only, "needs the right to mount in a namespace of its own");
}

static int on_a_tiny_disk(void)
{
    mkdir(folder, 0700);
    if (!own_mounts() || mount("none", folder, "tmpfs", 0, "size=64k") != 0) {
        return NOT_PERMITTED;
    }
    REQUIRE(failed_with(COORD_E_NO_SPACE, "free some space"));
    REQUIRE(files_in(folder) == 0); /* nothing half-made */
    return 0;
}

static void test_file__a_disk_too_small(void **state)
{
    (void)state;
    assert_child(on_a_tiny_disk, "needs the right to mount in a namespace of its own");
}

static int on_a_disk_that_fills_up(void)
{
    static char bytes[4096];
    char filler[128];
    mkdir(folder, 0700);
    if (!own_mounts() || mount("none", folder, "tmpfs", 0, "size=256k") != 0) {
        return NOT_PERMITTED;
    }
    struct fleet_member *a = fleet_add(
        &fleet,
        &(struct fleet_member_options){.name = "jobs", .identity = "a", .uri = uri, .ttl = TTL});
    REQUIRE(a != NULL);
    REQUIRE(query(a, COORD_VERB_INIT) == COORD_DONE);
    snprintf(filler, sizeof filler, "%s/.filler", folder);
    const int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, bytes, sizeof bytes) > 0) {
    }
    stand(a);
    fleet_until(&fleet, fleet_leads, a);
    fleet_drive(&fleet, 2 * TTL);
    REQUIRE(fleet_leads(a));
    REQUIRE(a->started == 1);
    return 0;
}

static void test_file__a_disk_that_fills_up_stops_no_term(void **state)
{
    (void)state;
    assert_child(on_a_disk_that_fills_up, "needs the right to mount in a namespace of its own");
}

/* A file system on which files can be made, and that is on no list: huge pages. */
static int on_an_unknown_file_system(void)
{
    mkdir(folder, 0700);
    if (!own_mounts() || mount("none", folder, "hugetlbfs", 0, NULL) != 0) {
        return NOT_PERMITTED;
    }
    REQUIRE(failed_with(COORD_E_NOT_LOCAL, "coord.fs=trust"));
    REQUIRE(files_in(folder) == 0);
    snprintf(uri, sizeof uri, "file:%s?coord.fs=trust", folder);
    REQUIRE(!failed_with(COORD_E_NOT_LOCAL, ""));
    return 0;
}

static void test_file__a_file_system_that_is_not_known_to_be_local(void **state)
{
    (void)state;
    assert_child(on_an_unknown_file_system,
                 "needs the right to mount hugetlbfs in a namespace of its own");
}

static int under_a_limit(void)
{
    const struct rlimit limit = {1000, 1000};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    REQUIRE(failed_with(COORD_E_NO_SPACE, "ulimit -f"));
    REQUIRE(files_in(folder) == 0);
    return 0;
}

static void test_file__a_limit_for_files_kills_nobody(void **state)
{
    (void)state;
    assert_int_equal(in_child(under_a_limit), 0);
}

static int without_inotify(void)
{
    int taken = 0;
    while (inotify_init1(IN_CLOEXEC) >= 0) {
        taken++;
    }
    REQUIRE(taken > 0);
    struct fleet_member *a = leader("a");
    struct fleet_member *b = add("b");
    stand(b);
    fleet_drive(&fleet, TTL);
    REQUIRE(fleet_logged(&fleet, "cannot be watched"));
    REQUIRE(strstr(strstr(fleet.log, "cannot be watched") + 1, "cannot be watched") != NULL);
    REQUIRE(coord_elector_descriptors(a->elector, (struct coord_descriptor[4]){{0}}) == 0);
    fleet_drop(a);
    fleet_until(&fleet, fleet_leads, b);
    return 0;
}

static void test_file__without_inotify_timers_do(void **state)
{
    (void)state;
    assert_int_equal(in_child(without_inotify), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_file__##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(two_of_one_process_exclude_each_other),
        T(a_new_folder_is_made_private_and_owes_a_lease),
        T(who_only_observes_makes_nothing),
        T(a_request_to_step_down_is_heard),
        T(no_renewal_wakes_those_who_watch),
        T(a_thousand_terms_leave_nothing),
        T(every_name_has_a_file_of_its_own),
        T(a_file_of_another_name_is_refused),
        T(something_else_under_the_path_is_refused),
        T(a_newer_header_is_refused),
        T(a_folder_without_a_parent_is_refused),
        T(options_are_checked),
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
        T(a_folder_that_may_not_be_written),
        T(a_file_system_that_is_read_only),
        T(what_cannot_be_written_can_still_be_observed),
        T(a_disk_too_small),
        T(a_disk_that_fills_up_stops_no_term),
        T(a_file_system_that_is_not_known_to_be_local),
        T(a_limit_for_files_kills_nobody),
        T(without_inotify_timers_do),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
