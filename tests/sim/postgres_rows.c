/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_rows.c - the model's answers as the rows of text that libpq would give.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "electors/postgres_parts.h"
#include "tests/sim/postgres.h"

enum {
    COLUMNS = 17,
    TEXT = 40
};

/* An empty text is null. */
struct pg_result {
    int rows;
    char cells[SIM_PG_ELECTIONS][COLUMNS][TEXT];
};

int PQntuples(const PGresult *rows)
{
    return rows->rows;
}

int PQgetisnull(const PGresult *rows, int row, int column)
{
    return rows->cells[row][column][0] == '\0';
}

const char *coord__postgres_text(const PGresult *rows, int row, int column)
{
    return row < rows->rows ? rows->cells[row][column] : "";
}

static void put_text(PGresult *rows, int row, int column, const char *text)
{
    memcpy(rows->cells[row][column], text, strlen(text) + 1);
}

static void put(PGresult *rows, int row, int column, uint64_t value)
{
    coord__postgres_number(value, rows->cells[row][column]);
}

static void put_yes(PGresult *rows, int row, int column, bool yes)
{
    put_text(rows, row, column, yes ? "t" : "f");
}

static void put_process(PGresult *rows, int row, int column, uint8_t process)
{
    if (process != SIM_PG_NOBODY) {
        put_text(rows, row, column, (char[]){'p', (char)('0' + process), '\0'});
    }
}

static void put_owner(PGresult *rows, int row, int column, const struct sim_pg_row *of)
{
    const uint64_t first = (uint64_t)of->identity << 56 | (uint64_t)of->owner << 40;
    const int n = snprintf(rows->cells[row][column], TEXT, "%016" PRIx64 "%016d", first, 0);
    COORD_ASSERT(n == 32);
}

static void put_probe(PGresult *rows, const struct sim_pg_answer *answer)
{
    put(rows, 0, COORD__PROBE_PID, answer->pid);
    put_yes(rows, 0, COORD__PROBE_STANDBY, false);
    put(rows, 0, COORD__PROBE_LEASE_MS, answer->lease);
    put(rows, 0, COORD__PROBE_LOCK_MS, answer->lock_timeout);
    put(rows, 0, COORD__PROBE_STATEMENT_MS, answer->statement_timeout);
    put_text(rows, 0, COORD__PROBE_COMMIT, "local");
    put_text(rows, 0, COORD__PROBE_ISOLATION, "read committed");
    put_text(rows, 0, COORD__PROBE_READ_ONLY, "off");
    put(rows, 0, COORD__PROBE_TIMELINE, answer->run);
    put(rows, 0, COORD__PROBE_RUN, answer->run);
}

static void put_acquired(PGresult *rows, const struct sim_pg_answer *answer)
{
    const struct sim_pg_row *row = &answer->table.rows[answer->call.election];
    put_yes(rows, 0, COORD__ACQUIRE_WON, answer->won);
    put_yes(rows, 0, COORD__ACQUIRE_HELD, answer->held);
    if (answer->held) {
        put(rows, 0, COORD__ACQUIRE_FENCE, answer->fence);
        put(rows, 0, COORD__ACQUIRE_OWED, answer->debt);
        return;
    }
    put_yes(rows, 0, COORD__ACQUIRE_KNOWN, row->present);
    if (row->present) {
        put_process(rows, 0, COORD__ACQUIRE_IDENTITY, row->identity);
        put(rows, 0, COORD__ACQUIRE_ROW_FENCE, row->fence);
        put(rows, 0, COORD__ACQUIRE_DEBT, row->debt);
        put_yes(rows, 0, COORD__ACQUIRE_RESIGNED, row->resigned);
        put(rows, 0, COORD__ACQUIRE_SINCE_US, row->since_us);
        put_process(rows, 0, COORD__ACQUIRE_SUCCESSOR, row->successor);
        put(rows, 0, COORD__ACQUIRE_RESERVED_MS, answer->reserved_ms);
        put_yes(rows, 0, COORD__ACQUIRE_KEY_MATCHES, true);
        put_text(rows, 0, COORD__ACQUIRE_TAKEOVER, answer->call.fast ? "fast" : "safe");
        put_yes(rows, 0, COORD__ACQUIRE_SAME_RUN, sim_pg_is_of_run(row, answer->call.run));
        put(rows, 0, COORD__ACQUIRE_FORMAT, 1);
    }
}

/* One line for each row that is there; without any, one that names the session alone. */
static void put_renewed(PGresult *rows, const struct sim_world *world,
                        const struct sim_pg_answer *answer, int pid)
{
    int n = 0;
    for (size_t i = 0; i < SIM_PG_ELECTIONS; i++) {
        const struct sim_pg_row *row = &answer->table.rows[i];
        if ((answer->call.elections >> i & 1) == 0 || !row->present) {
            continue;
        }
        put(rows, n, COORD__RENEW_BACKEND, (uint64_t)pid);
        put(rows, n, COORD__RENEW_KEY, world->pg.keys[i]);
        put(rows, n, COORD__RENEW_FENCE, row->fence);
        put_owner(rows, n, COORD__RENEW_OWNER, row);
        put(rows, n, COORD__RENEW_PID, row->pid);
        put_yes(rows, n, COORD__RENEW_RESIGNED, row->resigned);
        put_yes(rows, n, COORD__RENEW_ASKED, answer->asked[i]);
        put_process(rows, n, COORD__RENEW_ASKED_FOR, row->ask_for);
        put_yes(rows, n, COORD__RENEW_LOCKED, true);
        n++;
    }
    put(rows, 0, COORD__RENEW_BACKEND, (uint64_t)pid);
    rows->rows = n > 0 ? n : 1;
}

static void put_struck(PGresult *rows, const struct sim_pg_answer *answer)
{
    const uint8_t election = answer->call.election;
    put_yes(rows, 0, 0, answer->asked[election]);
    put_process(rows, 0, 1, answer->table.rows[election].ask_for);
    rows->rows = answer->done;
}

static void put_observed(PGresult *rows, const struct sim_pg_answer *answer)
{
    const struct sim_pg_row *row = &answer->table.rows[answer->call.election];
    put_yes(rows, 0, COORD__OBSERVE_LOCKED, answer->held);
    if (row->present) {
        put_yes(rows, 0, COORD__OBSERVE_LEADS,
                answer->held && answer->lock_pid == row->pid && !row->resigned);
        put_process(rows, 0, COORD__OBSERVE_IDENTITY, row->identity);
        put(rows, 0, COORD__OBSERVE_FENCE, row->fence);
        put(rows, 0, COORD__OBSERVE_DEBT, row->debt);
        put(rows, 0, COORD__OBSERVE_SINCE_US, row->since_us);
        put_process(rows, 0, COORD__OBSERVE_SUCCESSOR, row->successor);
        put(rows, 0, COORD__OBSERVE_RESERVED_MS, answer->reserved_ms);
    }
}

const PGresult *sim_pg_rows(const struct sim_world *world, const struct sim_pg_answer *answer,
                            int pid)
{
    static PGresult result;
    PGresult *const rows = &result;
    memset(rows, 0, sizeof *rows);
    rows->rows = 1;
    switch (answer->call.sql) {
    case SIM_PG_PROBE:
        put_probe(rows, answer);
        break;
    case SIM_PG_ACQUIRE:
        put_acquired(rows, answer);
        break;
    case SIM_PG_RENEW:
        put_renewed(rows, world, answer, pid);
        break;
    case SIM_PG_STRIKE:
        put_struck(rows, answer);
        break;
    case SIM_PG_OBSERVE:
        put_observed(rows, answer);
        break;
    case SIM_PG_GATE:
    case SIM_PG_ASK:
    case SIM_PG_BLOCKERS:
        rows->rows = answer->done;
        break;
    case SIM_PG_LOGIN:
    case SIM_PG_OPENING:
    case SIM_PG_SETTINGS:
    case SIM_PG_RELEASE:
    case SIM_PG_UNLOCK:
    case SIM_PG_CLOSE:
        break;
    }
    return rows;
}
