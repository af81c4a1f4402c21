/* SPDX-License-Identifier: MIT
 * tests/fault/test_broker_redis.c - a bus over Redis whose server goes away, is silent or refuses.
 */
#include "brokers/redis.h"
#include "tests/contract/broker_weather.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"

#include "runtime/clock.h"

#include <hiredis/hiredis.h>

#include <signal.h>
#include <stdlib.h>

enum {
    SOON = 1000 /* ms: a server that keeps silent for longer is gone; one that is slow is not */
};

static struct redis_server server;
static struct bus_world world;
static const char *address;

static const char *uri(void)
{
    return address;
}

static const struct bus_store store = {.name = "redis", .ops = coord_redis_broker, .uri = uri};

static int set_up(void **state)
{
    (void)state;
    bus_open_world(&world, &store, "fault");
    return 0;
}

static void begin(void)
{
    redis_server_start(&server, (const char *const[]){"--save", "", NULL});
    address = server.uri;
}

static int tear_down(void **state)
{
    (void)state;
    bus_close_world(&world);
    if (server.pid > 0) {
        kill(server.pid, SIGCONT);
    }
    redis_server_stop(&server);
    return 0;
}

static void kill_server(void)
{
    redis_server_kill(&server);
}

static void server_again(void)
{
    redis_server_again(&server);
}

static void test_broker_redis__comes_back_when_the_server_is_restarted(void **state)
{
    (void)state;
    begin();
    bus_weather_restarts(&world, kill_server, server_again);
}

static void test_broker_redis__holds_what_is_published_while_the_server_is_away(void **state)
{
    (void)state;
    begin();
    world.config.outbox_wait = 20000;
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    redis_server_kill(&server);
    bus_until_down(&world, a);
    bus_until_down(&world, b);
    bus_say(&world, 0, "meanwhile");
    bus_drive(&world, 100);
    redis_server_again(&server);
    bus_until_up(&world, b);
    bus_until_idle(&world, a);
    bus_say(&world, 0, "after");
    bus_until_got(&world, b, 1);
    while (bus_has(b, "after") == 0) {
        bus_until_got(&world, b, b->got + 1);
    }
    assert_true(bus_has(b, "meanwhile") <= 1); /* as b may have come back later than it */
}

static void test_broker_redis__forgets_what_waited_too_long(void **state)
{
    (void)state;
    begin();
    world.config.outbox_wait = 100;
    struct bus_side *a = bus_join(&world, 0);
    redis_server_kill(&server);
    bus_until_down(&world, a);
    bus_say(&world, 0, "stale");
    bus_until_dropped(&world, a, COORD_BROKER_DROP_WAITED, 1);
    redis_server_again(&server);
    bus_until_up(&world, a);
    bus_say(&world, 0, "fresh");
    bus_until_got(&world, a, 1);
    assert_int_equal(bus_has(a, "fresh"), 1);
}

static void test_broker_redis__sees_a_stopped_server_also_when_it_only_listens(void **state)
{
    (void)state;
    begin();
    world.config.attempt = SOON;
    struct bus_side *a = bus_join(&world, 0);
    kill(server.pid, SIGSTOP);
    bus_until_down(&world, a);
    kill(server.pid, SIGCONT);
    bus_until_up(&world, a);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
}

static void test_broker_redis__sees_a_stopped_server_when_it_publishes(void **state)
{
    (void)state;
    begin();
    world.config.attempt = SOON;
    struct bus_side *a = bus_open(&world, 0);
    bus_until_up(&world, a);
    kill(server.pid, SIGSTOP);
    for (int i = 0; i < 30; i++) {
        bus_say(&world, 0, "x");
    }
    bus_until_down(&world, a);
    kill(server.pid, SIGCONT);
    bus_until_up(&world, a);
    bus_until_idle(&world, a);
    assert_true(bus_status(a).dropped[COORD_BROKER_DROP_BROKEN] > 0);
}

static void test_broker_redis__survives_a_cut_of_its_connections(void **state)
{
    struct proxy proxy;
    (void)state;
    begin();
    proxy_start(&proxy, server.socket);
    address = proxy.uri;
    struct bus_side *a = bus_join(&world, 0);
    proxy_cut(&proxy, false);
    bus_until_down(&world, a);
    bus_until_up(&world, a);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    bus_close(a);
    proxy_stop(&proxy);
}

static bool lacks_a_right(void *ctx)
{
    return bus_status(ctx).error.code == COORD_E_NO_RIGHT;
}

static void test_broker_redis__says_which_right_is_missing_and_mends(void **state)
{
    (void)state;
    begin();
    struct bus_side *a = bus_open(&world, 0);
    bus_until_up(&world, a);
    redis_server_do(&server, "ACL SETUSER default resetchannels");
    bus_subscribe(a, world.topic);
    bus_until(&world, lacks_a_right, a);
    assert_false(bus_status(a).up);
    bus_say(&world, 0, "refused");
    bus_until_idle(&world, a);
    assert_int_equal(bus_status(a).dropped[COORD_BROKER_DROP_REFUSED], 1);
    redis_server_do(&server, "ACL SETUSER default allchannels");
    bus_say(&world, 0, "taken");
    bus_until_up(&world, a); /* it asks again by itself */
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
}

/* What others send is theirs: one message of 2 MiB must not land in our memory. */
static void test_broker_redis__is_not_filled_by_what_others_send(void **state)
{
    enum {
        SIZE = 2 << 20
    };
    (void)state;
    begin();
    struct bus_side *a = bus_join(&world, 0);
    char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    memset(bytes, 'x', SIZE);
    struct redisContext *c = redis_server_connect(&server);
    struct redisReply *reply =
        redisCommand(c, "PUBLISH %s %b", world.topic, bytes, (size_t)100 * 1024);
    assert_non_null(reply);
    freeReplyObject(reply);
    bus_until_dropped(&world, a, COORD_BROKER_DROP_DAMAGED, 1); /* larger than one may be */
    assert_int_equal(a->got, 0);
    assert_true(bus_status(a).up);
    reply = redisCommand(c, "PUBLISH %s %b", world.topic, bytes, (size_t)SIZE);
    assert_non_null(reply);
    freeReplyObject(reply);
    bus_until_down(&world, a); /* larger than the connection takes: it begins anew */
    bus_until_up(&world, a);
    reply = redisCommand(c, "PUBLISH %s small", world.topic);
    assert_non_null(reply);
    freeReplyObject(reply);
    bus_until_got(&world, a, 1);
    redisFree(c);
    free(bytes);
}

static void test_broker_redis__many_agents_over_one_connection_survive_a_restart(void **state)
{
    (void)state;
    begin();
    bus_weather_shared(&world, kill_server, server_again);
}

static void test_broker_redis__that_is_down_at_the_start_is_told_once_and_comes(void **state)
{
    (void)state;
    begin();
    redis_server_kill(&server);
    bus_weather_down_at_start(&world, server_again);
}

static void test_broker_redis__tells_a_wrong_password_once(void **state)
{
    char wrong[192];
    (void)state;
    begin();
    redis_server_do(&server, "ACL SETUSER locked on >right allchannels +@all");
    snprintf(wrong, sizeof wrong, "redis+unix://locked:wr0ng-s3cret@%s", server.socket);
    address = wrong;
    bus_weather_refused(&world, COORD_E_WRONG_PASSWORD, "correct user and password", "s3cret");
}

static void test_broker_redis__names_the_right_to_its_channels(void **state)
{
    char limited[192];
    (void)state;
    begin();
    redis_server_do(&server, "ACL SETUSER limited on >word resetchannels &else:* +@all");
    snprintf(limited, sizeof limited, "redis+unix://limited:word@%s", server.socket);
    address = limited;
    bus_weather_refused(&world, COORD_E_NO_RIGHT, "+publish +subscribe +unsubscribe +ping",
                        "word@");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_broker_redis__##name, set_up, tear_down)
        T(comes_back_when_the_server_is_restarted),
        T(holds_what_is_published_while_the_server_is_away),
        T(forgets_what_waited_too_long),
        T(sees_a_stopped_server_also_when_it_only_listens),
        T(sees_a_stopped_server_when_it_publishes),
        T(survives_a_cut_of_its_connections),
        T(says_which_right_is_missing_and_mends),
        T(is_not_filled_by_what_others_send),
        T(many_agents_over_one_connection_survive_a_restart),
        T(that_is_down_at_the_start_is_told_once_and_comes),
        T(tells_a_wrong_password_once),
        T(names_the_right_to_its_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
