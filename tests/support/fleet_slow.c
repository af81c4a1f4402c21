/* SPDX-License-Identifier: MIT
 * tests/support/fleet_slow.c - see fleet_slow.h.
 */
#include "tests/support/fleet_slow.h"

#include "tests/support/memory_use.h"
#include "tests/support/support.h"

#include <poll.h>

enum {
    GUARD = 90000, /* ms, against hanging */
    TURN = 20,     /* ms */
    WHILE = 2000,  /* ms: many tries of a connection */
    LAG = 20,      /* messages */
    NAMES = 230,
    NAME_BYTES = 250
};

/* ---------------------------------------------------------------- sides */

static void hear(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    struct fleet_side *side = ctx;
    (void)member;
    pthread_mutex_lock(&side->lock);
    fleet_news_hear(&side->news, event);
    pthread_mutex_unlock(&side->lock);
}

static struct coord_bus *open_bus(struct coord_runtime *runtime, const struct fleet_store *store)
{
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    struct coord_bus *bus = NULL;
    config.inbox_bytes = FLEET_SLOW_KEPT;
    config.outbox_bytes = FLEET_SLOW_KEPT;
    config.outbox_wait = GUARD;
    if (coord_bus_open(runtime, store->buses, store->uri, &config, &bus, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    return bus;
}

static void note_warning(void *ctx, const struct coord_log_record *record)
{
    unsigned *warnings = ctx;
    *warnings += record->level >= COORD_LOG_WARN ? 1 : 0;
}

/* Where `warnings` is NULL nobody counts them. */
static void open_side(struct fleet_side *side, const struct fleet_store *store, const char *id,
                      unsigned *warnings)
{
    struct coord_runtime_config runtime = COORD_RUNTIME_CONFIG_INIT;
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    pthread_mutex_init(&side->lock, NULL);
    if (warnings != NULL) {
        runtime.log = (struct coord_log){.fn = note_warning, .ctx = warnings};
    }
    assert_int_equal(coord_runtime_new(&runtime, &side->runtime, &error), COORD_OK);
    side->bus = open_bus(side->runtime, store);
    config.id = id;
    config.bus = side->bus;
    config.timeout = FLEET_T;
    config.fn = hear;
    config.ctx = side;
    if (coord_member_open(side->runtime, &config, &side->member, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

static void close_side(struct fleet_side *side)
{
    coord_member_close(side->member);
    coord_bus_close(side->bus);
    if (side->runtime != NULL) {
        coord_runtime_free(side->runtime);
        pthread_mutex_destroy(&side->lock);
    }
    *side = (struct fleet_side){.runtime = NULL};
}

static struct coord_member_view view_of(struct fleet_side *side)
{
    struct coord_member_view view;
    assert_int_equal(coord_member_look(side->member, &view), COORD_OK);
    return view;
}

struct coord_broker_status fleet_slow_status(struct fleet_side *side)
{
    struct coord_broker_status status;
    assert_int_equal(coord_bus_get_status(side->bus, &status), COORD_OK);
    return status;
}

/* ---------------------------------------------------------------- driving */

static bool hear_each_other(struct fleet_slow *scene, uint64_t ups)
{
    const struct coord_member_view slow = view_of(&scene->slow);
    const struct coord_member_view fast = view_of(&scene->fast);
    return slow.bus_up && slow.judging && slow.fleet.healthy == 1 && fast.judging &&
           fast.fleet.healthy == 1 && fleet_slow_status(&scene->slow).ups >= ups;
}

/* One turn of the fast one and, where nobody else drives it, of the slow one. */
static void turn(struct fleet_slow *scene, bool both)
{
    struct pollfd wait[] = {{.fd = coord_runtime_fd(scene->fast.runtime), .events = POLLIN},
                            {.fd = coord_runtime_fd(scene->slow.runtime), .events = POLLIN}};
    coord_runtime_process(scene->fast.runtime);
    if (both) {
        coord_runtime_process(scene->slow.runtime);
    }
    const size_t memory = memory_in_use();
    scene->most = memory > scene->most ? memory : scene->most;
    assert_true(poll(wait, both ? 2 : 1, TURN) >= 0);
}

static coord_ms guard(void)
{
    return coord_clock_now() + GUARD;
}

void fleet_slow_recover(struct fleet_slow *scene, uint64_t ups)
{
    for (const coord_ms end = guard(); !hear_each_other(scene, ups);) {
        assert_true(coord_clock_now() < end);
        turn(scene, true);
    }
}

static void open_both(struct fleet_slow *scene, const struct fleet_store *store)
{
    scene->warnings = 0;
    open_side(&scene->slow, store, "slow", &scene->warnings);
    open_side(&scene->fast, store, "fast", NULL);
    scene->flood = open_bus(scene->fast.runtime, store);
}

void fleet_slow_begin(struct fleet_slow *scene, const struct fleet_store *store)
{
    open_both(scene, store);
    fleet_slow_recover(scene, 1);
    scene->memory = memory_in_use();
    scene->most = scene->memory;
}

static void unstick(struct fleet_slow *scene)
{
    if (scene->slow.stuck) {
        scene->slow.stuck = false;
        pthread_mutex_unlock(&scene->slow.lock);
    }
}

void fleet_slow_end(struct fleet_slow *scene)
{
    unstick(scene);
    coord_bus_close(scene->flood);
    scene->flood = NULL;
    close_side(&scene->slow);
    close_side(&scene->fast);
}

/* ---------------------------------------------------------------- the flood */

/* Work for the slow one, in as many words as fit. */
static size_t write_work(unsigned char *bytes, size_t room)
{
    static char text[NAMES][NAME_BYTES + 1];
    static unsigned char list[FLEET_SLOW_BYTES + NAMES];
    const char *names[NAMES];
    struct coord_message m = {.type = COORD_MESSAGE_WORK_ASSIGNMENT};
    size_t count = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        memset(text[i], 'x', NAME_BYTES);
        snprintf(text[i], 8, "%06u", i);
        text[i][6] = '-';
        names[i] = text[i];
    }
    m.instance_id = coord_text("leader", 6);
    m.target = coord_text("slow", 4);
    assert_int_equal(coord_texts(names, NAMES, list, sizeof list, &m.subscriptions), COORD_OK);
    assert_int_equal(coord_message_encode(&m, COORD_FORM_MSGPACK, bytes, room, &count), COORD_OK);
    return count;
}

/* How many messages more the fast one has received. */
static int64_t lag(struct fleet_slow *scene)
{
    return (int64_t)(fleet_slow_status(&scene->fast).received -
                     fleet_slow_status(&scene->slow).received);
}

static void flood(struct fleet_slow *scene, int64_t lag_max)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    char topic[COORD_TOPIC_MAX];
    struct coord_broker_status status = {.published = 0};
    const size_t count = write_work(bytes, sizeof bytes);
    const coord_ms end = guard();
    const int64_t lag_before = lag(scene);
    assert_int_equal(coord_topic(NULL, COORD_MESSAGE_WORK_ASSIGNMENT, topic), COORD_OK);
    assert_int_equal(coord_bus_get_status(scene->flood, &status), COORD_OK);
    const uint64_t wanted = status.published + FLEET_SLOW_MESSAGES;
    unsigned said = 0;
    while (status.published < wanted) {
        if (said < FLEET_SLOW_MESSAGES && lag(scene) - lag_before < lag_max &&
            coord_bus_publish(scene->flood, topic, bytes, count, NULL) == COORD_OK) {
            said++;
        }
        turn(scene, false);
        assert_true(coord_clock_now() < end);
        assert_int_equal(coord_bus_get_status(scene->flood, &status), COORD_OK);
    }
}

void fleet_slow_flood(struct fleet_slow *scene)
{
    flood(scene, INT64_MAX);
}

/* ---------------------------------------------------------------- what befalls them */

void fleet_slow_stuck(struct fleet_slow *scene, const struct fleet_store *store)
{
    open_both(scene, store);
    assert_int_equal(coord_runtime_start(scene->slow.runtime, NULL), COORD_OK);
    fleet_slow_recover(scene, 1);
    pthread_mutex_lock(&scene->slow.lock);
    scene->slow.stuck = true;
    scene->memory = memory_in_use();
    scene->most = scene->memory;
    flood(scene, LAG); /* its threads read, and may be late: no server is to cut it off */
    for (const coord_ms end = guard(); view_of(&scene->slow).lost_events == 0;) {
        assert_true(coord_clock_now() < end);
        turn(scene, true);
    }
    assert_true(scene->most - scene->memory < FLEET_SLOW_MOST);
    assert_int_equal(fleet_slow_status(&scene->slow).ups, 1);
    unstick(scene);
    fleet_slow_recover(scene, 1);
}

void fleet_slow_down_at_start(struct fleet_slow *scene, const struct fleet_store *store,
                              void (*again)(void))
{
    open_both(scene, store);
    for (const coord_ms end = coord_clock_now() + WHILE; coord_clock_now() < end;) {
        turn(scene, true);
    }
    assert_false(fleet_slow_status(&scene->slow).up);
    assert_int_equal(scene->warnings, 1);
    again();
    fleet_slow_recover(scene, 1);
}
