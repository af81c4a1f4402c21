/* SPDX-License-Identifier: MIT
 * tests/unit/test_share.c - what electors share is found by its key, and freed by its last user.
 */
#include "coord/share.h"

#include "tests/support/support.h"

struct thing {
    struct coord_shared shared;
    unsigned frees;
    bool forked;
};

static void note_free(struct coord_shared *shared, bool forked)
{
    struct thing *thing = (struct thing *)(void *)shared;
    thing->frees++;
    thing->forked = forked;
}

static struct thing make(const char *key)
{
    return (struct thing){.shared = {.key = key, .free = note_free}};
}

static void test_share__one_key_gives_one_thing(void **state)
{
    (void)state;
    struct coord_share share = {0};
    struct thing a = make("redis://a");
    struct thing b = make("redis://b");
    assert_null(coord_share_get(&share, "redis://a"));
    coord_share_put(&share, &a.shared);
    coord_share_put(&share, &b.shared);
    assert_ptr_equal(coord_share_get(&share, "redis://a"), &a.shared);
    assert_ptr_equal(coord_share_get(&share, "redis://b"), &b.shared);
    assert_null(coord_share_get(&share, "redis://c"));
}

static void test_share__the_last_user_frees_it(void **state)
{
    (void)state;
    struct coord_share share = {0};
    struct thing a = make("a");
    coord_share_put(&share, &a.shared);
    assert_non_null(coord_share_get(&share, "a"));
    coord_share_drop(&share, &a.shared, false);
    assert_int_equal(a.frees, 0);
    coord_share_drop(&share, &a.shared, true);
    assert_int_equal(a.frees, 1);
    assert_true(a.forked);
    assert_null(coord_share_get(&share, "a"));
}

static void test_share__things_leave_in_any_order(void **state)
{
    (void)state;
    struct coord_share share = {0};
    struct thing things[3] = {make("a"), make("b"), make("c")};
    for (size_t i = 0; i < 3; i++) {
        coord_share_put(&share, &things[i].shared);
    }
    coord_share_drop(&share, &things[1].shared, false);
    assert_non_null(coord_share_get(&share, "a"));
    assert_null(coord_share_get(&share, "b"));
    assert_non_null(coord_share_get(&share, "c"));
    coord_share_drop(&share, &things[0].shared, false);
    coord_share_drop(&share, &things[0].shared, false);
    coord_share_drop(&share, &things[2].shared, false);
    coord_share_drop(&share, &things[2].shared, false);
    assert_null(share.first);
}

static void test_share__without_a_list_a_thing_is_private(void **state)
{
    (void)state;
    struct thing a = make("a");
    coord_share_put(NULL, &a.shared);
    assert_null(coord_share_get(NULL, "a"));
    coord_share_drop(NULL, &a.shared, false);
    assert_int_equal(a.frees, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share__one_key_gives_one_thing),
        cmocka_unit_test(test_share__the_last_user_frees_it),
        cmocka_unit_test(test_share__things_leave_in_any_order),
        cmocka_unit_test(test_share__without_a_list_a_thing_is_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
