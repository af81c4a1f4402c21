/* SPDX-License-Identifier: MIT
 * tests/unit/test_file_slot.c - records of the election's file: written, read, torn, newer, old.
 */
#include "electors/file_slot.h"
#include "tests/support/support.h"

static struct coord__file_term full_term(void)
{
    struct coord__file_term term = {.number = 130,
                                    .state = COORD__FILE_RESIGNED,
                                    .fence = UINT64_C(1800000000000000),
                                    .lease = 3000,
                                    .since_us = UINT64_C(1790000000000001),
                                    .valid_until = UINT64_C(0x0102030405060708),
                                    .debt_until = 77,
                                    .kept_until = 99,
                                    .place = {.time_namespace = 4026531834, .inode = 12345678901}};
    memset(term.place.boot, 0xb0, sizeof term.place.boot);
    memset(term.owner, 0x0f, sizeof term.owner);
    return term;
}

static struct coord__file_text text(const char *bytes)
{
    return (struct coord__file_text){bytes, strlen(bytes)};
}

static void assert_text(struct coord__file_text got, const void *bytes, size_t count)
{
    assert_int_equal(got.count, count);
    if (count > 0) {
        assert_memory_equal(got.bytes, bytes, count);
    }
}

static size_t write_full(uint8_t *slot)
{
    const struct coord__file_term term = full_term();
    memset(slot, 0, COORD__FILE_BLOCK);
    return coord__file_slot_write(&term, slot);
}

static enum coord__file_kind kind_of(const uint8_t *slot)
{
    struct coord__file_term term;
    return coord__file_slot_read(slot, &term);
}

static void test_file_slot__gives_back_what_was_written(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_BLOCK];
    struct coord__file_term got;
    write_full(block);
    const struct coord__file_term want = full_term();
    assert_int_equal(coord__file_slot_read(block, &got), COORD__FILE_SOUND);
    assert_int_equal(got.number, want.number);
    assert_int_equal(got.state, want.state);
    assert_int_equal(got.fence, want.fence);
    assert_int_equal(got.lease, want.lease);
    assert_int_equal(got.since_us, want.since_us);
    assert_int_equal(got.valid_until, want.valid_until);
    assert_int_equal(got.debt_until, want.debt_until);
    assert_int_equal(got.kept_until, want.kept_until);
    assert_int_equal(got.place.inode, want.place.inode);
    assert_int_equal(got.place.time_namespace, want.place.time_namespace);
    assert_memory_equal(got.place.boot, want.place.boot, sizeof want.place.boot);
    assert_memory_equal(got.owner, want.owner, sizeof want.owner);
}

static void test_file_slot__texts_of_any_length_come_back(void **state)
{
    (void)state;
    static uint8_t many[COORD_METADATA_MAX];
    uint8_t record[COORD__FILE_TEXTS_BYTES];
    struct coord__file_texts got;
    memset(many, 0xee, sizeof many);
    for (size_t i = 0; i <= COORD_NAME_MAX; i += 5) {
        const struct coord__file_texts texts = {.number = i,
                                                .identity = {many, i},
                                                .successor = {many, COORD_NAME_MAX - i},
                                                .metadata = {many, 4 * i}};
        const size_t used = coord__file_texts_write(&texts, record);
        assert_true(used <= sizeof record);
        memset(record + used, 0xaa, sizeof record - used);
        assert_int_equal(coord__file_texts_read(record, &got), COORD__FILE_SOUND);
        assert_int_equal(got.number, i);
        assert_text(got.identity, many, i);
        assert_text(got.successor, many, COORD_NAME_MAX - i);
        assert_text(got.metadata, many, 4 * i);
        record[i % used] ^= 4;
        assert_int_not_equal(coord__file_texts_read(record, &got), COORD__FILE_SOUND);
    }
}

static void test_file_slot__zeroes_are_empty(void **state)
{
    (void)state;
    const uint8_t block[COORD__FILE_TEXTS_BYTES] = {0};
    struct coord__file_texts texts;
    struct coord__file_ask ask;
    struct coord__file_text name;
    assert_int_equal(kind_of(block), COORD__FILE_EMPTY);
    assert_int_equal(coord__file_slot_peek(block), 0);
    assert_int_equal(coord__file_texts_read(block, &texts), COORD__FILE_EMPTY);
    assert_int_equal(coord__file_ask_read(block, &ask), COORD__FILE_EMPTY);
    assert_int_equal(coord__file_header_read(block, &name), COORD__FILE_EMPTY);
}

static void test_file_slot__every_changed_bit_is_noticed(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_BLOCK];
    const size_t used = write_full(block);
    for (size_t bit = 0; bit < 8 * used; bit++) {
        block[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_int_not_equal(kind_of(block), COORD__FILE_SOUND);
        block[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    assert_int_equal(kind_of(block), COORD__FILE_SOUND);
}

static void test_file_slot__half_old_half_new_is_torn(void **state)
{
    (void)state;
    uint8_t old[COORD__FILE_BLOCK];
    uint8_t new[COORD__FILE_BLOCK];
    uint8_t mixed[COORD__FILE_BLOCK];
    const size_t used = write_full(old);
    struct coord__file_term term = full_term();
    term.number += COORD__FILE_SLOTS;
    term.valid_until = ~term.valid_until;
    memset(new, 0, sizeof new);
    coord__file_slot_write(&term, new);
    for (size_t cut = 1; cut < used; cut++) {
        memcpy(mixed, new, sizeof mixed);
        memcpy(mixed, old, cut);
        if (memcmp(mixed, old, used) != 0 && memcmp(mixed, new, used) != 0) {
            assert_int_equal(kind_of(mixed), COORD__FILE_TORN);
        }
    }
}

static void test_file_slot__what_lies_behind_its_end_does_not_matter(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_BLOCK];
    const size_t used = write_full(block);
    memset(block + used, 0xaa, sizeof block - used);
    assert_int_equal(kind_of(block), COORD__FILE_SOUND);
}

static void test_file_slot__lengths_are_not_trusted(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_BLOCK];
    memset(block, 0xff, sizeof block);
    assert_int_equal(kind_of(block), COORD__FILE_TORN);
    write_full(block);
    block[6] = 1; /* used: less than the frame */
    block[7] = 0;
    assert_int_equal(kind_of(block), COORD__FILE_TORN);
}

/* The places of kind, format, length and checksum never change, so that this can be told. */
static void test_file_slot__a_newer_format_is_told_from_damage(void **state)
{
    (void)state;
    /* A slot of format 7, 20 bytes long, by somebody else's hand. */
    static const uint8_t newer[] = {0x63, 0x54, 0x52, 0x4d, 0x07, 0x00, 0x14, 0x00, 0xc4, 0xd9,
                                    0x28, 0x3c, 0xbc, 0x65, 0x7c, 0x65, 0x6e, 0x65, 0x77, 0x21};
    uint8_t block[COORD__FILE_BLOCK] = {0};
    memcpy(block, newer, sizeof newer);
    assert_int_equal(kind_of(block), COORD__FILE_NEWER);
    assert_int_equal(coord__file_slot_peek(block), UINT64_MAX);
    block[17] ^= 1;
    assert_int_equal(kind_of(block), COORD__FILE_TORN);
}

/* Kept for ever: what format 1 looked like. */
static void test_file_slot__reads_what_the_first_version_wrote(void **state)
{
    (void)state;
    static const uint8_t slot[] = {
        0x63, 0x54, 0x52, 0x4d, 0x01, 0x00, 0x80, 0x00, 0x31, 0x78, 0xb9, 0x47, 0x7a, 0x25, 0x3d,
        0x18, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x41, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a,
        0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
        0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b};
    static const uint8_t texts_record[] = {0x63, 0x54, 0x58, 0x54, 0x01, 0x00, 0x24, 0x00, 0x46,
                                           0xe9, 0xfc, 0xa7, 0xe4, 0x63, 0xe6, 0x6d, 0x01, 0x00,
                                           0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x41, 0x00, 0x00,
                                           0x00, 0x00, 0x00, 0x00, 0x00, 0x69, 0x73, 0x6d, 0x6d};
    static const uint8_t ask_record[] = {
        0x63, 0x41, 0x53, 0x4b, 0x01, 0x00, 0x41, 0x00, 0x8a, 0xbb, 0x06, 0x29, 0x6a,
        0x0c, 0x17, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x22, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x07, 0x07, 0x07,
        0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x74};
    static const uint8_t header[] = {0x63, 0x4e, 0x41, 0x4d, 0x01, 0x00, 0x1a, 0x00, 0x46,
                                     0x69, 0xda, 0xf7, 0x6d, 0x50, 0xda, 0xca, 0x02, 0x00,
                                     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x6a, 0x6f};
    uint8_t record[COORD__FILE_TEXTS_BYTES] = {0};
    struct coord__file_term term;
    struct coord__file_texts texts;
    struct coord__file_ask asked;
    struct coord__file_text name;
    memcpy(record, slot, sizeof slot);
    assert_int_equal(coord__file_slot_read(record, &term), COORD__FILE_SOUND);
    assert_int_equal(term.number, 65);
    assert_int_equal(term.state, COORD__FILE_LED);
    assert_int_equal(term.fence, 2);
    assert_int_equal(term.lease, 3);
    assert_int_equal(term.since_us, 4);
    assert_int_equal(term.valid_until, 5);
    assert_int_equal(term.debt_until, 6);
    assert_int_equal(term.kept_until, 7);
    assert_int_equal(term.place.time_namespace, 8);
    assert_int_equal(term.place.inode, 9);
    assert_int_equal(term.place.boot[15], 10);
    assert_int_equal(term.owner[15], 11);
    memcpy(record, texts_record, sizeof texts_record);
    assert_int_equal(coord__file_texts_read(record, &texts), COORD__FILE_SOUND);
    assert_int_equal(texts.number, 65);
    assert_text(texts.identity, "i", 1);
    assert_text(texts.successor, "s", 1);
    assert_text(texts.metadata, "mm", 2);
    memcpy(record, ask_record, sizeof ask_record);
    assert_int_equal(coord__file_ask_read(record, &asked), COORD__FILE_SOUND);
    assert_int_equal(asked.fence, 12);
    assert_int_equal(asked.expires, 34);
    assert_int_equal(asked.place.time_namespace, 5);
    assert_int_equal(asked.place.boot[15], 7);
    assert_text(asked.to, "t", 1);
    memcpy(record, header, sizeof header);
    assert_int_equal(coord__file_header_read(record, &name), COORD__FILE_SOUND);
    assert_text(name, "jo", 2);
}

static void test_file_slot__a_lease_out_of_range_is_cut(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_BLOCK];
    struct coord__file_term term = full_term();
    term.lease = UINT64_MAX;
    coord__file_slot_write(&term, block);
    assert_int_equal(coord__file_slot_read(block, &term), COORD__FILE_SOUND);
    assert_int_equal(term.lease, 24 * 60 * 60 * 1000);
}

static void test_file_slot__numbers_out_of_range_are_damage(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_BLOCK];
    struct coord__file_term term = full_term();
    term.number = COORD__FILE_NUMBER_MAX + 1;
    coord__file_slot_write(&term, block);
    assert_int_equal(kind_of(block), COORD__FILE_TORN);
}

static void test_file_slot__a_request_to_step_down_comes_back(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_ASK_BYTES];
    struct coord__file_ask ask = {.fence = 12, .expires = 34, .to = text("worker 2")};
    struct coord__file_ask got;
    memset(ask.place.boot, 7, sizeof ask.place.boot);
    ask.place.time_namespace = 5;
    const size_t used = coord__file_ask_write(&ask, block);
    assert_int_equal(coord__file_ask_read(block, &got), COORD__FILE_SOUND);
    assert_int_equal(got.fence, 12);
    assert_int_equal(got.expires, 34);
    assert_int_equal(got.place.time_namespace, 5);
    assert_memory_equal(got.place.boot, ask.place.boot, sizeof got.place.boot);
    assert_text(got.to, "worker 2", 8);
    for (size_t i = 0; i < used; i++) {
        block[i] ^= 0x10;
        assert_int_not_equal(coord__file_ask_read(block, &got), COORD__FILE_SOUND);
        block[i] ^= 0x10;
    }
    assert_int_equal(kind_of(block), COORD__FILE_TORN);
}

static void test_file_slot__the_header_holds_any_name(void **state)
{
    (void)state;
    uint8_t block[COORD__FILE_HEADER_BYTES];
    uint8_t bytes[COORD_NAME_MAX];
    struct coord__file_text got;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    const struct coord__file_text name = {bytes, sizeof bytes};
    coord__file_header_write(&name, block);
    assert_int_equal(coord__file_header_read(block, &got), COORD__FILE_SOUND);
    assert_text(got, bytes, sizeof bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_slot__gives_back_what_was_written),
        cmocka_unit_test(test_file_slot__texts_of_any_length_come_back),
        cmocka_unit_test(test_file_slot__zeroes_are_empty),
        cmocka_unit_test(test_file_slot__every_changed_bit_is_noticed),
        cmocka_unit_test(test_file_slot__half_old_half_new_is_torn),
        cmocka_unit_test(test_file_slot__what_lies_behind_its_end_does_not_matter),
        cmocka_unit_test(test_file_slot__lengths_are_not_trusted),
        cmocka_unit_test(test_file_slot__a_newer_format_is_told_from_damage),
        cmocka_unit_test(test_file_slot__reads_what_the_first_version_wrote),
        cmocka_unit_test(test_file_slot__a_lease_out_of_range_is_cut),
        cmocka_unit_test(test_file_slot__numbers_out_of_range_are_damage),
        cmocka_unit_test(test_file_slot__a_request_to_step_down_comes_back),
        cmocka_unit_test(test_file_slot__the_header_holds_any_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
