/* SPDX-License-Identifier: MIT
 * electors/postgres_schema.c - what `coordctl init` creates: schema, table, guard.
 */
#include "electors/postgres_sql.h"

#include <stdlib.h>
#include <string.h>

/* Not UNLOGGED: a crash would empty it. Every change is a HOT update, for which half a page is
 * kept free. collate "C": no change of the system's collations can break the key. */
static const char table_text[] =
    "create table coord.term (\n"
    "  name           text collate \"C\" primary key\n"
    "                 check (octet_length(name) between 1 and 765),\n"
    "  key            bigint not null constraint term_key unique check (key >= 0),\n"
    "  format         smallint not null default 1,\n"
    "  fence          bigint not null check (fence > 0),\n"
    "  run            text,\n"
    "  takeover       text not null check (takeover in ('safe', 'fast')),\n"
    "  owner          text not null,\n"
    "  identity       text not null,\n"
    "  pid            integer not null,\n"
    "  lease_ms       bigint not null check (lease_ms >= 0),\n"
    "  debt_ms        bigint not null check (debt_ms >= 0),\n"
    "  resigned       boolean not null default false,\n"
    "  since          timestamptz not null,\n"
    "  metadata       bytea,\n"
    "  successor      text,\n"
    "  reserved_until timestamptz,\n"
    "  ask_fence      bigint,\n"
    "  ask_for        text,\n"
    "  ask_until      timestamptz\n"
    ") with (fillfactor = 50);\n"
    "revoke all on table coord.term from public;\n"
    "comment on table coord.term is 'coord format 1: one row an election, its present or last "
    "term'";

/*
 * SECURITY DEFINER: who writes guarded data needs EXECUTE, and cannot read or change a term.
 * First the shared gate, then the row: an open guarded transaction is seen by whoever takes over,
 * and one that comes later reads the new row. A row lock instead is no queue, and lets writers
 * starve the successor.
 */
static const char function_text[] =
    "create function coord.fence(election text, fence bigint) returns void\n"
    "  language plpgsql volatile parallel unsafe security definer\n"
    "  set search_path = pg_catalog, pg_temp as $body$\n"
    "declare\n"
    "  escaped text collate \"C\" := $1;\n"
    "  gate bigint;\n"
    "  term record;\n"
    "  idle interval;\n"
    "begin\n"
    "  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')\n"
    "  then\n"
    "    raise exception using errcode = '25001',\n"
    "      message = 'coord.fence() needs a transaction at READ COMMITTED',\n"
    "      hint = 'Above it a snapshot can be older than a takeover. Use BEGIN ISOLATION LEVEL "
    "READ COMMITTED.';\n"
    "  end if;\n"
    "  if escaped ~ '[^ -~]|[%{}]' then\n"
    "    select string_agg(case when b between 32 and 126 and b not in (37, 123, 125)\n"
    "        then chr(b) else '%' || lpad(to_hex(b), 2, '0') end, '' order by i)\n"
    "      into escaped\n"
    "      from (select i, get_byte(convert_to($1, 'UTF8'), i) as b\n"
    "        from generate_series(0, length(convert_to($1, 'UTF8')) - 1) i) bytes;\n"
    "  end if;\n"
    "  select -1 - t.key into gate from coord.term t where t.name = escaped;\n"
    "  perform pg_advisory_xact_lock_shared(gate);\n"
    "  select t.fence, t.resigned, t.lease_ms into term from coord.term t where t.name = escaped;\n"
    "  if term.fence is null then\n"
    "    raise exception using errcode = 'STALE',\n"
    "      message = format('election \"%s\" has never had a leader here', $1),\n"
    "      hint = 'Check the name and the database.';\n"
    "  elsif term.fence is distinct from $2 then\n"
    "    raise exception using errcode = 'STALE',\n"
    "      message = format('fence %s of election \"%s\" is stale: the term is now %s', $2, $1,\n"
    "        term.fence),\n"
    "      hint = 'Another leader has taken over. Stop this work; do not retry it under the old "
    "fence.';\n"
    "  elsif term.resigned then\n"
    "    raise exception using errcode = 'STALE',\n"
    "      message = format('fence %s of election \"%s\" was resigned', $2, $1),\n"
    "      hint = 'The term ended before this write. A new term has a new fence.';\n"
    "  end if;\n"
    "  idle := current_setting('idle_in_transaction_session_timeout')::interval;\n"
    "  if idle = interval '0' or idle > term.lease_ms * interval '1 millisecond' then\n"
    "    perform set_config('idle_in_transaction_session_timeout', term.lease_ms || 'ms', true);\n"
    "  end if;\n"
    "end\n"
    "$body$;\n"
    "revoke all on function coord.fence(text, bigint) from public;\n"
    "comment on function coord.fence(text, bigint) is\n"
    "  'coord format 1: fails unless the election is led under this fence; first statement of the "
    "transaction that it guards'";

const char *const coord__postgres_init_steps[COORD__POSTGRES_INIT_STEPS] = {
    "create schema coord",
    table_text,
    function_text,
};

unsigned long coord__postgres_format_of(const char *note)
{
    static const char head[] = "coord format ";
    if (strncmp(note, head, sizeof head - 1) != 0) {
        return 0;
    }
    return strtoul(note + sizeof head - 1, NULL, 10);
}
