/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_guard.c - writes that a stale leader cannot make, and takeovers that
 * wait for those that are open.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void must(PGconn *conn, const char *text)
{
    const char *state = postgres_server_try(conn, "%s", text);
    if (state[0] != '\0') {
        fail_msg("%s: %s", text, state);
    }
}

/* Open a transaction with the guard in it. @return the guard's SQLSTATE. */
static const char *guard(PGconn *conn, const char *name, uint64_t fence)
{
    must(conn, "begin");
    return postgres_server_try(conn, "select coord.fence('%s', %" PRIu64 ")", name, fence);
}

/* What a process that was stopped tells the test. */
struct found {
    uint64_t fence;
    bool leads;    /* its first answer, before it looks at its socket */
    char write[8]; /* the SQLSTATE of its guard */
    unsigned stopped;
};

/* It leads, and is stopped between its look and its write. */
static void lead_and_stop(const struct world *w, struct found *found)
{
    struct candidates all = {.count = 0};
    struct candidate *c = candidate_new(&all, &w->wish);
    PGconn *work = postgres_server_connect(&world_server);
    candidate_win(&all, c);
    found->fence = c->fence;
    raise(SIGSTOP);
    found->leads = candidate_leads(c);
    snprintf(found->write, sizeof found->write, "%s", guard(work, w->name, found->fence));
    candidate_resign(&all, c);
    found->stopped = c->stopped;
    candidates_free(&all);
    PQfinish(work);
}

static pid_t launch(const struct world *w, struct found *found)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            lead_and_stop(w, found);
        }
        _exit(0);
    }
    return pid;
}

static void test_postgres_guard__a_stopped_leader_says_no_and_its_late_write_is_refused(
    void **state)
{
    (void)state;
    struct world w;
    int status = 0;
    world_open(&w, "stopped");
    struct found *found =
        mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(found, MAP_FAILED);
    const size_t log = postgres_server_log_size(&world_server);
    const pid_t stopped = launch(&w, found);
    assert_int_equal(waitpid(stopped, &status, WUNTRACED), stopped);
    assert_true(WIFSTOPPED(status));
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, b);
    assert_true(b->fence > found->fence);
    assert_true(postgres_server_logged(&world_server, log, "idle-session timeout"));
    kill(stopped, SIGCONT);
    while (waitpid(stopped, &status, WNOHANG) == 0) {
        candidates_turn(&w.all, 20);
    }
    assert_int_equal(status, 0);
    assert_false(found->leads);
    assert_string_equal(found->write, "STALE");
    assert_int_equal(found->stopped, 1);
    munmap(found, sizeof *found);
    world_close(&w);
}

static void test_postgres_guard__a_resigned_or_unknown_term_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "refused");
    struct candidate *a = world_join(&w);
    PGconn *work = postgres_server_connect(&world_server);
    assert_string_equal(guard(work, w.name, 1), "STALE");
    must(work, "rollback");
    candidate_win(&w.all, a);
    assert_string_equal(guard(work, w.name, a->fence + 1), "STALE");
    must(work, "rollback");
    must(work, "begin");
    assert_string_equal(postgres_server_try(work, "select coord.fence('%s', null)", w.name),
                        "STALE");
    must(work, "rollback");
    candidate_resign(&w.all, a);
    assert_string_equal(guard(work, w.name, a->fence), "STALE");
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_guard__escapes_the_name_itself(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "escape");
    w.wish.name = "caf\xc3\xa9 {100%}";
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    must(work, "set client_encoding = 'UTF8'");
    assert_string_equal(guard(work, w.wish.name, a->fence), "");
    must(work, "rollback");
    must(work, "set client_encoding = 'LATIN1'");
    assert_string_equal(guard(work, "caf\xe9 {100%}", a->fence), "");
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_guard__isolation_above_read_committed_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "isolation");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    static const char *const levels[] = {"repeatable read", "serializable"};
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(postgres_server_try(work, "begin isolation level %s", levels[i]), "");
        assert_string_equal(
            postgres_server_try(work, "select coord.fence('%s', %" PRIu64 ")", w.name, a->fence),
            "25001");
        must(work, "rollback");
    }
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_guard__an_idle_transaction_holds_up_a_takeover_for_a_lease(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "idle");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    const coord_ms begun = coord_clock_now();
    assert_string_equal(guard(work, w.name, a->fence), "");
    candidate_resign(&w.all, a); /* clear, were it not for the open work */
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_waits);
    candidates_until(&w.all, b, candidate_leads);
    /* The guard has bounded the transaction by the lease; nobody leads beside it. */
    assert_true(coord_clock_now() - begun >= 1000);
    assert_int_equal(postgres_server_ask(&world_server,
                                         "select count(*) from pg_locks where pid = %d and "
                                         "locktype = 'advisory'",
                                         PQbackendPID(work)),
                     0);
    assert_string_not_equal(postgres_server_try(work, "commit"), "");
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_guard__keeps_a_shorter_bound_of_the_caller(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "bound");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    static const struct {
        const char *set;
        const char *want;
    } cases[] = {{"0", "1s"}, {"500ms", "500ms"}, {"2min", "1s"}, {"1d", "1s"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(postgres_server_try(work,
                                                "set idle_in_transaction_session_timeout = '%s'",
                                                cases[i].set),
                            "");
        assert_string_equal(guard(work, w.name, a->fence), "");
        PGresult *result = PQexec(work, "show idle_in_transaction_session_timeout");
        assert_string_equal(PQgetvalue(result, 0, 0), cases[i].want);
        PQclear(result);
        must(work, "commit");
    }
    PGresult *result = PQexec(work, "show idle_in_transaction_session_timeout");
    assert_string_equal(PQgetvalue(result, 0, 0), "1d"); /* the caller's own is back */
    PQclear(result);
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_guard__work_that_outlasts_a_lease_is_named(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "active");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    must(work, "set application_name = 'the reports job'");
    assert_string_equal(guard(work, w.name, a->fence), "");
    assert_int_equal(PQsendQuery(work, "select pg_sleep(60)"), 1);
    candidate_free(&w.all, a);
    candidate_stand(b);
    candidates_until_error(&w.all, b, COORD_E_BLOCKED_BY_FENCED_WORK);
    assert_false(candidate_leads(b));
    assert_non_null(strstr(world_explain(b), "the reports job"));
    postgres_server_do(&world_server, "select pg_cancel_backend(%d)", PQbackendPID(work));
    PQclear(PQgetResult(work));
    must(work, "rollback");
    candidates_until(&w.all, b, candidate_leads);
    assert_int_equal(b->lease->error.code, COORD_OK);
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_guard__work_that_alone_is_waited_for_is_named_before_a_lease(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "alone");
    w.wish.ttl = 120000; /* far beyond our patience */
    /* Of another database, where the name has the same number: it is in nobody's way. */
    struct postgres_server other = world_server;
    snprintf(other.uri, sizeof other.uri, "postgresql://postgres@/template1?host=%s",
             world_server.folder);
    PGconn *innocent = postgres_server_connect(&other);
    assert_string_equal(
        postgres_server_try(innocent,
                            "begin; select pg_advisory_xact_lock_shared(-1 - %" PRIu64 ")",
                            coord_postgres_key(w.name, strlen(w.name))),
        "");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    assert_string_equal(guard(work, w.name, a->fence), "");
    candidate_resign(&w.all, a); /* clear, were it not for the open work */
    candidate_stand(b);
    candidates_until_error(&w.all, b, COORD_E_BLOCKED_BY_FENCED_WORK);
    char process[64];
    snprintf(process, sizeof process, "the server's process %d (", PQbackendPID(work));
    assert_non_null(strstr(world_explain(b), process));
    must(work, "commit");
    candidates_until(&w.all, b, candidate_leads);
    PQfinish(work);
    PQfinish(innocent);
    world_close(&w);
}

/* Writers that follow one another without a gap, each longer than the successor asks. */
static void test_postgres_guard__writers_do_not_starve_the_successor(void **state)
{
    (void)state;
    enum {
        WRITERS = 8
    };
    struct world w;
    world_open(&w, "starve");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    const uint64_t fence = a->fence;
    PGconn *work[WRITERS];
    char text[256];
    snprintf(text, sizeof text,
             "begin; select coord.fence('%s', %" PRIu64 "); select pg_sleep(0.3); commit", w.name,
             fence);
    for (size_t i = 0; i < WRITERS; i++) {
        work[i] = postgres_server_connect(&world_server);
        assert_int_equal(PQsetnonblocking(work[i], 1), 0);
    }
    candidate_free(&w.all, a);
    candidate_stand(b);
    const coord_ms guard_at = coord_clock_now() + CANDIDATE_PATIENCE;
    for (size_t turn = 0; !candidate_leads(b); turn++) {
        PGconn *conn = work[turn % WRITERS];
        assert_int_equal(PQconsumeInput(conn), 1);
        if (!PQisBusy(conn)) {
            PGresult *result = PQgetResult(conn);
            if (result == NULL) {
                assert_int_equal(PQsendQuery(conn, text), 1);
            }
            PQclear(result);
        }
        candidates_turn(&w.all, 5);
        assert_true(coord_clock_now() < guard_at);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        PQfinish(work[i]);
    }
    world_close(&w);
}

static void test_postgres_guard__a_writer_needs_execute_alone(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "writer");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    postgres_server_do(&world_server,
                       "create role writer login; grant usage on schema coord to writer; "
                       "grant execute on function coord.fence(text, bigint) to writer");
    PGconn *work = postgres_server_connect(&world_server);
    must(work, "set role writer");
    assert_string_equal(guard(work, w.name, a->fence), "");
    must(work, "commit");
    assert_string_equal(postgres_server_try(work, "select fence from coord.term"), "42501");
    assert_string_equal(postgres_server_try(work, "update coord.term set fence = 1"), "42501");
    PQfinish(work);
    postgres_server_do(&world_server, "drop owned by writer; drop role writer");
    world_close(&w);
}

/* What the own thread left open: release waits at nothing of it, and the successor's gate does. */
static void test_postgres_guard__a_release_goes_through_ones_own_open_work(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "through");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *work = postgres_server_connect(&world_server);
    assert_string_equal(guard(work, w.name, a->fence), "");
    candidate_resign(&w.all, a);
    assert_int_equal(a->lease->release, COORD_RELEASE_RELEASED);
    must(work, "commit");
    PQfinish(work);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_postgres_guard__a_stopped_leader_says_no_and_its_late_write_is_refused),
        cmocka_unit_test(test_postgres_guard__a_resigned_or_unknown_term_is_refused),
        cmocka_unit_test(test_postgres_guard__escapes_the_name_itself),
        cmocka_unit_test(test_postgres_guard__isolation_above_read_committed_is_refused),
        cmocka_unit_test(test_postgres_guard__an_idle_transaction_holds_up_a_takeover_for_a_lease),
        cmocka_unit_test(test_postgres_guard__keeps_a_shorter_bound_of_the_caller),
        cmocka_unit_test(test_postgres_guard__work_that_outlasts_a_lease_is_named),
        cmocka_unit_test(
            test_postgres_guard__work_that_alone_is_waited_for_is_named_before_a_lease),
        cmocka_unit_test(test_postgres_guard__writers_do_not_starve_the_successor),
        cmocka_unit_test(test_postgres_guard__a_writer_needs_execute_alone),
        cmocka_unit_test(test_postgres_guard__a_release_goes_through_ones_own_open_work),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
