/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_page.c - the SQL of docs/postgres.md as it stands there: who copies it
 * gets a fence column that holds.
 */
#include "tests/support/postgres_server.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 64 * 1024
};

static struct postgres_server server;
static char page[PAGE];
static char *alter;
static char *update;
static char *insert;

/* The statements of the section's one block. */
static void read_page(void)
{
    FILE *file = fopen("docs/postgres.md", "re");
    assert_non_null(file);
    const size_t bytes = fread(page, 1, sizeof page - 1, file);
    assert_true(feof(file));
    fclose(file);
    page[bytes] = '\0';
    char *section = strstr(page, "\n## Fence column\n");
    assert_non_null(section);
    char *block = strstr(section, "\n```sql\n");
    assert_non_null(block);
    block += strlen("\n```sql\n");
    char *end = strstr(block, "\n```\n");
    assert_non_null(end);
    *end = '\0';
    char *rest = NULL;
    alter = strtok_r(block, ";", &rest);
    update = strtok_r(NULL, ";", &rest);
    insert = strtok_r(NULL, ";", &rest);
    assert_non_null(insert);
    assert_non_null(strstr(alter, "ALTER TABLE doc"));
    assert_non_null(strstr(update, "UPDATE doc"));
    assert_non_null(strstr(insert, "INSERT INTO doc"));
    assert_null(strtok_r(NULL, ";", &rest)); /* another one would not be tried here */
}

static int start(void **state)
{
    (void)state;
    if (postgres_server_programs() != NULL) { /* else the tests say so */
        postgres_server_start(&server, NULL);
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    postgres_server_stop(&server);
    return 0;
}

/* A table as a user has it before the page is followed. */
static PGconn *open_table(void)
{
    postgres_server_needed();
    read_page();
    PGconn *conn = postgres_server_connect(&server);
    assert_string_equal(
        postgres_server_try(conn, "create temp table doc (id bigint primary key, body text)"), "");
    assert_string_equal(postgres_server_try(conn, "insert into doc values (1, 'old')"), "");
    assert_string_equal(postgres_server_try(conn, "%s", alter), "");
    return conn;
}

/* @return how many rows were written. */
static long write_with(PGconn *conn, const char *text, const char *body, const char *fence,
                       const char *id)
{
    const char *const values[] = {body, fence, id};
    PGresult *result = PQexecParams(conn, text, 3, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail_msg("%s: %s", text, PQresultErrorMessage(result));
    }
    const long rows = strtol(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return rows;
}

static void assert_body(PGconn *conn, const char *id, const char *body, const char *fence)
{
    const char *const values[] = {id};
    PGresult *result = PQexecParams(conn, "select body, fence from doc where id = $1::bigint", 1,
                                    NULL, values, NULL, NULL, 0);
    assert_int_equal(PQntuples(result), 1);
    assert_string_equal(PQgetvalue(result, 0, 0), body);
    assert_string_equal(PQgetvalue(result, 0, 1), fence);
    PQclear(result);
}

/* Fences as they are: microseconds, greater than 2^32. */
static void test_postgres_page__an_update_with_a_stale_fence_changes_no_row(void **state)
{
    (void)state;
    PGconn *conn = open_table();
    assert_int_equal(write_with(conn, update, "first", "1795984289017577", "1"), 1);
    assert_int_equal(write_with(conn, update, "again", "1795984289017577", "1"), 1);
    assert_int_equal(write_with(conn, update, "later", "1795984289017578", "1"), 1);
    assert_int_equal(write_with(conn, update, "stale", "1795984289017577", "1"), 0);
    assert_body(conn, "1", "later", "1795984289017578");
    PQfinish(conn);
}

static void test_postgres_page__an_insert_with_a_stale_fence_changes_no_row(void **state)
{
    (void)state;
    PGconn *conn = open_table();
    assert_int_equal(write_with(conn, insert, "new", "1795984289017577", "2"), 1);
    assert_int_equal(write_with(conn, insert, "later", "1795984289017578", "2"), 1);
    assert_int_equal(write_with(conn, insert, "stale", "1795984289017577", "2"), 0);
    assert_body(conn, "2", "later", "1795984289017578");
    assert_int_equal(write_with(conn, insert, "over old", "1795984289017577", "1"), 1);
    assert_body(conn, "1", "over old", "1795984289017577");
    PQfinish(conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_page__an_update_with_a_stale_fence_changes_no_row),
        cmocka_unit_test(test_postgres_page__an_insert_with_a_stale_fence_changes_no_row),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
