/* SPDX-License-Identifier: MIT
 * tests/unit/test_peer.c - what the table of peers keeps: incarnations, lists, and how much of it.
 */
#include "coord/coordinator_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DIGITS "0123456789abcdeffedcba9876543210"

/* Digits are what they say; any other byte, in any place, makes it a foreign text. */
static void test_peer__an_incarnation_is_its_digits(void **state)
{
    (void)state;
    static const unsigned char plain[COORD_OWNER_BYTES] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
                                                           0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98,
                                                           0x76, 0x54, 0x32, 0x10};
    for (unsigned at = 0; at < 2 * COORD_OWNER_BYTES; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            const char *found = byte != 0 ? strchr("0123456789abcdef", (int)byte) : NULL;
            char text[] = DIGITS;
            unsigned char wanted[COORD_OWNER_BYTES];
            unsigned char out[COORD_OWNER_BYTES] = {0};
            text[at] = (char)byte;
            coord__incarnation(text, sizeof text - 1, out);
            memcpy(wanted, plain, sizeof wanted);
            if (found == NULL) {
                assert_memory_not_equal(out, plain, sizeof out);
                continue;
            }
            unsigned digit = (unsigned)(found - "0123456789abcdef") % 16;
            unsigned other = at % 2 == 0 ? wanted[at / 2] & 0x0fU : wanted[at / 2] & 0xf0U;
            wanted[at / 2] = (unsigned char)(at % 2 == 0 ? other | digit << 4 : other | digit);
            assert_memory_equal(out, wanted, sizeof out);
        }
    }
}

static void test_peer__foreign_incarnations_are_told_apart(void **state)
{
    (void)state;
    unsigned char a[COORD_OWNER_BYTES];
    unsigned char b[COORD_OWNER_BYTES];
    coord__incarnation("pod-7", 5, a);
    coord__incarnation("pod-8", 5, b);
    assert_memory_not_equal(a, b, sizeof a);
    coord__incarnation("0123456789ABCDEFFEDCBA9876543210", 32, a);
    coord__incarnation(DIGITS, 32, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* Names of every length come out of a packed list as they went in. */
static void test_peer__a_packed_list_gives_its_names_back(void **state)
{
    (void)state;
    static char names[COORD_NAME_MAX][COORD_NAME_MAX + 1];
    static const char *list[COORD_NAME_MAX];
    static unsigned char buffer[COORD_MESSAGE_MAX];
    static unsigned char packed[COORD_MESSAGE_MAX];
    for (unsigned i = 0; i < COORD_NAME_MAX; i++) {
        memset(names[i], 'a' + (int)(i % 26), i + 1);
        list[i] = names[i];
    }
    struct coord_value value;
    uint32_t bytes = 0;
    uint32_t count = 0;
    assert_int_equal(coord_texts(list, COORD_NAME_MAX, buffer, sizeof buffer, &value), COORD_OK);
    assert_true(coord__pack_list(&value, packed, sizeof packed, &bytes, &count));
    assert_int_equal(count, COORD_NAME_MAX);
    const unsigned char *at = packed;
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(coord__packed_next(&at), i + 1);
        assert_memory_equal(at, names[i], i + 1);
        at += i + 1;
    }
    assert_int_equal(at - packed, bytes);
    assert_false(coord__pack_list(&value, packed, bytes - 1, &bytes, &count));
}

/* A place in the index is eight bytes, and at its emptiest the index has 16 / 7 of them a peer. */
static void test_peer__takes_less_than_128_bytes(void **state)
{
    (void)state;
    assert_true(sizeof(struct coord__peer) + sizeof(struct coord__slot) * 16 / 7 + 1 < 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer__an_incarnation_is_its_digits),
        cmocka_unit_test(test_peer__foreign_incarnations_are_told_apart),
        cmocka_unit_test(test_peer__a_packed_list_gives_its_names_back),
        cmocka_unit_test(test_peer__takes_less_than_128_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
