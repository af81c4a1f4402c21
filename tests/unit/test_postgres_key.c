/* SPDX-License-Identifier: MIT
 * tests/unit/test_postgres_key.c - the lock of a name is the one that others make of it.
 */
#include "electors/postgres.h"
#include "tests/support/support.h"

static void test_postgres_key__is_that_of_the_seed_librarys_lock_manager(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t key;
    } vectors[] = {
        {"leader:orders", UINT64_C(3041341854730135994)},
        {"migration:tenant-abc", UINT64_C(2549018982395383070)},
        {"__eventsource_coordination", UINT64_C(3969445160896686236)},
        {"\xc3\xa9", UINT64_C(5375421630974772051)},
        {"jobs", UINT64_C(6744729554477740858)},
        {"", UINT64_C(7183457195969485844)},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        assert_true(coord_postgres_key(vectors[i].name, strlen(vectors[i].name)) == vectors[i].key);
    }
}

static void test_postgres_key__never_has_the_top_bit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(coord_postgres_key(&i, sizeof i) <= INT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_key__is_that_of_the_seed_librarys_lock_manager),
        cmocka_unit_test(test_postgres_key__never_has_the_top_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
