/* SPDX-License-Identifier: MIT
 * coord/elector.c - the base object: owns the role state, carries requests to its backend.
 */
#include "coord/elector.h"

#include "coord/duration.h"
#include "coord/escape.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC = 0x656c6374,
    ROUNDS = 8
};

struct coord_elector {
    uint32_t magic;
    const struct coord_backend_ops *ops;
    void *state;
    struct coord_lease lease;
    struct coord_log log;
    bool in_request;     /* a backend that answers here breaks its contract */
    enum coord_err told; /* the failure that the log has heard of */

    char name[COORD_ESCAPED_MAX];
    char identity[COORD_ESCAPED_MAX];
    char owner[COORD_OWNER_HEX];
    unsigned char raw_name[COORD_NAME_MAX];
    size_t raw_name_bytes;
    unsigned char metadata[COORD_METADATA_MAX];
    size_t metadata_bytes;
};

#ifndef COORD_VERSION
#define COORD_VERSION "0.0.0"
#endif

const char *coord_version(void)
{
    return COORD_VERSION;
}

static void check(const struct coord_elector *elector)
{
    COORD_ASSERT(elector != NULL);
    COORD_ASSERT(elector->magic == MAGIC);
}

/* ---------------------------------------------------------------- configuration */

static bool among(const char *key, const char *const *names)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(key, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum coord_err check_options(const struct coord_backend_ops *ops,
                                    const struct coord_uri *uri, struct coord_error *error)
{
    static const char *const ours[] = {"ttl", "grace", "priority", NULL};
    for (size_t i = 0; uri != NULL && i < uri->option_count; i++) {
        const char *key = uri->options[i].key;
        if (!among(key, ours) && !among(key, ops->options)) {
            return coord_error_set(error, COORD_E_UNKNOWN_OPTION,
                                   "the %s elector has no option coord.%s: remove it, or see the "
                                   "options in the guide",
                                   ops->name, key);
        }
    }
    return COORD_OK;
}

static bool given(const struct coord_uri *uri, const char *key)
{
    return uri != NULL && coord_uri_option(uri, key) != NULL;
}

static enum coord_err duration_option(const struct coord_uri *uri, const char *key, coord_ms *value,
                                      struct coord_error *error)
{
    const char *text = uri != NULL && *value == 0 ? coord_uri_option(uri, key) : NULL;
    return text != NULL ? coord_duration_parse(text, value, error) : COORD_OK;
}

static enum coord_err rank_option(const struct coord_uri *uri, unsigned *rank,
                                  struct coord_error *error)
{
    const char *text = uri != NULL && *rank == 0 ? coord_uri_option(uri, "priority") : NULL;
    if (text == NULL) {
        return *rank < 1000 ? COORD_OK
                            : coord_error_set(error, COORD_E_BAD_ARGUMENT,
                                              "a rank of %u is out of range: use 0 to 999", *rank);
    }
    unsigned value = 0;
    size_t digits = 0;
    while (text[digits] >= '0' && text[digits] <= '9' && digits < 3) {
        value = value * 10 + (unsigned)(text[digits++] - '0');
    }
    if (digits == 0 || text[digits] != '\0') {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "coord.priority=%s is not a rank: use 0 (first) to 999", text);
    }
    *rank = value;
    return COORD_OK;
}

static enum coord_err lease_config(const struct coord_backend_ops *ops,
                                   const struct coord_elector_config *config,
                                   struct coord_lease_config *out, struct coord_error *error)
{
    coord_ms ttl = config->ttl;
    coord_ms grace = config->grace;
    unsigned rank = config->rank;
    enum coord_err rc = check_options(ops, config->uri, error);
    if (rc == COORD_OK) {
        rc = duration_option(config->uri, "ttl", &ttl, error);
    }
    if (rc == COORD_OK) {
        rc = duration_option(config->uri, "grace", &grace, error);
    }
    if (rc == COORD_OK && grace == 0 && given(config->uri, "grace")) {
        rc = coord_error_set(error, COORD_E_BAD_TTL,
                             "coord.grace=0 leaves no time for the work to end: give some, or "
                             "leave it out for a fifth of the ttl");
    }
    if (rc == COORD_OK) {
        rc = rank_option(config->uri, &rank, error);
    }
    const bool default_ttl = ttl == 0 && !given(config->uri, "ttl");
    if (rc == COORD_OK) {
        rc = coord_timing_derive(default_ttl ? ops->default_ttl : ttl, grace, &out->timing, error);
    }
    out->rank = rank;
    out->hint_jitter = ops->hint_jitter;
    out->seed = config->seed;
    out->explicit_ack = config->explicit_ack;
    return rc;
}

static enum coord_err escape_word(const char *what, const void *bytes, size_t count, char *out,
                                  struct coord_error *error)
{
    if (bytes == NULL || coord_escape(bytes, count, out) != COORD_OK) {
        return coord_error_set(error, COORD_E_BAD_NAME,
                               "the %s has %zu bytes: use 1 to %d, of any value", what,
                               bytes == NULL ? 0 : count, COORD_NAME_MAX);
    }
    return COORD_OK;
}

static void write_hex(const unsigned char *bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < COORD_OWNER_BYTES; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * COORD_OWNER_BYTES] = '\0';
}

static enum coord_err fill_in(struct coord_elector *elector,
                              const struct coord_elector_config *config, struct coord_error *error)
{
    enum coord_err rc = escape_word("name", config->name, config->name_bytes, elector->name, error);
    if (rc == COORD_OK) {
        rc = escape_word("identity", config->identity, config->identity_bytes, elector->identity,
                         error);
    }
    if (rc == COORD_OK && config->metadata_bytes > COORD_METADATA_MAX) {
        rc = coord_error_set(error, COORD_E_BAD_METADATA,
                             "the metadata has %zu bytes: use at most %d, such as an address",
                             config->metadata_bytes, COORD_METADATA_MAX);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    memcpy(elector->raw_name, config->name, config->name_bytes);
    elector->raw_name_bytes = config->name_bytes;
    if (config->metadata_bytes > 0) {
        memcpy(elector->metadata, config->metadata, config->metadata_bytes);
    }
    elector->metadata_bytes = config->metadata_bytes;
    write_hex(config->owner, elector->owner);
    elector->log = config->log;
    return COORD_OK;
}

static enum coord_err check_versions(const struct coord_backend_ops *ops,
                                     const struct coord_elector_config *config,
                                     struct coord_error *error)
{
    if (ops->abi != COORD_BACKEND_ABI || ops->size != sizeof *ops ||
        config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the %s elector and libcoord %s are of different versions: install "
                               "one version of both",
                               ops->name, COORD_VERSION);
    }
    return COORD_OK;
}

enum coord_err coord_elector_new(const struct coord_backend_ops *ops,
                                 const struct coord_elector_config *config, coord_ms now,
                                 struct coord_elector **out, struct coord_error *error)
{
    COORD_ASSERT(ops != NULL);
    COORD_ASSERT(config != NULL);
    COORD_ASSERT(out != NULL);
    struct coord_lease_config lease = {.rank = 0};
    enum coord_err rc = check_versions(ops, config, error);
    if (rc == COORD_OK) {
        rc = lease_config(ops, config, &lease, error);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    /* One block: the base, then the backend's state at the next boundary fit for any type. */
    const size_t boundary = alignof(max_align_t);
    const size_t base = (sizeof(struct coord_elector) + boundary - 1) / boundary * boundary;
    struct coord_elector *elector = calloc(1, base + ops->state_bytes);
    if (elector == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    elector->magic = MAGIC;
    elector->ops = ops;
    elector->state = (unsigned char *)elector + base;
    coord_lease_init(&elector->lease, &lease, now);
    rc = fill_in(elector, config, error);
    if (rc == COORD_OK) {
        rc = ops->init(elector, config, error);
    }
    if (rc != COORD_OK) {
        free(elector);
        return rc;
    }
    *out = elector;
    return COORD_OK;
}

void coord_elector_free(struct coord_elector *elector, bool forked)
{
    if (elector == NULL) {
        return;
    }
    check(elector);
    elector->ops->fini(elector, forked);
    elector->magic = 0;
    free(elector);
}

/* ---------------------------------------------------------------- driving */

struct coord_lease *coord_elector_lease(struct coord_elector *elector)
{
    check(elector);
    return &elector->lease;
}

const struct coord_lease *coord__elector_machine(const struct coord_elector *elector)
{
    check(elector);
    return &elector->lease;
}

/* A trouble is told when it begins, when its cause changes, and when it is over; not each time. */
static void tell_failures(struct coord_elector *elector, coord_ms now)
{
    const struct coord_error *error = &elector->lease.error;
    if (error->code == elector->told) {
        return;
    }
    elector->told = error->code;
    if (error->code == COORD_OK) {
        coord_log_write(&elector->log, now, COORD_LOG_INFO, COORD_OK, elector->name,
                        "the store answers again");
    } else {
        coord_log_write(&elector->log, now, COORD_LOG_WARN, error->code, elector->name, "%s",
                        error->text);
    }
}

void coord_elector_process(struct coord_elector *elector, coord_ms now)
{
    check(elector);
    const struct coord_backend_ops *ops = elector->ops;
    /* A store on this host answers without waiting: a few rounds settle it in one call. */
    for (int round = 0; round < ROUNDS; round++) {
        ops->process(elector, now);
        if (coord_lease_tick(&elector->lease, now)) {
            ops->abandon(elector, now);
        }
        struct coord_request request;
        const bool sent = coord_lease_next(&elector->lease, now, &request);
        if (sent) {
            elector->in_request = true;
            ops->request(elector, &request, now);
            elector->in_request = false;
        }
        if (!sent && ops->deadline(elector) > now) {
            break;
        }
    }
    tell_failures(elector, now);
}

coord_ms coord_elector_deadline(struct coord_elector *elector)
{
    check(elector);
    return coord_ms_min(coord_lease_deadline(&elector->lease), elector->ops->deadline(elector));
}

size_t coord_elector_descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    check(elector);
    const size_t count = elector->ops->descriptors(elector, out);
    COORD_ASSERT(count <= COORD_DESCRIPTORS_MAX);
    return count;
}

bool coord_elector_leading_at(const struct coord_elector *elector, coord_ms now)
{
    check(elector);
    return coord_lease_leading_at(&elector->lease, now);
}

const struct coord_timing *coord_elector_timing(const struct coord_elector *elector)
{
    check(elector);
    return &elector->lease.config.timing;
}

/* ---------------------------------------------------------------- the backend's side */

void *coord_backend_state(struct coord_elector *elector)
{
    check(elector);
    return elector->state;
}

void coord_backend_reply(struct coord_elector *elector, const struct coord_reply *reply,
                         coord_ms now)
{
    check(elector);
    COORD_ASSERT(!elector->in_request);
    coord_lease_reply(&elector->lease, reply, now);
}

bool coord_backend_renew_along(struct coord_elector *elector, coord_ms now)
{
    check(elector);
    return coord_lease_renew_along(&elector->lease, now);
}

void coord_backend_hint(struct coord_elector *elector, coord_ms now)
{
    check(elector);
    coord_lease_hint(&elector->lease, now);
}

void coord_backend_lost(struct coord_elector *elector, const struct coord_error *why, coord_ms now)
{
    check(elector);
    COORD_ASSERT(!elector->in_request);
    coord_lease_lost(&elector->lease, why, now);
}

const char *coord_backend_name(const struct coord_elector *elector)
{
    check(elector);
    return elector->name;
}

const char *coord_backend_identity(const struct coord_elector *elector)
{
    check(elector);
    return elector->identity;
}

const char *coord_backend_owner(const struct coord_elector *elector)
{
    check(elector);
    return elector->owner;
}

const void *coord_backend_raw_name(const struct coord_elector *elector, size_t *bytes)
{
    check(elector);
    *bytes = elector->raw_name_bytes;
    return elector->raw_name;
}

const void *coord_backend_metadata(const struct coord_elector *elector, size_t *bytes)
{
    check(elector);
    *bytes = elector->metadata_bytes;
    return elector->metadata;
}

const struct coord_log *coord_backend_log(const struct coord_elector *elector)
{
    check(elector);
    return &elector->log;
}

coord_ms coord_backend_lease(const struct coord_elector *elector)
{
    check(elector);
    return elector->lease.config.timing.lease;
}

coord_ms coord_backend_attempt(const struct coord_elector *elector)
{
    check(elector);
    return elector->lease.config.timing.attempt;
}
