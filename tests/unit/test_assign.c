/* SPDX-License-Identifier: MIT
 * tests/unit/test_assign.c - assignments, by worked examples and by what holds for all of them.
 */
#include "coord/assign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    PARTS_MAX = 64,
    MEMBERS_MAX = 8
};

/* "m1: 0 1; m2: 2 3" of members given as "m2 m1". */
static void expect_contiguous(const char *const *ids, size_t count, uint32_t parts,
                              const char *expected)
{
    struct coord_member members[MEMBERS_MAX];
    char text[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct coord_member){ids[i], strlen(ids[i])};
    }
    uint32_t kept = (uint32_t)coord_assign_members(members, count, parts);
    for (uint32_t m = 0; m < kept; m++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s:", m > 0 ? "; " : "",
                                 (int)members[m].id_bytes, members[m].id);
        for (uint32_t p = 0; p < parts; p++) {
            if (coord_assign_contiguous(parts, kept, p) == m) {
                used += (size_t)snprintf(text + used, sizeof text - used, " %u", (unsigned)p);
            }
        }
    }
    assert_string_equal(text, expected);
}

#define EXPECT(parts, expected, ...)                                                      \
    expect_contiguous((const char *const[]){__VA_ARGS__},                                 \
                      sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), parts, \
                      expected)

static void test_assign__contiguous_gives_runs_and_the_rest_to_the_first(void **state)
{
    (void)state;
    EXPECT(6, "m1: 0 1; m2: 2 3; m3: 4 5", "m1", "m2", "m3");
    EXPECT(7, "m1: 0 1 6; m2: 2 3; m3: 4 5", "m1", "m2", "m3");
    EXPECT(8, "m1: 0 1 6; m2: 2 3 7; m3: 4 5", "m1", "m2", "m3");
    EXPECT(5, "m1: 0 1 4; m2: 2 3", "m2", "m1");
    EXPECT(4, "m1: 0 1 2 3", "m1");
    EXPECT(10, "a: 0 1 2 9; b: 3 4 5; c: 6 7 8", "b", "a", "c", "a", "b");
    EXPECT(11, "a: 0 1 8; b: 2 3 9; c: 4 5 10; d: 6 7", "a", "b", "c", "d");
}

static void test_assign__members_are_sorted_by_bytes_and_capped(void **state)
{
    (void)state;
    EXPECT(2, "m1: 0; m2: 1", "m1", "m2", "m3", "m4");
    EXPECT(3, "Alpha: 0; alpha: 1; beta: 2", "zeta", "Alpha", "alpha", "beta");
    EXPECT(3, "m1: 0; m10: 1; m2: 2", "m10", "m2", "m1");
    EXPECT(2, ": 0; m1: 1", "", "m1");
}

static void test_assign__contiguous_without_members_is_nobody(void **state)
{
    (void)state;
    assert_int_equal(coord_assign_contiguous(3, 0, 1), COORD_NOBODY);
    assert_int_equal(coord_assign_contiguous(3, 2, 3), COORD_NOBODY);
    assert_int_equal(coord_assign_contiguous(0, 2, 0), COORD_NOBODY);
}

static void test_assign__explicit_follows_the_mapping(void **state)
{
    (void)state;
    static const uint32_t one[] = {0, 3};
    static const uint32_t two[] = {1, 2, 3};
    const struct coord_mapping mappings[] = {{{"m1", 2}, one, 2}, {{"m2", 2}, two, 3}};
    assert_int_equal(coord_assign_explicit(mappings, 2, 3), 0);
    assert_int_equal(coord_assign_explicit(mappings, 2, 2), 1);
    assert_int_equal(coord_assign_explicit(mappings, 2, 4), COORD_NOBODY);
}

static uint32_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33);
}

/* The least number of parts that have to move: those of nobody, and each surplus. */
static size_t least_moves(const uint32_t *owner, size_t parts, uint32_t members)
{
    size_t load[MEMBERS_MAX] = {0};
    size_t kept = 0;
    size_t above = parts % members;
    for (size_t i = 0; i < parts; i++) {
        if (owner[i] < members) {
            load[owner[i]]++;
        }
    }
    for (uint32_t m = 0; m < members; m++) {
        size_t quota = parts / members;
        if (load[m] > quota && above > 0) {
            quota++;
            above--;
        }
        kept += load[m] < quota ? load[m] : quota;
    }
    return parts - kept;
}

static void test_assign__minimal_is_even_and_moves_no_more_than_it_has_to(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int run = 0; run < 20000; run++) {
        uint32_t owner[PARTS_MAX];
        uint32_t before[PARTS_MAX];
        uint32_t load[MEMBERS_MAX];
        size_t parts = next_random(&random) % (PARTS_MAX + 1);
        uint32_t members = 1 + next_random(&random) % MEMBERS_MAX;
        for (size_t i = 0; i < parts; i++) {
            owner[i] = next_random(&random) % (members + 3);
            before[i] = owner[i];
        }
        size_t moved = coord_assign_minimal(owner, parts, members, load);
        size_t changed = 0;
        uint32_t low = UINT32_MAX;
        uint32_t high = 0;
        for (size_t i = 0; i < parts; i++) {
            assert_true(owner[i] < members);
            changed += owner[i] != before[i] ? 1 : 0;
        }
        for (uint32_t m = 0; m < members; m++) {
            low = load[m] < low ? load[m] : low;
            high = load[m] > high ? load[m] : high;
        }
        assert_true(high - low <= 1);
        assert_int_equal(changed, moved);
        assert_int_equal(moved, least_moves(before, parts, members));
    }
}

static void test_assign__minimal_without_members_is_nobodys(void **state)
{
    (void)state;
    uint32_t owner[] = {0, 1, COORD_NOBODY};
    assert_int_equal(coord_assign_minimal(owner, 3, 0, NULL), 2);
    assert_int_equal(owner[1], COORD_NOBODY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assign__contiguous_gives_runs_and_the_rest_to_the_first),
        cmocka_unit_test(test_assign__members_are_sorted_by_bytes_and_capped),
        cmocka_unit_test(test_assign__contiguous_without_members_is_nobody),
        cmocka_unit_test(test_assign__explicit_follows_the_mapping),
        cmocka_unit_test(test_assign__minimal_is_even_and_moves_no_more_than_it_has_to),
        cmocka_unit_test(test_assign__minimal_without_members_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
