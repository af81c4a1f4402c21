/* SPDX-License-Identifier: MIT
 * tests/support/many.c - a fleet of two hundred in one process.
 */
#include "tests/support/many.h"

#include "electors/memory.h"
#include "runtime/member.h"
#include "tests/support/support.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MEMBERS = 40, /* each hears each, and all of it is slow there */
#else
    MEMBERS = 200,
#endif
    CRASHED = 5,
    LEFT = 10,
    TIMEOUT = 6000,  /* ms: T */
    GUARD = 90000,   /* ms: a test that hangs has failed */
    SLOW_INBOX = 64, /* messages */
    NAME = 16
};

struct many {
    struct coord_runtime *runtime;
    struct coord_election *election;
    struct coord_member *member[MEMBERS]; /* the first one leads; NULL: gone */
    struct coord_member *observer;
    struct coord_bus *slow; /* nobody reads it */
    atomic_uint silent;     /* as the observer was told */
    atomic_uint opened;
};

static void hear(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    struct many *many = ctx;
    (void)member;
    if (event->kind == COORD_AGENT_EVENT_FLEET) {
        const enum coord_event_kind kind = event->fleet->kind;
        atomic_fetch_add(&many->silent, kind == COORD_EVENT_PEER_SILENT ? 1 : 0);
        atomic_fetch_add(&many->opened, kind == COORD_EVENT_ORPHAN_OPENED ? 1 : 0);
    }
}

/* ---------------------------------------------------------------- waiting */

typedef bool (*many_fn)(struct many *many, coord_ms since);

static void wait_until(struct many *many, many_fn holds, coord_ms since, const char *what)
{
    const coord_ms until = coord_clock_now() + GUARD;
    while (!holds(many, since)) {
        if (coord_clock_now() >= until) {
            fail_msg("not in time: %s", what);
        }
        poll(NULL, 0, 50);
    }
}

/* How many the observer has heard since then, and that are well. */
static size_t well_since(struct many *many, coord_ms since)
{
    struct coord_member_peers *peers = NULL;
    size_t count = 0;
    assert_int_equal(coord_member_peers(many->observer, &peers), COORD_OK);
    for (size_t i = 0; i < peers->count; i++) {
        count += peers->peer[i].status == COORD_PEER_HEALTHY && peers->peer[i].last_heard >= since;
    }
    coord_member_peers_free(peers);
    return count;
}

/* What the leader has told, of that cause; and that there is nothing else. */
static bool all_open(struct many *many, size_t wanted, enum coord_cause cause)
{
    struct coord_member_orphans *orphans = NULL;
    size_t count = 0;
    assert_int_equal(coord_member_orphans(many->observer, &orphans), COORD_OK);
    for (size_t i = 0; i < orphans->count; i++) {
        count += orphans->orphan[i].fence > 0 && orphans->orphan[i].cause == cause;
    }
    const bool others = orphans->count != count;
    coord_member_orphans_free(orphans);
    return count == wanted && !others;
}

static bool all_heard(struct many *many, coord_ms since)
{
    return well_since(many, since) == MEMBERS;
}

static bool crashed_are_reported(struct many *many, coord_ms since)
{
    (void)since;
    return all_open(many, CRASHED, COORD_CAUSE_SILENT);
}

static bool left_are_reported(struct many *many, coord_ms since)
{
    (void)since;
    return all_open(many, LEFT, COORD_CAUSE_FINISHED);
}

static bool nothing_is_open(struct many *many, coord_ms since)
{
    (void)since;
    return all_open(many, 0, COORD_CAUSE_SILENT);
}

static bool slow_one_is_full(struct many *many, coord_ms since)
{
    struct coord_broker_status status;
    (void)since;
    assert_int_equal(coord_bus_get_status(many->slow, &status), COORD_OK);
    assert_true(status.inbox_messages <= SLOW_INBOX);
    return status.dropped[COORD_BROKER_DROP_INBOX_FULL] > 0;
}

/* ---------------------------------------------------------------- joining */

static const char *work_of(unsigned index, char out[NAME])
{
    snprintf(out, NAME, "work-%u", index);
    return out;
}

static void serve(struct coord_member *member, unsigned first, unsigned count)
{
    char text[MEMBERS][NAME];
    const char *names[MEMBERS];
    for (unsigned i = 0; i < count; i++) {
        names[i] = work_of(first + i, text[i]);
    }
    assert_int_equal(coord_member_serve(member, names, count, 0, 0.0), COORD_OK);
}

static struct coord_member *join(struct many *many, const struct coord_bus_scheme *schemes,
                                 const char *uri, const char *id, enum coord_agent_role role)
{
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_member *member = NULL;
    struct coord_error error = {.code = COORD_OK};
    if (coord_bus_open(many->runtime, schemes, uri, NULL, &config.bus, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    config.id = id;
    config.role = role;
    config.timeout = TIMEOUT;
    config.election = strcmp(id, "m-0") == 0 ? many->election : NULL;
    if (role == COORD_AGENT_OBSERVER) {
        config.fn = hear;
        config.ctx = many;
    }
    if (coord_member_open(many->runtime, &config, &member, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    return member;
}

static void open_all(struct many *many, const struct coord_bus_scheme *schemes, const char *uri)
{
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_bus_config slow = COORD_BUS_CONFIG_INIT;
    char id[NAME];
    config.name = "many";
    config.name_bytes = 4;
    slow.inbox_messages = SLOW_INBOX;
    assert_int_equal(coord_runtime_new(NULL, &many->runtime, NULL), COORD_OK);
    assert_int_equal(coord_runtime_start(many->runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_open_backend(many->runtime, coord_memory_elector(), NULL,
                                                 &config, &many->election, NULL),
                     COORD_OK);
    assert_int_equal(coord_bus_open(many->runtime, schemes, uri, &slow, &many->slow, NULL),
                     COORD_OK);
    assert_int_equal(coord_bus_subscribe(many->slow, COORD_TOPIC_PREFIX ".heartbeat", NULL),
                     COORD_OK);
    many->observer = join(many, schemes, uri, "observer", COORD_AGENT_OBSERVER);
    for (unsigned i = 0; i < MEMBERS; i++) {
        snprintf(id, sizeof id, "m-%u", i);
        many->member[i] = join(many, schemes, uri, id, COORD_AGENT_MEMBER);
        serve(many->member[i], i, 1);
    }
}

/* ---------------------------------------------------------------- what happens to them */

static void some_end_without_a_word(struct many *many)
{
    for (unsigned i = 1; i <= CRASHED; i++) {
        coord_member_close(many->member[i]);
        many->member[i] = NULL;
    }
    wait_until(many, crashed_are_reported, 0, "each crash is told, and its work reported");
    assert_int_equal(many->silent, CRASHED);
    serve(many->member[CRASHED + 1], 1, CRASHED + 1); /* its own, and theirs */
    wait_until(many, nothing_is_open, 0, "what is served again is resolved");
}

static void some_leave_in_order(struct many *many)
{
    for (unsigned i = CRASHED + 2; i < CRASHED + 2 + LEFT; i++) {
        assert_int_equal(coord_member_leave(many->member[i], COORD_INTENT_MAINTENANCE, GUARD),
                         COORD_OK);
    }
    for (unsigned i = CRASHED + 2; i < CRASHED + 2 + LEFT; i++) {
        struct coord_agent_event left;
        assert_int_equal(coord_member_wait(many->member[i], GUARD, &left), COORD_OK);
        assert_true(left.drained && left.heard);
        coord_member_close(many->member[i]);
        many->member[i] = NULL;
    }
    wait_until(many, left_are_reported, 0, "the work of who left is reported");
    assert_int_equal(many->silent, CRASHED);
}

void many_live_through(const struct coord_bus_scheme *schemes, const char *uri,
                       void (*restart)(void))
{
    struct many *many = calloc(1, sizeof *many);
    struct coord_member_view view;
    assert_non_null(many);
    open_all(many, schemes, uri);
    wait_until(many, all_heard, 0, "all are heard");
    restart();
    wait_until(many, all_heard, coord_clock_now(), "all are heard again");
    assert_int_equal(many->silent, 0);
    assert_int_equal(many->opened, 0);
    assert_int_equal(coord_member_look(many->observer, &view), COORD_OK);
    assert_true(view.judging);
    some_end_without_a_word(many);
    some_leave_in_order(many);
    wait_until(many, slow_one_is_full, 0, "who does not read loses the oldest");
    coord_runtime_free(many->runtime); /* closes all that is left */
    free(many);
}
