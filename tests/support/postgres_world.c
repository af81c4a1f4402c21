/* SPDX-License-Identifier: MIT
 * tests/support/postgres_world.c - see postgres_world.h.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>

struct postgres_server world_server;

void world_prepare(const struct postgres_server *server)
{
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    if (coord_postgres_init(server->uri, grants, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

int world_start_with(const char *const *options)
{
    if (postgres_server_programs() != NULL) { /* else each test says so */
        postgres_server_start(&world_server, options);
        world_prepare(&world_server);
    }
    return 0;
}

int world_start(void **state)
{
    (void)state;
    return world_start_with(NULL);
}

int world_stop(void **state)
{
    (void)state;
    postgres_server_stop(&world_server);
    return 0;
}

void world_open(struct world *world, const char *what)
{
    postgres_server_needed();
    if (world_server.pid == 0 && world_server.folder[0] != '\0') {
        postgres_server_again(&world_server); /* a test that failed has left it ended */
    }
    memset(world, 0, sizeof *world);
    postgres_server_name(world->name, sizeof world->name, what);
    world->wish.uri = world_server.uri;
    world->wish.name = world->name;
}

struct candidate *world_join(struct world *world)
{
    return candidate_new(&world->all, &world->wish);
}

void world_abandon(struct world *world)
{
    candidates_free(&world->all);
}

void world_close(struct world *world)
{
    assert_int_equal(world->all.overlaps, 0);
    world_abandon(world);
    postgres_server_until(&world_server,
                          "select count(*) = 0 from pg_locks where locktype = 'advisory'");
}

int64_t world_holder(const struct world *world)
{
    const uint64_t key = coord_postgres_key(world->name, strlen(world->name));
    const int64_t pid = postgres_server_ask(
        &world_server,
        "select pid from pg_locks where locktype = 'advisory' and objsubid = 1 and granted and "
        "mode = 'ExclusiveLock' and classid::bigint << 32 | objid::bigint = %" PRIu64,
        key);
    return pid > 0 ? pid : 0;
}

void world_until(struct world *world, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (postgres_server_ask(&world_server, "%s", text) != 1) {
        if (coord_clock_now() > guard) {
            fail_msg("never true: %s", text);
        }
        candidates_run(&world->all, 20);
    }
}

void world_until_free(struct world *world)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (world_holder(world) != 0) {
        assert_true(coord_clock_now() < guard);
        candidates_run(&world->all, 20);
    }
}

void world_terminate(const struct world *world)
{
    const int64_t pid = world_holder(world);
    assert_true(pid > 0);
    postgres_server_do(&world_server, "select pg_terminate_backend(%" PRId64 ")", pid);
    postgres_server_until(&world_server,
                          "select count(*) = 0 from pg_stat_activity where pid = %" PRId64, pid);
}

const char *world_explain(const struct candidate *candidate)
{
    static struct coord_explanation why;
    coord_elector_explain(candidate->elector, coord_clock_now(), &why);
    return why.text;
}
