/* SPDX-License-Identifier: MIT
 * tests/support/election_fixture.h - one election over a fake backend, driven by the test itself.
 *
 * Header only.
 */
#ifndef COORD_TESTS_ELECTION_FIXTURE_H
#define COORD_TESTS_ELECTION_FIXTURE_H

#include "runtime/election.h"
#include "tests/support/fake_elector.h"
#include "tests/support/support.h"

#include <poll.h>
#include <stdlib.h>

enum {
    GUARD = 30000, /* ms */
    TTL = 400
};

struct fixture {
    struct coord_runtime *runtime;
    struct coord_election *election;
    struct coord_election_config config;
    struct fake_store store;
    /* what callbacks saw */
    unsigned told[4]; /* by edge kind; 0: leader changes */
    bool released_inside;
    bool led_at_release;
    unsigned barks; /* the watchdog's */
    uint64_t barked_at_term;
};

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL || coord_runtime_new(NULL, &f->runtime, NULL) != COORD_OK) {
        free(f);
        return -1;
    }
    f->config = (struct coord_election_config)COORD_ELECTION_CONFIG_INIT;
    f->config.name = "jobs";
    f->config.name_bytes = 4;
    f->config.ttl = TTL;
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    coord_runtime_free(f->runtime);
    free(f);
    return 0;
}

static inline void open_fake(struct fixture *f)
{
    assert_int_equal(coord_election_open_backend(f->runtime, fake_elector(), &f->store, &f->config,
                                                 &f->election, NULL),
                     COORD_OK);
}

static inline void drive(struct fixture *f)
{
    struct pollfd wait = {.fd = coord_runtime_fd(f->runtime), .events = POLLIN};
    poll(&wait, 1, 10);
    assert_int_equal(coord_runtime_process(f->runtime), COORD_OK);
}

static inline enum coord_reason reason(struct fixture *f)
{
    struct coord_explanation why;
    assert_int_equal(coord_election_explain(f->election, &why), COORD_OK);
    return why.reason;
}

static inline void drive_until_reason(struct fixture *f, enum coord_reason wanted)
{
    const coord_ms guard = coord_clock_now() + GUARD;
    while (reason(f) != wanted) {
        assert_true(coord_clock_now() < guard);
        drive(f);
    }
}

static inline void drive_for(struct fixture *f, coord_ms duration)
{
    const coord_ms end = coord_clock_now() + duration;
    while (coord_clock_now() < end) {
        drive(f);
    }
}

static inline unsigned sent(struct fixture *f, enum coord_verb verb)
{
    return atomic_load(&f->store.requests[verb]);
}

static inline void on_edge(void *ctx, struct coord_election *election,
                           const struct coord_edge *edge)
{
    struct fixture *f = ctx;
    (void)election;
    f->told[edge->kind]++;
    f->released_inside = f->released_inside || sent(f, COORD_VERB_RELEASE) > 0;
}

static inline void on_change(void *ctx, struct coord_election *election, bool leading)
{
    struct fixture *f = ctx;
    f->told[0]++;
    assert_int_equal(coord_election_is_leader(election), leading);
    f->released_inside = f->released_inside || (!leading && sent(f, COORD_VERB_RELEASE) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif /* COORD_TESTS_ELECTION_FIXTURE_H */
