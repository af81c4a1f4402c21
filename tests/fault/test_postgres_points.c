/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_points.c - what ends a candidate, at each point between its acquire and
 * the end of its release: its process is killed, its session is terminated, the server restarts.
 *
 * Each point is an election of its own. All are brought there, and kept there by a lock or by an
 * answer that is held back; then it happens to all of them at once.
 */
#include "tests/support/postgres_link.h"
#include "tests/support/postgres_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum stop {
    IN_STATEMENT = 1, /* it has the row, and has not written it */
    IN_COMMIT = 2,    /* all of it is done, but this */
    AT_GATE,          /* the row is written; guarded work of the former term is open */
    AT_ANSWER         /* it is committed, and the client does not know */
};

struct point {
    const char *name;
    bool releases; /* it led, and resigns */
    enum stop stop;
};

static const struct point points[] = {
    {"acquire-statement", false, IN_STATEMENT}, {"acquire-commit", false, IN_COMMIT},
    {"acquire-gate", false, AT_GATE},           {"acquire-answer", false, AT_ANSWER},
    {"release-commit", true, IN_COMMIT},        {"release-answer", true, AT_ANSWER},
    {"release-statement", true, IN_STATEMENT},
};

enum {
    POINTS = sizeof points / sizeof points[0],
    LEASE = 40000 /* ms; nothing is given up before 5 s, so all are at their points at once */
};

struct scene {
    const struct point *point;
    char name[128];
    struct link link;
    struct candidate *victim; /* NULL: it lives in a process of its own */
    pid_t child;
    int child_fd;
    struct candidate *successor;
    PGconn *blocker;
    int64_t pid;   /* of the server's process that stands at the point */
    int64_t fence; /* of the last term that was committed before the end */
};

struct play {
    struct world w;
    struct scene scenes[POINTS];
    PGconn *admin;
};

/* ---------------------------------------------------------------- the server's side */

static int64_t ask(PGconn *conn, const char *text, const char *value)
{
    const char *const values[] = {value};
    PGresult *result = PQexecParams(conn, text, value != NULL, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", text, PQresultErrorMessage(result));
    }
    const int64_t number = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return number;
}

/* @return 0: none does yet. */
static int64_t process_at_point(const struct play *play, struct scene *scene)
{
    char blocker[16];
    if (scene->point->stop == AT_ANSWER) {
        return proxy_kept(&scene->link.proxy) == 0
                   ? 0
                   : ask(play->admin, "select pid from coord.term where name = $1", scene->name);
    }
    snprintf(blocker, sizeof blocker, "%d", PQbackendPID(scene->blocker));
    return ask(play->admin,
               "select pid from pg_stat_activity where $1::int = any(pg_blocking_pids(pid))",
               blocker);
}

/* What keeps it there. */
static void arm(struct scene *scene)
{
    if (scene->point->stop == AT_ANSWER) {
        proxy_keep_reply(&scene->link.proxy,
                         scene->point->releases ? "coord_release" : "coord_acquire");
    } else if (scene->point->stop != AT_GATE) { /* that was done before */
        assert_string_equal(
            postgres_server_try(scene->blocker,
                                "begin; select pg_advisory_xact_lock(%d, hashtext('%s'))",
                                (int)scene->point->stop, scene->name),
            "");
    }
}

/* ---------------------------------------------------------------- the candidate's side */

static bool is_told_to_go(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
}

/* Until it is killed. */
static void live_and_die(const struct candidate_wish *wish, bool releases, int fd)
{
    struct candidates all = {.count = 0};
    bool gone = false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct candidate *c = candidate_new(&all, wish);
    if (releases) {
        candidate_win(&all, c);
        (void)!write(fd, "", 1);
    }
    for (;;) {
        candidates_turn(&all, 10);
        if (!gone && is_told_to_go(fd)) {
            gone = true;
            if (releases) {
                coord_lease_withdraw(c->lease, coord_clock_now());
            } else {
                candidate_stand(c);
            }
        }
    }
}

static void bear(struct play *play, struct scene *scene)
{
    int fds[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    scene->child = fork();
    assert_true(scene->child >= 0);
    if (scene->child == 0) {
        live_and_die(&play->w.wish, scene->point->releases, fds[1]);
    }
    close(fds[1]);
    scene->child_fd = fds[0];
    if (scene->point->releases) {
        assert_int_equal(recv(scene->child_fd, &byte, 1, 0), 1);
    }
}

/* The successor leads first, so that there is a row, and a fence that is less than all others. */
static void prepare(struct play *play, struct scene *scene, bool in_child)
{
    struct candidates *all = &play->w.all;
    postgres_server_name(scene->name, sizeof scene->name, scene->point->name);
    play->w.wish.name = scene->name;
    play->w.wish.uri = world_server.uri;
    scene->successor = world_join(&play->w);
    scene->blocker = postgres_server_connect(&world_server);
    candidate_win(all, scene->successor);
    if (scene->point->stop == AT_GATE) {
        assert_string_equal(postgres_server_try(scene->blocker,
                                                "begin; select coord.fence('%s', %" PRIu64 ")",
                                                scene->name, scene->successor->fence),
                            "");
    }
    candidate_resign(all, scene->successor);
    link_open(&scene->link, &world_server);
    play->w.wish.uri = scene->link.uri;
    if (in_child) {
        bear(play, scene);
        return;
    }
    scene->victim = world_join(&play->w);
    if (scene->point->releases) {
        candidate_win(all, scene->victim);
    }
}

static void go(const struct scene *scene)
{
    if (scene->victim == NULL) {
        assert_int_equal(write(scene->child_fd, "", 1), 1);
    } else if (scene->point->releases) {
        coord_lease_withdraw(scene->victim->lease, coord_clock_now());
    } else {
        candidate_stand(scene->victim);
    }
}

/* ---------------------------------------------------------------- to the points, and after */

static bool all_are_there(struct play *play)
{
    for (size_t i = 0; i < POINTS; i++) {
        play->scenes[i].pid = process_at_point(play, &play->scenes[i]);
        if (play->scenes[i].pid == 0) {
            return false;
        }
    }
    return true;
}

static void play_until_the_points(struct play *play, bool in_children)
{
    memset(play, 0, sizeof *play);
    world_open(&play->w, "points");
    play->w.wish.ttl = LEASE;
    play->admin = postgres_server_connect(&world_server);
    for (size_t i = 0; i < POINTS; i++) {
        play->scenes[i].point = &points[i];
        prepare(play, &play->scenes[i], in_children);
    }
    for (size_t i = 0; i < POINTS; i++) {
        arm(&play->scenes[i]);
    }
    for (size_t i = 0; i < POINTS; i++) {
        go(&play->scenes[i]);
    }
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (!all_are_there(play)) {
        candidates_turn(&play->w.all, 5);
        assert_true(coord_clock_now() < guard);
    }
    for (size_t i = 0; i < POINTS; i++) {
        struct scene *scene = &play->scenes[i];
        scene->fence =
            ask(play->admin, "select fence from coord.term where name = $1", scene->name);
        candidate_stand(scene->successor); /* nothing is sent before the next turn */
    }
}

static void let_go(struct play *play)
{
    for (size_t i = 0; i < POINTS; i++) {
        PQfinish(play->scenes[i].blocker);
        proxy_let_go(&play->scenes[i].link.proxy);
    }
}

/* Told of the end, or already of a login that the server refused meanwhile. */
static bool names_the_cure(const struct coord_error *error)
{
    return strstr(error->text, "it is opened again") != NULL ||
           strstr(error->text, "check host, port and server") != NULL;
}

static void until_they_are_told(struct play *play)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    bool told[POINTS] = {false};
    size_t left = POINTS;
    while (left > 0) {
        candidates_turn(&play->w.all, 50);
        for (size_t i = 0; i < POINTS; i++) {
            const struct coord_error *error = &play->scenes[i].victim->lease->error;
            if (!told[i] && error->code == COORD_E_UNREACHABLE) {
                assert_true(names_the_cure(error));
                told[i] = true;
                left--;
            }
        }
        assert_true(coord_clock_now() < guard);
    }
}

/* Leads, or waits out what an earlier term owes, which nobody here does. */
static bool is_in(const struct candidate *candidate)
{
    return candidate != NULL &&
           (candidate_leads(candidate) ||
            (candidate_waits(candidate) && candidate->lease->term.debt == LEASE));
}

static const struct candidate *who_is_in(const struct scene *scene)
{
    return is_in(scene->victim) ? scene->victim : is_in(scene->successor) ? scene->successor : NULL;
}

static bool somebody_is_in_everywhere(const struct play *play)
{
    for (size_t i = 0; i < POINTS; i++) {
        if (who_is_in(&play->scenes[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static void is_well(const struct scene *scene, PGconn *writer)
{
    const struct candidate *c = who_is_in(scene);
    assert_non_null(c);
    assert_true(c->lease->term.fence > (uint64_t)scene->fence);
    /* What a killed process had sent goes on without it, and is a term that nobody resigns. */
    assert_true(scene->victim != NULL || scene->point->releases || candidate_waits(c));
    assert_string_equal(postgres_server_try(writer, "select coord.fence('%s', %" PRIi64 ")",
                                            scene->name, scene->fence),
                        "STALE");
}

/* One holder each, with a fence of its own; one lock each; and nobody writes as the one before. */
static void all_is_well(struct play *play)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    for (size_t i = 0; i < POINTS; i++) {
        if (play->scenes[i].victim != NULL && play->scenes[i].point->releases) {
            candidates_until(&play->w.all, play->scenes[i].victim, candidate_settled);
        }
    }
    while (!somebody_is_in_everywhere(play)) {
        candidates_turn(&play->w.all, 50);
        assert_true(coord_clock_now() < guard);
    }
    PGconn *writer = postgres_server_connect(&world_server);
    for (size_t i = 0; i < POINTS; i++) {
        is_well(&play->scenes[i], writer);
    }
    PQfinish(writer);
    world_until(&play->w,
                "select (select count(*) = %d from pg_locks where locktype = 'advisory') and "
                "(select count(*) = 0 from pg_locks where not granted or (locktype = 'relation' "
                "and pid <> pg_backend_pid() and relation = 'coord.term'::regclass))",
                (int)POINTS);
}

static void play_end(struct play *play)
{
    PQfinish(play->admin);
    for (size_t i = 0; i < POINTS; i++) {
        if (play->scenes[i].child > 0) {
            close(play->scenes[i].child_fd);
        }
        link_close(&play->scenes[i].link);
    }
    world_close(&play->w);
}

/* ---------------------------------------------------------------- what happens there */

static void test_postgres_points__a_process_that_is_killed_leaves_nothing_locked(void **state)
{
    (void)state;
    static struct play play;
    play_until_the_points(&play, true);
    for (size_t i = 0; i < POINTS; i++) {
        kill(play.scenes[i].child, SIGKILL);
        assert_int_equal(waitpid(play.scenes[i].child, NULL, 0), play.scenes[i].child);
    }
    let_go(&play);
    all_is_well(&play);
    play_end(&play);
}

static void test_postgres_points__nor_does_a_session_that_is_terminated(void **state)
{
    (void)state;
    static struct play play;
    char pid[24];
    play_until_the_points(&play, false);
    for (size_t i = 0; i < POINTS; i++) {
        snprintf(pid, sizeof pid, "%" PRIi64, play.scenes[i].pid);
        ask(play.admin, "select pg_terminate_backend($1::int)", pid);
    }
    until_they_are_told(&play);
    let_go(&play);
    all_is_well(&play);
    play_end(&play);
}

static void restart_with(int signal_number)
{
    static struct play play;
    play_until_the_points(&play, false);
    postgres_server_end(&world_server, signal_number);
    until_they_are_told(&play);
    let_go(&play);
    postgres_server_again(&world_server);
    all_is_well(&play);
    play_end(&play);
}

static void test_postgres_points__nor_does_a_restart_of_the_server(void **state)
{
    (void)state;
    restart_with(SIGINT);
}

static void test_postgres_points__nor_does_its_crash(void **state)
{
    (void)state;
    restart_with(SIGQUIT);
}

/* As one that the system has run out of memory for: the server ends all others, and goes on. */
static void test_postgres_points__nor_does_the_crash_of_one_of_its_processes(void **state)
{
    (void)state;
    static struct play play;
    const coord_ms guard = coord_clock_now() + 2 * CANDIDATE_PATIENCE;
    play_until_the_points(&play, false);
    for (size_t i = 0; i < POINTS; i++) {
        kill((pid_t)play.scenes[i].pid, SIGKILL);
    }
    until_they_are_told(&play);
    let_go(&play);
    while (PQstatus(play.admin) == CONNECTION_OK || !postgres_server_answers(&world_server)) {
        postgres_server_try(play.admin, "select 1");
        candidates_turn(&play.w.all, 20);
        assert_true(coord_clock_now() < guard);
    }
    all_is_well(&play);
    play_end(&play);
}

static int start(void **state)
{
    (void)state;
    if (world_start_with((const char *const[]){"max_connections=200", NULL}) == 0 &&
        world_server.pid != 0) {
        /* Whoever has the lock of a name keeps the writing of its row waiting, or its COMMIT. */
        postgres_server_do(
            &world_server,
            "create function wait_there() returns trigger language plpgsql set lock_timeout = 0 as "
            "'begin perform pg_advisory_xact_lock_shared(tg_argv[0]::int, hashtext(new.name)); "
            "return new; end'; "
            "create trigger in_statement before update on coord.term for each row "
            "execute function wait_there(%d); "
            "create constraint trigger in_commit after insert or update on coord.term "
            "deferrable initially deferred for each row execute function wait_there(%d)",
            (int)IN_STATEMENT, (int)IN_COMMIT);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_points__a_process_that_is_killed_leaves_nothing_locked),
        cmocka_unit_test(test_postgres_points__nor_does_a_session_that_is_terminated),
        cmocka_unit_test(test_postgres_points__nor_does_a_restart_of_the_server),
        cmocka_unit_test(test_postgres_points__nor_does_its_crash),
        cmocka_unit_test(test_postgres_points__nor_does_the_crash_of_one_of_its_processes),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
