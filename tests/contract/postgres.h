/* SPDX-License-Identifier: MIT
 * tests/contract/postgres.h - the contract over a PostgreSQL that the test starts, whichever way it
 * is reached.
 */
#ifndef COORD_TESTS_CONTRACT_POSTGRES_H
#define COORD_TESTS_CONTRACT_POSTGRES_H

#include "electors/postgres.h"
#include "tests/contract/suite.h"
#include "tests/support/postgres_world.h"

static struct postgres_server server;

static inline void start_with(const char *const *options)
{
    postgres_server_start(&server, options);
    world_prepare(&server);
}

static inline void stop_server(void)
{
    postgres_server_stop(&server);
}

/* The session that holds the lock of the name ends, as after pg_terminate_backend(). */
static inline void lose(const char *name)
{
    postgres_server_do(&server,
                       "select pg_terminate_backend(pid) from coord.term where name = '%s'", name);
}

/* @return for main(). */
static inline int keep_contract(void (*start)(void), void (*stop)(void), const char *(*uri)(void))
{
    static const struct coord_scheme schemes[] = {{"postgresql", coord_postgres_elector, NULL},
                                                  {NULL, NULL, NULL}};
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

#endif /* COORD_TESTS_CONTRACT_POSTGRES_H */
