/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_fleet.c - the verbs about a fleet, over a bus of this host: what they
 * print, how they exit, and what members make of it.
 */
#include "brokers/local.h"
#include "runtime/member.h"
#include "tests/support/coordctl.h"
#include "tests/support/guard.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fleet {
    struct scene scene;
    char bus[COORDCTL_PATH];
    struct coord_runtime *runtime;
};

static int set_up(void **state)
{
    static struct fleet fleet;
    char path[COORDCTL_PATH];
    scene_open(&fleet.scene, "coord.ttl=1s");
    snprintf(fleet.bus, sizeof fleet.bus, "local:%s", scene_path(&fleet.scene, "bus", path));
    fleet.runtime = NULL;
    *state = &fleet;
    return 0;
}

static int tear_down(void **state)
{
    struct fleet *fleet = *state;
    coord_runtime_free(fleet->runtime);
    scene_close(&fleet->scene);
    return 0;
}

/* A member in this process, with a time-out of 2 s: it speaks each half of a second. */
static struct coord_member *join(struct fleet *fleet, const char *id, const char *work)
{
    static const struct coord_bus_scheme schemes[] = {{"local", coord_local_broker, NULL},
                                                      {NULL, NULL, NULL}};
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_member *member = NULL;
    struct coord_error error;
    if (fleet->runtime == NULL) {
        assert_int_equal(coord_runtime_new(NULL, &fleet->runtime, NULL), COORD_OK);
        assert_int_equal(coord_runtime_start(fleet->runtime, NULL), COORD_OK);
    }
    config.id = id;
    config.timeout = 2000;
    assert_int_equal(coord_bus_open(fleet->runtime, schemes, fleet->bus, NULL, &config.bus, &error),
                     COORD_OK);
    assert_int_equal(coord_member_open(fleet->runtime, &config, &member, &error), COORD_OK);
    assert_int_equal(coord_member_serve(member, &work, 1, 3, 0.5), COORD_OK);
    return member;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_t *line_of(const char *lines, unsigned number)
{
    json_error_t error;
    for (; number > 0; number--) {
        lines = strchr(lines, '\n');
        assert_non_null(lines);
        lines++;
    }
    json_t *object = json_loadb(lines, strcspn(lines, "\n"), JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        fail_msg("not JSON: %s: %s", error.text, lines);
    }
    return object;
}

/* ---------------------------------------------------------------- peers */

static void test_cli_peers__who_was_heard_by_id(void **state)
{
    struct fleet *fleet = *state;
    char out[COORDCTL_TEXT];
    const char *const call[] = {"peers", "--bus", fleet->bus, "--for", "2s", "--json", NULL};
    join(fleet, "w-2", "orders");
    join(fleet, "w-1 \"\xc3\xa4\"", "ledger");
    assert_int_equal(coordctl_call(&fleet->scene, out, call), 0);
    json_t *first = line_of(out, 0);
    json_t *second = line_of(out, 1);
    assert_string_equal(text_of(first, "id"), "w-1 \"\xc3\xa4\"");
    assert_string_equal(text_of(second, "id"), "w-2");
    assert_string_equal(text_of(second, "status"), "healthy");
    assert_int_equal(strlen(text_of(second, "incarnation")), 32);
    assert_int_equal(strlen(text_of(second, "last_heard")), 24);
    assert_true(json_is_false(json_object_get(second, "is_leader")));
    assert_true(json_is_null(json_object_get(second, "intent")));
    assert_true(json_is_null(json_object_get(second, "deadline")));
    assert_int_equal(json_integer_value(json_object_get(second, "in_flight_count")), 3);
    const json_t *work = json_object_get(second, "subscriptions");
    assert_int_equal(json_array_size(work), 1);
    assert_string_equal(json_string_value(json_array_get(work, 0)), "orders");
    assert_int_equal(json_object_size(second), 10);
    json_decref(first);
    json_decref(second);
}

static void test_cli_peers__watch_prints_each_change(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl watch;
    char out[COORDCTL_TEXT];
    coordctl_start(&fleet->scene, &watch,
                   WORDS("peers", "--bus", fleet->bus, "--watch", "--timeout", "2s", "--json"));
    struct coord_member *member = join(fleet, "w-1", "orders");
    wait_for_text(watch.out, "PEER_APPEARED");
    coord_member_close(member); /* without a word */
    wait_for_text(watch.out, "PEER_SILENT");
    kill(watch.pid, SIGTERM);
    coordctl_wait(&watch);
    json_t *line = line_of(coordctl_output(watch.out, out), 1);
    assert_string_equal(text_of(line, "event"), "PEER_SILENT");
    assert_string_equal(text_of(line, "id"), "w-1");
    json_decref(line);
}

/* Stopped for longer than the time-out, but not for so long that it would start anew. */
static void test_cli_peers__watch_reads_what_waits_before_it_calls_anybody_silent(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl watch;
    char out[COORDCTL_TEXT];
    const struct timespec pause = {.tv_sec = 3, .tv_nsec = 200000000};
    coordctl_start(&fleet->scene, &watch,
                   WORDS("peers", "--bus", fleet->bus, "--watch", "--json", "--timeout", "3s"));
    join(fleet, "w-1", "orders");
    join(fleet, "w-2", "ledger");
    wait_for_text(watch.out, "w-1");
    wait_for_text(watch.out, "w-2");
    kill(watch.pid, SIGSTOP);
    nanosleep(&pause, NULL);
    kill(watch.pid, SIGCONT);
    join(fleet, "w-3", "mail");
    wait_for_text(watch.out, "w-3");
    kill(watch.pid, SIGTERM);
    coordctl_wait(&watch);
    assert_null(strstr(coordctl_output(watch.out, out), "PEER_SILENT"));
}

/* What a terminal got until it has seen a text. */
static void read_until(int terminal, const char *text, char out[COORDCTL_TEXT])
{
    size_t count = 0;
    out[0] = '\0';
    while (strstr(out, text) == NULL) {
        struct pollfd wait = {.fd = terminal, .events = POLLIN};
        if (poll(&wait, 1, GUARD_MS) != 1 || count == COORDCTL_TEXT - 1) {
            fail_msg("no \"%s\" on the terminal, but: %s", text, out);
        }
        const ssize_t got = read(terminal, out + count, COORDCTL_TEXT - 1 - count);
        assert_true(got > 0);
        count += (size_t)got;
        out[count] = '\0';
    }
}

static void test_cli_peers__watch_redraws_in_place_on_a_terminal(void **state)
{
    struct fleet *fleet = *state;
    char out[COORDCTL_TEXT];
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    char *name = ptsname(terminal);
    assert_non_null(name);
    const pid_t pid = fork();
    if (pid == 0) {
        const int end = open(name, O_RDWR | O_NOCTTY);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(end, STDOUT_FILENO) == STDOUT_FILENO) {
            execl(COORD_BUILD "/coordctl", "coordctl", "peers", "--bus", fleet->bus, "--watch",
                  NULL);
        }
        _exit(99);
    }
    assert_true(pid > 0);
    read_until(terminal, "0 known, 0 healthy", out);
    join(fleet, "w-1", "orders");
    read_until(terminal, "1 known, 1 healthy", out);
    assert_non_null(strstr(out, "\033[2A")); /* up over the heading and the count */
    assert_non_null(strstr(out, "w-1 "));
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(terminal);
}

/* It has nothing more to print, and ends because its reader has gone. */
static void check_unread(const char *const *arguments, bool prints)
{
    struct coordctl watch = {.pid = 0};
    int ends[2];
    char first = '\0';
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    watch.pid = fork();
    assert_true(watch.pid >= 0);
    if (watch.pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
            execv(COORD_BUILD "/coordctl", (char *const *)(uintptr_t)arguments);
        }
        _exit(99);
    }
    close(ends[1]);
    if (prints) {
        assert_int_equal(read(ends[0], &first, 1), 1);
    }
    close(ends[0]);
    assert_int_equal(coordctl_wait(&watch), 0);
}

static void test_cli_watching__ends_when_its_reader_has_gone(void **state)
{
    struct fleet *fleet = *state;
    const char *uri = fleet->scene.uri;
    join(fleet, "w-1", "orders");
    check_unread(WORDS("coordctl", "peers", "--bus", fleet->bus, "--watch"), true);
    check_unread(WORDS("coordctl", "orphans", "--bus", fleet->bus, "--follow"), false);
    check_unread(WORDS("coordctl", "status", "--elector", uri, "--name", "jobs", "--watch"), true);
}

/* ---------------------------------------------------------------- announce */

static void test_cli_announce__a_member_leaves(void **state)
{
    struct fleet *fleet = *state;
    struct coord_agent_event left;
    struct coordctl watch;
    char out[COORDCTL_TEXT];
    const char *const call[] = {"announce", "--bus",           fleet->bus,      "--id",
                                "w-1",      "--intent",        "preemption",    "--deadline",
                                "15s",      "--metadata",      "reason=spot",   "--metadata",
                                "zone=a=b", "--subscriptions", "orders,ledger", NULL};
    struct coord_member *member = join(fleet, "w-1", "orders");
    coordctl_start(&fleet->scene, &watch, WORDS("peers", "--bus", fleet->bus, "--watch"));
    wait_for_text(watch.out, "w-1 PEER_APPEARED");
    assert_int_equal(coordctl_call(&fleet->scene, out, call), 0);
    assert_string_equal(out, "w-1: told to leave, preemption, within 15 s\n");
    assert_int_equal(coord_member_wait(member, GUARD_MS, &left), COORD_OK);
    assert_int_equal(left.intent, COORD_INTENT_PREEMPTION);
    assert_true(left.drained);
    wait_for_text(watch.out, "w-1 PEER_LEAVING");
    wait_for_text(watch.out, "w-1 PEER_FINISHED");
}

/* ---------------------------------------------------------------- agent */

/* An agent of the scene's election, with a time-out of 2 s; `rest` ends with NULL. */
static void start_agent(struct fleet *fleet, struct coordctl *out, const char *id,
                        const char *const *rest)
{
    const char *arguments[32] = {"agent", "--elector", fleet->scene.uri, "--name", "jobs",
                                 "--bus", fleet->bus,  "--timeout",      "2s",     "--id",
                                 id};
    for (size_t count = 11; *rest != NULL && count < 31; rest++) {
        arguments[count++] = *rest;
    }
    coordctl_start(&fleet->scene, out, arguments);
}

/* ---------------------------------------------------------------- assign */

static void test_cli_assign__reaches_the_member_under_the_present_fence(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    static const char *const rest[] = {NULL};
    const char *const call[] = {
        "assign", "--bus", fleet->bus,        "--elector",     fleet->scene.uri, "--name", "jobs",
        "--to",   "w-1",   "--subscriptions", "orders,ledger", "--priority",     "-2",     NULL};
    assert_int_equal(coordctl_call(&fleet->scene, out, call), 1); /* nobody leads */
    assert_string_equal(out, "");
    start_agent(fleet, &agent, "w-1", rest);
    wait_for_text(agent.err, "leading jobs, fence ");
    assert_int_equal(coordctl_call(&fleet->scene, out, call), 0);
    const char *fence = strstr(out, "w-1: assigned orders,ledger, fence ");
    assert_non_null(fence);
    wait_for_text(agent.err, "assigned: orders, fence ");
    wait_for_text(agent.err, "assigned: ledger, fence ");
    char led[COORDCTL_TEXT];
    coordctl_output(agent.err, led);
    assert_true(strtoull(strstr(led, "leading jobs, fence ") + strlen("leading jobs, fence "), NULL,
                         10) == strtoull(strrchr(out, ' '), NULL, 10));
}

/* ---------------------------------------------------------------- orphans */

static void test_cli_orphans__opened_listed_and_resolved(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl leader;
    struct coordctl follow;
    char path[COORDCTL_PATH];
    char hook[COORDCTL_PATH + 64];
    char out[COORDCTL_TEXT];
    const char *const listed[] = {"orphans", "--bus", fleet->bus,  "--elector", fleet->scene.uri,
                                  "--name",  "jobs",  "--timeout", "2s",        "--cloudevents",
                                  NULL};
    const char *const people[] = {"orphans", "--bus", fleet->bus, "--timeout", "2s", NULL};
    snprintf(hook, sizeof hook, "echo $ORPHAN_KIND >>'%s'",
             scene_path(&fleet->scene, "hook", path));
    const char *const rest[] = {"--subscriptions", "ledger", "--on-orphan", hook, NULL};
    coordctl_start(&fleet->scene, &follow,
                   WORDS("orphans", "--bus", fleet->bus, "--follow", "--json", "--timeout", "2s"));
    start_agent(fleet, &leader, "leader", rest);
    wait_for_text(leader.err, "leading jobs");
    struct coord_member *member = join(fleet, "w-1", "orders");
    const char *const peers[] = {"peers", "--bus", fleet->bus, "--for", "1s", NULL};
    do { /* its first heartbeat may have come before its work */
        assert_int_equal(coordctl_call(&fleet->scene, out, peers), 0);
    } while (strstr(out, "orders") == NULL);
    coord_member_close(member); /* a crash */
    wait_for_text(follow.out, "\"opened\"");
    json_t *opened = line_of(coordctl_output(follow.out, out), 0);
    assert_string_equal(text_of(opened, "subscription"), "orders");
    assert_string_equal(text_of(opened, "cause"), "silent");
    assert_string_equal(text_of(opened, "certainty"), "suspected");
    assert_string_equal(text_of(json_object_get(opened, "peer"), "instance_id"), "w-1");
    assert_int_equal(coordctl_call(&fleet->scene, out, listed), 0);
    json_t *open = line_of(out, 0);
    assert_string_equal(text_of(open, "type"), "coord.orphan.open.v1");
    assert_string_equal(text_of(open, "source"), "/coord/jobs");
    assert_string_equal(text_of(json_object_get(open, "data"), "report_id"),
                        text_of(opened, "report_id"));
    assert_int_equal(coordctl_call(&fleet->scene, out, people), 0);
    assert_non_null(strstr(out, "orders: open, of w-1, silent, suspected, fence "));
    join(fleet, "w-2", "orders");
    wait_for_text(follow.out, "\"resolved\"");
    wait_for_text(path, "resolved");
    wait_for_text(path, "opened");
    assert_int_equal(coordctl_call(&fleet->scene, out, people), 0);
    assert_string_equal(out, ""); /* a whole table, and nothing in it */
    json_decref(opened);
    json_decref(open);
    kill(leader.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&leader), 0);
}

static void test_cli_fleet__a_mistake_is_told_with_its_cure(void **state)
{
    struct fleet *fleet = *state;
    static const struct {
        const char *cure;
        const char *arguments[8];
    } mistakes[] = {
        {"COORD_BUS", {"peers"}},
        {"preemption", {"announce", "--id", "w-1", "--intent", "bored"}},
        {"reason=spot",
         {"announce", "--id", "w-1", "--intent", "graceful", "--metadata", "reason"}},
        {"orders,ledger",
         {"announce", "--id", "w-1", "--intent", "graceful", "--subscriptions", "a,,b"}},
        {"15s", {"peers", "--for", "long"}},
        {"leave one out", {"orphans", "--json", "--cloudevents"}},
        {"--name NAME", {"orphans", "--elector", "file:/nowhere"}},
        {"integer",
         {"assign", "--elector=file:/nowhere", "--name=n", "--to=w", "--subscriptions=a",
          "--priority=high"}},
        {"observer", {"agent", "--elector", "file:/nowhere", "--name=n", "--id=w", "--role=chief"}},
    };
    char variable[COORDCTL_PATH + 16];
    char out[COORDCTL_TEXT];
    snprintf(variable, sizeof variable, "COORD_BUS=%s", fleet->bus);
    const char *const environment[] = {variable, NULL};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct coordctl run;
        coordctl_start_with(&fleet->scene, &run, -1, i > 0 ? environment : NULL,
                            mistakes[i].arguments);
        assert_int_equal(coordctl_wait(&run), 2);
        assert_string_equal(coordctl_output(run.out, out), "");
        coordctl_output(run.err, out);
        if (strstr(out, mistakes[i].cure) == NULL) {
            fail_msg("no \"%s\" in: %s", mistakes[i].cure, out);
        }
    }
}

static void expect(struct fleet *fleet, int status, const char *const *arguments)
{
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_call(&fleet->scene, out, arguments), status);
    assert_string_equal(out, "");
}

static void test_cli_fleet__what_is_not_there_has_a_status_of_its_own(void **state)
{
    struct fleet *fleet = *state;
    const char *const nobody[] = {"peers", "--bus", fleet->bus, "--for", "100ms", NULL};
    const char *const no_leader[] = {"orphans", "--bus", fleet->bus, "--timeout", "500ms", NULL};
    const char *const no_bus[] = {"peers", "--bus", "local:/dev/null/x", "--for", "100ms", NULL};
    expect(fleet, 1, nobody);
    expect(fleet, 124, no_leader);
    expect(fleet, 125, no_bus);
}

static void test_cli_fleet__help_tells_of_each_verb(void **state)
{
    static const char *const verbs[] = {"agent", "announce", "assign", "peers", "orphans"};
    struct fleet *fleet = *state;
    char all[COORDCTL_TEXT];
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_call(&fleet->scene, all, WORDS("--help")), 0);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        assert_non_null(strstr(all, verbs[i]));
        assert_int_equal(coordctl_call(&fleet->scene, out, WORDS(verbs[i], "--help")), 0);
        assert_non_null(strstr(out, "--bus URI"));
        assert_non_null(strstr(out, "exit: "));
    }
}

static void test_cli_fleet__a_secret_of_a_bus_is_said_nowhere(void **state)
{
    struct fleet *fleet = *state;
    static const char *const uris[] = {"what://u:hunter2@h/0", "redis://u:hunter2@h:port:/%zz",
                                       "redis://u:hunter2@127.0.0.1:1/0?coord.bogus=x"};
    char out[COORDCTL_TEXT];
    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        struct coordctl run;
        coordctl_start(&fleet->scene, &run, WORDS("peers", "--bus", uris[i], "--for", "100ms"));
        assert_int_not_equal(coordctl_wait(&run), 0);
        assert_string_equal(coordctl_output(run.out, out), "");
        coordctl_output(run.err, out);
        assert_int_not_equal(out[0], '\0');
        assert_null(strstr(out, "hunter2"));
    }
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cli_peers__who_was_heard_by_id),
        TEST(test_cli_peers__watch_prints_each_change),
        TEST(test_cli_peers__watch_reads_what_waits_before_it_calls_anybody_silent),
        TEST(test_cli_peers__watch_redraws_in_place_on_a_terminal),
        TEST(test_cli_watching__ends_when_its_reader_has_gone),
        TEST(test_cli_announce__a_member_leaves),
        TEST(test_cli_assign__reaches_the_member_under_the_present_fence),
        TEST(test_cli_orphans__opened_listed_and_resolved),
        TEST(test_cli_fleet__what_is_not_there_has_a_status_of_its_own),
        TEST(test_cli_fleet__help_tells_of_each_verb),
        TEST(test_cli_fleet__a_secret_of_a_bus_is_said_nowhere),
        TEST(test_cli_fleet__a_mistake_is_told_with_its_cure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
