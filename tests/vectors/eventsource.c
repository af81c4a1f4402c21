/* SPDX-License-Identifier: MIT
 * tests/vectors/eventsource.c - runs a vector file of the seed library against compatible mode.
 *
 * usage: vectors_eventsource FILE. meta.sections of the file says which sections are run; it closes
 * with 'N passed, N failed', and fails when one failed.
 */
#include "coord/compatible.h"
#include "tests/vectors/vectors.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum coord_form forms[] = {COORD_FORM_JSON, COORD_FORM_MSGPACK};

static bool type_of(const char *kind, enum coord_message_type *out)
{
    static const struct {
        const char *name;
        enum coord_message_type type;
    } kinds[] = {
        {"shutdown", COORD_MESSAGE_SHUTDOWN},
        {"heartbeat", COORD_MESSAGE_HEARTBEAT},
        {"assignment", COORD_MESSAGE_WORK_ASSIGNMENT},
        {"work_assignment", COORD_MESSAGE_WORK_ASSIGNMENT},
        {"ShutdownNotification", COORD_MESSAGE_SHUTDOWN},
        {"HeartbeatMessage", COORD_MESSAGE_HEARTBEAT},
        {"WorkAssignment", COORD_MESSAGE_WORK_ASSIGNMENT},
    };
    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            *out = kinds[i].type;
            return true;
        }
    }
    return false;
}

static const char *text_of(const json_t *tree, const char *key)
{
    const char *text = json_string_value(json_object_get(tree, key));
    return text != NULL ? text : "";
}

/* ---- encode ---- */

static bool is_time(const json_t *value)
{
    return json_is_object(value) && json_object_get(value, "iso") != NULL &&
           json_object_get(value, "naive") != NULL;
}

/* The member's name, or the word that it stands for. */
static json_t *intent_word(const struct vectors *v, const json_t *name)
{
    json_t *words = json_object_get(json_object_get(v->file, "meta"), "intents");
    json_t *word = json_is_string(name) ? json_object_get(words, json_string_value(name)) : NULL;
    return json_deep_copy(word != NULL ? word : name);
}

/* The fields of a record of the seed library, as the map that they are written into. */
static json_t *map_of_fields(const struct vectors *v, json_t *fields)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *map = json_object();
    json_object_foreach(fields, key, value)
    {
        json_t *item = is_time(value)               ? json_deep_copy(json_object_get(value, "iso"))
                       : strcmp(key, "intent") == 0 ? intent_word(v, value)
                                                    : json_deep_copy(value);
        json_object_set_new(map, key, item);
    }
    return map;
}

static void expect_order(struct vectors *v, const json_t *order, json_t *found)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *keys = json_array();
    json_object_foreach(found, key, value)
    {
        json_array_append_new(keys, json_string(key));
    }
    if (order != NULL) {
        vectors_expect(v, "key order", order, json_incref(keys));
    }
    json_decref(keys);
}

static void expect_written(struct vectors *v, const struct coord_record *record,
                           const json_t *expected, const json_t *order)
{
    static struct bytes out;
    for (size_t i = 0; i < 2; i++) {
        enum coord_err err =
            coord_record_write(record, forms[i], out.at, sizeof out.at, &out.count);
        json_t *found =
            err == COORD_OK ? vectors_decode(forms[i], out.at, out.count) : vectors_error();
        expect_order(v, order, found);
        vectors_expect(v, forms[i] == COORD_FORM_JSON ? "written as JSON" : "written as msgpack",
                       expected, found);
    }
}

static void run_encode(struct vectors *v, json_t *entry)
{
    static struct bytes in;
    enum coord_message_type type = COORD_MESSAGE_HEARTBEAT;
    if (!type_of(text_of(entry, "type"), &type)) {
        vectors_differ(v, "type", json_object_get(entry, "type"), NULL);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        struct coord_record record;
        json_t *map = map_of_fields(v, json_object_get(entry, "fields"));
        vectors_encode(map, forms[i], &in);
        json_decref(map);
        enum coord_message_fault fault = coord_record_read(type, in.at, in.count, &record);
        if (fault != COORD_FAULT_NONE) {
            vectors_expect(v, "fields", NULL, json_string(coord_fault_name(fault)));
            return;
        }
        expect_written(v, &record, json_object_get(entry, "dict"),
                       json_object_get(entry, "key_order"));
    }
}

/* ---- decode ---- */

static json_t *time_fields(const struct coord_time *time)
{
    char iso[COORD_TIME_TEXT_MAX];
    (void)coord_time_text_write(time, iso);
    if (time->naive) {
        return json_pack("{s:b, s:n, s:n, s:s}", "naive", 1, "utc_offset_seconds",
                         "epoch_microseconds", "iso", iso);
    }
    return json_pack("{s:b, s:f, s:I, s:s}", "naive", 0, "utc_offset_seconds",
                     (double)time->offset_us / 1e6, "epoch_microseconds",
                     (json_int_t)coord_time_epoch(time), "iso", iso);
}

/* What a field of the record shows, in the manner of the file. */
static json_t *field_shown(const struct vectors *v, const struct coord_record *record,
                           const char *key, const json_t *written, const json_t *expected)
{
    unsigned count = 0;
    const struct coord__field *fields = coord__fields(record->type, &count);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(fields[i].name, key) == 0 && is_time(expected)) {
            struct coord_time time = coord_record_time(record, i);
            return time_fields(&time);
        }
    }
    json_t *value = json_object_get(written, key);
    if (strcmp(key, "intent") == 0 && json_is_string(value)) {
        json_t *words = json_object_get(json_object_get(v->file, "meta"), "intents");
        const char *name = NULL;
        json_t *word = NULL;
        json_object_foreach(words, name, word)
        {
            if (vectors_same(word, value)) {
                return json_string(name);
            }
        }
    }
    return json_deep_copy(value);
}

static void expect_fields(struct vectors *v, const struct coord_record *record, json_t *expected)
{
    static struct bytes out;
    const char *key = NULL;
    json_t *value = NULL;
    if (coord_record_write(record, COORD_FORM_JSON, out.at, sizeof out.at, &out.count) !=
        COORD_OK) {
        vectors_differ(v, "fields", expected, NULL);
        return;
    }
    json_t *written = vectors_decode(COORD_FORM_JSON, out.at, out.count);
    json_object_foreach(expected, key, value)
    {
        vectors_expect(v, key, value, field_shown(v, record, key, written, value));
    }
    json_decref(written);
}

static json_t *boolean_or_error(enum coord_err err, bool value)
{
    return err == COORD_OK ? json_boolean(value) : vectors_error();
}

static json_t *real_or_error(enum coord_err err, double value)
{
    return err == COORD_OK ? json_real(value) : vectors_error();
}

static void expect_derived(struct vectors *v, const struct coord_record *record,
                           const json_t *entry)
{
    int64_t now = vectors_time(json_object_get(entry, "now"));
    const json_t *left = json_object_get(entry, "time_remaining_seconds");
    const json_t *expired = json_object_get(entry, "is_expired");
    const json_t *stale = json_object_get(entry, "is_stale");
    const json_t *stale_15 = json_object_get(entry, "is_stale_15");
    double seconds = 0;
    bool is = false;
    if (left != NULL) {
        enum coord_err err = coord_notice_remaining(record, now, &seconds);
        vectors_expect(v, "time_remaining_seconds", left, real_or_error(err, seconds));
    }
    if (expired != NULL) {
        enum coord_err err = coord_notice_expired(record, now, &is);
        vectors_expect(v, "is_expired", expired, boolean_or_error(err, is));
    }
    if (stale != NULL) {
        double age = vectors_number(json_object_get(entry, "max_age_seconds"), COORD_SEED_STALE_S);
        enum coord_err err = coord_heartbeat_stale(record, age, now, &is);
        vectors_expect(v, "is_stale", stale, boolean_or_error(err, is));
    }
    if (stale_15 != NULL) {
        enum coord_err err = coord_heartbeat_stale(record, 15.0, now, &is);
        vectors_expect(v, "is_stale_15", stale_15, boolean_or_error(err, is));
    }
}

static void run_decode(struct vectors *v, json_t *entry)
{
    static struct bytes in;
    enum coord_message_type type = COORD_MESSAGE_HEARTBEAT;
    const json_t *result = json_object_get(entry, "result");
    if (!type_of(text_of(entry, "kind"), &type)) {
        vectors_differ(v, "kind", json_object_get(entry, "kind"), NULL);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        struct coord_record record;
        vectors_encode(json_object_get(entry, "input"), forms[i], &in);
        enum coord_message_fault fault = coord_record_read(type, in.at, in.count, &record);
        if (fault == COORD_FAULT_NONE) {
            fault = coord_record_check(&record);
        }
        vectors_expect(v, "result", result,
                       fault == COORD_FAULT_NONE ? json_string("ok") : vectors_error());
        if (fault != COORD_FAULT_NONE || vectors_is_error(result)) {
            continue;
        }
        expect_fields(v, &record, json_object_get(entry, "fields"));
        if (json_object_get(entry, "reencoded") != NULL) {
            expect_written(v, &record, json_object_get(entry, "reencoded"), NULL);
        }
        if (json_object_get(entry, "now") != NULL) {
            expect_derived(v, &record, entry);
        }
    }
}

/* ---- times, derived values, status ---- */

static void run_timestamp_text(struct vectors *v, json_t *entry)
{
    const json_t *text = json_object_get(entry, "text");
    struct coord_time time;
    bool accepted = coord_time_text_parse(json_string_value(text), json_string_length(text), &time);
    vectors_expect(v, "accepted", json_object_get(entry, "accepted"), json_boolean(accepted));
    if (accepted && json_object_get(entry, "epoch_microseconds") != NULL) {
        vectors_expect(v, "epoch_microseconds", json_object_get(entry, "epoch_microseconds"),
                       time.naive ? json_null() : json_integer(coord_time_epoch(&time)));
    }
    if (accepted && json_object_get(entry, "naive") != NULL) {
        vectors_expect(v, "naive", json_object_get(entry, "naive"), json_boolean(time.naive));
    }
}

/* The map of a derived case, with what it leaves out. */
static json_t *whole_message(const json_t *entry, enum coord_message_type type)
{
    json_t *map = json_pack("{s:s}", "instance_id", "p");
    if (type == COORD_MESSAGE_SHUTDOWN) {
        json_t *completion = json_object_get(entry, "expected_completion_at");
        json_t *initiated = json_object_get(entry, "initiated_at");
        json_object_set_new(map, "intent", json_string("graceful"));
        json_object_set(map, "initiated_at", initiated != NULL ? initiated : completion);
        json_object_set(map, "expected_completion_at", completion);
    } else {
        json_object_set(map, "timestamp", json_object_get(entry, "timestamp"));
    }
    return map;
}

static void run_derived(struct vectors *v, json_t *entry)
{
    static struct bytes in;
    enum coord_message_type type = COORD_MESSAGE_HEARTBEAT;
    struct coord_record record;
    if (!type_of(text_of(entry, "kind"), &type)) {
        vectors_differ(v, "kind", json_object_get(entry, "kind"), NULL);
        return;
    }
    json_t *map = whole_message(entry, type);
    vectors_encode(map, COORD_FORM_MSGPACK, &in);
    json_decref(map);
    if (coord_record_read(type, in.at, in.count, &record) != COORD_FAULT_NONE ||
        coord_record_check(&record) != COORD_FAULT_NONE) {
        vectors_differ(v, "times", entry, NULL);
        return;
    }
    expect_derived(v, &record, entry);
}

static const struct coord_record *read_part(const json_t *part, enum coord_message_type type,
                                            enum coord_form form, struct bytes *in,
                                            struct coord_record *record)
{
    if (!json_is_object(part)) {
        return NULL;
    }
    vectors_encode(part, form, in);
    return coord_record_read(type, in->at, in->count, record) == COORD_FAULT_NONE ? record : NULL;
}

static void run_peer_status(struct vectors *v, json_t *entry)
{
    static struct bytes beat;
    static struct bytes notice;
    int64_t now = vectors_time(json_object_get(entry, "now"));
    for (size_t i = 0; i < 2; i++) {
        struct coord_record records[2];
        struct coord_seed_peer peer = {
            coord_text("p", 1),
            read_part(json_object_get(entry, "last_heartbeat"), COORD_MESSAGE_HEARTBEAT, forms[i],
                      &beat, &records[0]),
            read_part(json_object_get(entry, "shutdown_notification"), COORD_MESSAGE_SHUTDOWN,
                      forms[i], &notice, &records[1]),
        };
        enum coord_seed_status status = COORD_SEED_UNKNOWN;
        enum coord_err err = coord_seed_status(&peer, now, &status);
        vectors_expect(v, "status", json_object_get(entry, "status"),
                       err == COORD_OK ? json_string(coord_seed_status_name(status))
                                       : vectors_error());
        struct coord_value names = coord_seed_subscriptions(&peer);
        vectors_expect(v, "subscriptions", json_object_get(entry, "subscriptions"),
                       vectors_names(&names));
    }
}

static void run_both_create(struct vectors *v, json_t *entry)
{
    run_create(v, entry, COORD_FORM_JSON);
    run_create(v, entry, COORD_FORM_MSGPACK);
}

static void run_both_scenario(struct vectors *v, json_t *entry)
{
    run_coordinator_scenario(v, entry, COORD_FORM_JSON);
    run_coordinator_scenario(v, entry, COORD_FORM_MSGPACK);
}

/* ---- advisory lock ids: key text to bigint, as the seed library's lock manager maps them ---- */

static json_int_t lock_id(const char *text, size_t bytes)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    uint64_t id = 0;
    if (EVP_Digest(text, bytes, digest, &length, EVP_sha256(), NULL) != 1) {
        return -1;
    }
    for (unsigned i = 0; i < 8; i++) {
        id = id << 8 | digest[i];
    }
    return (json_int_t)(id & INT64_MAX);
}

static void run_lock_ids(struct vectors *v, json_t *section)
{
    json_t *ids = json_object_get(section, "ids");
    const char *text = NULL;
    json_t *id = NULL;
    json_object_foreach(ids, text, id)
    {
        vectors_begin(v);
        vectors_expect(v, "int8", id, json_integer(lock_id(text, strlen(text))));
        vectors_end(v, text);
    }
}

/* ---- the file ---- */

static const struct {
    const char *name;
    void (*run)(struct vectors *v, json_t *entry);
} sections[] = {
    {"encode", run_encode},
    {"decode", run_decode},
    {"timestamp_text", run_timestamp_text},
    {"derived", run_derived},
    {"create", run_both_create},
    {"peer_status", run_peer_status},
    {"coordinator_scenarios", run_both_scenario},
};

static void run_list(struct vectors *v, json_t *list, void (*run)(struct vectors *, json_t *))
{
    size_t at = 0;
    json_t *entry = NULL;
    json_array_foreach(list, at, entry)
    {
        char number[32];
        const char *name = text_of(entry, "name");
        snprintf(number, sizeof number, "#%zu", at + 1);
        vectors_begin(v);
        run(v, entry);
        vectors_end(v, *name != '\0' ? name : number);
    }
}

static void run_section(struct vectors *v, const char *name, json_t *section)
{
    unsigned before = v->passed + v->failed;
    bool known = strcmp(name, "advisory_lock_ids") == 0;
    v->section = name;
    if (known) {
        run_lock_ids(v, section);
    }
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(name, sections[i].name) == 0) {
            run_list(v, section, sections[i].run);
            known = true;
        }
    }
    if (!known) {
        vectors_begin(v);
        vectors_differ(v, "this section is to be run, and is unknown", NULL, NULL);
        vectors_end(v, name);
    }
    printf("%s: %u\n", name, v->passed + v->failed - before);
}

/* Without meta.sections what is known is run. */
static bool wanted(const json_t *about, const char *name)
{
    const json_t *status = json_object_get(json_object_get(about, name), "status");
    if (status != NULL) {
        return strcmp(json_string_value(status), "run") == 0;
    }
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(name, sections[i].name) == 0) {
            return true;
        }
    }
    return strcmp(name, "advisory_lock_ids") == 0;
}

int main(int argc, char **argv)
{
    json_error_t error;
    struct vectors v = {.section = ""};
    if (argc != 2) {
        fprintf(stderr, "usage: vectors_eventsource FILE\n");
        return 2;
    }
    v.file = json_load_file(argv[1], JSON_ALLOW_NUL, &error);
    if (v.file == NULL) {
        fprintf(stderr, "%s: line %d: %s\n", argv[1], error.line, error.text);
        return 2;
    }
    const json_t *about = json_object_get(json_object_get(v.file, "meta"), "sections");
    const char *name = NULL;
    json_t *section = NULL;
    json_object_foreach(v.file, name, section)
    {
        if (strcmp(name, "meta") == 0) {
            continue;
        }
        if (wanted(about, name)) {
            run_section(&v, name, section);
        } else {
            printf("%s: information only, not run\n", name);
        }
    }
    printf("[  PASSED  ] %u test(s).\n", v.passed);
    if (v.failed > 0) {
        printf("[  FAILED  ] %u test(s).\n", v.failed);
    }
    printf("%u passed, %u failed\n", v.passed, v.failed);
    json_decref(v.file);
    return v.failed == 0 && v.passed > 0 ? 0 : 1;
}
