/* SPDX-License-Identifier: MIT
 * electors/postgres_setup.c - what a new session is told first, and whether it took: its settings,
 * and what server it is. Behind a pooler one statement at a time.
 */
#include "electors/postgres_parts.h"

#include <stdlib.h>
#include <string.h>

static void send_probe(struct coord__postgres_session *session, coord_ms now)
{
    coord__postgres_session_send(
        session, session->probe_less ? COORD__POSTGRES_PROBE_LESS : COORD__POSTGRES_PROBE, NULL, 0,
        NULL, now);
}

void coord__postgres_setup_settle(struct coord__postgres_session *session, coord_ms now)
{
    char lease[COORD__POSTGRES_NUMBER];
    char statement[COORD__POSTGRES_NUMBER];
    char lock[COORD__POSTGRES_NUMBER];
    const char *const values[] = {
        coord__postgres_number(session->lease, lease),
        coord__postgres_number(session->attempt, statement),
        coord__postgres_number(coord_ms_max(session->attempt / 2, 1), lock),
    };
    session->ready = false;
    session->settings_due = false;
    if (coord__postgres_session_send(session, COORD__POSTGRES_SETTINGS, NULL, 3, values, now) &&
        !session->pooler) {
        send_probe(session, now);
    }
}

void coord__postgres_setup_begin(void *ctx, coord_ms now)
{
    struct coord__postgres_session *session = ctx;
    const int version = coord__postgres_version(session->link);
    if (version < 140000) {
        struct coord_error why;
        coord_error_set(&why, COORD_E_SERVER_TOO_OLD,
                        "this is PostgreSQL %d: coord needs 14 or later, which can end a session "
                        "that is silent",
                        version / 10000);
        coord__postgres_refuse(session->link, &why, now);
        return;
    }
    session->opened_at = now;
    session->job_count = 0;
    session->probe_less = false;
    if (coord__postgres_session_send(session, COORD__POSTGRES_OPENING, NULL, 0, NULL, now) &&
        !session->pooler) {
        coord__postgres_setup_settle(session, now);
    }
}

/* ---------------------------------------------------------------- the probe */

static uint64_t number_at(const PGresult *rows, int column)
{
    return strtoull(coord__postgres_text(rows, 0, column), NULL, 10);
}

static bool says(const PGresult *rows, int column, const char *text)
{
    return strcmp(coord__postgres_text(rows, 0, column), text) == 0;
}

static bool keeps_settings(const struct coord__postgres_session *session, const PGresult *rows)
{
    return number_at(rows, COORD__PROBE_LEASE_MS) == session->lease &&
           number_at(rows, COORD__PROBE_STATEMENT_MS) == session->attempt &&
           number_at(rows, COORD__PROBE_LOCK_MS) == coord_ms_max(session->attempt / 2, 1) &&
           says(rows, COORD__PROBE_COMMIT, "local") &&
           says(rows, COORD__PROBE_ISOLATION, "read committed") &&
           says(rows, COORD__PROBE_READ_ONLY, "off");
}

static enum coord_err check_probe(struct coord__postgres_session *session, const PGresult *rows,
                                  struct coord_error *error)
{
    const uint64_t pid = number_at(rows, COORD__PROBE_PID);
    if (says(rows, COORD__PROBE_STANDBY, "t")) {
        return coord_error_set(error, COORD_E_STANDBY,
                               "this PostgreSQL is a standby, whose locks exclude nobody on the "
                               "primary: name the primary in the URI, or several hosts");
    }
    if (!session->pooler && pid != (uint64_t)coord__postgres_backend(session->link)) {
        return coord_error_set(error, COORD_E_POOLER,
                               "a connection pooler stands in between, which may give one lock to "
                               "two clients: connect to the server itself, or, where the pool is "
                               "in session mode, add coord.pooler=session");
    }
    /* Who joined or left since then has others sent at once, which are looked at. */
    if (!session->settings_due && !keeps_settings(session, rows)) {
        return coord_error_set(error, session->pooler ? COORD_E_POOLER : COORD_E_PROTOCOL,
                               "the session does not keep its settings (idle_session_timeout is "
                               "%s ms): %s",
                               coord__postgres_text(rows, 0, COORD__PROBE_LEASE_MS),
                               session->pooler ? "the pooler is not in session mode"
                                               : "see what changes them on the server");
    }
    session->backend = (int)pid;
    session->timeline = (unsigned)number_at(rows, COORD__PROBE_TIMELINE);
    session->run[0] = '\0';
    strncat(session->run, coord__postgres_text(rows, 0, COORD__PROBE_RUN), sizeof session->run - 1);
    return COORD_OK;
}

static void refuse(struct coord__postgres_session *session, const struct coord_error *why,
                   coord_ms now)
{
    session->ready = false;
    session->job_count = 0;
    coord__postgres_all_lost(session, why, now);
    coord__postgres_refuse(session->link, why, now);
}

static void probed(struct coord__postgres_session *session,
                   const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord_error why;
    if (reply->error.code != COORD_OK && !session->probe_less) {
        /* Some managed servers keep it to themselves: then no record is known to be of this run. */
        session->probe_less = true;
        send_probe(session, now);
        return;
    }
    if (reply->error.code != COORD_OK) {
        refuse(session, &reply->error, now);
        return;
    }
    if (check_probe(session, reply->rows, &why) != COORD_OK) {
        refuse(session, &why, now);
        return;
    }
    session->ready = true;
}

void coord__postgres_setup_answered(struct coord__postgres_session *session,
                                    enum coord__postgres_sql sql,
                                    const struct coord__postgres_reply *reply, coord_ms now)
{
    if (sql == COORD__POSTGRES_PROBE || sql == COORD__POSTGRES_PROBE_LESS) {
        probed(session, reply, now);
    } else if (session->pooler && sql == COORD__POSTGRES_OPENING) {
        coord__postgres_setup_settle(session, now);
    } else if (session->pooler) { /* the probe tells whether the settings took */
        send_probe(session, now);
    }
}
