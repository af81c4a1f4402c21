/* SPDX-License-Identifier: MIT
 * electors/postgres_sql.c - the texts of the statements that elect.
 */
#include "electors/postgres_sql.h"

#include <stddef.h>

#define MICROSECONDS "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
#define LEAP         "4294967296" /* 2^32: see coord/fence.h */

/* What pg_locks shows of a lock on one bigint. */
#define LOCK_ON(key)                                                                        \
    "l.locktype = 'advisory' and l.granted and l.objsubid = 1 and "                         \
    "l.classid::bigint = ((" key ") >> 32) & 4294967295 and l.objid::bigint = (" key ") & " \
    "4294967295 and l.database = (select d.oid from pg_database d "                         \
    "where d.datname = current_database())"
#define LOCK_OF(key) "l.mode = 'ExclusiveLock' and " LOCK_ON(key)

/*
 * A record names the run of the data that it is of, and last the transaction that wrote it. A row
 * that somebody put back, from a dump or by hand, was written by another one: it may say that a
 * term has ended which came before the last.
 */
#define WRITTEN     "(pg_current_xact_id()::text::bigint & 4294967295)::text"
#define OF_THIS_RUN "(t.run = regexp_replace(excluded.run, '[0-9]*$', t.xmin::text))"

/* A reservation is for half a lease; one that looks longer was made before the clock stepped back,
 * and would keep everybody else out for so much longer. */
#define RESERVED(row)                                      \
    "(" row ".reserved_until > clock_timestamp() and " row \
    ".reserved_until <= clock_timestamp() + " row ".lease_ms / 2 * interval '1 millisecond')"

/*
 * The try is for the transaction alone: whatever fails after it leaves no lock behind. The lock
 * of the session comes last, over the one that is held, so it can neither wait nor fail.
 * What the former term was comes out of the update, which waits for the row; a row read beside it
 * is as old as the statement's snapshot, older than the lock, and makes two leaders.
 */
static const char acquire_text[] =
    "with lock as materialized (select pg_try_advisory_xact_lock($2::bigint) as won),\n"
    "place as (select $6::text || '/' || 'coord.term'::regclass::oid || '/' as run,\n"
    "  $7::int = 1 and pg_relation_filenode('coord.term') = 'coord.term'::regclass::oid\n"
    "    and $8::bigint = 0 as whole),\n"
    "term as (\n"
    " insert into coord.term as t (name, key, format, fence, run, takeover, owner, identity, pid,\n"
    "   lease_ms, debt_ms, since, metadata)\n"
    " select $1::text, $2::bigint, 1,\n"
    "   greatest($8::bigint + 1, " MICROSECONDS " + " LEAP "),\n"
    "   place.run || " WRITTEN ", $9::text, $3::text, $4::text, pg_backend_pid(), $5::bigint,\n"
    "   case when place.whole or $9::text = 'fast' then 0 else $5::bigint end,\n"
    "   clock_timestamp(), $10::bytea\n"
    " from lock, place where lock.won\n"
    " on conflict (name) do update set\n"
    "   fence = greatest(t.fence + 1, $8::bigint + 1, " MICROSECONDS " +\n"
    "     case when " OF_THIS_RUN " is not true then " LEAP " else 0 end),\n"
    "   run = excluded.run, owner = excluded.owner, identity = excluded.identity,\n"
    "   pid = excluded.pid, lease_ms = excluded.lease_ms,\n"
    "   debt_ms = case\n"
    "     when excluded.takeover = 'fast' then 0\n"
    "     when " OF_THIS_RUN " is not true\n"
    "       then greatest(excluded.lease_ms, t.lease_ms, t.debt_ms)\n"
    "     when t.resigned then 0\n"
    "     when t.owner = excluded.owner then t.debt_ms\n"
    "     else greatest(excluded.lease_ms, t.lease_ms, t.debt_ms) end,\n"
    "   resigned = false, since = excluded.since, metadata = excluded.metadata,\n"
    "   successor = null, reserved_until = null,\n"
    "   ask_fence = null, ask_for = null, ask_until = null\n"
    " where t.key = excluded.key and t.format <= 1 and t.takeover = excluded.takeover\n"
    "   and ($8::bigint <= t.fence or " OF_THIS_RUN " is not true)\n"
    "   and (t.successor is null or t.successor = excluded.identity\n"
    "     or " RESERVED(
        "t") " is not true)\n"
             " returning t.fence, t.debt_ms)\n"
             "select lock.won,\n"
             "  case when term.fence is not null then pg_try_advisory_lock($2::bigint) else false end,\n"
             "  term.fence, term.debt_ms, h.name is not null, h.identity, h.fence, h.debt_ms, h.resigned,\n"
             "  (extract(epoch from h.since) * 1000000)::float8::bigint, h.metadata,\n"
             "  case when " RESERVED(
                 "h") " then h.successor end,\n"
                      "  greatest(0, extract(epoch from h.reserved_until - clock_timestamp()) * 1000)::float8::bigint,\n"
                      "  h.key = $2::bigint, h.takeover, (h.run = place.run || h.xmin::text) is true, h.format\n"
                      "from lock cross join place left join term on true\n"
                      "left join coord.term h on h.name = $1::text and term.fence is null";

/*
 * Guarded work of an earlier term that is still open holds the gate shared; work that comes later
 * reads the new row behind the gate and is refused. Passing once, after the row was committed,
 * therefore leaves none. Whoever was not granted finds no row of his and does not wait.
 */
static const char gate_text[] =
    "select pg_advisory_xact_lock(-1 - t.key) from coord.term t\n"
    "where t.key = $1::bigint and t.owner = $2::text and t.pid = pg_backend_pid()\n"
    "  and not t.resigned";

#define RENEW_COLUMNS                                                        \
    "select pg_backend_pid(), t.key, t.fence, t.owner, t.pid, t.resigned,\n" \
    "  t.ask_fence = t.fence and t.ask_until > clock_timestamp(), t.ask_for"

/* pg_locks costs by the locks of the whole server: it is read only where a pooler is in between. */
static const char renew_text[] =
    RENEW_COLUMNS ", true\n"
                  "from (select 1) one\n"
                  "left join coord.term t on t.key = any($1::bigint[])";

static const char renew_locks_text[] =
    RENEW_COLUMNS ",\n"
                  "  exists (select from pg_locks l\n"
                  "    where l.pid = pg_backend_pid() and " LOCK_OF(
                      "t.key") ")\n"
                               "from (select 1) one\n"
                               "left join coord.term t on t.key = any($1::bigint[])";

static const char strike_text[] =
    "update coord.term t set debt_ms = 0,\n"
    "  run = regexp_replace(t.run, '[0-9]*$', " WRITTEN ")\n"
    "where t.key = $1::bigint and t.owner = $2::text and t.fence = $3::bigint\n"
    "  and t.pid = pg_backend_pid() and not t.resigned\n"
    "returning t.ask_fence = t.fence and t.ask_until > clock_timestamp(), t.ask_for";

/*
 * The unlock may come before the commit, as the successor's update waits for the same row and then
 * reads the mark. NOTIFY goes out with the commit: whom it wakes finds the lock free. A mark that
 * a crash of the server loses costs the successor a wait, so nobody waits for the disk here.
 */
static const char release_text[] =
    "with mark as materialized (\n"
    " update coord.term t set resigned = true, debt_ms = 0, successor = $5::text,\n"
    "   run = regexp_replace(t.run, '[0-9]*$', " WRITTEN "),\n"
    "   reserved_until = case when $5::text is not null\n"
    "     then clock_timestamp() + $6::bigint * interval '1 millisecond' end\n"
    " where t.key = $1::bigint and t.owner = $2::text and t.fence = $3::bigint\n"
    "   and not t.resigned\n"
    " returning 1)\n"
    "select m.marked, set_config('synchronous_commit', 'off', true),\n"
    "  case when $4::boolean then pg_advisory_unlock($1::bigint) end,\n"
    "  pg_notify($7::text, 'released ' || $3::text)\n"
    "from (select count(*) = 1 as marked from mark) m";

/* Unlocking what is not held would write a warning into the server's log. */
static const char unlock_text[] =
    "select count(pg_advisory_unlock(k.key)) from unnest($1::bigint[]) as k (key)\n"
    "where exists (select from pg_locks l\n"
    "  where l.pid = pg_backend_pid() and " LOCK_OF("k.key") ")";

static const char observe_text[] =
    "select l.pid is not null, l.pid = t.pid and not t.resigned, t.identity, t.fence, t.debt_ms,\n"
    "  (extract(epoch from t.since) * 1000000)::float8::bigint, t.metadata,\n"
    "  case when " RESERVED(
        "t") " then t.successor end,\n"
             "  greatest(0, extract(epoch from t.reserved_until - clock_timestamp()) * 1000)::float8::bigint,\n"
             "  case when l.pid is distinct from t.pid or t.resigned then\n"
             "    (select a.application_name from pg_stat_activity a where a.pid = l.pid) end\n"
             "from (select 1) one\n"
             "left join coord.term t on t.name = $1::text\n"
             "left join pg_locks l on " LOCK_OF("$2::bigint");

static const char ask_text[] =
    "with ask as materialized (\n"
    " update coord.term t set ask_fence = t.fence, ask_for = $3::text,\n"
    "   ask_until = clock_timestamp() + $4::bigint * interval '1 millisecond'\n"
    " where t.name = $1::text and t.fence = $2::bigint and not t.resigned\n"
    " returning t.fence)\n"
    "select fence, pg_notify($5::text, 'step-down ' || fence::text) from ask";

/* The operator's word that nobody leads. It counts as a term that was resigned at once. */
static const char init_text[] =
    "with lock as materialized (select pg_try_advisory_xact_lock($2::bigint) as won),\n"
    "place as (select $5::text || '/' || 'coord.term'::regclass::oid || '/' as run),\n"
    "term as (\n"
    " insert into coord.term as t (name, key, format, fence, run, takeover, owner, identity, pid,\n"
    "   lease_ms, debt_ms, resigned, since)\n"
    " select $1::text, $2::bigint, 1,\n"
    "   greatest($6::bigint + 1, " MICROSECONDS " + " LEAP "),\n"
    "   place.run || " WRITTEN
    ", coalesce($7::text, 'safe'), $3::text, $4::text, pg_backend_pid(), 0, 0,\n"
    "   true, clock_timestamp()\n"
    " from lock, place where lock.won\n"
    " on conflict (name) do update set\n"
    "   fence = greatest(t.fence + 1, $6::bigint + 1, " MICROSECONDS " +\n"
    "     case when " OF_THIS_RUN " is not true then " LEAP " else 0 end),\n"
    "   run = excluded.run, takeover = coalesce($7::text, t.takeover), owner = excluded.owner,\n"
    "   identity = excluded.identity, pid = excluded.pid, lease_ms = 0, debt_ms = 0,\n"
    "   resigned = true, since = excluded.since, metadata = null, successor = null,\n"
    "   reserved_until = null, ask_fence = null, ask_for = null, ask_until = null\n"
    " where t.key = excluded.key and t.format <= 1\n"
    " returning t.fence)\n"
    "select lock.won, term.fence, h.identity from lock left join term on true\n"
    "left join coord.term h on h.name = $1::text and not lock.won";

/* Who holds the gate against us, for people. */
static const char blockers_text[] =
    "select a.pid, a.application_name, a.state from pg_stat_activity a\n"
    "where a.pid in (select l.pid from pg_locks l where " LOCK_ON(
        "-1 - $1::bigint") ") order by a.xact_start limit 1";

/*
 * A role's statement_timeout of a millisecond would end the second statement otherwise; and in its
 * search_path others may have put functions and operators of these names before the server's own.
 */
static const char opening_text[] =
    "select pg_catalog.set_config('statement_timeout', '0', false),\n"
    "  pg_catalog.set_config('search_path', 'pg_catalog', false)";

/*
 * $1 lease, $2 statement, $3 lock, all in ms. A setting that this server does not know is skipped.
 * synchronous_commit local: a standby that is gone would hold up every grant for as long as it is
 * gone; what a failover loses, the record's run tells.
 */
static const char settings_text[] =
    "select set_config(s.name, v.setting, false) from (values\n"
    "  ('default_transaction_isolation', 'read committed'),\n"
    "  ('default_transaction_read_only', 'off'), ('default_transaction_deferrable', 'off'),\n"
    "  ('synchronous_commit', 'local'), ('idle_session_timeout', $1::text || 'ms'),\n"
    "  ('idle_in_transaction_session_timeout', $1::text || 'ms'),\n"
    "  ('transaction_timeout', $1::text || 'ms'), ('statement_timeout', $2::text || 'ms'),\n"
    "  ('lock_timeout', $3::text || 'ms'),\n"
    "  ('client_connection_check_interval', $2::text || 'ms'),\n"
    "  ('tcp_user_timeout', $1::text || 'ms'), ('tcp_keepalives_idle', '1'),\n"
    "  ('tcp_keepalives_interval', '1'), ('tcp_keepalives_count', '3'),\n"
    "  ('plan_cache_mode', 'force_generic_plan'), ('client_min_messages', 'warning'))\n"
    "  as v (name, setting) join pg_catalog.pg_settings s on s.name = v.name";

/* Not in the statement before it, which would still show the old values. */
#define PROBE_SETTINGS                                                                     \
    "select pg_backend_pid(), pg_is_in_recovery(),\n"                                      \
    "  (select setting from pg_settings where name = 'idle_session_timeout'),\n"           \
    "  (select setting from pg_settings where name = 'lock_timeout'),\n"                   \
    "  (select setting from pg_settings where name = 'statement_timeout'),\n"              \
    "  current_setting('synchronous_commit'), current_setting('transaction_isolation'),\n" \
    "  current_setting('transaction_read_only')"

/* The timeline of the WAL file, as the control file still says the old one after a promotion. */
static const char probe_text[] = PROBE_SETTINGS
    ", p.timeline, p.system || '/' || p.timeline from (select\n"
    "  (select system_identifier from pg_control_system())::text as system,\n"
    "  case when pg_is_in_recovery() then 0 else\n"
    "    ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint\n"
    "  end as timeline) p";

static const char probe_less_text[] = PROBE_SETTINGS ", 0, null";

/* Index, name, text; columns of the answer, and whether it is one row. */
static const struct coord__postgres_statement statements[] = {
    [COORD__POSTGRES_ACQUIRE] = {COORD__POSTGRES_ACQUIRE, "coord_acquire", acquire_text, 17, true},
    [COORD__POSTGRES_GATE] = {COORD__POSTGRES_GATE, "coord_gate", gate_text, 1, false},
    [COORD__POSTGRES_RENEW] = {COORD__POSTGRES_RENEW, "coord_renew", renew_text, 9, false},
    [COORD__POSTGRES_RENEW_LOCKS] = {COORD__POSTGRES_RENEW_LOCKS, "coord_renew_locks",
                                     renew_locks_text, 9, false},
    [COORD__POSTGRES_STRIKE] = {COORD__POSTGRES_STRIKE, "coord_strike", strike_text, 2, false},
    [COORD__POSTGRES_RELEASE] = {COORD__POSTGRES_RELEASE, "coord_release", release_text, 4, true},
    [COORD__POSTGRES_UNLOCK] = {COORD__POSTGRES_UNLOCK, "coord_unlock", unlock_text, 1, true},
    [COORD__POSTGRES_OBSERVE] = {COORD__POSTGRES_OBSERVE, "coord_observe", observe_text, 10, true},
    [COORD__POSTGRES_ASK] = {COORD__POSTGRES_ASK, "coord_ask", ask_text, 2, false},
    [COORD__POSTGRES_INIT] = {COORD__POSTGRES_INIT, "coord_init", init_text, 3, true},
    [COORD__POSTGRES_BLOCKERS] = {COORD__POSTGRES_BLOCKERS, "coord_blockers", blockers_text, 3,
                                  false},
    [COORD__POSTGRES_OPENING] = {COORD__POSTGRES_OPENING, NULL, opening_text, 2, true},
    [COORD__POSTGRES_SETTINGS] = {COORD__POSTGRES_SETTINGS, NULL, settings_text, 1, false},
    [COORD__POSTGRES_PROBE] = {COORD__POSTGRES_PROBE, NULL, probe_text, 10, true},
    [COORD__POSTGRES_PROBE_LESS] = {COORD__POSTGRES_PROBE_LESS, NULL, probe_less_text, 10, true},
};

const struct coord__postgres_statement *coord__postgres_sql(enum coord__postgres_sql which)
{
    COORD_ASSERT(which < COORD__POSTGRES_STATEMENTS);
    return &statements[which];
}
