/* SPDX-License-Identifier: MIT
 * tests/unit/test_member_stuck.c - a callback that does not return: what waits for it is bounded,
 * and nothing of leaving is lost.
 */
#include "tests/support/guard.h"
#include "tests/support/memory_use.h"
#include "tests/unit/members.h"

enum {
    MESSAGES = 400, /* 23 MiB in all */
    NAMES = 230,
    NAME_BYTES = 250,
    MOST = 16 << 20 /* 8 MiB of events, 4 MiB on the way in, 1 MiB on the way out, and some */
};

/* Work for `a`, in so many words. */
static size_t write_work(unsigned char *bytes)
{
    static char text[NAMES][NAME_BYTES + 1];
    static unsigned char list[COORD_MESSAGE_MAX];
    const char *names[NAMES];
    struct coord_message m = {.type = COORD_MESSAGE_WORK_ASSIGNMENT};
    size_t count = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        memset(text[i], 'x', NAME_BYTES);
        names[i] = text[i];
    }
    m.instance_id = coord_text("leader", 6);
    m.target = coord_text("a", 1);
    assert_int_equal(coord_texts(names, NAMES, list, sizeof list, &m.subscriptions), COORD_OK);
    assert_int_equal(coord_message_encode(&m, COORD_FORM_MSGPACK, bytes, COORD_MESSAGE_MAX, &count),
                     COORD_OK);
    return count;
}

static struct coord_member_view view_of(struct host *h)
{
    struct coord_member_view view;
    assert_int_equal(coord_member_look(h->member, &view), COORD_OK);
    return view;
}

static void flood(struct host *h, size_t *most)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    const size_t count = write_work(bytes);
    const struct guard guard = guard_for("the flood to be heard");
    char topic[COORD_TOPIC_MAX];
    unsigned said = 0;
    assert_int_equal(coord_topic(NULL, COORD_MESSAGE_WORK_ASSIGNMENT, topic), COORD_OK);
    const uint64_t before = view_of(h).messages.received;
    while (view_of(h).messages.received < before + MESSAGES) {
        if (said < MESSAGES && coord_bus_publish(h->bus, topic, bytes, count, NULL) == COORD_OK) {
            said++;
        } else {
            wait_on(&guard);
        }
        const size_t now = memory_in_use();
        *most = now > *most ? now : *most;
    }
}

static void test_member_stuck__keeps_events_within_bounds(void **state)
{
    struct host a;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:", .threads = true});
    pthread_mutex_lock(&a.lock); /* its callback waits for it */
    const size_t before = memory_in_use();
    size_t most = before;
    flood(&a, &most);
    assert_true(view_of(&a).lost_events > 0);
    assert_true(most - before < MOST);
    pthread_mutex_unlock(&a.lock);
    wait_said(&a, "ASSIGNMENT");
    close_host(&a);
}

static void test_member_stuck__hears_the_last_notice_and_all_steps(void **state)
{
    struct host a;
    struct coord_agent_event left;
    size_t most = 0;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:", .threads = true});
    pthread_mutex_lock(&a.lock);
    flood(&a, &most); /* there is no room for anything more */
    for (coord_ms within = 2 * LONG; within > LONG; within -= 1000) {
        assert_int_equal(coord_member_leave(a.member, COORD_INTENT_PREEMPTION, within), COORD_OK);
    }
    pthread_mutex_unlock(&a.lock);
    assert_int_equal(coord_member_wait(a.member, 3 * LONG, &left), COORD_OK);
    assert_true(left.drained);
    wait_said(&a, "LEAVING");
    wait_said(&a, "DRAIN");
    wait_said(&a, "LEFT");
    close_host(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_member_stuck__keeps_events_within_bounds),
        cmocka_unit_test(test_member_stuck__hears_the_last_notice_and_all_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
