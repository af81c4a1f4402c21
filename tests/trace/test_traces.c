/* SPDX-License-Identifier: MIT
 * tests/trace/test_traces.c - what a fleet says and hears, word for word, in the cases that matter.
 *
 * Agents of the shipped code over the bus and the store of tests/unit/agents.h, in virtual time.
 * Each case has to give tests/trace/NAME.trace; UPDATE=1 writes it anew, for you to read.
 */
#include "tests/unit/agents.h"

struct fleet {
    struct world world;
    struct agent_node *a; /* leads, once it has begun */
    struct agent_node *b;
    struct agent_node *c;
    struct agent_node *o; /* an orchestrator, who only listens */
};

static void begin(struct fleet *f)
{
    struct world *w = &f->world;
    memset(f, 0, sizeof *f);
    f->a = world_join(w, "a", "orders");
    world_run(w, 1000);
    f->b = world_join(w, "b", "ledger");
    f->c = world_join(w, "c", "mail");
    f->o = world_add(w, "o", NULL);
    node_start(f->o, false, true);
    world_run(w, 39000);
    assert_true(node_leads(f->a));
    world_say(w, "-", "the case begins");
}

static void serve_two(struct agent_node *node, const char *more)
{
    const char *names[] = {node->serves, more};
    assert_int_equal(coord_agent_serve(node->agent, names, 2, 1, 0.5), COORD_OK);
    world_say(node->world, node->id, "takes %s over", more);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, AGENT_LOG);
    assert_non_null(text);
    if (file != NULL) {
        assert_true(fread(text, 1, AGENT_LOG - 1, file) > 0);
        fclose(file);
    }
    return text;
}

/* The first line that differs says more than both texts would. */
static void complain(const char *name, const char *was, const char *is)
{
    unsigned line = 1;
    while (*was != '\0' && *was == *is) {
        line += *was == '\n' ? 1U : 0U;
        was++;
        is++;
    }
    print_error("%s.trace differs in line %u, from here on:\n-%.*s\n+%.*s\n"
                "If that is right, write it anew with UPDATE=1 and read it.\n",
                name, line, (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is);
    fail();
}

static void compare(struct fleet *f, const char *name)
{
    char path[256];
    const char *update = getenv("UPDATE");
    (void)snprintf(path, sizeof path, "tests/trace/%s.trace", name);
    if (update != NULL && strcmp(update, "1") == 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(f->world.log, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    char *golden = read_file(path);
    if (strcmp(golden, f->world.log) != 0) {
        complain(name, golden, f->world.log);
    }
    free(golden);
    world_end(&f->world);
}

static void test_traces__clean_leave(void **state)
{
    struct fleet f;
    (void)state;
    begin(&f);
    f.b->drains_for = 5000;
    node_leave(f.b, COORD_INTENT_GRACEFUL, 30000);
    world_run(&f.world, 10000);
    node_kill(f.b);
    world_run(&f.world, 20000);
    serve_two(f.c, "ledger");
    world_run(&f.world, 60000);
    compare(&f, "clean_leave");
}

static void test_traces__preemption_of_the_leader(void **state)
{
    struct fleet f;
    (void)state;
    begin(&f);
    f.a->drains_for = 100000;
    node_leave(f.a, COORD_INTENT_PREEMPTION, 120000);
    world_run(&f.world, 30000);
    serve_two(f.b, "orders"); /* while its owner still drains */
    world_run(&f.world, 100000);
    node_kill(f.a);
    world_run(&f.world, 60000);
    compare(&f, "preemption");
}

static void test_traces__crash(void **state)
{
    struct fleet f;
    (void)state;
    begin(&f);
    node_kill(f.b);
    world_run(&f.world, 45000);
    world_join(&f.world, "d", "ledger"); /* who joined late, and takes the work */
    world_run(&f.world, 45000);
    compare(&f, "crash");
}

static void test_traces__partition_and_heal(void **state)
{
    struct fleet f;
    (void)state;
    begin(&f);
    world_say(&f.world, "-", "c is cut off from the bus");
    f.c->bus_cut = true;
    world_run(&f.world, 40000);
    world_say(&f.world, "-", "c is back");
    f.c->bus_cut = false;
    world_run(&f.world, 40000);
    world_say(&f.world, "-", "a, who leads, is cut off from everything");
    f.a->bus_cut = true;
    f.a->store_cut = true;
    world_run(&f.world, 60000);
    world_say(&f.world, "-", "a is back");
    f.a->bus_cut = false;
    f.a->store_cut = false;
    world_run(&f.world, 60000);
    compare(&f, "partition_and_heal");
}

static void test_traces__restart_under_one_id(void **state)
{
    struct fleet f;
    (void)state;
    begin(&f);
    node_kill(f.b);
    world_run(&f.world, 5000);
    node_start(f.b, true, false);
    world_run(&f.world, 60000);
    compare(&f, "restart_under_one_id");
}

static void test_traces__leader_change_while_an_orphan_is_open(void **state)
{
    struct fleet f;
    (void)state;
    begin(&f);
    node_kill(f.b);
    world_run(&f.world, 25000);
    node_kill(f.a); /* it has reported the ledger */
    world_run(&f.world, 60000);
    assert_true(node_leads(f.c));
    serve_two(f.c, "ledger");
    world_run(&f.world, 40000);
    compare(&f, "leader_change");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traces__clean_leave),
        cmocka_unit_test(test_traces__preemption_of_the_leader),
        cmocka_unit_test(test_traces__crash),
        cmocka_unit_test(test_traces__partition_and_heal),
        cmocka_unit_test(test_traces__restart_under_one_id),
        cmocka_unit_test(test_traces__leader_change_while_an_orphan_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
