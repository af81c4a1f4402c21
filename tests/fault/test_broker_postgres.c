/* SPDX-License-Identifier: MIT
 * tests/fault/test_broker_postgres.c - a bus over PostgreSQL whose server goes away, and bytes that
 * are not ours on its channels.
 */
#include "brokers/postgres.h"

#include "brokers/postgres_parts.h"
#include "tests/contract/broker_weather.h"
#include "tests/support/guard.h"
#include "tests/support/postgres_link.h"
#include "tests/support/postgres_server.h"

#include <signal.h>
#include <stdlib.h>

static struct postgres_server server;
static struct bus_world world;
static char address[POSTGRES_URI + 64];

static const char *uri(void)
{
    return address;
}

static const struct bus_store store = {
    .name = "postgres", .ops = coord_postgres_broker, .uri = uri};

static int begin(void **state)
{
    (void)state;
    bus_open_world(&world, &store, "fault");
    return 0;
}

static void needed(void)
{
    if (server.pid == 0) {
        postgres_server_start(&server, (const char *const[]){"log_lock_waits=on", NULL});
    }
    snprintf(address, sizeof address, "%s", server.uri);
}

static int end(void **state)
{
    (void)state;
    bus_close_world(&world);
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    postgres_server_stop(&server);
    return 0;
}

/* In order and as by a crash, in turn. */
static void end_server(void)
{
    static unsigned times;
    postgres_server_end(&server, times++ % 2 == 0 ? SIGINT : SIGQUIT);
}

static void server_again(void)
{
    postgres_server_again(&server);
}

static void test_broker_postgres__comes_back_when_the_server_is_restarted(void **state)
{
    (void)state;
    needed();
    bus_weather_restarts(&world, end_server, server_again);
}

static void test_broker_postgres__comes_back_when_its_session_is_ended(void **state)
{
    (void)state;
    needed();
    struct bus_side *a = bus_join(&world, 0);
    postgres_server_do(&server, "select pg_terminate_backend(pid) from pg_stat_activity where pid "
                                "<> pg_backend_pid() and backend_type = 'client backend'");
    bus_until_down(&world, a);
    bus_until_up(&world, a);
    assert_int_equal(bus_status(a).ups, 2);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
}

static void test_broker_postgres__does_not_hurry_a_server_that_ends_each_session(void **state)
{
    enum {
        WHILE = 2000, /* ms */
        MOST = 15     /* connections: its pauses grow, so it makes some 8, however fast they end */
    };
    struct link link;
    (void)state;
    needed();
    link_open(&link, &server);
    snprintf(address, sizeof address, "%s", link.uri);
    struct bus_side *a = bus_join(&world, 0);
    proxy_end_behind(&link.proxy, "pg_is_in_recovery"); /* the answer to its set-up */
    proxy_cut(&link.proxy, false);
    const unsigned before = proxy_clients(&link.proxy);
    bus_drive(&world, WHILE);
    assert_in_range(proxy_clients(&link.proxy) - before, 2, MOST);
    proxy_end_behind(&link.proxy, NULL);
    bus_until_up(&world, a);
    bus_close(a);
    link_close(&link);
}

/*
 * Of the one bus there is: those of former tests may take a moment to end. It waits for its client:
 * stopped within a statement it could keep a lock of the server that all others need.
 */
static pid_t session_of(void)
{
    const struct guard guard = guard_for("one session that waits for its client");
    int64_t pid = -1;
    while (pid <= 0) { /* in one look: the session of a look before may still be there */
        wait_on(&guard);
        pid = postgres_server_ask(
            &server, "select min(pid) from pg_stat_activity where pid <> pg_backend_pid() and "
                     "backend_type = 'client backend' "
                     "having count(*) = 1 and bool_and(wait_event = 'ClientRead')");
    }
    return (pid_t)pid;
}

static void test_broker_postgres__sees_a_silent_session_also_when_it_only_listens(void **state)
{
    (void)state;
    needed();
    world.config.attempt = 1000; /* ms: one that keeps silent for longer is gone */
    struct bus_side *a = bus_join(&world, 0);
    const pid_t silent = session_of();
    assert_true(silent > 1);
    kill(silent, SIGSTOP);
    bus_until_down(&world, a);
    bus_until_up(&world, a);
    kill(silent, SIGCONT);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
}

static void test_broker_postgres__counts_what_is_not_ours(void **state)
{
    char channel[COORD__BUS_CHANNEL];
    static const char *const bad[] = {
        "",
        "hello",
        "1",
        "1 ",
        "1 1 1 1",
        "1 x 1 1 aGk=",
        "1 1 0 1 aGk=",
        "1 1 2 1 aGk=",
        "1 1 1 13 aGk=",
        "1 1 1 1 aGk",
        "1 1 1 1 a-k=",
        "1 1 1 1 ====",
        "1 1 -1 1 aGk=",
        "1 ffffffffffffffffff 1 1 aGk=",
        "1 1 99999999999999999999 99999999999999999999 aGk=",
        "2 1 1 1 aGk=",
    };
    const size_t count = sizeof bad / sizeof bad[0];
    (void)state;
    needed();
    struct bus_side *a = bus_join(&world, 0);
    coord__bus_channel(world.topic, channel);
    for (size_t i = 0; i < count; i++) {
        postgres_server_do(&server, "select pg_notify('%s', '%s')", channel, bad[i]);
    }
    postgres_server_do(&server, "select pg_notify('%s', '1 5 2 2 aGk=')", channel); /* no part 1 */
    postgres_server_do(&server, "select pg_notify('%s', '1 6 1 1 aGk=')", channel); /* "hi" */
    bus_until_got(&world, a, 1);
    assert_int_equal(bus_has(a, "hi"), 1);
    const struct coord_broker_status status = bus_status(a);
    assert_int_equal(status.dropped[COORD_BROKER_DROP_DAMAGED] +
                         status.dropped[COORD_BROKER_DROP_INCOMPLETE],
                     count + 1);
    assert_true(status.dropped[COORD_BROKER_DROP_INCOMPLETE] >= 1);
    assert_true(status.up);
}

static void test_broker_postgres__does_not_believe_in_too_many_bytes(void **state)
{
    static char text[8000];
    static char statement[8200];
    char channel[COORD__BUS_CHANNEL];
    (void)state;
    needed();
    struct bus_side *a = bus_join(&world, 0);
    coord__bus_channel(world.topic, channel);
    PGconn *conn = postgres_server_connect(&server);
    for (int part = 1; part <= 12; part++) { /* each full: 12 of them are more than 64 KiB */
        const int head = snprintf(text, sizeof text, "1 7 %d 12 ", part);
        memset(text + head, 'A', 7920);
        text[head + 7920] = '\0';
        snprintf(statement, sizeof statement, "select pg_notify('%s', '%s')", channel, text);
        PGresult *result = PQexec(conn, statement);
        assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
        PQclear(result);
    }
    PQfinish(conn);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    assert_int_equal(bus_has(a, "hello"), 1);
    assert_int_equal(bus_status(a).dropped[COORD_BROKER_DROP_DAMAGED], 1);
}

static void test_broker_postgres__publishes_where_the_database_is_read_only(void **state)
{
    (void)state;
    needed();
    snprintf(address, sizeof address, "%s%coptions=-c%%20default_transaction_read_only%%3Don",
             server.uri, strchr(server.uri, '?') != NULL ? '&' : '?');
    struct bus_side *a = bus_join(&world, 0);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
}

static void test_broker_postgres__refuses_options_that_cannot_work(void **state)
{
    static struct coord_uri parsed;
    struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
    struct coord_broker *broker = NULL;
    struct coord_error error = {.code = COORD_OK};
    (void)state;
    assert_int_equal(coord_uri_parse("postgresql://h/d?coord.pooler=statement", &parsed, NULL),
                     COORD_OK);
    config.uri = &parsed;
    assert_int_equal(coord_broker_new(coord_postgres_broker(), &config, 0, &broker, &error),
                     COORD_E_BAD_OPTION);
    config.uri = NULL;
    assert_int_equal(coord_broker_new(coord_postgres_broker(), &config, 0, &broker, &error),
                     COORD_E_BAD_URI);
}

static void end_one_session(void)
{
    postgres_server_until(&server, "select count(*) = 1 from pg_stat_activity where pid <> "
                                   "pg_backend_pid() and backend_type = 'client backend'");
    postgres_server_end(&server, SIGQUIT);
}

static void test_broker_postgres__many_agents_over_one_session_survive_a_restart(void **state)
{
    (void)state;
    needed();
    bus_weather_shared(&world, end_one_session, server_again);
}

static void test_broker_postgres__that_is_down_at_the_start_is_told_once_and_comes(void **state)
{
    (void)state;
    needed();
    postgres_server_end(&server, SIGQUIT);
    bus_weather_down_at_start(&world, server_again);
}

static void use_role(const char *role, const char *database)
{
    const char *where = strchr(server.uri, '?'); /* ?host=FOLDER&port=N */
    assert_non_null(where);
    snprintf(address, sizeof address, "postgresql://%s@/%s%s", role, database, where);
}

static void test_broker_postgres__tells_a_wrong_password_once(void **state)
{
    (void)state;
    needed();
    postgres_server_do(&server, "set password_encryption = 'scram-sha-256'; create role locked "
                                "login password 'right'");
    postgres_server_put_in_hba(&server, "local all locked scram-sha-256");
    use_role("locked:wr0ng-s3cret", "postgres");
    bus_weather_refused(&world, COORD_E_WRONG_PASSWORD, "PGPASSFILE", "s3cret");
    use_role("locked", "postgres");
    bus_weather_refused(&world, COORD_E_WRONG_PASSWORD, "PGPASSFILE", NULL);
}

static void test_broker_postgres__names_the_right_to_connect(void **state)
{
    (void)state;
    needed();
    postgres_server_do(&server, "create role outsider login");
    postgres_server_do(&server, "create database closed");
    postgres_server_do(&server, "revoke connect on database closed from public");
    use_role("outsider", "closed");
    bus_weather_refused(&world, COORD_E_NO_RIGHT, "GRANT CONNECT ON DATABASE", NULL);
    use_role("outsider", "nowhere");
    bus_weather_refused(&world, COORD_E_NOT_INITIALISED, "create the database", NULL);
}

static void test_broker_postgres__needs_no_right_but_to_connect(void **state)
{
    (void)state;
    needed();
    postgres_server_do(&server, "create role nobody login");
    use_role("nobody", "postgres");
    struct bus_side *a = bus_join(&world, 0);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
}

static void test_broker_postgres__names_the_right_to_notify(void **state)
{
    (void)state;
    needed();
    postgres_server_do(&server, "create role mute login");
    postgres_server_do(&server, "create database quiet");
    snprintf(address, sizeof address, "%s", server.uri);
    use_role("postgres", "quiet");
    PGconn *conn = PQconnectdb(address);
    assert_string_equal(postgres_server_try(conn, "revoke execute on function pg_notify(text, "
                                                  "text) from public"),
                        "");
    PQfinish(conn);
    use_role("mute", "quiet");
    bus_weather_refused(&world, COORD_E_NO_RIGHT, "GRANT EXECUTE ON FUNCTION", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_broker_postgres__##name, begin, end)
        T(comes_back_when_the_server_is_restarted),
        T(comes_back_when_its_session_is_ended),
        T(does_not_hurry_a_server_that_ends_each_session),
        T(sees_a_silent_session_also_when_it_only_listens),
        T(counts_what_is_not_ours),
        T(does_not_believe_in_too_many_bytes),
        T(publishes_where_the_database_is_read_only),
        T(refuses_options_that_cannot_work),
        T(many_agents_over_one_session_survive_a_restart),
        T(that_is_down_at_the_start_is_told_once_and_comes),
        T(tells_a_wrong_password_once),
        T(names_the_right_to_connect),
        T(needs_no_right_but_to_connect),
        T(names_the_right_to_notify),
    };
    return cmocka_run_group_tests(tests, NULL, end_all);
}
