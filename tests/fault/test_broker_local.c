/* SPDX-License-Identifier: MIT
 * tests/fault/test_broker_local.c - members of one host that stop, die, or spoil the folder.
 */
#include "brokers/local.h"

#include "runtime/clock.h"
#include "tests/contract/broker_suite.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static struct bus_world world;
static char folder[64];
static char inner[80];
static char address[512];

static const char *uri(void)
{
    return address;
}

static const struct bus_store store = {.name = "local", .ops = coord_local_broker, .uri = uri};

static int begin(void **state)
{
    (void)state;
    scratch_make("bus", folder, sizeof folder);
    snprintf(inner, sizeof inner, "%s/bus", folder);
    snprintf(address, sizeof address, "local:%s", inner);
    bus_open_world(&world, &store, "fault");
    return 0;
}

/* How many sockets are in the folder. */
static size_t sockets(bool removed)
{
    size_t count = 0;
    char path[512];
    DIR *list = opendir(inner);
    if (list == NULL) {
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(list)) != NULL) {
        if (entry->d_name[0] != '.') {
            count++;
            snprintf(path, sizeof path, "%s/%s", inner, entry->d_name);
            if (removed) {
                unlink(path);
            }
        }
    }
    closedir(list);
    return count;
}

static int end(void **state)
{
    (void)state;
    bus_close_world(&world);
    sockets(true);
    scratch_remove(folder);
    return 0;
}

/* Another process that listens, and does nothing but that. */
static pid_t start_member(void)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        static struct coord_uri parsed;
        struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
        struct coord_broker *broker = NULL;
        config.uri = &parsed;
        if (coord_uri_parse(address, &parsed, NULL) != COORD_OK ||
            coord_broker_new(coord_local_broker(), &config, coord_clock_now(), &broker, NULL) !=
                COORD_OK ||
            coord_broker_subscribe(broker, world.topic, coord_clock_now(), NULL) != COORD_OK) {
            _exit(1);
        }
        coord_broker_process(broker, coord_clock_now());
        if (write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            coord_broker_process(broker, coord_clock_now());
            poll(NULL, 0, 5);
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void end_member(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* What several do not read is more than one sending socket may have under way. */
static void test_broker_local__is_not_held_up_by_stopped_members(void **state)
{
    enum {
        SAID = 100,
        SIZE = 60000,
        STOPPED = 4
    };
    static unsigned char bytes[SIZE];
    pid_t children[STOPPED];
    (void)state;
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    for (int i = 0; i < STOPPED; i++) {
        children[i] = start_member();
        kill(children[i], SIGSTOP);
    }
    for (int i = 0; i < SAID; i++) {
        bus_publish(a, world.topic, bytes, sizeof bytes);
        bus_until_got(&world, b, (size_t)i + 1);
        bus_until_got(&world, a, (size_t)i + 1);
    }
    assert_true(bus_status(a).dropped[COORD_BROKER_DROP_SLOW_MEMBER] > 0);
    assert_true(bus_status(a).up);
    /* What waits for them is given up after a while, and who goes on is there again. */
    bus_until_idle(&world, a);
    for (int i = 0; i < STOPPED; i++) {
        kill(children[i], SIGCONT);
    }
    bus_say(&world, 0, "hello");
    bus_until_got(&world, b, SAID + 1);
    bus_until_idle(&world, a);
    for (int i = 0; i < STOPPED; i++) {
        end_member(children[i]);
    }
}

static void test_broker_local__gives_a_busy_member_time(void **state)
{
    enum {
        SAID = 150
    };
    char text[16];
    (void)state;
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    b->absent = true; /* more than its socket takes */
    for (int i = 0; i < SAID; i++) {
        snprintf(text, sizeof text, "%04d", i);
        bus_say(&world, 0, text);
        bus_until_got(&world, a, (size_t)i + 1);
    }
    b->absent = false;
    bus_until_got(&world, b, SAID);
    for (size_t i = 0; i < SAID; i++) {
        snprintf(text, sizeof text, "%04zu", i);
        assert_memory_equal(bus_message(b, i)->bytes, text, 4);
    }
    assert_int_equal(bus_status(a).dropped[COORD_BROKER_DROP_SLOW_MEMBER], 0);
}

static void test_broker_local__sweeps_what_killed_members_left(void **state)
{
    pid_t children[5];
    (void)state;
    struct bus_side *a = bus_join(&world, 0);
    for (int i = 0; i < 5; i++) {
        children[i] = start_member();
    }
    assert_int_equal(sockets(false), 6);
    for (int i = 0; i < 5; i++) {
        end_member(children[i]);
    }
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    bus_until_idle(&world, a);
    assert_int_equal(sockets(false), 1);
}

static void test_broker_local__comes_back_when_the_folder_is_removed(void **state)
{
    (void)state;
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(sockets(true), 2);
        if (round == 1) {
            assert_int_equal(rmdir(inner), 0);
        }
        const uint64_t ups = bus_status(a).ups;
        const uint64_t others = bus_status(b).ups;
        while (bus_status(a).ups == ups || bus_status(b).ups == others) {
            bus_drive(&world, 50);
        }
        bus_until_up(&world, a);
        bus_until_up(&world, b);
        bus_say(&world, 0, "hello");
        bus_until_got(&world, b, (size_t)round + 1);
    }
}

static void test_broker_local__counts_what_is_not_ours(void **state)
{
    static unsigned char large[100000];
    static const struct {
        const char *bytes;
        size_t count;
    } bad[] = {
        {"", 0},           {"x", 1},          {"cob1", 4},          {"cob1\0", 5},
        {"cob1\0\0", 6},   {"cob1\0\0x", 7},  {"cob1\0\5abcd", 10}, {"cob1\377\377abc", 9},
        {"cob2\0\1tx", 8}, {"cob1\2\0tx", 8},
    };
    const size_t count = sizeof bad / sizeof bad[0];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)state;
    struct bus_side *a = bus_join(&world, 0);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    DIR *list = opendir(inner);
    assert_non_null(list);
    const struct dirent *entry;
    while ((entry = readdir(list)) != NULL && entry->d_name[0] != 'm') {
    }
    assert_non_null(entry);
    snprintf(at.sun_path, sizeof at.sun_path, "%.70s/%.30s", inner, entry->d_name);
    closedir(list);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(
            sendto(fd, bad[i].bytes, bad[i].count, 0, (const struct sockaddr *)&at, sizeof at),
            bad[i].count);
        bus_drive(&world, 5);
    }
    memcpy(large, "cob1\0\1", 6);
    assert_int_equal(sendto(fd, large, sizeof large, 0, (const struct sockaddr *)&at, sizeof at),
                     sizeof large);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    assert_int_equal(bus_status(a).dropped[COORD_BROKER_DROP_DAMAGED], count + 1);
    close(fd);
}

static enum coord_err try_to_open(const char *text, struct coord_error *error)
{
    static struct coord_uri parsed;
    struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
    struct coord_broker *broker = NULL;
    assert_int_equal(coord_uri_parse(text, &parsed, error), COORD_OK);
    config.uri = &parsed;
    const enum coord_err rc =
        coord_broker_new(coord_local_broker(), &config, coord_clock_now(), &broker, error);
    assert_true(rc != COORD_OK || broker != NULL);
    coord_broker_free(broker, false);
    return rc;
}

static void test_broker_local__refuses_folders_of_others(void **state)
{
    struct coord_error error;
    struct stat st;
    (void)state;
    assert_int_equal(try_to_open(address, &error), COORD_OK);
    assert_int_equal(stat(inner, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(chmod(inner, 0755), 0);
    assert_int_equal(try_to_open(address, &error), COORD_E_NO_RIGHT);
    assert_non_null(strstr(error.text, "chmod 700"));
    assert_int_equal(chmod(inner, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(inner, 12345, 12345), 0);
        assert_int_equal(try_to_open(address, &error), COORD_E_NO_RIGHT);
        assert_int_equal(chown(inner, 0, 0), 0);
    }
    snprintf(address, sizeof address, "local:%s/none/bus", folder);
    assert_int_equal(try_to_open(address, &error), COORD_E_SYSTEM);
    assert_int_equal(try_to_open("local:", &error), COORD_E_BAD_URI);
    assert_int_equal(try_to_open("local:/dev/null", &error), COORD_E_SYSTEM);
}

static void test_broker_local__stays_in_its_folder_wherever_the_process_goes(void **state)
{
    char absolute[sizeof address];
    char before[512];
    struct coord_error error;
    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    memcpy(absolute, address, sizeof absolute);
    assert_int_equal(chdir(folder), 0);
    snprintf(address, sizeof address, "local:bus");
    struct bus_side *a = bus_join(&world, 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(sockets(true), 1);
    const uint64_t ups = bus_status(a).ups;
    while (bus_status(a).ups == ups) {
        bus_drive(&world, 50);
    }
    memcpy(address, absolute, sizeof address);
    struct bus_side *b = bus_join(&world, 1);
    bus_until_up(&world, a);
    bus_say(&world, 1, "hello");
    bus_until_got(&world, a, 1);
    bus_close(a);
    bus_close(b);
    /* And where it is nowhere: */
    char gone[128];
    snprintf(gone, sizeof gone, "%s/gone", folder);
    assert_int_equal(mkdir(gone, 0700), 0);
    assert_int_equal(chdir(gone), 0);
    assert_int_equal(rmdir(gone), 0);
    assert_int_equal(try_to_open("local:bus", &error), COORD_E_SYSTEM);
    assert_non_null(strstr(error.text, "begins with /"));
    assert_int_equal(chdir(before), 0);
}

static void test_broker_local__works_in_a_folder_with_a_long_name(void **state)
{
    char longer[256];
    (void)state;
    assert_int_equal(mkdir(inner, 0700), 0);
    snprintf(longer, sizeof longer, "%s/%0150d", inner, 7);
    snprintf(address, sizeof address, "local:%s", longer);
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    bus_until_got(&world, b, 1);
    bus_close(a);
    bus_close(b);
    assert_int_equal(rmdir(longer), 0); /* each took its socket away */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_broker_local__##name, begin, end)
        T(is_not_held_up_by_stopped_members),
        T(gives_a_busy_member_time),
        T(sweeps_what_killed_members_left),
        T(comes_back_when_the_folder_is_removed),
        T(stays_in_its_folder_wherever_the_process_goes),
        T(counts_what_is_not_ours),
        T(refuses_folders_of_others),
        T(works_in_a_folder_with_a_long_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
