/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_chaos.c - everything at once: processes that stop, sessions that are
 * ended, links that fall silent, step-downs. Nobody leads beside another, fences rise, and what a
 * stale leader writes is refused. COORD_TEST_SEED and COORD_TEST_MS replay and prolong it.
 */
#include "tests/support/postgres_world.h"
#include "tests/support/proxy.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum {
    RIVALS = 4,
    DURATION = 10000, /* ms */
    LEASE = 800
};

struct rival {
    struct candidate *candidate;
    struct proxy proxy;
    char folder[64];
    char uri[POSTGRES_URI];
    coord_ms frozen_until;
    coord_ms stalled_until;
    unsigned seen; /* terms of it that were looked at */
};

struct chaos {
    struct world w;
    struct rival rivals[RIVALS];
    uint64_t random;
    uint64_t fence; /* the highest that led */
    unsigned terms;
    PGconn *admin;
    unsigned written;
};

static uint64_t pick(struct chaos *chaos, uint64_t below)
{
    chaos->random = chaos->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (chaos->random >> 33) % below;
}

static void begin(struct chaos *chaos)
{
    char path[160];
    world_open(&chaos->w, "chaos");
    chaos->admin = postgres_server_connect(&world_server);
    assert_string_equal(
        postgres_server_try(chaos->admin, "create table log (at serial, fence bigint)"), "");
    chaos->w.wish.ttl = LEASE;
    for (int i = 0; i < RIVALS; i++) {
        struct rival *r = &chaos->rivals[i];
        snprintf(path, sizeof path, "%s/.s.PGSQL.5432", world_server.folder);
        proxy_start(&r->proxy, path);
        scratch_make("link", r->folder, sizeof r->folder);
        snprintf(path, sizeof path, "%s/.s.PGSQL.5432", r->folder);
        assert_int_equal(symlink(r->proxy.socket, path), 0);
        snprintf(r->uri, sizeof r->uri, "postgresql://postgres@/postgres?host=%s&port=5432",
                 r->folder);
        chaos->w.wish.uri = r->uri;
        r->candidate = world_join(&chaos->w);
        candidate_stand(r->candidate);
    }
}

static void end(struct chaos *chaos)
{
    for (int i = 0; i < RIVALS; i++) {
        chaos->rivals[i].candidate->frozen = false;
        proxy_stall(&chaos->rivals[i].proxy, false);
    }
    /* After the faults somebody leads. */
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    bool led = false;
    while (!led && coord_clock_now() < guard) {
        candidates_turn(&chaos->w.all, 50);
        for (int i = 0; i < RIVALS; i++) {
            led = led || candidate_leads(chaos->rivals[i].candidate);
        }
    }
    assert_true(led);
    PQfinish(chaos->admin);
    world_close(&chaos->w);
    for (int i = 0; i < RIVALS; i++) {
        proxy_stop(&chaos->rivals[i].proxy);
        scratch_remove(chaos->rivals[i].folder);
    }
}

static void spoil(struct chaos *chaos, coord_ms now)
{
    struct rival *r = &chaos->rivals[pick(chaos, RIVALS)];
    const coord_ms some = 50 + pick(chaos, 2 * LEASE);
    switch (pick(chaos, 6)) {
    case 0:
        r->candidate->frozen = true;
        r->frozen_until = now + some;
        break;
    case 1:
        proxy_stall(&r->proxy, true);
        r->stalled_until = now + some;
        break;
    case 2:
        proxy_cut(&r->proxy, false);
        break;
    case 3:
        postgres_server_try(chaos->admin,
                            "select pg_terminate_backend(pid) from pg_locks where locktype = "
                            "'advisory'");
        break;
    case 4:
        COORD_IGNORE(coord_lease_step_down(r->candidate->lease, NULL, now),
                     "it need not be the leader");
        break;
    default:
        candidate_free(&chaos->w.all, r->candidate); /* kill -9 */
        chaos->w.wish.uri = r->uri;
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
            proxy_stall(&r->proxy, false);
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
        if (r->candidate->fence != 0 && pick(chaos, 4) == 0) {
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
        look(&chaos);
        if (now >= next) {
            spoil(&chaos, now);
            next = now + pick(&chaos, LEASE);
        }
        assert_int_equal(chaos.w.all.overlaps, 0);
    }
    const int64_t backwards = postgres_server_ask(
        &world_server, "select count(*) from (select fence < max(fence) over (order by at) as back "
                       "from log) x where back");
    print_message("%u terms, %u guarded writes\n", chaos.terms, chaos.written);
    assert_int_equal(backwards, 0);
    assert_true(chaos.terms > 0);
    end(&chaos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_chaos__leaves_one_leader_rising_fences_and_no_stale_write),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
