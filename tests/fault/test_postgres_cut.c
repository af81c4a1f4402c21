/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_cut.c - a cable that is cut: no end of stream, no reset, nothing. In a
 * network namespace of its own, whose loopback is taken down.
 */
#include "tests/support/postgres_world.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static bool alone; /* in a namespace of our own */

/* @return false: not allowed. */
static bool set_loopback(bool up)
{
    struct ifreq request = {.ifr_flags = 0};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strcpy(request.ifr_name, "lo");
    bool done = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    if (done) {
        const int flags = request.ifr_flags & ~IFF_UP;
        request.ifr_flags = (short)(up ? flags | IFF_UP : flags);
        done = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

static void needs_a_namespace(void)
{
    postgres_server_needed();
    if (!alone) {
        /* A container may forbid it, and nothing that is installed helps. */
        skip_because("no network namespace of our own: run it as root, outside of a container");
    }
}

static void test_postgres_cut__the_term_ends_by_its_clock_and_the_server_lets_go(void **state)
{
    (void)state;
    needs_a_namespace();
    struct world w;
    world_open(&w, "cut");
    w.wish.uri = world_server.tcp_uri;
    struct candidate *a = world_join(&w);
    w.wish.uri = world_server.uri; /* its socket is no part of the network */
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    assert_true(set_loopback(false));
    candidates_until(&w.all, a, candidate_leads_not);
    assert_int_equal(a->lease->last_end, COORD_END_UNRENEWED);
    candidates_until(&w.all, b, candidate_leads);
    assert_true(b->fence > a->fence);
    assert_true(set_loopback(true));
    candidates_until(&w.all, a, candidate_is_held);
    world_close(&w);
}

static void test_postgres_cut__one_that_is_mended_in_time_costs_no_term(void **state)
{
    (void)state;
    needs_a_namespace();
    struct world w;
    world_open(&w, "mended");
    w.wish.uri = world_server.tcp_uri;
    w.wish.ttl = 8000;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    assert_true(set_loopback(false));
    coord_lease_renew(a->lease, coord_clock_now());
    candidates_run(&w.all, 300);
    assert_true(candidate_leads(a));
    assert_true(set_loopback(true));
    const coord_ms hard = a->lease->term.hard;
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (a->lease->term.hard == hard && coord_clock_now() < guard) {
        candidates_turn(&w.all, 50);
    }
    assert_true(a->lease->term.hard > hard); /* what was sent into the cut arrived after it */
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    assert_int_equal(a->stopping, 0);
    candidate_resign(&w.all, a);
    world_close(&w);
}

static int start(void **state)
{
    (void)state;
    static const char *const options[] = {"port=auto", NULL};
    alone = unshare(CLONE_NEWNET) == 0 && set_loopback(true);
    return alone ? world_start_with(options) : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_cut__the_term_ends_by_its_clock_and_the_server_lets_go),
        cmocka_unit_test(test_postgres_cut__one_that_is_mended_in_time_costs_no_term),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
