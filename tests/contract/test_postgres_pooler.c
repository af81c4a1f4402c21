/* SPDX-License-Identifier: MIT
 * tests/contract/test_postgres_pooler.c - the one contract of all electors, through pgbouncer in
 * session mode.
 */
#include "electors/postgres.h"
#include "tests/contract/suite.h"
#include "tests/support/pgbouncer.h"

static struct postgres_server server;
static struct pgbouncer pooler;
static char pooler_uri[POSTGRES_URI + 32];

static void start(void)
{
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    postgres_server_start(&server, NULL);
    if (coord_postgres_init(server.uri, grants, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    pgbouncer_start(&pooler, &server, "session", 60, "");
    snprintf(pooler_uri, sizeof pooler_uri, "%s&coord.pooler=session", pooler.uri);
}

static void stop(void)
{
    pgbouncer_stop(&pooler);
    postgres_server_stop(&server);
}

static const char *uri(void)
{
    return pooler_uri;
}

/* The session that holds the lock of the name ends, as after pg_terminate_backend(). */
static void lose(const char *name)
{
    postgres_server_do(&server,
                       "select pg_terminate_backend(pid) from coord.term where name = '%s'", name);
}

static const struct coord_scheme schemes[] = {{"postgresql", coord_postgres_elector, NULL},
                                              {NULL, NULL, NULL}};

int main(void)
{
    const struct suite_store store = {
        .name = "postgres",
        .schemes = schemes,
        .ttl = 1500,
        .start = start,
        .stop = stop,
        .uri = uri,
        .bad_option = "takeover=maybe",
        .contends = true,
        .lose = lose,
        .terms = 200,
    };
    return suite_run(&store);
}
