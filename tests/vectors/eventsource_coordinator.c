/* SPDX-License-Identifier: MIT
 * tests/vectors/eventsource_coordinator.c - the sections that need a coordinator.
 */
#include "coord/compatible.h"
#include "tests/vectors/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PEERS_MAX = 256
};

/* An elector that does what the file says of it. */
struct stub {
    bool leading;
    bool renews;
    bool release_works;
};

static bool stub_is_leader(void *ctx, uint64_t *fence)
{
    const struct stub *stub = ctx;
    *fence = 1;
    return stub->leading;
}

static enum coord_err stub_renew(void *ctx)
{
    const struct stub *stub = ctx;
    return stub->leading && stub->renews ? COORD_OK : COORD_E_NOT_LEADER;
}

static enum coord_err stub_release(void *ctx)
{
    struct stub *stub = ctx;
    if (!stub->release_works) {
        return COORD_E_UNREACHABLE;
    }
    stub->leading = false;
    return COORD_OK;
}

struct run {
    struct vectors *v;
    enum coord_form form;
    struct coord_compatible *coordinator;
    struct stub stub;
    struct coord_leadership leadership;
    json_t *called; /* by callbacks, in the manner of the file */
    int64_t now;
};

/* ---- making and asking ---- */

static bool flag(const json_t *tree, const char *key, bool other)
{
    const json_t *value = json_object_get(tree, key);
    return value != NULL ? json_is_true(value) : other;
}

static void make(struct run *run, const json_t *id, double timeout, const json_t *elector,
                 bool leading)
{
    struct coord_compatible_config config = COORD_COMPATIBLE_CONFIG_INIT;
    config.instance_id = json_is_string(id) ? json_string_value(id) : "me";
    config.instance_id_bytes = json_is_string(id) ? json_string_length(id) : 2;
    config.timeout_s = timeout;
    run->stub = (struct stub){flag(elector, "is_leader", leading), flag(elector, "renew", true),
                              flag(elector, "release", true)};
    run->leadership =
        (struct coord_leadership){stub_is_leader, stub_renew, stub_release, &run->stub};
    config.leadership = elector != NULL && !json_is_null(elector) ? &run->leadership : NULL;
    if (coord_compatible_new(&config, &run->coordinator) != COORD_OK) {
        fprintf(stderr, "no coordinator could be made\n");
        exit(2);
    }
}

/* A list of the file as a view, which keeps its bytes in `in`. */
static struct coord_value view_of(const json_t *tree, struct bytes *in)
{
    static const struct coord_value absent = {.kind = COORD_KIND_ABSENT};
    struct coord_value value = absent;
    if (tree == NULL) {
        return absent;
    }
    json_t *wrapped = json_pack("{s:O}", "v", tree);
    vectors_encode(wrapped, COORD_FORM_MSGPACK, in);
    json_decref(wrapped);
    struct coord_value map;
    struct coord_walk walk;
    if (coord_view(in->at, in->count, &map) == COORD_FAULT_NONE) {
        coord_walk_begin(&map, &walk);
        if (!coord_walk_next(&walk, NULL, &value)) {
            return absent;
        }
    }
    return value;
}

static json_t *either(const json_t *arg, const char *one, const char *other)
{
    json_t *value = json_object_get(arg, one);
    return value != NULL ? value : json_object_get(arg, other);
}

/* ---- creating ---- */

static json_t *create_heartbeat(struct run *run, const json_t *arg)
{
    static struct bytes names;
    static struct bytes out;
    struct coord_value list = view_of(json_object_get(arg, "subscriptions"), &names);
    enum coord_err err = coord_compatible_create_heartbeat(
        run->coordinator, &list, json_integer_value(either(arg, "in_flight_count", "in_flight")),
        vectors_number(either(arg, "load_factor", "load"), 0.0), run->now, run->form, out.at,
        sizeof out.at, &out.count);
    return err == COORD_OK ? vectors_decode(run->form, out.at, out.count) : vectors_error();
}

static json_t *create_shutdown(struct run *run, const json_t *arg, const json_t *drain_s)
{
    static struct bytes names;
    static struct bytes data;
    static struct bytes out;
    struct coord_compatible_drain drain = {.intent = COORD_INTENT_GRACEFUL};
    const json_t *intent = json_object_get(arg, "intent");
    if (json_is_string(intent) &&
        !coord_intent_parse(json_string_value(intent), json_string_length(intent), &drain.intent)) {
        return vectors_error();
    }
    const json_t *metadata = json_object_get(arg, "metadata");
    drain.subscriptions = view_of(json_object_get(arg, "subscriptions"), &names);
    drain.in_flight_count = json_integer_value(either(arg, "in_flight_count", "in_flight"));
    drain.drain_s = vectors_number(drain_s, COORD_SEED_DRAIN_S);
    drain.metadata = view_of(json_is_null(metadata) ? NULL : metadata, &data);
    enum coord_err err = coord_compatible_create_shutdown_notification(
        run->coordinator, &drain, run->now, run->form, out.at, sizeof out.at, &out.count);
    return err == COORD_OK ? vectors_decode(run->form, out.at, out.count) : vectors_error();
}

static json_t *create_assignment(struct run *run, const json_t *arg)
{
    static struct bytes names;
    static struct bytes out;
    struct coord_value list = view_of(json_object_get(arg, "subscriptions"), &names);
    const char *target = json_string_value(either(arg, "target_instance_id", "target"));
    enum coord_err err = coord_compatible_create_work_assignment(
        run->coordinator, target != NULL ? target : "", &list,
        json_integer_value(json_object_get(arg, "priority")), run->now, run->form, out.at,
        sizeof out.at, &out.count);
    return err == COORD_OK ? vectors_decode(run->form, out.at, out.count) : vectors_error();
}

static json_t *create(struct run *run, const char *call, const json_t *arg, const json_t *drain)
{
    if (strcmp(call, "create_heartbeat") == 0) {
        return create_heartbeat(run, arg);
    }
    if (strcmp(call, "create_work_assignment") == 0) {
        return create_assignment(run, arg);
    }
    return create_shutdown(run, arg, drain);
}

void run_create(struct vectors *v, const json_t *entry, enum coord_form form)
{
    struct run run = {.v = v, .form = form};
    const json_t *dict = json_object_get(entry, "dict");
    const char *call = json_string_value(json_object_get(entry, "call"));
    const json_t *expected =
        dict != NULL ? dict
                     : json_object_get(entry, json_object_get(entry, "error") ? "error" : "result");
    run.now = vectors_time(json_object_get(entry, "now"));
    make(&run, json_object_get(dict, "instance_id"), 15.0, json_object_get(entry, "elector"),
         flag(dict, "is_leader", false));
    json_t *drain = either(entry, "drain_timeout_seconds", "drain");
    json_t *made = create(&run, call != NULL ? call : "", dict != NULL ? dict : entry, drain);
    if (json_object_get(entry, "error") != NULL) {
        if (!vectors_is_error(made)) {
            vectors_differ(v, "error", expected, made);
        }
        json_decref(made);
    } else {
        vectors_expect(v, "dict", expected, made);
    }
    const json_t *expired = json_object_get(entry, "is_expired_at_creation");
    const struct coord_record *own = coord_compatible_shutdown_notification(run.coordinator);
    if (expired != NULL && own != NULL) {
        bool is = false;
        enum coord_err err = coord_notice_expired(own, run.now, &is);
        vectors_expect(v, "is_expired_at_creation", expired,
                       err == COORD_OK ? json_boolean(is) : vectors_error());
    }
    coord_compatible_free(run.coordinator);
}

/* ---- scenarios ---- */

static void called(void *ctx, const struct coord_compatible_event *event)
{
    static const char *const kinds[] = {"heartbeat", "peer_shutdown", "peer_timeout",
                                        "work_assignment"};
    struct run *run = ctx;
    json_t *entry = json_array();
    json_array_append_new(entry, json_string(kinds[event->kind]));
    json_array_append_new(entry, vectors_tree(event->id));
    if (event->kind == COORD_COMPATIBLE_WORK_ASSIGNMENT) {
        json_array_append_new(
            entry, vectors_names(&event->message->field[COORD_ASSIGNMENT_SUBSCRIPTIONS]));
    }
    json_array_append_new(run->called, entry);
}

static json_t *check_timeouts(struct run *run)
{
    struct coord_value ids[PEERS_MAX];
    size_t count = 0;
    if (coord_compatible_check_timeouts(run->coordinator, run->now, ids, PEERS_MAX, &count) !=
        COORD_OK) {
        return vectors_error();
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < PEERS_MAX; i++) {
        json_array_append_new(list, vectors_tree(&ids[i]));
    }
    return list;
}

static json_t *handle(struct run *run, const char *op, const json_t *arg)
{
    static struct bytes in;
    struct coord_compatible *c = run->coordinator;
    vectors_encode(arg, run->form, &in);
    enum coord_err err =
        strcmp(op, "heartbeat") == 0
            ? coord_compatible_handle_heartbeat(c, in.at, in.count, run->now)
        : strcmp(op, "shutdown") == 0
            ? coord_compatible_handle_peer_shutdown(c, in.at, in.count, run->now)
            : coord_compatible_handle_work_assignment(c, in.at, in.count, run->now);
    return err == COORD_OK ? json_null() : vectors_error();
}

static json_t *handoff(struct run *run)
{
    enum coord_err err = coord_compatible_initiate_leadership_handoff(run->coordinator);
    return err == COORD_OK             ? json_true()
           : err == COORD_E_NOT_LEADER ? json_false()
                                       : vectors_error();
}

static json_t *remove_peer(struct run *run, const json_t *id)
{
    static struct bytes in;
    struct coord_value value = view_of(id, &in);
    if (json_is_array(id) || json_is_object(id)) {
        return vectors_error(); /* no key of a map in the original; here no peer has such an id */
    }
    return json_boolean(coord_compatible_remove_peer(run->coordinator, &value));
}

static json_t *perform(struct run *run, const char *op, const json_t *arg)
{
    if (strcmp(op, "heartbeat") == 0 || strcmp(op, "shutdown") == 0 ||
        strcmp(op, "assignment") == 0) {
        return handle(run, op, arg);
    }
    if (strcmp(op, "check_timeouts") == 0) {
        return check_timeouts(run);
    }
    if (strcmp(op, "remove_peer") == 0) {
        return remove_peer(run, arg);
    }
    if (strcmp(op, "handoff") == 0) {
        return handoff(run);
    }
    if (strcmp(op, "observe") == 0) {
        return json_null();
    }
    if (strncmp(op, "create_", 7) == 0) {
        return create(run, op, arg, either(arg, "drain", "drain_timeout_seconds"));
    }
    return json_pack("{s:s}", "unknown op", op);
}

static json_t *state_peers(struct run *run)
{
    struct coord_seed_peer peers[PEERS_MAX];
    size_t count = coord_compatible_known_peers(run->coordinator, peers, PEERS_MAX);
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < PEERS_MAX; i++) {
        enum coord_seed_status status = COORD_SEED_UNKNOWN;
        enum coord_err err = coord_seed_status(&peers[i], run->now, &status);
        struct coord_value names = coord_seed_subscriptions(&peers[i]);
        json_t *entry = json_array();
        json_array_append_new(entry, vectors_tree(&peers[i].id));
        json_array_append_new(entry, err == COORD_OK ? json_string(coord_seed_status_name(status))
                                                     : vectors_error());
        json_array_append_new(entry, vectors_names(&names));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *state_draining(struct run *run)
{
    struct coord_seed_peer peers[PEERS_MAX];
    size_t count = 0;
    if (coord_compatible_draining_peers(run->coordinator, run->now, peers, PEERS_MAX, &count) !=
        COORD_OK) {
        return vectors_error();
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < PEERS_MAX; i++) {
        json_array_append_new(list, vectors_tree(&peers[i].id));
    }
    return list;
}

static json_t *state_orphaned(struct run *run)
{
    struct coord_seed_peer peers[PEERS_MAX];
    size_t count = 0;
    if (coord_compatible_orphaned_subscriptions(run->coordinator, run->now, peers, PEERS_MAX,
                                                &count) != COORD_OK) {
        return vectors_error();
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < PEERS_MAX; i++) {
        struct coord_value names = coord_seed_subscriptions(&peers[i]);
        json_t *entry = json_array();
        json_array_append_new(entry, vectors_tree(&peers[i].id));
        json_array_append_new(entry, vectors_names(&names));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *state_own_notice(struct run *run)
{
    static struct bytes out;
    const struct coord_record *own = coord_compatible_shutdown_notification(run->coordinator);
    if (own == NULL) {
        return json_null();
    }
    if (coord_record_write(own, COORD_FORM_JSON, out.at, sizeof out.at, &out.count) != COORD_OK) {
        return vectors_error();
    }
    return vectors_decode(COORD_FORM_JSON, out.at, out.count);
}

static json_t *state_healthy(struct run *run)
{
    size_t count = 0;
    enum coord_err err =
        coord_compatible_healthy_peers(run->coordinator, run->now, NULL, 0, &count);
    return err == COORD_OK ? json_integer((json_int_t)count) : vectors_error();
}

/* What the file tells about the state; a word of it that is unknown is a difference. */
static void expect_state(struct run *run, json_t *state)
{
    const char *key = NULL;
    json_t *expected = NULL;
    json_object_foreach(state, key, expected)
    {
        json_t *found = strcmp(key, "peers") == 0                   ? state_peers(run)
                        : strcmp(key, "healthy_peer_count") == 0    ? state_healthy(run)
                        : strcmp(key, "draining_peers") == 0        ? state_draining(run)
                        : strcmp(key, "orphaned") == 0              ? state_orphaned(run)
                        : strcmp(key, "shutdown_notification") == 0 ? state_own_notice(run)
                        : strcmp(key, "is_shutting_down") == 0
                            ? json_boolean(coord_compatible_is_shutting_down(run->coordinator))
                            : NULL;
        vectors_expect(run->v, key, expected, found);
    }
}

void run_coordinator_scenario(struct vectors *v, const json_t *scenario, enum coord_form form)
{
    struct run run = {.v = v, .form = form};
    make(&run, json_object_get(scenario, "instance_id"),
         vectors_number(json_object_get(scenario, "heartbeat_timeout_seconds"), 15.0),
         json_object_get(scenario, "elector"), true);
    for (int kind = 0; kind <= COORD_COMPATIBLE_WORK_ASSIGNMENT; kind++) {
        if (coord_compatible_on(run.coordinator, (enum coord_compatible_kind)kind, called, &run) !=
            COORD_OK) {
            exit(2);
        }
    }
    size_t at = 0;
    json_t *step = NULL;
    json_t *steps = json_object_get(scenario, "steps");
    json_array_foreach(steps, at, step)
    {
        char what[64];
        const char *op = json_string_value(json_object_get(step, "op"));
        run.now = vectors_time(json_object_get(step, "at"));
        run.called = json_array();
        json_t *result = perform(&run, op != NULL ? op : "", json_object_get(step, "arg"));
        snprintf(what, sizeof what, "step %zu: result", at + 1);
        vectors_expect(v, what, json_object_get(step, "result"), result);
        snprintf(what, sizeof what, "step %zu: callbacks", at + 1);
        vectors_expect(v, what, json_object_get(step, "callbacks"), run.called);
        expect_state(&run, json_object_get(step, "state"));
    }
    coord_compatible_free(run.coordinator);
}
