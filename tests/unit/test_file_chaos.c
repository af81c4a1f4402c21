/* SPDX-License-Identifier: MIT
 * tests/unit/test_file_chaos.c - the file elector's protocol under random steps, stops and deaths.
 */
#include "tests/support/file_world.h"
#include "tests/support/support.h"

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

struct candidate {
    struct machine *m;
    bool busy;
    enum coord_verb verb;
    coord_ms sent;
    uint64_t attempts;
    bool holds; /* a grant, leading or waiting */
    bool leads;
    bool led; /* the renewal under way says so */
    coord_ms clear_at;
    coord_ms valid; /* its own deadline, without any margin */
    coord_ms paused_until;
    uint64_t fence;
};

/* What a run has to have seen, or it proves nothing. */
static struct {
    unsigned terms;  /* that led */
    unsigned owed;   /* ... after a wait */
    unsigned passed; /* ... while a former one, stopped, had its byte still */
    unsigned lost;
} seen;

static void leads_now(struct candidate *c, uint64_t *highest)
{
    assert_true(c->fence > *highest);
    *highest = c->fence;
    c->leads = true;
    seen.terms++;
    seen.owed += c->verb == COORD_VERB_RENEW;
    seen.passed += c->m->terms.wait_until != 0;
}

static void answered(struct candidate *c, uint64_t *highest)
{
    const struct coord_reply *reply = coord__file_terms_reply(&c->m->terms);
    c->busy = false;
    if (c->verb == COORD_VERB_ACQUIRE && reply->outcome == COORD_GRANTED) {
        c->holds = true;
        c->fence = reply->fence;
        c->valid = c->sent + LEASE;
        c->clear_at = c->m->now + reply->owed;
        if (reply->owed == 0 && now < c->valid) {
            leads_now(c, highest);
        }
    } else if (c->verb == COORD_VERB_RENEW && reply->outcome == COORD_RENEWED) {
        if (now >= c->valid) {
            return; /* a yes after the end changes nothing */
        }
        c->valid = c->sent + LEASE;
        if (!c->leads && c->led && reply->owed == 0) {
            leads_now(c, highest);
        }
    } else if (reply->outcome == COORD_LOST || c->verb == COORD_VERB_RELEASE ||
               c->verb == COORD_VERB_UNDO) {
        seen.lost += reply->outcome == COORD_LOST;
        c->holds = c->leads = false;
    }
}

static void choose(struct candidate *c)
{
    struct coord_request request = {.attempt = c->attempts};
    if (c->holds && now >= c->valid) {
        c->holds = c->leads = false; /* its own clock ends it */
    }
    if (!c->holds) {
        request.verb = COORD_VERB_ACQUIRE;
        request.attempt = ++c->attempts;
    } else if (draw(12) == 0) {
        request.verb = c->leads ? COORD_VERB_RELEASE : COORD_VERB_UNDO;
        c->leads = false; /* it answers no before it resigns */
    } else {
        request.verb = COORD_VERB_RENEW;
        request.led = c->leads || now >= c->clear_at;
    }
    request.fence = c->fence;
    c->led = request.led;
    c->verb = request.verb;
    c->sent = now;
    c->busy = true;
    begin(c->m, request);
}

/* Random steps of four machines with pauses, deaths, removed and copied files. At no instant do
 * two answer yes. */
static void chaos(uint64_t seed, bool files_change)
{
    struct candidate all[MACHINES];
    uint64_t highest = 0;
    world_setup(NULL);
    random_state = seed;
    memset(all, 0, sizeof all);
    for (int i = 0; i < MACHINES; i++) {
        all[i].m = &machines[i];
        machines[i].terms.config.chunk = 8;
    }
    const uint64_t haste = 10 + draw(200); /* steps in a while */
    for (int i = 0; i < 12000; i++) {
        struct candidate *c = &all[draw(MACHINES)];
        if (draw(haste) == 0) {
            now += draw(LEASE / 8);
        }
        if (c->paused_until > now) {
            now += draw(8) == 0;
            continue;
        }
        if (draw(300) == 0) {
            c->paused_until = now + draw(3 * LEASE);
        } else if (draw(900) == 0) {
            const uint64_t attempts = c->attempts;
            kill_machine(c->m);
            *c = (struct candidate){.m = c->m, .attempts = attempts};
        } else if (files_change && draw(2500) == 0 && disk.path >= 0 && disk.made < FILES) {
            if (draw(2) == 0) {
                disk.path = -1;
            } else {
                memcpy(disk.files[disk.made].bytes, disk.files[disk.path].bytes, COORD__FILE_BYTES);
                disk.path = disk.made++;
            }
        } else if (!c->busy) {
            choose(c);
        } else if (step(c->m) == COORD__FILE_DONE) {
            answered(c, &highest);
        }
        int leaders = 0;
        for (int k = 0; k < MACHINES; k++) {
            leaders += all[k].holds && all[k].leads && now < all[k].valid;
        }
        if (leaders > 1) {
            fail_msg("seed %llu, step %d: %d leaders", (unsigned long long)seed, i, leaders);
        }
    }
}

static void test_file_chaos__never_has_two_leaders(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        chaos(seed, false);
    }
    assert_true(seen.terms > 1000);
    assert_true(seen.owed > 50);
    assert_true(seen.passed > 100);
    assert_true(seen.lost > 50);
}

static void test_file_chaos__with_changing_files_never_has_two_leaders(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        chaos(seed, true);
    }
    assert_true(seen.terms > 1000);
    assert_true(seen.owed > 50);
    assert_true(seen.lost > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_chaos__never_has_two_leaders),
        cmocka_unit_test(test_file_chaos__with_changing_files_never_has_two_leaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
