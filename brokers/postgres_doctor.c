/* SPDX-License-Identifier: MIT
 * brokers/postgres_doctor.c - what a PostgreSQL server is like, judged for a bus.
 */
#include "brokers/postgres.h"

#include "brokers/postgres_parts.h"
#include "connections/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FEW_SESSIONS = 10,
    QUEUE_WARN = 10, /* percent */
    QUEUE_FAIL = 90,
    CLOCK_WARN_MS = 1000
};

/* In the order of the columns. In one message with what bounds it: that is one transaction, and
 * nothing stays behind in a session that a pool gives to others. */
static const char facts_text[] =
    "set local statement_timeout = '10s'; set local search_path = pg_catalog;\n"
    "select pg_backend_pid(), pg_is_in_recovery(),\n"
    "  current_setting('server_version_num'),\n"
    "  (pg_notification_queue_usage() * 100)::int,\n"
    "  (select count(*) from pg_stat_activity where backend_type = 'client backend'),\n"
    "  current_setting('max_connections')::int\n"
    "    - current_setting('superuser_reserved_connections')::int,\n"
    "  (extract(epoch from clock_timestamp()) * 1000000)::bigint";

enum fact {
    PID = 0,
    STANDBY,
    VERSION,
    QUEUE,
    SESSIONS,
    SESSIONS_MOST,
    CLOCK
};

struct doctor {
    struct coord_checks checks;
    const PGresult *facts;
    int64_t wall; /* in the middle of the question */
};

static const char *fact(const struct doctor *d, enum fact which)
{
    return coord__postgres_text(d->facts, 0, (int)which);
}

static long number(const struct doctor *d, enum fact which)
{
    return strtol(fact(d, which), NULL, 10);
}

static void add(struct doctor *d, const char *name, enum coord_verdict verdict, const char *value,
                const char *why, const char *cure)
{
    coord_check_add(&d->checks, name, verdict, value, why, cure);
}

static void check_server(struct doctor *d, bool direct, bool pooler)
{
    char value[COORD_CHECK_VALUE_MAX];
    const long version = number(d, VERSION);
    const bool standby = fact(d, STANDBY)[0] == 't';
    snprintf(value, sizeof value, "PostgreSQL %ld", version / 10000);
    add(d, "version", version >= 140000 ? COORD_VERDICT_OK : COORD_VERDICT_FAIL, value,
        "what the bus relies on is tested from 14 on", "upgrade the server to 14 or later");
    add(d, "primary", standby ? COORD_VERDICT_FAIL : COORD_VERDICT_OK,
        standby ? "a standby" : "the primary", "a standby neither notifies nor listens",
        "name the primary in the URI, or several hosts");
    add(d, "pooler", direct || pooler ? COORD_VERDICT_OK : COORD_VERDICT_FAIL,
        direct ? "none in between" : "a pooler in between",
        "a pool in transaction mode gives the session that listens to somebody else",
        "connect to the server itself, or, where the pool is in session mode, add "
        "coord.pooler=session");
}

static void check_queue(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    const long used = number(d, QUEUE);
    snprintf(value, sizeof value, "%d bytes of a message in each notification",
             COORD__BUS_PART_BYTES);
    add(d, "payload", COORD_VERDICT_OK, value,
        "the server takes less than 8,000; a longer message goes in parts of one transaction", "");
    snprintf(value, sizeof value, "%ld %% full", used);
    add(d, "notification queue",
        used >= QUEUE_FAIL   ? COORD_VERDICT_FAIL
        : used >= QUEUE_WARN ? COORD_VERDICT_WARN
                             : COORD_VERDICT_OK,
        value, "a session that listens and sits in a transaction fills it; then NOTIFY fails",
        "end the oldest transaction of pg_stat_activity, such as one that is idle in transaction");
    const long left = number(d, SESSIONS_MOST) - number(d, SESSIONS);
    snprintf(value, sizeof value, "%ld of %ld in use", number(d, SESSIONS),
             number(d, SESSIONS_MOST));
    add(d, "sessions", left >= FEW_SESSIONS ? COORD_VERDICT_OK : COORD_VERDICT_WARN, value,
        "each process of the fleet needs a session of its own",
        "raise max_connections, or put a pool before the application's other sessions");
}

static void check_clock(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    const int64_t apart = (strtoll(fact(d, CLOCK), NULL, 10) - d->wall) / 1000;
    const bool far = apart >= CLOCK_WARN_MS || apart <= -CLOCK_WARN_MS;
    snprintf(value, sizeof value, "%" PRId64 " ms apart", apart);
    add(d, "clock", far ? COORD_VERDICT_WARN : COORD_VERDICT_OK, value,
        "times in messages count as differences, but people and logs compare them",
        "let both hosts follow a time server");
}

static void examine(PGconn *conn, bool pooler, uint64_t (*wall)(void), struct doctor *d)
{
    const int64_t before = (int64_t)wall();
    PGresult *facts = PQexec(conn, facts_text);
    d->wall = before + ((int64_t)wall() - before) / 2;
    if (PQresultStatus(facts) == PGRES_TUPLES_OK) {
        d->facts = facts;
        check_server(d, number(d, PID) == PQbackendPID(conn), pooler);
        check_queue(d);
        check_clock(d);
    } else {
        struct coord_error why;
        coord__postgres_explain_result(facts, &why);
        add(d, "facts", COORD_VERDICT_FAIL, coord_err_name(why.code),
            "the server does not answer what has to be known", why.text);
    }
    PQclear(facts);
}

size_t coord_postgres_bus_doctor(const char *uri, bool pooler, uint64_t (*wall)(void),
                                 struct coord_check *out)
{
    struct doctor d = {.checks = {out, 0}};
    struct coord__postgres_target *target = NULL;
    if (coord__postgres_target_new(uri, &target, NULL) != COORD_OK) {
        return 0;
    }
    struct coord_error why;
    PGconn *conn = coord__postgres_ask(target, &why);
    if (conn != NULL) {
        examine(conn, pooler, wall, &d);
    }
    PQfinish(conn);
    coord__postgres_target_free(target);
    return d.checks.count;
}
