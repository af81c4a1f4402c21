/* SPDX-License-Identifier: MIT
 * tests/support/fleet_hostile.c - see fleet_hostile.h.
 */
#include "tests/support/fleet_hostile.h"

#include "tests/support/support.h"

#define TIME "\"2026-03-01T12:00:00+00:00\""
#define BEAT "{\"instance_id\":\"w\",\"timestamp\":" TIME
#define NOTICE                                                                          \
    "{\"instance_id\":\"w\",\"initiated_at\":" TIME ",\"expected_completion_at\":" TIME \
    ",\"intent\":"
#define YEAR_9000 INT64_C(221845392000000000) /* us since the epoch */

#define LINE(what, type, fault, text)                                                             \
    {                                                                                             \
        what, COORD_MESSAGE_##type, COORD_FAULT_##fault, (enum coord_refusal)0, sizeof(text) - 1, \
            text                                                                                  \
    }

static const struct fleet_hostile lines[] = {
    LINE("nothing at all", HEARTBEAT, TRUNCATED, ""),
    LINE("nothing at all", ORPHANS, TRUNCATED, ""),
    LINE("an array of 4 billion, in 5 bytes", HEARTBEAT, TRUNCATED, "\xdd\xff\xff\xff\xff"),
    LINE("a map of 4 billion, in 5 bytes", SHUTDOWN, TRUNCATED, "\xdf\xff\xff\xff\xff"),
    LINE("a text of 4 GiB, in 5 bytes", FINISHED, TRUNCATED, "\xdb\xff\xff\xff\xff"),
    LINE("a binary of 4 GiB, in 5 bytes", WORK_ASSIGNMENT, TRUNCATED, "\xc6\xff\xff\xff\xff"),
    LINE("a value of 4 GiB", ORPHANS, TRUNCATED, "\x81\xa4kind\xdb\xff\xff\xff\xff"),
    LINE("no map", HEARTBEAT, NOT_A_MAP, "[1]"),
    LINE("no key", HEARTBEAT, MISSING_KEY, "{}"),
    LINE("no key", ORPHANS, MISSING_KEY, "\x80"),
    LINE("neither form", SHUTDOWN, SYNTAX, "\xc1"),
    LINE("more behind the end", HEARTBEAT, TRAILING, BEAT "}{}"),
    LINE("NaN, as JSON", HEARTBEAT, BAD_NUMBER, BEAT ",\"load_factor\":NaN}"),
    LINE("infinity, as JSON", HEARTBEAT, BAD_NUMBER, BEAT ",\"load_factor\":1e999}"),
    LINE("NaN, as msgpack", HEARTBEAT, BAD_NUMBER,
         "\x81\xabload_factor\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
    LINE("a time without offset", HEARTBEAT, NAIVE_TIME,
         "{\"instance_id\":\"w\",\"timestamp\":\"2026-03-01T12:00:00\"}"),
    LINE("a time that is none", FINISHED, BAD_TIME,
         "{\"instance_id\":\"w\",\"incarnation\":\"i\",\"subscriptions\":[],\"finished_at\":"
         "\"2026-13-41T12:00:00+00:00\",\"seq\":1}"),
    LINE("an unknown intent", SHUTDOWN, BAD_INTENT, NOTICE "\"tired\"}"),
    LINE("an unknown intent", HEARTBEAT, BAD_INTENT,
         BEAT ",\"leaving\":{\"intent\":\"tired\",\"remaining_ms\":1}}"),
    LINE("an unknown kind", ORPHANS, BAD_WORD,
         "{\"kind\":\"eaten\",\"instance_id\":\"w\",\"fence\":1,\"sent_at\":" TIME
         ",\"reports\":[]}"),
    LINE("half a character", HEARTBEAT, BAD_TEXT, BEAT ",\"x\":\"\xff\"}"),
    LINE("a number that is too small", HEARTBEAT, OUT_OF_RANGE, BEAT ",\"seq\":-1}"),
    LINE("a list that is a text", WORK_ASSIGNMENT, WRONG_TYPE,
         "{\"target_instance_id\":\"w\",\"subscriptions\":\"abc\",\"source_instance_id\":\"x\","
         "\"assigned_at\":" TIME "}"),
};

/* A heartbeat of JSON whose id has so many bytes. */
static struct fleet_hostile long_id(const char *what, size_t bytes, enum coord_message_fault fault)
{
    static char room[3][FLEET_HOSTILE_BYTES + 128];
    static const char head[] = "{\"timestamp\":" TIME ",\"instance_id\":\"";
    static unsigned next;
    char *text = room[next++ % 3];
    assert_true(bytes <= FLEET_HOSTILE_BYTES);
    size_t count = sizeof head - 1;
    memcpy(text, head, count);
    memset(text + count, 'x', bytes);
    count += bytes;
    memcpy(text + count, "\"}", 2);
    return (struct fleet_hostile){.what = what,
                                  .type = COORD_MESSAGE_HEARTBEAT,
                                  .fault = fault,
                                  .count = count + 2,
                                  .bytes = text};
}

/* {"x": [[[[...]]]]} */
static struct fleet_hostile deep(void)
{
    static char bytes[1024];
    memset(bytes, '\x91', sizeof bytes);
    memcpy(bytes, "\x81\xa1x", 3);
    return (struct fleet_hostile){.what = "a thousand levels",
                                  .type = COORD_MESSAGE_HEARTBEAT,
                                  .fault = COORD_FAULT_DEPTH,
                                  .count = sizeof bytes,
                                  .bytes = bytes};
}

static struct fleet_hostile wide(void)
{
    static char bytes[3 + 3 + 0x8000];
    memset(bytes, 1, sizeof bytes);
    memcpy(bytes, "\x81\xa1x\xdc\x80\x00", 6);
    return (struct fleet_hostile){.what = "too many values",
                                  .type = COORD_MESSAGE_HEARTBEAT,
                                  .fault = COORD_FAULT_COUNT,
                                  .count = sizeof bytes,
                                  .bytes = bytes};
}

size_t fleet_hostile_bytes(struct fleet_hostile *out)
{
    size_t count = sizeof lines / sizeof lines[0];
    memcpy(out, lines, sizeof lines);
    out[count++] = deep();
    out[count++] = wide();
    out[count++] = long_id("an id of 256 bytes", 256, COORD_FAULT_BAD_ID);
    out[count++] = long_id("an id of 60,000 bytes", 60000, COORD_FAULT_BAD_ID);
    out[count++] = long_id("an id of 1 MiB", FLEET_HOSTILE_BYTES, COORD_FAULT_TOO_LONG);
    assert_true(count <= FLEET_HOSTILE_MAX);
    return count;
}

/* ---------------------------------------------------------------- replays */

static void write_replay(const char *what, const struct coord_message *message,
                         struct fleet_hostile *out)
{
    static unsigned char room[FLEET_HOSTILE_MAX][2048];
    static unsigned next;
    unsigned char *bytes = room[next++ % FLEET_HOSTILE_MAX];
    *out = (struct fleet_hostile){
        .what = what, .type = message->type, .refusal = COORD_REFUSED_OLD_SEQ, .bytes = bytes};
    assert_int_equal(
        coord_message_encode(message, COORD_FORM_MSGPACK, bytes, sizeof room[0], &out->count),
        COORD_OK);
}

size_t fleet_hostile_replays(const void *beat, size_t count, struct fleet_hostile *out)
{
    struct coord_message m;
    size_t made = 0;
    assert_int_equal(coord_message_decode(COORD_MESSAGE_HEARTBEAT, beat, count, &m),
                     COORD_FAULT_NONE);
    write_replay("a duplicate", &m, &out[made++]);
    m.seq = 1;
    write_replay("a beat of long ago", &m, &out[made++]);
    m.at_us = YEAR_9000;
    m.sent_at_us = YEAR_9000;
    m.has_sent_at = true;
    write_replay("a beat of the year 9000", &m, &out[made++]);
    m.leaving = true;
    m.remaining = 1;
    write_replay("a beat that leaves, of long ago", &m, &out[made++]);
    m.leaving = false;
    m.subscriptions = (struct coord_value){.kind = COORD_KIND_ABSENT};
    m.type = COORD_MESSAGE_SHUTDOWN;
    m.completion_us = YEAR_9000 + 1000;
    write_replay("a notice of the year 9000", &m, &out[made++]);
    m.type = COORD_MESSAGE_FINISHED;
    write_replay("a last word of the year 9000", &m, &out[made++]);
    return made;
}

struct fleet_hostile fleet_hostile_table(void)
{
    struct coord_message m = {.type = COORD_MESSAGE_ORPHANS,
                              .kind = COORD_ORPHANS_TABLE,
                              .fence = 1,
                              .sent_at_us = YEAR_9000,
                              .has_sent_at = true,
                              .judging = true,
                              .timeout = 1000,
                              .interval = 100,
                              .heard = 1000000000};
    struct fleet_hostile out;
    m.instance_id = coord_text("former", 6);
    memset(m.last, 0xff, sizeof m.last);
    write_replay("a table of one who led long ago", &m, &out);
    out.refusal = COORD_REFUSED_STALE_FENCE;
    return out;
}
