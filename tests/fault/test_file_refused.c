/* SPDX-License-Identifier: MIT
 * tests/fault/test_file_refused.c - what the file elector refuses, and what is refused to it.
 */
#include "electors/file.h"
#include "tests/support/file_scene.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
    assert_int_equal(unlink(path), 0);
    fleet_fini(&fleet);
    fleet_init(&fleet, coord_file_elector());
    add_named("other");
    find_path();
    assert_int_equal(rename(path, there), 0);
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
    struct stat diary;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    const int length = fprintf(f, "this is the diary of somebody else\n");
    fclose(f);
    assert_refused(b, COORD_E_FOREIGN_RECORD, "remove it");
    assert_int_equal(stat(path, &diary), 0);
    assert_int_equal(diary.st_size, length); /* as it was */
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
    /* A header of format 2, 16 bytes long. */
    static const unsigned char newer[] = {0x63, 0x4e, 0x41, 0x4d, 0x02, 0x00, 0x10, 0x00,
                                          0xb0, 0x10, 0x5b, 0x15, 0xce, 0xe0, 0xe6, 0x24};
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, newer, sizeof newer, 0), sizeof newer);
    close(fd);
    assert_refused(add("b"), COORD_E_NEWER_FORMAT, "update");
}

static void test_file__a_folder_without_a_parent_is_refused(void **state)
{
    (void)state;
    snprintf(uri, sizeof uri, "file:%s/no/such", base);
    assert_refused(add("a"), COORD_E_NOT_INITIALISED, "make it, or correct");
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
    snprintf(uri, sizeof uri, "file:%s/sub", folder);
    REQUIRE(failed_with(COORD_E_NO_SPACE, "free some space"));
    REQUIRE(files_in(folder) == 0); /* nor the folder of it */
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

/* As where the user has used up the limit, which others who run here need themselves. */
static bool forbid_inotify(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_init1, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int without_inotify(void)
{
    if (!forbid_inotify()) {
        return NOT_PERMITTED;
    }
    REQUIRE(inotify_init1(IN_CLOEXEC) < 0 && errno == EMFILE);
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
    assert_child(without_inotify, "needs filters of system calls");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_file__##name, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        T(every_name_has_a_file_of_its_own),
        T(a_file_of_another_name_is_refused),
        T(something_else_under_the_path_is_refused),
        T(a_newer_header_is_refused),
        T(a_folder_without_a_parent_is_refused),
        T(options_are_checked),
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
