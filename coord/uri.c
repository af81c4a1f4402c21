/* SPDX-License-Identifier: MIT
 * coord/uri.c - takes a URI apart in one pass over each of its parts, into the URI's own storage.
 *
 * It is stricter than RFC 3986 where laxness would let a part of a password become a host, a path
 * or a query that is shown: a raw '@' stands at most once, and nowhere behind the hosts.
 */
#include "coord/uri.h"

#include <string.h>

static const char prefix[] = "coord.";
static const char hidden[] = "***";

enum { PREFIX_BYTES = sizeof prefix - 1, HIDDEN_BYTES = sizeof hidden - 1 };

/* A piece of the text that is read. */
struct span {
    const char *at;
    size_t bytes;
};

struct reader {
    struct coord_uri *uri;
    size_t used; /* of uri->storage */
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
    if (s->bytes > 0) {
        take(s, 1);
    }
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

/* ---- storage: pieces are appended; a text ends with end_text() ---- */

static void put_byte(struct reader *r, char c)
{
    COORD_ASSERT(r->used < sizeof r->uri->storage);
    r->uri->storage[r->used++] = c;
}

static void put(struct reader *r, struct span s)
{
    COORD_ASSERT(s.bytes <= sizeof r->uri->storage - r->used);
    if (s.bytes > 0) {
        memcpy(r->uri->storage + r->used, s.at, s.bytes);
    }
    r->used += s.bytes;
}

static void put_text(struct reader *r, const char *text)
{
    put(r, (struct span){text, strlen(text)});
}

static const char *here(const struct reader *r)
{
    return r->uri->storage + r->used;
}

static void end_text(struct reader *r)
{
    put_byte(r, '\0');
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
    const char *start = here(r);
    for (size_t i = 0; i < s.bytes; i++) {
        if (s.at[i] != '%') {
            put_byte(r, s.at[i]);
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
        put_byte(r, (char)(unsigned char)(high * 16 + low));
        i += 2;
    }
    end_text(r);
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
    r->uri->scheme = here(r);
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
        put_byte(r, c);
    }
    end_text(r);
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
    struct span name = s;
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
    if (s.bytes > 0) {
        take(&s, 1);
    }
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
    return code;
}

static bool is_local(const char *scheme)
{
    return strcmp(scheme, "file") == 0 || strcmp(scheme, "memory") == 0 ||
           strcmp(scheme, "local") == 0;
}

/* Everything from the scheme's colon to the query. `hosts_end` is where the shown part begins. */
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

static struct coord_uri_option *find_option(struct coord_uri *uri, const char *key)
{
    for (size_t i = 0; i < uri->option_count; i++) {
        if (strcmp(uri->options[i].key, key) == 0) {
            return &uri->options[i];
        }
    }
    return NULL;
}

static enum coord_err check_key(const struct coord_uri *uri, const char *key,
                                struct coord_error *error)
{
    if (key[0] == '\0') {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "an option has no name: write KEY=VALUE, such as ttl=10s");
    }
    if (uri->option_count == COORD_URI_OPTIONS_MAX) {
        return coord_error_set(error, COORD_E_BAD_OPTION, "more than %d options: give fewer",
                               COORD_URI_OPTIONS_MAX);
    }
    return COORD_OK;
}

static enum coord_err read_option(struct reader *r, const char *key, struct span value,
                                  bool has_value)
{
    struct coord_uri *uri = r->uri;
    if (!has_value) {
        return coord_error_set(r->error, COORD_E_BAD_OPTION,
                               "the option coord.%.40s of the URI has no value: write "
                               "coord.KEY=VALUE",
                               key);
    }
    if (find_option(uri, key) != NULL) {
        return coord_error_set(r->error, COORD_E_BAD_OPTION,
                               "the option coord.%.40s stands twice in the URI: give it once", key);
    }
    enum coord_err code = check_key(uri, key, r->error);
    struct coord_uri_option *option = &uri->options[uri->option_count];
    if (code == COORD_OK) {
        code = decode(r, value, &option->value);
    }
    if (code == COORD_OK) {
        option->key = key;
        uri->option_count++;
    }
    return code;
}

/* The names of libpq's that hold no secret. Anything else may be a piece of one. */
static bool may_be_shown(const char *key)
{
    static const char *const harmless[] = {
        "host",    "hostaddr", "port", "dbname", "sslmode", "application_name", "connect_timeout",
        "sslcert", "target_session_attrs"};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        if (strcmp(harmless[i], key) == 0) {
            return true;
        }
    }
    return strncmp(key, prefix, PREFIX_BYTES) == 0;
}

/* What is done with the pairs of a query, as they are looked at once for each purpose. */
enum purpose { TAKE_OPTIONS, KEEP_OTHERS, SHOW };

/* One pair; `first` says whether it is the first that is written. */
static enum coord_err do_pair(struct reader *r, enum purpose purpose, struct span pair, bool *first,
                              bool *hid)
{
    const struct span whole = pair;
    const bool has_value = find(pair, '=') < pair.bytes;
    const struct span raw_key = take_until(&pair, '=');
    const size_t before = r->used;
    const char *key = NULL;
    enum coord_err code = decode(r, raw_key, &key);
    if (code != COORD_OK) {
        return code;
    }
    const bool ours = strncmp(key, prefix, PREFIX_BYTES) == 0;
    const bool shown = may_be_shown(key);
    if (purpose == TAKE_OPTIONS && ours) {
        return read_option(r, key + PREFIX_BYTES, pair, has_value);
    }
    r->used = before; /* the key was only looked at */
    if (purpose == SHOW && !shown) {
        *hid = true;
    } else if (purpose == SHOW || (purpose == KEEP_OTHERS && !ours)) {
        put_byte(r, *first ? '?' : '&');
        put(r, whole);
        *first = false;
    }
    return COORD_OK;
}

static enum coord_err do_query(struct reader *r, enum purpose purpose, struct span query)
{
    bool first = true;
    bool hid = false;
    while (query.bytes > 0) {
        const struct span pair = take_until(&query, '&');
        const enum coord_err code =
            pair.bytes > 0 ? do_pair(r, purpose, pair, &first, &hid) : COORD_OK;
        if (code != COORD_OK) {
            return code;
        }
    }
    if (hid) {
        put_byte(r, first ? '?' : '&');
        put_text(r, hidden);
    }
    return COORD_OK;
}

/* The texts that are made of the whole: what a server's library gets, and what people see. */
static enum coord_err write_whole(struct reader *r, struct span place, struct span query,
                                  size_t scheme_bytes, size_t user_bytes)
{
    r->uri->rest = here(r);
    put(r, place);
    const char *kept = here(r);
    enum coord_err code = do_query(r, KEEP_OTHERS, query);
    if (code != COORD_OK) {
        return code;
    }
    if (here(r) != kept) {
        r->uri->query = kept + 1;
    }
    end_text(r);

    r->uri->shown = here(r);
    if (user_bytes > 0) {
        put(r, take(&place, scheme_bytes + 1 + 2));
        put_text(r, hidden);
        take(&place, user_bytes);
    }
    put(r, place);
    code = do_query(r, SHOW, query);
    end_text(r);
    return code;
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

static enum coord_err read_whole(struct reader *r, const char *text)
{
    struct span place = {text, strnlen_bounded(text)};
    enum coord_err code = check_text(r, place);
    if (code != COORD_OK) {
        return code;
    }
    struct span query = place;
    place = take_until(&query, '?');

    struct span after_scheme = place;
    size_t user_bytes = 0;
    code = read_scheme(r, &after_scheme);
    if (code == COORD_OK) {
        code = read_place(r, after_scheme, &user_bytes);
    }
    if (code == COORD_OK && begins_with(after_scheme, "//") && find(query, '@') < query.bytes) {
        code = refuse(r, "the URI has a '@' in its query: write it as %40 (and in a password '?' "
                         "as %3f)");
    }
    if (code == COORD_OK) {
        code = do_query(r, TAKE_OPTIONS, query);
    }
    if (code == COORD_OK) {
        code = write_whole(r, place, query, strlen(r->uri->scheme), user_bytes);
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
    struct reader reader = {.uri = out, .error = error};
    const enum coord_err code = read_whole(&reader, text);
    if (code != COORD_OK) {
        memset(out, 0, sizeof *out);
    }
    return code;
}
