/* SPDX-License-Identifier: MIT
 * coord/uri.c - takes a URI apart in one pass over each of its parts, into the URI's own storage.
 *
 * It is stricter than RFC 3986 where laxness would let a part of a password become a host, a path
 * or a query that is shown: a raw '@' stands at most once, and nowhere behind the hosts.
 */
#include "coord/uri.h"

#include <assert.h>
#include <string.h>

static const char prefix[] = "coord.";

enum {
    PREFIX_BYTES = sizeof prefix - 1
};

/* A piece of the text that is read. */
struct span {
    const char *at;
    size_t bytes;
};

static const struct span hidden = {"***", 3};

/* A part of the storage that is written; it always has room (see TEXT_ROOM). */
struct sink {
    char *start;
    size_t used;
    size_t room;
};

/*
 * The storage, in this order: what is decoded, `rest`, `shown`, and the names of options that are
 * added later. Decoding adds one NUL for each part, `shown` "***" twice.
 */
enum {
    TEXT_ROOM = COORD_URI_MAX + 128
};
static_assert(COORD__URI_SPARE_AT == 3 * TEXT_ROOM, "three texts, and then what is spare");

struct reader {
    struct coord_uri *uri;
    struct sink decoded;
    struct sink rest;
    struct sink shown;
    struct coord_error *error;
};

static enum coord_err refuse(struct reader *r, const char *why)
{
    return coord_error_set(r->error, COORD_E_BAD_URI, "%s", why);
}

static size_t find(struct span s, char c)
{
    const char *found = s.bytes ? memchr(s.at, c, s.bytes) : NULL;
    return found ? (size_t)(found - s.at) : s.bytes;
}

/* Take `bytes` from the front. */
static struct span take(struct span *s, size_t bytes)
{
    COORD_ASSERT(bytes <= s->bytes);
    const struct span front = {s->at, bytes};
    s->at += bytes;
    s->bytes -= bytes;
    return front;
}

/* Take up to `c`, and drop the `c`. */
static struct span take_until(struct span *s, char c)
{
    const struct span front = take(s, find(*s, c));
    take(s, s->bytes > 0);
    return front;
}

static bool begins_with(struct span s, const char *text)
{
    const size_t bytes = strlen(text);
    return s.bytes >= bytes && memcmp(s.at, text, bytes) == 0;
}

static bool equals(struct span s, const char *text)
{
    return s.bytes == strlen(text) && begins_with(s, text);
}

static void put_byte(struct sink *sink, char c)
{
    COORD_ASSERT(sink->used < sink->room);
    sink->start[sink->used++] = c;
}

static void put(struct sink *sink, struct span s)
{
    for (size_t i = 0; i < s.bytes; i++) {
        put_byte(sink, s.at[i]);
    }
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Percent-decode into the storage. */
static enum coord_err decode(struct reader *r, struct span s, const char **out)
{
    const char *start = r->decoded.start + r->decoded.used;
    for (size_t i = 0; i < s.bytes; i++) {
        if (s.at[i] != '%') {
            put_byte(&r->decoded, s.at[i]);
            continue;
        }
        const int high = s.bytes - i > 2 ? digit_value(s.at[i + 1]) : -1;
        const int low = high < 0 ? -1 : digit_value(s.at[i + 2]);
        if (low < 0) {
            return refuse(r, "the URI has a '%' without two hex digits: write a '%' as %25");
        }
        if (high == 0 && low == 0) {
            return refuse(r, "the URI holds %00: no part of it can hold a zero byte");
        }
        put_byte(&r->decoded, (char)(unsigned char)(high * 16 + low));
        i += 2;
    }
    put_byte(&r->decoded, '\0');
    *out = start;
    return COORD_OK;
}

/* ---- the parts ---- */

static enum coord_err read_scheme(struct reader *r, struct span *rest)
{
    static const char missing[] =
        "the URI does not begin with a scheme: write one, such as redis://HOST or file:DIR";
    const size_t colon = find(*rest, ':');
    if (colon == 0 || colon == rest->bytes || colon > 32) {
        return refuse(r, missing);
    }
    const struct span scheme = take_until(rest, ':');
    r->uri->scheme = r->decoded.start;
    for (size_t i = 0; i < scheme.bytes; i++) {
        char c = scheme.at[i];
        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        const bool letter = c >= 'a' && c <= 'z';
        const bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (!letter && !(other && i > 0)) {
            return refuse(r, missing);
        }
        put_byte(&r->decoded, c);
    }
    put_byte(&r->decoded, '\0');
    return COORD_OK;
}

static enum coord_err read_port(struct reader *r, struct span digits, uint16_t *out)
{
    unsigned port = 0;
    for (size_t i = 0; i < digits.bytes; i++) {
        const char c = digits.at[i];
        port = c >= '0' && c <= '9' ? port * 10 + (unsigned)(c - '0') : 65536;
        if (port > 65535) {
            break;
        }
    }
    if (digits.bytes > 0 && (port == 0 || port > 65535)) {
        return refuse(r, "the port of the URI is not a number from 1 to 65535 (in a password write "
                         "'/' as %2f, '?' as %3f, '#' as %23)");
    }
    *out = (uint16_t)port;
    return COORD_OK;
}

/* The text between the brackets, decoded: an address, and perhaps '%' and a zone. */
static bool is_ipv6(const char *text)
{
    const size_t address = strspn(text, "0123456789abcdefABCDEF:.");
    if (address < 2 || memchr(text, ':', address) == NULL) {
        return false;
    }
    return text[address] == '\0' || (text[address] == '%' && text[address + 1] != '\0');
}

static enum coord_err read_host(struct reader *r, struct span s)
{
    if (r->uri->host_count == COORD_URI_HOSTS_MAX) {
        return refuse(r, "the URI names more than 8 hosts: name fewer");
    }
    struct coord_uri_host *host = &r->uri->hosts[r->uri->host_count];
    struct span name;
    const bool bracketed = begins_with(s, "[");
    if (bracketed) {
        take(&s, 1);
        if (find(s, ']') == s.bytes) {
            return refuse(r, "the URI has a '[' without ']': write an IPv6 address as [::1]");
        }
        name = take_until(&s, ']');
        if (s.bytes > 0 && s.at[0] != ':') {
            return refuse(r, "only a port can follow an IPv6 address in the URI: write [::1]:6379");
        }
    } else {
        name = take(&s, find(s, ':'));
    }
    take(&s, s.bytes > 0);
    if (find(s, ':') != s.bytes) {
        return refuse(r, "a host of the URI has more than one ':': write an IPv6 address as [::1]");
    }
    enum coord_err code = decode(r, name, &host->host);
    if (code == COORD_OK && bracketed && !is_ipv6(host->host)) {
        code = refuse(r, "what stands in brackets in the URI is no IPv6 address");
    }
    if (code == COORD_OK) {
        code = read_port(r, s, &host->port);
    }
    if (code == COORD_OK) {
        r->uri->host_count++;
    }
    return code;
}

static enum coord_err read_user(struct reader *r, struct span s)
{
    const size_t colon = find(s, ':');
    enum coord_err code = COORD_OK;
    if (colon > 0) {
        code = decode(r, take(&s, colon), &r->uri->user);
    }
    if (code == COORD_OK && s.bytes > 0) {
        take(&s, 1);
        code = decode(r, s, &r->uri->password);
    }
    return code;
}

/* user:password@host:port,host:port */
static enum coord_err read_authority(struct reader *r, struct span s)
{
    enum coord_err code = COORD_OK;
    const size_t at_sign = find(s, '@');
    if (at_sign < s.bytes) {
        code = read_user(r, take_until(&s, '@'));
        if (code == COORD_OK && find(s, '@') < s.bytes) {
            code = refuse(r, "the URI has more than one '@' before its hosts: write one that "
                             "belongs to the user or password as %40");
        }
    }
    bool more = s.bytes > 0;
    while (code == COORD_OK && more) {
        more = find(s, ',') < s.bytes;
        code = read_host(r, take_until(&s, ','));
    }
    for (size_t i = 0; code == COORD_OK && r->uri->host_count > 1 && i < r->uri->host_count; i++) {
        if (r->uri->hosts[i].host[0] == '\0') {
            code = refuse(r, "the URI has a ',' with no host beside it: name one, or drop it");
        }
    }
    return code;
}

static bool is_local(const char *scheme)
{
    return strcmp(scheme, "file") == 0 || strcmp(scheme, "memory") == 0 ||
           strcmp(scheme, "local") == 0;
}

/* Everything from the scheme's colon to the query. `user_bytes` is what stands before a '@'. */
static enum coord_err read_place(struct reader *r, struct span s, size_t *user_bytes)
{
    *user_bytes = 0;
    if (begins_with(s, "//")) {
        take(&s, 2);
        const struct span authority = take(&s, find(s, '/'));
        const size_t at_sign = find(authority, '@');
        *user_bytes = at_sign < authority.bytes ? at_sign : 0;
        const enum coord_err code = read_authority(r, authority);
        if (code != COORD_OK) {
            return code;
        }
        if (is_local(r->uri->scheme) && authority.bytes > 0 && !equals(authority, "localhost")) {
            return refuse(r, "a place on this host has no host name: write file:DIR or "
                             "file:///DIR");
        }
        if (find(s, '@') < s.bytes) {
            return refuse(r, "the URI has a '@' behind its hosts: write it as %40 (and in a "
                             "password '/' as %2f, '?' as %3f)");
        }
    } else if (!is_local(r->uri->scheme)) {
        return refuse(r, "the URI has no '//' behind its scheme: write redis://HOST, "
                         "postgresql://HOST; only file:, memory: and local: go without");
    }
    return s.bytes > 0 ? decode(r, s, &r->uri->path) : COORD_OK;
}

/* ---- the query ---- */

static enum coord_err read_option(struct reader *r, const char *key, struct span value,
                                  bool has_value)
{
    if (!has_value) {
        return coord_error_set(r->error, COORD_E_BAD_OPTION,
                               "the option coord.%.40s of the URI has no value: write "
                               "coord.KEY=VALUE",
                               key);
    }
    if (coord_uri_option(r->uri, key) != NULL) {
        return coord_error_set(r->error, COORD_E_BAD_OPTION,
                               "the option coord.%.40s stands twice in the URI: give it once", key);
    }
    const char *text = NULL;
    const enum coord_err code = decode(r, value, &text);
    return code != COORD_OK ? code : coord__uri_append_option(r->uri, key, text, r->error);
}

/* The names of libpq's that hold no secret. Anything else may be a piece of one. */
static bool may_be_shown(const char *key)
{
    static const char *const harmless[] = {"host",
                                           "hostaddr",
                                           "port",
                                           "dbname",
                                           "sslmode",
                                           "application_name",
                                           "connect_timeout",
                                           "sslcert",
                                           "target_session_attrs"};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        if (strcmp(harmless[i], key) == 0) {
            return true;
        }
    }
    return strncmp(key, prefix, PREFIX_BYTES) == 0;
}

/* One KEY=VALUE: ours is taken, anything else is left to the server's library. */
static enum coord_err read_pair(struct reader *r, struct span pair, bool *hid)
{
    const struct span whole = pair;
    const bool has_value = find(pair, '=') < pair.bytes;
    const struct span raw_key = take_until(&pair, '=');
    const char *key = NULL;
    const size_t before = r->decoded.used;
    enum coord_err code = decode(r, raw_key, &key);
    if (code != COORD_OK) {
        return code;
    }
    if (may_be_shown(key)) {
        put_byte(&r->shown, memchr(r->shown.start, '?', r->shown.used) ? '&' : '?');
        put(&r->shown, whole);
    } else {
        *hid = true;
    }
    if (strncmp(key, prefix, PREFIX_BYTES) == 0) {
        return read_option(r, key + PREFIX_BYTES, pair, has_value);
    }
    r->decoded.used = before; /* the key was only looked at */
    put_byte(&r->rest, r->uri->query ? '&' : '?');
    if (r->uri->query == NULL) {
        r->uri->query = r->rest.start + r->rest.used;
    }
    put(&r->rest, whole);
    return COORD_OK;
}

static enum coord_err read_query(struct reader *r, struct span query)
{
    bool hid = false;
    while (query.bytes > 0) {
        const struct span pair = take_until(&query, '&');
        const enum coord_err code = pair.bytes > 0 ? read_pair(r, pair, &hid) : COORD_OK;
        if (code != COORD_OK) {
            return code;
        }
    }
    if (hid) {
        put_byte(&r->shown, memchr(r->shown.start, '?', r->shown.used) ? '&' : '?');
        put(&r->shown, hidden);
    }
    return COORD_OK;
}

static enum coord_err check_text(struct reader *r, struct span text)
{
    if (text.bytes > COORD_URI_MAX) {
        return refuse(r, "the URI is longer than 4096 bytes");
    }
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.at[i];
        if (c < 0x20 || c == 0x7f) {
            return refuse(r, "the URI holds a control character: write it as % and two hex digits");
        }
    }
    return COORD_OK;
}

/* Everything before the query, into `rest` as it is and into `shown` without the user. */
static void write_place(struct reader *r, struct span place, size_t user_bytes)
{
    put(&r->rest, place);
    if (user_bytes > 0) {
        put(&r->shown, take(&place, strlen(r->uri->scheme) + strlen("://")));
        put(&r->shown, hidden);
        take(&place, user_bytes);
    }
    put(&r->shown, place);
}

static enum coord_err read_whole(struct reader *r, struct span text)
{
    const enum coord_err bad = check_text(r, text);
    if (bad != COORD_OK) {
        return bad;
    }
    struct span query = text;
    const struct span place = take_until(&query, '?');
    struct span after_scheme = place;
    size_t user_bytes = 0;
    enum coord_err code = read_scheme(r, &after_scheme);
    if (code == COORD_OK) {
        code = read_place(r, after_scheme, &user_bytes);
    }
    if (code == COORD_OK && begins_with(after_scheme, "//") && find(query, '@') < query.bytes) {
        code = refuse(r, "the URI has a '@' in its query: write it as %40 (and in a password '?' "
                         "as %3f)");
    }
    if (code == COORD_OK) {
        write_place(r, place, user_bytes);
        code = read_query(r, query);
    }
    return code;
}

enum coord_err coord_uri_parse(const char *text, struct coord_uri *out, struct coord_error *error)
{
    COORD_ASSERT(text != NULL);
    COORD_ASSERT(out != NULL);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < COORD_URI_HOSTS_MAX; i++) {
        out->hosts[i].host = "";
    }
    struct reader reader = {.uri = out,
                            .decoded = {out->storage, 0, TEXT_ROOM},
                            .rest = {out->storage + TEXT_ROOM, 0, TEXT_ROOM},
                            .shown = {out->storage + (size_t)2 * TEXT_ROOM, 0, TEXT_ROOM},
                            .error = error};
    const enum coord_err code = read_whole(&reader, (struct span){text, strlen(text)});
    if (code != COORD_OK) {
        memset(out, 0, sizeof *out);
        return code;
    }
    put_byte(&reader.rest, '\0');
    put_byte(&reader.shown, '\0');
    out->rest = reader.rest.start;
    out->shown = reader.shown.start;
    return COORD_OK;
}
