/* SPDX-License-Identifier: MIT
 * coord/time_text.c - reading and writing times, with the calendar that this needs.
 */
#include "coord/time_text.h"

#include <string.h>

#define SECOND_US INT64_C(1000000)
#define DAY_US    (INT64_C(86400) * SECOND_US)

struct cursor {
    const char *at;
    const char *end;
};

/* The parts of a clock's face, or of an offset. */
struct clock_face {
    int hour;
    int minute;
    int second;
    int micros;
};

static bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static bool digits(struct cursor *in, int count, int *out)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (!is_digit(in->at, in->end)) {
            return false;
        }
        value = value * 10 + (*in->at++ - '0');
    }
    *out = value;
    return true;
}

static bool leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && leap(year) ? 29 : days[month - 1];
}

/* Days from 1970-01-01 to the first of January. */
static int64_t year_start(int year)
{
    int64_t before = year - 1;
    return before * 365 + before / 4 - before / 100 + before / 400 - 719162;
}

/* From the first of January to the first of the month. */
static int days_before(int year, int month)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return before[month - 1] + (month > 2 && leap(year) ? 1 : 0);
}

static int64_t day_number(int year, int month, int day)
{
    return year_start(year) + days_before(year, month) + day - 1;
}

/* 0 is Monday. */
static int weekday(int64_t day)
{
    return (int)(((day + 3) % 7 + 7) % 7);
}

/* The Monday of week 1 is that of the week with the year's first Thursday. */
static int64_t week_one(int year)
{
    int64_t first = year_start(year);
    int day = weekday(first);
    return first - day + (day > 3 ? 7 : 0);
}

static bool week_date(int year, int week, int day, int64_t *out)
{
    if (week < 1 || week > 53 || day < 1 || day > 7) {
        return false;
    }
    int first = weekday(year_start(year));
    if (week == 53 && !(first == 3 || (first == 2 && leap(year)))) {
        return false;
    }
    *out = week_one(year) + (int64_t)(week - 1) * 7 + day - 1;
    return *out >= COORD_TIME_MIN_US / DAY_US && *out <= COORD_TIME_MAX_US / DAY_US;
}

/*
 * How long the date is. A separator between date and time may be any character, so the forms of
 * week dates have to be told apart by what follows.
 */
static size_t compact_week_length(const char *text, size_t bytes)
{
    size_t at = 7;
    while (is_digit(text + at, text + bytes)) {
        at++;
    }
    if (at < 9) {
        return at;
    }
    return at % 2 == 0 ? 7 : 8;
}

static size_t week_length(const char *text, size_t bytes)
{
    if (bytes < 8 || bytes == 9) {
        return bytes == 9 && text[8] != '-' ? 8 : 0;
    }
    if (bytes > 8 && text[8] == '-') {
        return bytes > 10 && is_digit(text + 10, text + bytes) ? 8 : 10;
    }
    return 8;
}

static size_t date_length(const char *text, size_t bytes)
{
    if (bytes == 7) {
        return 7;
    }
    if (text[4] == '-') {
        return text[5] == 'W' ? week_length(text, bytes) : 10;
    }
    return text[4] == 'W' ? compact_week_length(text, bytes) : 8;
}

static bool week_part(struct cursor *in, int year, bool separated, int64_t *out)
{
    int week = 0;
    int day = 1;
    in->at++;
    if (!digits(in, 2, &week)) {
        return false;
    }
    if (in->at < in->end) {
        if (separated && *in->at++ != '-') {
            return false;
        }
        if (!digits(in, 1, &day)) {
            return false;
        }
    }
    return in->at == in->end && week_date(year, week, day, out);
}

static bool parse_date(const char *text, size_t bytes, int64_t *out)
{
    struct cursor in = {text, text + bytes};
    int year = 0;
    int month = 0;
    int day = 0;
    if (!digits(&in, 4, &year) || year < 1) {
        return false;
    }
    bool separated = in.at < in.end && *in.at == '-';
    if (separated) {
        in.at++;
    }
    if (in.at < in.end && *in.at == 'W') {
        return week_part(&in, year, separated, out);
    }
    if (!digits(&in, 2, &month)) {
        return false;
    }
    if (separated && (in.at == in.end || *in.at++ != '-')) {
        return false;
    }
    if (!digits(&in, 2, &day) || in.at != in.end) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > month_days(year, month)) {
        return false;
    }
    *out = day_number(year, month, day);
    return true;
}

/* Digits past the sixth are cut off, not rounded. */
static bool parse_fraction(struct cursor *in, int *micros)
{
    int places = in->end - in->at >= 6 ? 6 : (int)(in->end - in->at);
    if (!digits(in, places, micros)) {
        return false;
    }
    for (int i = places; i < 6; i++) {
        *micros *= 10;
    }
    while (is_digit(in->at, in->end)) {
        in->at++;
    }
    return true;
}

/*
 * HH[:MM[:SS[.ffffff]]] or HH[MM[SS[.ffffff]]]. `trailing` permits what the seed library permits
 * before an offset: one character behind a whole part, such as a decimal mark without digits, and
 * anything behind six digits of a fraction.
 */
static bool parse_face(struct cursor *in, bool trailing, struct clock_face *out)
{
    int *parts[] = {&out->hour, &out->minute, &out->second};
    bool separated = false;
    for (int i = 0; i < 3; i++) {
        if (!digits(in, 2, parts[i])) {
            return false;
        }
        if (in->at == in->end) {
            return true;
        }
        char mark = *in->at++;
        if (i == 0) {
            separated = mark == ':';
        }
        if (in->at == in->end) {
            return trailing;
        }
        if (separated && mark == ':') {
            continue;
        }
        if (mark == '.' || mark == ',') {
            break;
        }
        if (separated) {
            return false;
        }
        in->at--;
    }
    return parse_fraction(in, &out->micros) && (trailing || in->at == in->end);
}

static const char *zone_start(struct cursor in)
{
    while (in.at < in.end && *in.at != '+' && *in.at != '-' && *in.at != 'Z') {
        in.at++;
    }
    return in.at;
}

static bool parse_offset(struct cursor in, struct coord_time *time)
{
    if (*in.at == 'Z') {
        return in.at + 1 == in.end;
    }
    int64_t sign = *in.at++ == '-' ? -1 : 1;
    struct clock_face face = {0, 0, 0, 0};
    if (!parse_face(&in, false, &face)) {
        return false;
    }
    int64_t seconds = (int64_t)face.hour * 3600 + (int64_t)face.minute * 60 + face.second;
    /* Less than a second is no offset at all, for the seed library. */
    time->offset_us = seconds == 0 ? 0 : sign * (seconds * SECOND_US + face.micros);
    return time->offset_us > -DAY_US && time->offset_us < DAY_US;
}

static bool parse_clock(struct cursor in, struct coord_time *time)
{
    const char *zone = zone_start(in);
    struct cursor clock = {in.at, zone};
    struct clock_face face = {0, 0, 0, 0};
    if (!parse_face(&clock, zone < in.end, &face)) {
        return false;
    }
    if (face.hour > 23 || face.minute > 59 || face.second > 59) {
        return false;
    }
    int64_t seconds = (int64_t)face.hour * 3600 + (int64_t)face.minute * 60 + face.second;
    time->face_us += seconds * SECOND_US + face.micros;
    if (zone == in.end) {
        return true;
    }
    time->naive = false;
    return parse_offset((struct cursor){zone, in.end}, time);
}

static size_t character_bytes(char first)
{
    unsigned char byte = (unsigned char)first;
    if (byte < 0x80) {
        return 1;
    }
    return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Are eight bytes digits where the pattern has '0', and the same as there elsewhere? A digit less
 * '0' is below ten, and what is the same is zero: with the pattern's `most` added no byte of that
 * reaches 0x80. */
static inline bool matches(const char *text, const char *pattern, const char *most)
{
    uint64_t bytes = 0;
    uint64_t wanted = 0;
    uint64_t add = 0;
    memcpy(&bytes, text, sizeof bytes);
    memcpy(&wanted, pattern, sizeof wanted);
    memcpy(&add, most, sizeof add);
    bytes ^= wanted;
    return (((bytes + add) | bytes) & UINT64_C(0x8080808080808080)) == 0;
}

/* "0000-00-00T00:00:00.000000+00:00" with digits for the zeros before the offset. */
static bool is_stamp(const char *text)
{
    /* 0x76 is 0x7f - 9, which a digit may be; 0x7f leaves room for nothing. */
    return matches(text, "0000-00-", "\x76\x76\x76\x76\x7f\x76\x76\x7f") &&
           matches(text + 8, "00T00:00", "\x76\x76\x7f\x76\x76\x7f\x76\x76") &&
           matches(text + 16, ":00.0000", "\x7f\x76\x76\x7f\x76\x76\x76\x76") &&
           matches(text + 24, "00+00:00", "\x76\x76\x7f\x7f\x7f\x7f\x7f\x7f");
}

static int pair(const char *text)
{
    return (text[0] - '0') * 10 + text[1] - '0';
}

/* What our own messages have, without looking at any other form. */
static bool parse_stamp(const char *text, size_t bytes, struct coord_time *out)
{
    if (bytes != 32 || !is_stamp(text)) {
        return false;
    }
    int year = pair(text) * 100 + pair(text + 2);
    int month = pair(text + 5);
    int day = pair(text + 8);
    int64_t second = (int64_t)pair(text + 11) * 3600 + pair(text + 14) * 60 + pair(text + 17);
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > month_days(year, month) ||
        pair(text + 11) > 23 || pair(text + 14) > 59 || pair(text + 17) > 59) {
        return false;
    }
    int64_t micros = pair(text + 20) * 10000 + pair(text + 22) * 100 + pair(text + 24);
    *out = coord_time_utc(day_number(year, month, day) * DAY_US + second * SECOND_US + micros);
    return true;
}

bool coord_time_text_parse(const char *text, size_t bytes, struct coord_time *out)
{
    if (parse_stamp(text, bytes, out)) {
        return true;
    }
    if (bytes < 7) {
        return false;
    }
    size_t date = date_length(text, bytes);
    int64_t day = 0;
    if (date == 0 || date > bytes || !parse_date(text, date, &day)) {
        return false;
    }
    struct coord_time time = {day * DAY_US, 0, true};
    if (bytes > date) {
        size_t skip = date + character_bytes(text[date]);
        if (skip > bytes || !parse_clock((struct cursor){text + skip, text + bytes}, &time)) {
            return false;
        }
    }
    *out = time;
    return true;
}

/* ---- writing ---- */

/* Two digits. */
static char *put_pair(char *out, int value)
{
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
    return out + 2;
}

static char *put_micros(char *out, int micros)
{
    out = put_pair(out, micros / 10000);
    out = put_pair(out, micros / 100 % 100);
    return put_pair(out, micros % 100);
}

static char *put_date(char *out, int64_t day)
{
    /* The mean year of 400, so the estimate is at most one off. */
    int year = (int)((day + 719162) * 400 / 146097) + 1;
    while (year_start(year) > day) {
        year--;
    }
    while (year_start(year + 1) <= day) {
        year++;
    }
    int left = (int)(day - year_start(year));
    int month = left / 31 + 1; /* no month is longer; this one is at most one too early */
    while (month < 12 && left >= days_before(year, month + 1)) {
        month++;
    }
    out = put_pair(out, year / 100);
    out = put_pair(out, year % 100);
    *out++ = '-';
    out = put_pair(out, month);
    *out++ = '-';
    return put_pair(out, left - days_before(year, month) + 1);
}

static char *put_clock(char *out, int seconds)
{
    out = put_pair(out, seconds / 3600);
    *out++ = ':';
    out = put_pair(out, seconds / 60 % 60);
    *out++ = ':';
    return put_pair(out, seconds % 60);
}

static char *put_offset(char *out, int64_t offset_us)
{
    int64_t size = offset_us < 0 ? -offset_us : offset_us;
    const int seconds = (int)(size / SECOND_US);
    *out++ = offset_us < 0 ? '-' : '+';
    out = put_pair(out, seconds / 3600);
    *out++ = ':';
    out = put_pair(out, seconds / 60 % 60);
    if (size % (60 * SECOND_US) != 0) {
        *out++ = ':';
        out = put_pair(out, seconds % 60);
        if (size % SECOND_US != 0) {
            *out++ = '.';
            out = put_micros(out, (int)(size % SECOND_US));
        }
    }
    return out;
}

static size_t write_time(const struct coord_time *time, bool fraction, char *out)
{
    int64_t since_first = time->face_us - COORD_TIME_MIN_US;
    int64_t day = since_first / DAY_US + COORD_TIME_MIN_US / DAY_US;
    int64_t us = since_first % DAY_US;
    char *at = put_date(out, day);
    *at++ = 'T';
    at = put_clock(at, (int)(us / SECOND_US));
    if (fraction || us % SECOND_US != 0) {
        *at++ = '.';
        at = put_micros(at, (int)(us % SECOND_US));
    }
    if (!time->naive) {
        at = put_offset(at, time->offset_us);
    }
    *at = '\0';
    return (size_t)(at - out);
}

size_t coord_time_text_write(const struct coord_time *time, char *out)
{
    if (time->face_us < COORD_TIME_MIN_US || time->face_us > COORD_TIME_MAX_US) {
        *out = '\0';
        return 0;
    }
    return write_time(time, false, out);
}

static int64_t within_calendar(int64_t epoch_us)
{
    return epoch_us < COORD_TIME_MIN_US   ? COORD_TIME_MIN_US
           : epoch_us > COORD_TIME_MAX_US ? COORD_TIME_MAX_US
                                          : epoch_us;
}

size_t coord_time_text_stamp(int64_t epoch_us, char *out)
{
    struct coord_time time = coord_time_utc(within_calendar(epoch_us));
    return write_time(&time, true, out);
}

int64_t coord_time_at(int64_t wall, coord_ms now, coord_ms at)
{
    /* Longer than all the calendar, and both together are still a number. */
    const coord_ms longest = (coord_ms)1 << 49;
    const coord_ms apart = coord_ms_min(at > now ? at - now : now - at, longest);
    const int64_t us = (int64_t)apart * 1000;
    const int64_t from = within_calendar(wall);
    return within_calendar(at > now ? from + us : from - us);
}
