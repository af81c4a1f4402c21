/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_init_postgres.c - coordctl init on a PostgreSQL: what it creates, what
 * it prints, and whose takeover it changes; and what a run waits for where init spares nothing.
 */
#include "tests/support/coordctl.h"
#include "tests/support/postgres_server.h"
#include "tests/support/support.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static struct scene scene;
static struct postgres_server server;

static int set_up(void **state)
{
    (void)state;
    memset(&server, 0, sizeof server);
    scene_open(&scene, "");
    postgres_server_needed();
    postgres_server_start(&server, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (server.folder[0] != '\0') {
        postgres_server_stop(&server);
    }
    scene_close(&scene);
    return 0;
}

static int prepare(const char *uri, char out[COORDCTL_TEXT])
{
    return coordctl_call(&scene, out, WORDS("init", "--elector", uri));
}

static int clear(const char *takeover, char out[COORDCTL_TEXT])
{
    const char *const plain[] = {"init", "--elector", server.uri, "--name", "jobs", NULL};
    const char *const with[] = {"init", "--elector",  server.uri, "--name",
                                "jobs", "--takeover", takeover,   NULL};
    return coordctl_call(&scene, out, takeover != NULL ? with : plain);
}

static bool is_fast(void)
{
    return postgres_server_ask(&server, "select (takeover = 'fast')::int from coord.term") == 1;
}

static void role_uri(const char *role, char out[COORDCTL_PATH])
{
    snprintf(out, COORDCTL_PATH, "postgresql://%s@/postgres?host=%s&coord.ttl=1s", role,
             server.folder);
}

/* ---------------------------------------------------------------- the server */

/* Each line that init prints is a statement, or a comment, as it stands. */
static void run_grants(char *out)
{
    char *rest = NULL;
    for (char *line = strtok_r(out, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "--", 2) != 0) {
            postgres_server_do(&server, "%s", line);
        }
    }
}

static void test_cli_init__prints_the_grants_that_are_enough(void **state)
{
    static const char *const roles[] = {"elector", "writer", "watcher", "operator"};
    struct coordctl run;
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    assert_int_equal(prepare(server.uri, out), 0);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        postgres_server_do(&server, "create role %s login", roles[i]);
    }
    run_grants(out);
    role_uri("elector", uri);
    const char *const work[] = {"run",  "--elector", uri,  "--name", "jobs",
                                "--id", "first",     "--", "true",   NULL};
    assert_int_equal(coordctl_call(&scene, out, work), 0);
    role_uri("watcher", uri);
    const char *const status[] = {"status", "--elector", uri, "--name", "jobs", NULL};
    assert_int_equal(coordctl_call(&scene, out, status), 1);
    assert_non_null(strstr(out, "nobody leads"));
    role_uri("elector", uri);
    snprintf(scene.uri, sizeof scene.uri, "%s", uri);
    coordctl_run(&scene, &run, "first", "polite", NULL);
    work_wait(&scene, 0, 1);
    role_uri("operator", uri);
    const char *const ask[] = {"step-down", "--elector", uri, "--name", "jobs", NULL};
    assert_int_equal(coordctl_call(&scene, out, ask), 0);
    assert_int_equal(coordctl_wait(&run), 121);
}

static void test_cli_init__may_be_run_again_and_by_many_at_once(void **state)
{
    struct coordctl all[8];
    char out[COORDCTL_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        coordctl_start(&scene, &all[i], WORDS("init", "--elector", server.uri));
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(coordctl_wait(&all[i]), 0);
    }
    const char *const json[] = {"init", "--elector", server.uri, "--json", NULL};
    assert_int_equal(coordctl_call(&scene, out, json), 0);
    assert_non_null(
        strstr(out, "\"initialised\":true,\"backend\":\"postgres\",\"grants\":\"-- put"));
}

static void test_cli_init__says_who_may_where_it_may_not(void **state)
{
    struct coordctl run;
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    postgres_server_do(&server, "create role bare login");
    role_uri("bare", uri);
    coordctl_start(&scene, &run, WORDS("init", "--elector", uri));
    assert_int_equal(coordctl_wait(&run), 125);
    assert_non_null(strstr(coordctl_output(run.err, out), "NO_RIGHT"));
    assert_non_null(strstr(out, "GRANT CREATE ON DATABASE"));
}

/* ---------------------------------------------------------------- one election */

static void test_cli_init__changes_the_takeover_while_nobody_leads(void **state)
{
    struct coordctl run;
    char out[COORDCTL_TEXT];
    (void)state;
    assert_int_equal(prepare(server.uri, out), 0);
    assert_int_equal(clear(NULL, out), 0);
    assert_false(is_fast());
    assert_int_equal(clear("fast", out), 0);
    assert_non_null(strstr(out, "coord.takeover=fast"));
    assert_true(is_fast());
    assert_int_equal(clear(NULL, out), 0); /* what is not said stays */
    assert_true(is_fast());
    coordctl_start(&scene, &run,
                   WORDS("run", "--elector", server.uri, "--name", "jobs", "--", "true"));
    assert_int_equal(coordctl_wait(&run), 125);
    assert_non_null(strstr(coordctl_output(run.err, out), "TAKEOVER_MISMATCH"));
    snprintf(scene.uri, sizeof scene.uri, "%.200s&coord.takeover=fast", server.uri);
    coordctl_run(&scene, &run, "first", "polite", NULL);
    work_wait(&scene, 0, 1);
    assert_int_equal(clear("safe", out), 125); /* somebody leads */
    assert_true(is_fast());
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 0);
    assert_int_equal(clear("safe", out), 0);
    assert_false(is_fast());
}

/* It takes connections, and says nothing. */
static int silent_server(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void check_silent(const char *verb, int status, const char *said)
{
    struct coordctl coordctl;
    char uri[128];
    char out[COORDCTL_TEXT];
    int port = 0;
    const int server_fd = silent_server(&port);
    snprintf(uri, sizeof uri, "postgresql://u@127.0.0.1:%d/d?connect_timeout=2", port);
    coordctl_start(&scene, &coordctl, WORDS(verb, "--elector", uri));
    assert_int_equal(coordctl_wait(&coordctl), status);
    coordctl_output(status == 1 ? coordctl.out : coordctl.err, out);
    assert_non_null(strstr(out, said));
    assert_non_null(strstr(out, "does not answer: check host, port and network"));
    const int first = accept(server_fd, NULL, NULL);
    assert_true(first >= 0);
    assert_int_equal(accept(server_fd, NULL, NULL), -1);
    close(first);
    close(server_fd);
}

static void test_cli_init__waits_once_for_a_server_that_is_silent(void **state)
{
    (void)state;
    check_silent("init", 125, "coordctl: UNREACHABLE: ");
    check_silent("doctor", 1, "FAIL connection: UNREACHABLE ");
}

/* As it tells of a collation of another version, with each login. */
static void test_cli_init__does_not_print_what_the_server_notes_at_a_login(void **state)
{
    struct coordctl coordctl;
    char uri[POSTGRES_URI + 64];
    char out[COORDCTL_TEXT];
    (void)state;
    snprintf(uri, sizeof uri, "%s&options=-c%%20client_min_messages%%3Ddebug5", server.uri);
    for (size_t i = 0; i < 2; i++) {
        coordctl_start(&scene, &coordctl, WORDS(i == 0 ? "init" : "doctor", "--elector", uri));
        assert_int_equal(coordctl_wait(&coordctl), 0);
        coordctl_output(coordctl.err, out);
        assert_null(strstr(out, "DEBUG"));
    }
}

static void test_cli_init__has_nothing_to_do_where_nothing_has_to_be_made(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    assert_int_equal(prepare("file:/tmp/nothing-is-made", out), 0);
    assert_non_null(strstr(out, "nothing has to be made; with --name NAME"));
    assert_int_equal(access("/tmp/nothing-is-made", F_OK), -1);
    assert_int_equal(prepare("redis+unix:///nowhere", out), 0);
    assert_int_equal(coordctl_call(&scene, out, WORDS("init", "--elector", "memory:", "--json")),
                     0);
    assert_string_equal(out, "{\"initialised\":true,\"backend\":\"memory\"}\n");
    assert_int_equal(prepare("nothing://h", out), 2);
}

/* The former leader resigned, but a transaction that it guarded is still open. */
static void test_cli_init__is_not_advised_where_guarded_work_is_waited_for(void **state)
{
    struct coordctl run;
    char out[COORDCTL_TEXT];
    (void)state;
    assert_int_equal(prepare(server.uri, out), 0);
    snprintf(scene.uri, sizeof scene.uri, "%.200s", server.uri);
    coordctl_run(&scene, &run, "first", "polite", NULL);
    const uint64_t fence = work_wait(&scene, 0, 1);
    PGconn *work = postgres_server_connect(&server);
    assert_string_equal(postgres_server_try(work,
                                            "begin; "
                                            "select coord.fence('jobs', %" PRIu64 ")",
                                            fence),
                        "");
    assert_int_equal(PQsendQuery(work, "select pg_sleep(60)"), 1); /* idle, it would be ended */
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 0);
    coordctl_run(&scene, &run, "second", "polite", NULL);
    wait_for_text(run.err, "waits for guarded work of an earlier term");
    postgres_server_do(&server, "select pg_cancel_backend(%d)", PQbackendPID(work));
    PQclear(PQgetResult(work));
    assert_string_equal(postgres_server_try(work, "rollback"), "");
    PQfinish(work);
    work_wait(&scene, fence, 1);
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 0);
}

static void test_cli_init__refuses_what_makes_no_sense(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    const char *const nameless[] = {"init", "--elector", server.uri, "--takeover", "fast", NULL};
    assert_int_equal(coordctl_call(&scene, out, nameless), 2);
    assert_int_equal(clear("maybe", out), 2);
    const char *const elsewhere[] = {"init", "--elector",  scene.uri, "--name",
                                     "jobs", "--takeover", "fast",    NULL};
    assert_int_equal(coordctl_call(&scene, out, elsewhere), 2);
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(test_cli_init__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(prints_the_grants_that_are_enough),
        TEST(may_be_run_again_and_by_many_at_once),
        TEST(says_who_may_where_it_may_not),
        TEST(changes_the_takeover_while_nobody_leads),
        TEST(waits_once_for_a_server_that_is_silent),
        TEST(does_not_print_what_the_server_notes_at_a_login),
        TEST(has_nothing_to_do_where_nothing_has_to_be_made),
        TEST(is_not_advised_where_guarded_work_is_waited_for),
        TEST(refuses_what_makes_no_sense),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
