/* SPDX-License-Identifier: MIT
 * tests/sim/test_agents.c - schedules of whole agents, the planted faults, and that a seed is a
 * schedule: the same one each time, byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/agents/world.h"

/* The sanitizers make the simulator some fifteen times slower, and look for something else. */
enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SEEDS = 100,
    SOON = 50
#else
    SEEDS = 1000,
    SOON = FLEET_SOON
#endif
};

static struct fleet_world world;

static char *trace_of(uint64_t seed, size_t *bytes)
{
    char *text = NULL;
    FILE *trace = open_memstream(&text, bytes);
    assert_non_null(trace);
    fleet_schedule(&world, seed, trace);
    assert_int_equal(fclose(trace), 0);
    return text;
}

static void test_agents__keep_every_promise_in_bad_weather(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fleet_schedule(&world, seed, NULL);
        if (world.broken != FLEET_KEPT) {
            fail_msg("seed %llu breaks %s: %s; run build/tests/sim/agents --replay %llu --trace",
                     (unsigned long long)seed, fleet_promise_name(world.broken), world.text,
                     (unsigned long long)seed);
        }
    }
}

static void test_agents__replay_a_seed_byte_for_byte(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        size_t first_bytes = 0;
        size_t second_bytes = 0;
        char *first = trace_of(seed, &first_bytes);
        fleet_schedule(&world, seed + 1000, NULL); /* leaves nothing behind */
        char *second = trace_of(seed, &second_bytes);
        assert_true(first_bytes > 1000);
        assert_int_equal(first_bytes, second_bytes);
        assert_memory_equal(first, second, first_bytes);
        free(first);
        free(second);
    }
}

static void test_agents__tracing_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        size_t bytes = 0;
        fleet_schedule(&world, seed, NULL);
        const coord_ms ended = world.now;
        const size_t used = world.arena_used;
        free(trace_of(seed, &bytes));
        assert_int_equal(world.now, ended);
        assert_int_equal(world.arena_used, used);
    }
}

/* Of the rarer ones, `agents --plant all` looks at more than one seed. */
static void test_agents__notice_planted_faults_soon(void **state)
{
    (void)state;
    for (int i = FLEET_PLANT_NONE + 1; i < FLEET_PLANT_COUNT; i++) {
        if (fleet_plants[i].schedules <= SOON &&
            fleet_notice(&world, (enum fleet_plant)i, 1, fleet_plants[i].schedules) == 0) {
            fail_msg("%s was not noticed in %llu schedules", fleet_plants[i].name,
                     (unsigned long long)fleet_plants[i].schedules);
        }
    }
}

/* So that every fault is tried each time, the rare ones too. */
static void test_agents__notice_every_planted_fault_from_its_seed(void **state)
{
    unsigned stale = 0;
    (void)state;
    for (int i = FLEET_PLANT_NONE + 1; i < FLEET_PLANT_COUNT; i++) {
        const struct fleet_plant_info *info = &fleet_plants[i];
        if (fleet_notice(&world, (enum fleet_plant)i, info->seed, FLEET_PINNED) == 0) {
            print_error(
                "%s was not noticed in %d schedules from seed %llu. If the simulator or "
                "the code in it has changed, run build/tests/sim/agents --plant %s, and pin "
                "the seed that it prints in tests/sim/agents/plant.h\n",
                info->name, FLEET_PINNED, (unsigned long long)info->seed, info->name);
            stale++;
        }
    }
    assert_int_equal(stale, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents__keep_every_promise_in_bad_weather),
        cmocka_unit_test(test_agents__replay_a_seed_byte_for_byte),
        cmocka_unit_test(test_agents__tracing_changes_nothing),
        cmocka_unit_test(test_agents__notice_planted_faults_soon),
        cmocka_unit_test(test_agents__notice_every_planted_fault_from_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
