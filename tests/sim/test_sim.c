/* SPDX-License-Identifier: MIT
 * tests/sim/test_sim.c - a few thousand schedules, the planted faults, and that a seed is a
 * schedule: the same one each time, byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"

/*
 * Schedules within which a fault has to be noticed to be tried here. The sanitizers make the
 * simulator some fifteen times slower, and look for something else.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum {
    SOON = 300,
    PROMISES_SHARE = 10
};
#else
enum {
    SOON = 10000,
    PROMISES_SHARE = 1
};
#endif

static struct sim_world world;

static void keep_promises(enum sim_store store, uint64_t seeds)
{
    static const char *const names[] = {"redis", "file", "postgres"};
    for (uint64_t seed = 1; seed <= seeds / PROMISES_SHARE; seed++) {
        sim_schedule(&world, store, seed, NULL);
        if (world.check.broken != SIM_KEPT) {
            fail_msg("seed %llu breaks %s: %s; run build/tests/sim/sim --store %s --replay %llu "
                     "--trace",
                     (unsigned long long)seed, sim_promise_name(world.check.broken),
                     world.check.text, names[store], (unsigned long long)seed);
        }
    }
}

static char *trace_of(enum sim_store store, uint64_t seed, size_t *bytes)
{
    char *text = NULL;
    FILE *trace = open_memstream(&text, bytes);
    assert_non_null(trace);
    sim_schedule(&world, store, seed, trace);
    assert_int_equal(fclose(trace), 0);
    return text;
}

static void test_sim__keeps_every_promise_on_redis(void **state)
{
    (void)state;
    keep_promises(SIM_STORE_REDIS, 3000);
}

static void test_sim__keeps_every_promise_on_a_file(void **state)
{
    (void)state;
    keep_promises(SIM_STORE_FILE, 1000);
}

static void test_sim__keeps_every_promise_on_postgres(void **state)
{
    (void)state;
    keep_promises(SIM_STORE_POSTGRES, 1500);
}

static void test_sim__replays_a_seed_byte_for_byte(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10 * SIM_STORES; i++) {
        const enum sim_store store = (enum sim_store)(i % SIM_STORES);
        size_t first_bytes = 0;
        size_t second_bytes = 0;
        char *first = trace_of(store, i, &first_bytes);
        sim_schedule(&world, store, i + 1000, NULL); /* leaves nothing behind */
        char *second = trace_of(store, i, &second_bytes);
        assert_true(first_bytes > 1000);
        assert_int_equal(first_bytes, second_bytes);
        assert_memory_equal(first, second, first_bytes);
        free(first);
        free(second);
    }
}

static void test_sim__tracing_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10 * SIM_STORES; i++) {
        const enum sim_store store = (enum sim_store)(i % SIM_STORES);
        size_t bytes = 0;
        sim_schedule(&world, store, i, NULL);
        const sim_us ended = world.now;
        free(trace_of(store, i, &bytes));
        assert_int_equal(world.now, ended);
    }
}

/* Of the rarer ones, `sim --plant all` looks at more than one seed. */
static void test_sim__notices_planted_faults_soon(void **state)
{
    (void)state;
    for (int i = SIM_PLANT_NONE + 1; i < SIM_PLANT_COUNT; i++) {
        if (sim_plants[i].schedules <= SOON &&
            sim_notice(&world, (enum sim_plant)i, 1, sim_plants[i].schedules) == 0) {
            fail_msg("%s was not noticed in %llu schedules", sim_plants[i].name,
                     (unsigned long long)sim_plants[i].schedules);
        }
    }
}

/* So that every fault is tried each time, the rare ones too. */
static void test_sim__notices_every_planted_fault_from_its_seed(void **state)
{
    unsigned stale = 0;
    (void)state;
    for (int i = SIM_PLANT_NONE + 1; i < SIM_PLANT_COUNT; i++) {
        const struct sim_plant_info *info = &sim_plants[i];
        if (sim_notice(&world, (enum sim_plant)i, info->seed, SIM_PINNED) == 0) {
            print_error("%s was not noticed in %d schedules from seed %llu. If the simulator or "
                        "the code in it has changed, run build/tests/sim/sim --plant %s, and pin "
                        "the seed that it prints in tests/sim/plant.h\n",
                        info->name, SIM_PINNED, (unsigned long long)info->seed, info->name);
            stale++;
        }
    }
    assert_int_equal(stale, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim__keeps_every_promise_on_redis),
        cmocka_unit_test(test_sim__keeps_every_promise_on_a_file),
        cmocka_unit_test(test_sim__keeps_every_promise_on_postgres),
        cmocka_unit_test(test_sim__replays_a_seed_byte_for_byte),
        cmocka_unit_test(test_sim__tracing_changes_nothing),
        cmocka_unit_test(test_sim__notices_planted_faults_soon),
        cmocka_unit_test(test_sim__notices_every_planted_fault_from_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
