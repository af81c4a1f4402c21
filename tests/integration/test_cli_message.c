/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_message.c - `coordctl message`: every type of message in both forms,
 * and what is said of bytes that are none.
 */
#include "coord/message.h"
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <fcntl.h>

enum {
    BYTES_MAX = COORD_MESSAGE_MAX + 2
};

/* ---------------------------------------------------------------- calls */

/* What one run left. */
struct result {
    int status;
    size_t count;
    char bytes[COORDCTL_TEXT]; /* of stdout */
    char said[COORDCTL_TEXT];  /* on stderr */
};

static void call(const struct scene *scene, const void *bytes, size_t count,
                 const char *const *arguments, struct result *out)
{
    struct coordctl run;
    char path[COORDCTL_PATH];
    const int fd =
        open(scene_path(scene, "stdin", path), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    coordctl_start_with(scene, &run, fd, NULL, arguments);
    close(fd);
    out->status = coordctl_wait(&run);
    out->count = read_whole(run.out, out->bytes, sizeof out->bytes);
    coordctl_output(run.err, out->said);
}

static void encode(const struct scene *scene, const char *type, const char *form, const void *bytes,
                   size_t count, struct result *out)
{
    const char *const arguments[] = {"message", "encode", "--type", type, "--format", form, NULL};
    call(scene, bytes, count, arguments, out);
}

static void decode(const struct scene *scene, const char *type, const void *bytes, size_t count,
                   struct result *out)
{
    const char *const arguments[] = {"message", "decode", "--type", type, NULL};
    call(scene, bytes, count, arguments, out);
}

/* ---------------------------------------------------------------- what is right */

/* What both forms of one message are, to the byte. A literal of msgpack ends where the letters that
 * follow would belong to its last escape. */
struct golden {
    const char *type;
    const char *json;
    const void *msgpack;
    size_t bytes;
};

#define BYTES(literal) (literal), sizeof(literal) - 1

static const struct golden goldens[] = {
    {"heartbeat",
     "{\"instance_id\":\"w-1\",\"timestamp\":\"2026-11-29T23:31:38.250000+00:00\","
     "\"subscriptions\":[\"orders\",\"ledger\"],\"in_flight_count\":3,\"is_leader\":true,"
     "\"load_factor\":0.5,\"incarnation\":\"a1\",\"seq\":7,\"fence\":42,"
     "\"sent_at\":\"2026-11-29T23:31:38.250000+00:00\","
     "\"leaving\":{\"intent\":\"maintenance\",\"remaining_ms\":1500}}",
     BYTES("\x8b\xabinstance_id\xa3w-1\xa9timestamp\xd9 2026-11-29T23:31:38.250000+00:00"
           "\xadsubscriptions\x92\xa6orders\xa6ledger\xafin_flight_count\x03"
           "\xa9is_leader\xc3\xabload_factor\xcb?\xe0\x00\x00\x00\x00\x00\x00"
           "\xabincarnation\xa2"
           "a1\xa3seq\x07\xa5"
           "fence*\xa7sent_at\xd9 2026-11-29T23:31:38.250000+00:00\xa7leaving"
           "\x82\xa6intent\xabmaintenance\xacremaining_ms\xcd\x05\xdc")},
    {"shutdown",
     "{\"instance_id\":\"w-1\",\"intent\":\"preemption\","
     "\"initiated_at\":\"2026-11-29T23:31:38.250000+00:00\","
     "\"expected_completion_at\":\"2026-11-29T23:31:58.250000+00:00\","
     "\"subscriptions\":[\"orders\"],\"in_flight_count\":3,\"metadata\":{\"zone\":\"b\"},"
     "\"incarnation\":\"a1\",\"seq\":8,\"sent_at\":\"2026-11-29T23:31:38.250000+00:00\"}",
     BYTES("\x8a\xabinstance_id\xa3w-1\xa6intent\xaapreemption\xacinitiated_at"
           "\xd9 2026-11-29T23:31:38.250000+00:00\xb6"
           "expected_completion_at\xd9 2026-11-29T23:31:58.250000+00:00\xadsubscriptions"
           "\x91\xa6orders\xafin_flight_count\x03\xa8metadata\x81\xa4zone"
           "\xa1"
           "b\xabincarnation\xa2"
           "a1\xa3seq\x08\xa7sent_at\xd9 2026-11-29T23:31:38.250000+00:00")},
    {"work_assignment",
     "{\"target_instance_id\":\"w-2\",\"subscriptions\":[\"orders\"],"
     "\"source_instance_id\":\"w-1\",\"assigned_at\":\"2026-11-29T23:31:38.250000+00:00\","
     "\"priority\":-2,\"fence\":42,\"sent_at\":\"2026-11-29T23:31:38.250000+00:00\"}",
     BYTES("\x87\xb2target_instance_id\xa3w-2\xadsubscriptions\x91\xa6orders"
           "\xb2source_instance_id\xa3w-1\xab"
           "assigned_at\xd9 2026-11-29T23:31:38.250000+00:00\xa8priority\xfe"
           "\xa5"
           "fence*\xa7sent_at\xd9 2026-11-29T23:31:38.250000+00:00")},
    {"finished",
     "{\"instance_id\":\"w-1\",\"incarnation\":\"a1\",\"subscriptions\":[\"orders\"],"
     "\"finished_at\":\"2026-11-29T23:31:38.250000+00:00\",\"seq\":9,"
     "\"sent_at\":\"2026-11-29T23:31:38.250000+00:00\"}",
     BYTES("\x86\xabinstance_id\xa3w-1\xabincarnation\xa2"
           "a1\xadsubscriptions\x91\xa6orders\xab"
           "finished_at\xd9 2026-11-29T23:31:38.250000+00:00\xa3seq\x09\xa7sent_at"
           "\xd9 2026-11-29T23:31:38.250000+00:00")},
    {"orphans",
     "{\"kind\":\"table\",\"instance_id\":\"w-1\",\"incarnation\":\"a1\",\"fence\":42,"
     "\"sent_at\":\"2026-11-29T23:31:38.250000+00:00\",\"timeout_ms\":15000,"
     "\"interval_ms\":5000,\"heard_ms\":60000,\"judging\":true,"
     "\"first\":\"00000000000000000000000000000000\","
     "\"last\":\"ffffffffffffffffffffffffffffffff\","
     "\"reports\":[{\"report_id\":\"00112233445566778899aabbccddeeff\",\"fence\":42,\"seq\":3,"
     "\"instance_id\":\"w-2\",\"incarnation\":\"b2\",\"subscriptions\":[\"orders\"],"
     "\"cause\":\"draining\",\"certainty\":\"announced\","
     "\"since\":\"2026-11-29T23:31:38.250000Z\",\"deadline\":\"2026-11-29T23:31:38.250000Z\","
     "\"safe_after\":\"2026-11-29T23:31:38.250000Z\"}]}",
     BYTES("\x8c\xa4kind\xa5table\xabinstance_id\xa3w-1\xabincarnation\xa2"
           "a1\xa5"
           "fence*\xa7sent_at\xd9 2026-11-29T23:31:38.250000+00:00\xaatimeout_ms"
           "\xcd:\x98\xabinterval_ms\xcd\x13\x88\xa8heard_ms\xcd\xea`\xa7judging"
           "\xc3\xa5"
           "first\xd9 00000000000000000000000000000000\xa4last\xd9 ffffffffffffffffffffffffffffffff"
           "\xa7reports\x91\x8b\xa9report_id\xd9 00112233445566778899aabbccddeeff"
           "\xa5"
           "fence*\xa3seq\x03\xabinstance_id\xa3w-2\xabincarnation\xa2"
           "b2\xadsubscriptions\x91\xa6orders\xa5"
           "cause\xa8"
           "draining\xa9"
           "certainty\xa9"
           "announced\xa5since\xbb"
           "2026-11-29T23:31:38.250000Z\xa8"
           "deadline\xbb"
           "2026-11-29T23:31:38.250000Z\xaasafe_after\xbb"
           "2026-11-29T23:31:38.250000Z")},
    {"orphan",
     "{\"kind\":\"hint\",\"instance_id\":\"w-3\",\"fence\":42,"
     "\"sent_at\":\"2026-11-29T23:31:38.250000+00:00\","
     "\"reports\":[{\"report_id\":\"00112233445566778899aabbccddeeff\",\"fence\":42,\"seq\":3,"
     "\"instance_id\":\"w-2\",\"incarnation\":\"b2\",\"subscriptions\":[\"orders\"],"
     "\"cause\":\"draining\",\"certainty\":\"announced\","
     "\"since\":\"2026-11-29T23:31:38.250000Z\",\"deadline\":\"2026-11-29T23:31:38.250000Z\","
     "\"safe_after\":\"2026-11-29T23:31:38.250000Z\"}]}",
     BYTES("\x85\xa4kind\xa4hint\xabinstance_id\xa3w-3\xa5"
           "fence*\xa7sent_at\xd9 2026-11-29T23:31:38.250000+00:00\xa7reports"
           "\x91\x8b\xa9report_id\xd9 00112233445566778899aabbccddeeff\xa5"
           "fence*\xa3seq\x03\xabinstance_id\xa3w-2\xabincarnation\xa2"
           "b2\xadsubscriptions\x91\xa6orders\xa5"
           "cause\xa8"
           "draining\xa9"
           "certainty\xa9"
           "announced\xa5since\xbb"
           "2026-11-29T23:31:38.250000Z\xa8"
           "deadline\xbb"
           "2026-11-29T23:31:38.250000Z\xaasafe_after\xbb"
           "2026-11-29T23:31:38.250000Z")},
};

static void check_is(const struct result *result, const void *bytes, size_t count)
{
    assert_string_equal(result->said, "");
    assert_int_equal(result->status, 0);
    assert_int_equal(result->count, count);
    assert_memory_equal(result->bytes, bytes, count);
}

static void check_json(const struct result *result, const char *json)
{
    assert_string_equal(result->said, "");
    assert_int_equal(result->status, 0);
    assert_int_equal(result->count, strlen(json) + 1); /* a line */
    assert_memory_equal(result->bytes, json, strlen(json));
    assert_int_equal(result->bytes[result->count - 1], '\n');
}

static void test_cli_message__each_type_goes_from_bytes_to_json_and_back(void **state)
{
    struct result result;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        decode(*state, golden->type, golden->msgpack, golden->bytes, &result);
        check_json(&result, golden->json);
        encode(*state, golden->type, "msgpack", result.bytes, result.count, &result);
        check_is(&result, golden->msgpack, golden->bytes);
    }
}

static void test_cli_message__each_type_is_read_in_either_form(void **state)
{
    struct result result;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        decode(*state, golden->type, golden->json, strlen(golden->json), &result);
        check_json(&result, golden->json);
        encode(*state, golden->type, "json", golden->msgpack, golden->bytes, &result);
        check_json(&result, golden->json);
        encode(*state, golden->type, "msgpack", golden->msgpack, golden->bytes, &result);
        check_is(&result, golden->msgpack, golden->bytes);
    }
}

/* Its help has every type, in each of its names. */
static void test_cli_message__help_names_the_types(void **state)
{
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_call(*state, out, WORDS("message", "--help")), 0);
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        assert_non_null(strstr(out, goldens[i].type));
    }
    assert_non_null(strstr(out, "orphan)"));
}

/* ---------------------------------------------------------------- what is not */

#define AT         "\"2026-11-29T23:31:38Z\""
#define BEAT(rest) "{\"instance_id\":\"w\",\"timestamp\":" AT rest "}"
#define NOTICE(intent, at)                                                  \
    "{\"instance_id\":\"w\",\"intent\":\"" intent "\",\"initiated_at\":" at \
    ",\"expected_completion_at\":" AT "}"

struct broken {
    const char *fault;
    const char *type;
    const void *bytes;
    size_t count;
    const char *cure;
};

static const struct broken broken[] = {
    {"TRUNCATED", "heartbeat", BYTES(""), "all of them"},
    {"TRUNCATED", "heartbeat", BYTES("{\"instance_id\":\"w"), "all of them"},
    {"TRUNCATED", "finished", BYTES("\x81\xa5id"), "all of them"},
    {"TRAILING", "heartbeat", BYTES(BEAT("") "{}"), "one message"},
    {"SYNTAX", "heartbeat", BYTES("{nonsense}"), "one message"},
    {"SYNTAX", "shutdown", BYTES("\xc1"), "one message"},
    {"BAD_TEXT", "heartbeat", BYTES("{\"instance_id\":\"\xff\",\"timestamp\":" AT "}"), "fleet.md"},
    {"BAD_NUMBER", "heartbeat", BYTES(BEAT(",\"load_factor\":1e999")), "fleet.md"},
    {"NOT_A_MAP", "orphans", BYTES("\x90"), "fleet.md"},
    {"BAD_KEY", "heartbeat", BYTES("\x81\x01\x02"), "fleet.md"},
    {"MISSING_KEY", "work_assignment", BYTES(BEAT("")), "--type"},
    {"MISSING_KEY", "work_assignment", BYTES(BEAT("")), "missing: target_instance_id;"},
    {"MISSING_KEY", "heartbeat", BYTES("{\"instance_id\":\"w\"}"), "missing: timestamp;"},
    {"MISSING_KEY", "heartbeat", BYTES(BEAT(",\"leaving\":{}")), "remaining_ms of leaving;"},
    {"MISSING_KEY", "orphan",
     BYTES("{\"kind\":\"opened\",\"instance_id\":\"w\",\"fence\":1,\"sent_at\":" AT
           ",\"reports\":[{}]}"),
     "one of a report;"},
    {"WRONG_TYPE", "heartbeat", BYTES("{\"instance_id\":7,\"timestamp\":" AT "}"), "fleet.md"},
    {"BAD_ID", "heartbeat", BYTES("{\"instance_id\":\"\",\"timestamp\":" AT "}"), "fleet.md"},
    {"BAD_TIME", "shutdown", BYTES(NOTICE("graceful", "\"today\"")), "2026-11-29T23:31:38Z"},
    {"NAIVE_TIME", "shutdown", BYTES(NOTICE("graceful", "\"2026-11-29T23:31:38\"")),
     "2026-11-29T23:31:38Z"},
    {"BAD_INTENT", "shutdown", BYTES(NOTICE("spite", AT)), "health_failure"},
    {"OUT_OF_RANGE", "heartbeat", BYTES(BEAT(",\"fence\":-1")), "fleet.md"},
    {"BAD_WORD", "orphan",
     BYTES("{\"kind\":\"lost\",\"instance_id\":\"w\",\"fence\":1,\"sent_at\":" AT
           ",\"reports\":[]}"),
     "fleet.md"},
};

/* One line, which names the fault and has a way out; and nothing that could be taken for a
 * message. */
static void check_refused(const struct result *result, const char *fault, const char *cure)
{
    char begin[64];
    snprintf(begin, sizeof begin, "coordctl: %s: this is no ", fault);
    if (strncmp(result->said, begin, strlen(begin)) != 0) {
        fail_msg("not %s, but %s", fault, result->said);
    }
    assert_int_equal(result->status, 1);
    assert_int_equal(result->count, 0);
    assert_non_null(strstr(result->said, cure));
    assert_ptr_equal(strchr(result->said, '\n'), result->said + strlen(result->said) - 1);
}

static void test_cli_message__of_broken_bytes_one_line_says_what_and_what_to_do(void **state)
{
    struct result result;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        decode(*state, broken[i].type, broken[i].bytes, broken[i].count, &result);
        check_refused(&result, broken[i].fault, broken[i].cure);
        encode(*state, broken[i].type, "msgpack", broken[i].bytes, broken[i].count, &result);
        check_refused(&result, broken[i].fault, broken[i].cure);
    }
}

static void test_cli_message__too_much_is_refused(void **state)
{
    static char bytes[BYTES_MAX];
    struct result result;
    memset(bytes, ' ', sizeof bytes);
    decode(*state, "heartbeat", bytes, sizeof bytes, &result);
    check_refused(&result, "TOO_LONG", "say less");
    memcpy(bytes, "\x81\xa1x", 3);
    memset(bytes + 3, 0x91, 1000); /* lists in lists */
    decode(*state, "heartbeat", bytes, 3 + 1000, &result);
    check_refused(&result, "DEPTH", "say less");
    memcpy(bytes + 3, "\xdc\xf0\x00", 3);
    memset(bytes + 6, 0, 0xf000);
    decode(*state, "heartbeat", bytes, 6 + 0xf000, &result);
    check_refused(&result, "COUNT", "say less");
}

static void test_cli_message__what_cannot_be_read_is_no_broken_message(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char said[COORDCTL_TEXT];
    const int folder = open(scene->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0);
    coordctl_start_with(scene, &run, folder, NULL, WORDS("message", "decode", "--type=heartbeat"));
    close(folder);
    assert_int_equal(coordctl_wait(&run), 125);
    assert_non_null(strstr(coordctl_output(run.err, said), "standard input: "));
}

static void test_cli_message__a_mistake_on_the_command_line_is_usage(void **state)
{
    static const char *const calls[][6] = {
        {"message"},
        {"message", "decode"},
        {"message", "translate", "--type=heartbeat"},
        {"message", "decode", "--type=gossip"},
        {"message", "encode", "--type=heartbeat", "--format=xml"},
    };
    struct result result;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        call(*state, BYTES(BEAT("")), calls[i], &result);
        assert_int_equal(result.status, 2);
        assert_int_equal(result.count, 0);
        assert_string_not_equal(result.said, "");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test(test_cli_message__##name)
    const struct CMUnitTest tests[] = {
        TEST(each_type_goes_from_bytes_to_json_and_back),
        TEST(each_type_is_read_in_either_form),
        TEST(help_names_the_types),
        TEST(of_broken_bytes_one_line_says_what_and_what_to_do),
        TEST(too_much_is_refused),
        TEST(what_cannot_be_read_is_no_broken_message),
        TEST(a_mistake_on_the_command_line_is_usage),
    };
#undef TEST
    return cmocka_run_group_tests(tests, scene_set_up, scene_tear_down);
}
