/* SPDX-License-Identifier: MIT
 * tests/unit/test_message_encode.c - what would not be read again is not written.
 */
#include "coord/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct coord_message beat(void)
{
    struct coord_message message = {.type = COORD_MESSAGE_HEARTBEAT,
                                    .instance_id = coord_text("w-1", 3),
                                    .incarnation = coord_text("i", 1),
                                    .seq = 1};
    return message;
}

/* In both forms; what is written is read again. */
static enum coord_err encode(const struct coord_message *message)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_message again;
    size_t count = 0;
    const enum coord_err json =
        coord_message_encode(message, COORD_FORM_JSON, bytes, sizeof bytes, &count);
    assert_true(json != COORD_OK ||
                coord_message_decode(message->type, bytes, count, &again) == COORD_FAULT_NONE);
    const enum coord_err rc =
        coord_message_encode(message, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count);
    assert_true(rc != COORD_OK ||
                coord_message_decode(message->type, bytes, count, &again) == COORD_FAULT_NONE);
    assert_int_equal(rc, json);
    return rc;
}

static void test_message_encode__an_id_is_utf8_of_1_to_255_bytes(void **state)
{
    char id[256];
    struct coord_message message = beat();
    (void)state;
    memset(id, 'x', sizeof id);
    assert_int_equal(encode(&message), COORD_OK);
    message.instance_id = coord_text(id, 255);
    assert_int_equal(encode(&message), COORD_OK);
    message.instance_id = coord_text(id, 256);
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
    message.instance_id = coord_text(id, 0);
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
    message.instance_id = coord_text("w\xff", 2);
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
    message = beat();
    message.incarnation = coord_text(id, 65);
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
    message = (struct coord_message){.type = COORD_MESSAGE_WORK_ASSIGNMENT,
                                     .instance_id = coord_text("w-1", 3),
                                     .target = coord_text("w\xff", 2)};
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
}

static void test_message_encode__a_subscription_has_1_to_255_bytes(void **state)
{
    char name[257];
    static unsigned char list[1024];
    const char *names[] = {"orders", name};
    struct coord_message message = beat();
    (void)state;
    memset(name, 'x', sizeof name);
    for (size_t length = 254; length <= 256; length++) {
        name[length] = '\0';
        assert_int_equal(coord_texts(names, 2, list, sizeof list, &message.subscriptions),
                         COORD_OK);
        assert_int_equal(encode(&message), length <= 255 ? COORD_OK : COORD_E_BAD_MESSAGE);
        name[length] = 'x';
    }
    name[0] = '\0';
    assert_int_equal(coord_texts(names, 2, list, sizeof list, &message.subscriptions), COORD_OK);
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
}

static void test_message_encode__a_duration_ends_within_our_clock(void **state)
{
    struct coord_message message = beat();
    (void)state;
    message.leaving = true;
    message.remaining = (coord_ms)1 << 52;
    assert_int_equal(encode(&message), COORD_OK);
    message.remaining++;
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
    message = (struct coord_message){.type = COORD_MESSAGE_ORPHANS,
                                     .kind = COORD_ORPHANS_TABLE,
                                     .instance_id = coord_text("w-1", 3),
                                     .heard = (coord_ms)1 << 52};
    assert_int_equal(encode(&message), COORD_OK);
    message.heard++;
    assert_int_equal(encode(&message), COORD_E_BAD_MESSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_encode__an_id_is_utf8_of_1_to_255_bytes),
        cmocka_unit_test(test_message_encode__a_subscription_has_1_to_255_bytes),
        cmocka_unit_test(test_message_encode__a_duration_ends_within_our_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
