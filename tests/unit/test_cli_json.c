/* SPDX-License-Identifier: MIT
 * tests/unit/test_cli_json.c - the writer of JSON lines: what it writes can be read, whatever bytes
 * it is given.
 */
#include "cli/json.h"
#include "tests/support/support.h"

#include <stdlib.h>

struct line {
    char *text;
    size_t bytes;
    struct cli_json json;
};

static void begin(struct line *line)
{
    FILE *out = open_memstream(&line->text, &line->bytes);
    assert_non_null(out);
    cli_json_begin(&line->json, out);
}

static void expect(struct line *line, const char *text)
{
    assert_true(cli_json_end(&line->json));
    fclose(line->json.out);
    assert_string_equal(line->text, text);
    free(line->text);
}

static void test_cli_json__members_of_every_kind(void **state)
{
    (void)state;
    struct line line;
    begin(&line);
    cli_json_text(&line.json, "a", "x");
    cli_json_text(&line.json, "b", NULL);
    cli_json_number(&line.json, "c", UINT64_MAX);
    cli_json_bool(&line.json, "d", true);
    cli_json_enter(&line.json, "e");
    cli_json_leave(&line.json);
    cli_json_enter(&line.json, "f");
    cli_json_bool(&line.json, "g", false);
    cli_json_leave(&line.json);
    cli_json_null(&line.json, "h");
    expect(&line, "{\"a\":\"x\",\"b\":null,\"c\":18446744073709551615,\"d\":true,\"e\":{},"
                  "\"f\":{\"g\":false},\"h\":null}\n");
}

static void test_cli_json__text_is_escaped(void **state)
{
    (void)state;
    struct line line;
    begin(&line);
    cli_json_text(&line.json, "a", "\"\\\n\x01\x7f/");
    expect(&line, "{\"a\":\"\\\"\\\\\\u000a\\u0001\\u007f/\"}\n");
}

static void test_cli_json__bytes_that_are_no_utf8_are_replaced(void **state)
{
    (void)state;
    struct line line;
    begin(&line);
    cli_json_bytes(&line.json, "a", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9); /* 2, 3, 4 bytes */
    cli_json_bytes(&line.json, "b", "x\0y", 3);
    cli_json_bytes(&line.json, "c", "\xff\xc0\xaf\xed\xa0\x80", 6); /* overlong, surrogate */
    cli_json_bytes(&line.json, "d", "\xe2\x82", 2);                 /* cut */
    cli_json_bytes(&line.json, "e", "\xf4\x90\x80\x80", 4);         /* past the last one */
    expect(&line, "{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\",\"b\":\"x\\u0000y\","
                  "\"c\":\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\",\"d\":\"\\ufffd\\ufffd\","
                  "\"e\":\"\\ufffd\\ufffd\\ufffd\\ufffd\"}\n");
}

static void test_cli_json__times_are_utc(void **state)
{
    (void)state;
    struct line line;
    begin(&line);
    cli_json_time(&line.json, "a", 1795978939770158u);
    cli_json_time(&line.json, "b", 0);
    expect(&line, "{\"a\":\"2026-11-29T19:02:19.770Z\",\"b\":null}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_json__members_of_every_kind),
        cmocka_unit_test(test_cli_json__text_is_escaped),
        cmocka_unit_test(test_cli_json__bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(test_cli_json__times_are_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
