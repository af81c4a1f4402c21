/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_chaos.c - everything at once: processes that stop, sessions that are
 * ended, links that fall silent, step-downs, restarts of the server. Nobody leads beside another,
 * fences rise, and what a stale leader writes is refused. COORD_TEST_SEED and COORD_TEST_MS replay
 * and prolong it.
 */
#include "tests/support/postgres_link.h"
#include "tests/support/postgres_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
    RIVALS = 4,
    DURATION = 10000, /* ms */
    LEASE = 800
};

struct rival {
    struct candidate *candidate;
    struct link link;
    coord_ms frozen_until;
    coord_ms stalled_until;
    unsigned seen; /* terms of it that were looked at */
};

enum server_state {
    SERVER_UP = 0,
    SERVER_ENDING,
    SERVER_DOWN,
    SERVER_STARTING
};

struct chaos {
    struct world w;
    struct rival rivals[RIVALS];
    uint64_t random;
    uint64_t fence; /* the highest that led */
    unsigned terms;
    PGconn *admin; /* NULL: the server is not up */
    unsigned written;
    enum server_state server;
    coord_ms down_until;
    unsigned faults;
    unsigned restarts;
};

static uint64_t pick(struct chaos *chaos, uint64_t below)
{
    chaos->random = chaos->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (chaos->random >> 33) % below;
}

static void begin(struct chaos *chaos)
{
    world_open(&chaos->w, "chaos");
    chaos->admin = postgres_server_connect(&world_server);
    assert_string_equal(
        postgres_server_try(chaos->admin, "create table log (at serial, fence bigint)"), "");
    chaos->w.wish.ttl = LEASE;
    for (int i = 0; i < RIVALS; i++) {
        struct rival *r = &chaos->rivals[i];
        link_open(&r->link, &world_server);
        chaos->w.wish.uri = r->link.uri;
        r->candidate = world_join(&chaos->w);
        candidate_stand(r->candidate);
    }
}

/* ---------------------------------------------------------------- the server itself */

/* While everybody goes on: who asks, waits, writes or resigns is met there. */
static void restart(struct chaos *chaos, coord_ms now)
{
    if (chaos->server != SERVER_UP) {
        return;
    }
    const int signal_number = pick(chaos, 2) == 0 ? SIGINT : SIGQUIT;
    /* Guarded work that is open, and asks to commit while the server ends. */
    postgres_server_try(chaos->admin,
                        "begin; select coord.fence('%s', %" PRIu64
                        "); insert into log (fence) values (%" PRIu64 ")",
                        chaos->w.name, chaos->fence, chaos->fence);
    kill(world_server.pid, signal_number);
    postgres_server_try(chaos->admin, "commit");
    PQfinish(chaos->admin);
    chaos->admin = NULL;
    chaos->server = SERVER_ENDING;
    chaos->down_until = now + pick(chaos, LEASE);
    chaos->restarts++;
}

static void follow_server(struct chaos *chaos, coord_ms now)
{
    if (chaos->server == SERVER_ENDING && postgres_server_ended(&world_server)) {
        chaos->server = SERVER_DOWN;
    } else if (chaos->server == SERVER_DOWN && now >= chaos->down_until) {
        postgres_server_begin(&world_server);
        chaos->server = SERVER_STARTING;
    } else if (chaos->server == SERVER_STARTING && postgres_server_answers(&world_server)) {
        chaos->admin = postgres_server_connect(&world_server);
        chaos->server = SERVER_UP;
    }
}

/* ---------------------------------------------------------------- faults */

static void end(struct chaos *chaos)
{
    for (int i = 0; i < RIVALS; i++) {
        chaos->rivals[i].candidate->frozen = false;
        proxy_stall(&chaos->rivals[i].link.proxy, false);
    }
    /* After the faults somebody leads. */
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    bool led = false;
    while ((!led || chaos->server != SERVER_UP) && coord_clock_now() < guard) {
        follow_server(chaos, coord_clock_now());
        candidates_turn(&chaos->w.all, 50);
        for (int i = 0; i < RIVALS; i++) {
            led = led || candidate_leads(chaos->rivals[i].candidate);
        }
    }
    assert_true(led);
    assert_int_equal(chaos->server, SERVER_UP);
    const int64_t backwards = postgres_server_ask(
        &world_server, "select count(*) from (select fence < max(fence) over (order by at) as back "
                       "from log) x where back");
    print_message("%u terms, %u guarded writes, %u restarts\n", chaos->terms, chaos->written,
                  chaos->restarts);
    assert_int_equal(backwards, 0);
    assert_true(chaos->terms > 0);
    assert_true(chaos->restarts > 0);
    PQfinish(chaos->admin);
    world_close(&chaos->w);
    for (int i = 0; i < RIVALS; i++) {
        link_close(&chaos->rivals[i].link);
    }
}

static void spoil(struct chaos *chaos, coord_ms now)
{
    struct rival *r = &chaos->rivals[pick(chaos, RIVALS)];
    const coord_ms some = 50 + pick(chaos, 2 * LEASE);
    /* One restart comes for sure. */
    switch (chaos->faults++ == 1 ? 5 : pick(chaos, 7)) {
    case 0:
        r->candidate->frozen = true;
        r->frozen_until = now + some;
        break;
    case 1:
        proxy_stall(&r->link.proxy, true);
        r->stalled_until = now + some;
        break;
    case 2:
        proxy_cut(&r->link.proxy, false);
        break;
    case 3:
        if (chaos->admin != NULL) {
            postgres_server_try(chaos->admin,
                                "select pg_terminate_backend(pid) from pg_locks where locktype = "
                                "'advisory'");
        }
        break;
    case 4:
        COORD_IGNORE(coord_lease_step_down(r->candidate->lease, NULL, now),
                     "it need not be the leader");
        break;
    case 5:
        restart(chaos, now);
        break;
    default:
        candidate_free(&chaos->w.all, r->candidate); /* kill -9 */
        chaos->w.wish.uri = r->link.uri;
        r->candidate = world_join(&chaos->w);
        r->seen = 0;
        candidate_stand(r->candidate);
        break;
    }
}

static void mend(struct chaos *chaos, coord_ms now)
{
    for (int i = 0; i < RIVALS; i++) {
        struct rival *r = &chaos->rivals[i];
        if (r->frozen_until != 0 && now >= r->frozen_until) {
            r->candidate->frozen = false;
            r->frozen_until = 0;
        }
        if (r->stalled_until != 0 && now >= r->stalled_until) {
            proxy_stall(&r->link.proxy, false);
            r->stalled_until = 0;
        }
    }
}

/* Everybody writes under the last fence that he had, also when he does not lead any more. */
static void look(struct chaos *chaos)
{
    for (int i = 0; i < RIVALS; i++) {
        struct rival *r = &chaos->rivals[i];
        if (r->candidate->started != r->seen) {
            r->seen = r->candidate->started;
            chaos->terms++;
            assert_true(r->candidate->fence > chaos->fence);
            chaos->fence = r->candidate->fence;
        }
        if (r->candidate->fence != 0 && chaos->admin != NULL && pick(chaos, 4) == 0) {
            const char *state =
                postgres_server_try(chaos->admin,
                                    "begin; select coord.fence('%s', %" PRIu64
                                    "); insert into log (fence) values (%" PRIu64 "); commit",
                                    chaos->w.name, r->candidate->fence, r->candidate->fence);
            if (state[0] != '\0') {
                assert_string_equal(state, "STALE");
                postgres_server_try(chaos->admin, "rollback");
            } else {
                chaos->written++;
            }
        }
    }
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_postgres_chaos__leaves_one_leader_rising_fences_and_no_stale_write(void **state)
{
    (void)state;
    static struct chaos chaos;
    postgres_server_needed();
    chaos.random = number_of("COORD_TEST_SEED", (uint64_t)time(NULL));
    print_message("COORD_TEST_SEED=%" PRIu64 "\n", chaos.random);
    begin(&chaos);
    const coord_ms stop = coord_clock_now() + number_of("COORD_TEST_MS", DURATION);
    coord_ms next = coord_clock_now() + 500;
    while (coord_clock_now() < stop) {
        candidates_turn(&chaos.w.all, 10);
        const coord_ms now = coord_clock_now();
        mend(&chaos, now);
        follow_server(&chaos, now);
        look(&chaos);
        if (now >= next) {
            spoil(&chaos, now);
            next = now + pick(&chaos, LEASE);
        }
        assert_int_equal(chaos.w.all.overlaps, 0);
    }
    end(&chaos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_chaos__leaves_one_leader_rising_fences_and_no_stale_write),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
