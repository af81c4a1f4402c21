/* SPDX-License-Identifier: MIT
 * tests/support/fleet.c - see fleet.h.
 */
#include "tests/support/fleet.h"

#include "tests/support/support.h"

#include <poll.h>
#include <time.h>

coord_ms fleet_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (coord_ms)now.tv_sec * 1000 + (coord_ms)now.tv_nsec / 1000000;
}

/* Leases and fences of servers follow it: a failure on a machine that sets it is another one. */
static long long wall_less_ours(void)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (long long)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - (long long)fleet_now();
}

static void note(void *ctx, const struct coord_log_record *record)
{
    struct fleet *fleet = ctx;
    if (fleet->log_bytes > sizeof fleet->log - 1024) { /* the last records tell most */
        fleet->log_bytes -= sizeof fleet->log / 2;
        memmove(fleet->log, fleet->log + sizeof fleet->log / 2, fleet->log_bytes + 1);
    }
    const size_t room = sizeof fleet->log - fleet->log_bytes;
    const int bytes = snprintf(fleet->log + fleet->log_bytes, room, "%s %s: %s\n",
                               coord_err_name(record->code), record->subject, record->text);
    if (bytes > 0 && (size_t)bytes < room) {
        fleet->log_bytes += (size_t)bytes;
    }
}

void fleet_init(struct fleet *fleet, const struct coord_backend_ops *ops)
{
    memset(fleet, 0, sizeof *fleet);
    fleet->ops = ops;
    fleet->wall_ms = wall_less_ours();
}

void fleet_drop(struct fleet_member *member)
{
    coord_elector_free(member->elector, false);
    member->elector = NULL;
}

void fleet_fini(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        fleet_drop(&fleet->members[i]);
    }
}

struct fleet_member *fleet_add(struct fleet *fleet, const struct fleet_member_options *options)
{
    static struct coord_uri uri;
    assert_true(fleet->count < FLEET_MEMBERS);
    struct fleet_member *member = &fleet->members[fleet->count];
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    if (coord_uri_parse(options->uri, &uri, &fleet->error) != COORD_OK) {
        return NULL;
    }
    config.uri = &uri;
    config.name = options->name;
    config.name_bytes = strlen(options->name);
    config.identity = options->identity;
    config.identity_bytes = strlen(options->identity);
    config.metadata = options->metadata;
    config.metadata_bytes = options->metadata != NULL ? strlen(options->metadata) : 0;
    config.ttl = options->ttl;
    config.rank = options->rank;
    config.share = options->private ? NULL : &fleet->share;
    config.resolver = options->resolver;
    config.log = (struct coord_log){.fn = note, .ctx = fleet, .level = COORD_LOG_DEBUG};
    config.seed = (uint64_t)getpid() * 31 + fleet->count;
    memcpy(config.owner, &config.seed, sizeof config.seed);
    config.owner[15] = (unsigned char)(fleet->count + 1);
    if (coord_elector_new(fleet->ops, &config, fleet_now(), &member->elector, &fleet->error) !=
        COORD_OK) {
        return NULL;
    }
    member->lease = coord_elector_lease(member->elector);
    snprintf(member->name, sizeof member->name, "%s", options->name);
    fleet->count++;
    return member;
}

static void tell(const struct fleet *fleet)
{
    print_message("%s", fleet->log);
    print_message("the wall clock moved by %lld ms against ours\n",
                  wall_less_ours() - fleet->wall_ms);
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_member *m = &fleet->members[i];
        struct coord_explanation why;
        if (m->elector != NULL) {
            coord_elector_explain(m->elector, fleet_now(), &why);
            print_message("fence %llu, seen %llu, attempt %llu\n", (unsigned long long)m->fence,
                          (unsigned long long)m->lease->seen,
                          (unsigned long long)m->lease->attempt);
            print_message("member %zu: %s: %s (outstanding: verb %d; last outcome %d; next try in "
                          "%lld ms)\n",
                          i, coord_reason_name(why.reason), why.text, (int)m->lease->request.verb,
                          (int)m->lease->last_outcome,
                          (long long)m->lease->try_at - (long long)fleet_now());
        }
    }
}

static uint64_t highest_fence(const struct fleet *fleet, const char *name)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_member *m = &fleet->members[i];
        if (strcmp(m->name, name) == 0 && m->fence > highest) {
            highest = m->fence;
        }
    }
    return highest;
}

static void take_edges(struct fleet *fleet, struct fleet_member *member, coord_ms now)
{
    struct coord_edge edge;
    while (coord_lease_next_edge(member->lease, &edge)) {
        if (edge.kind == COORD_EDGE_STARTED) {
            member->started++;
            if (edge.fence <= highest_fence(fleet, member->name)) {
                tell(fleet);
                fail_msg("fence %llu after %llu", (unsigned long long)edge.fence,
                         (unsigned long long)highest_fence(fleet, member->name));
            }
            member->fence = edge.fence;
        } else if (edge.kind == COORD_EDGE_STOPPED) {
            member->stopped++;
        }
        coord_lease_edge_done(member->lease, now);
    }
}

static void assert_one_leader(const struct fleet *fleet)
{
    const coord_ms now = fleet_now();
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_member *a = &fleet->members[i];
        for (size_t k = i + 1; k < fleet->count; k++) {
            const struct fleet_member *b = &fleet->members[k];
            if (a->elector != NULL && b->elector != NULL && strcmp(a->name, b->name) == 0) {
                assert_false(coord_elector_leading_at(a->elector, now) &&
                             coord_elector_leading_at(b->elector, now));
            }
        }
    }
}

/* @return when something is due. */
static coord_ms step(struct fleet *fleet)
{
    coord_ms due = COORD_NEVER;
    for (size_t i = 0; i < fleet->count; i++) {
        struct fleet_member *member = &fleet->members[i];
        if (member->elector == NULL || member->stuck) {
            continue;
        }
        const coord_ms now = fleet_now();
        coord_elector_process(member->elector, now);
        take_edges(fleet, member, now);
        assert_one_leader(fleet);
    }
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_member *member = &fleet->members[i];
        if (member->elector != NULL && !member->stuck) {
            due = coord_ms_min(due, coord_elector_deadline(member->elector));
            if (coord_lease_edge_pending(member->lease)) {
                due = 0;
            }
        }
    }
    return due;
}

static void wait_until(struct fleet *fleet, coord_ms due)
{
    struct pollfd fds[FLEET_MEMBERS * COORD_DESCRIPTORS_MAX];
    nfds_t count = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        struct coord_descriptor wanted[COORD_DESCRIPTORS_MAX];
        if (fleet->members[i].elector == NULL || fleet->members[i].stuck) {
            continue;
        }
        const size_t n = coord_elector_descriptors(fleet->members[i].elector, wanted);
        for (size_t k = 0; k < n; k++) {
            fds[count].fd = wanted[k].fd;
            fds[count].events =
                (short)((wanted[k].read ? POLLIN : 0) | (wanted[k].write ? POLLOUT : 0));
            count++;
        }
    }
    const coord_ms now = fleet_now();
    const coord_ms wait = coord_ms_min(coord_ms_sub(due, now), 50);
    poll(fds, count, (int)wait);
}

void fleet_until(struct fleet *fleet, fleet_condition condition, void *ctx)
{
    const coord_ms end = fleet_now() + FLEET_GUARD;
    for (;;) {
        const coord_ms due = step(fleet);
        if (condition(ctx)) {
            return;
        }
        if (fleet_now() > end) {
            tell(fleet);
            fail_msg("%s", "it did not come");
        }
        wait_until(fleet, due);
    }
}

void fleet_drive(struct fleet *fleet, coord_ms duration)
{
    const coord_ms end = fleet_now() + duration;
    while (fleet_now() < end) {
        wait_until(fleet, coord_ms_min(step(fleet), end));
    }
}

bool fleet_leads(void *ctx)
{
    const struct fleet_member *member = ctx;
    return coord_elector_leading_at(member->elector, fleet_now());
}

bool fleet_leads_not(void *ctx)
{
    return !fleet_leads(ctx);
}

bool fleet_settled(void *ctx)
{
    const struct fleet_member *member = ctx;
    return coord_lease_settled(member->lease);
}

enum coord_reason fleet_reason(struct fleet_member *member)
{
    coord_ms for_ms = 0;
    return coord_lease_reason(member->lease, fleet_now(), &for_ms);
}

static bool query_answered(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->query_outcome != 0;
}

enum coord_outcome fleet_query(struct fleet *fleet, struct fleet_member *member,
                               const struct coord_request *query)
{
    assert_int_equal(coord_lease_query(member->lease, query, fleet_now()), COORD_OK);
    fleet_until(fleet, query_answered, member);
    return member->lease->query_outcome;
}

bool fleet_logged(const struct fleet *fleet, const char *text)
{
    return strstr(fleet->log, text) != NULL;
}
