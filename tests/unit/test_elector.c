/* SPDX-License-Identifier: MIT
 * tests/unit/test_elector.c - the base object over a backend of a few lines.
 */
#include "coord/elector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    NOW = 1000
};

/* Answers the outstanding request in process() with what the test put here. */
struct script {
    enum coord_outcome outcome;
    enum coord_err code;
    bool silent;
    unsigned requests;
    unsigned abandons;
    unsigned finis;
    bool forked;
};

struct scripted {
    struct script *script;
    struct coord_request request;
};

static enum coord_err scripted_init(struct coord_elector *elector,
                                    const struct coord_elector_config *config,
                                    struct coord_error *error)
{
    struct scripted *state = coord_backend_state(elector);
    assert_null(state->script); /* zeroed */
    state->script = config->backend_ctx;
    if (state->script->code == COORD_E_NOT_LOCAL) {
        return coord_error_set(error, COORD_E_NOT_LOCAL, "refused: use another");
    }
    return COORD_OK;
}

static void scripted_fini(struct coord_elector *elector, bool forked)
{
    struct scripted *state = coord_backend_state(elector);
    state->script->finis++;
    state->script->forked = forked;
}

static void scripted_request(struct coord_elector *elector, const struct coord_request *request,
                             coord_ms now)
{
    (void)now;
    struct scripted *state = coord_backend_state(elector);
    state->request = *request;
    state->script->requests++;
}

static void scripted_abandon(struct coord_elector *elector, coord_ms now)
{
    (void)now;
    struct scripted *state = coord_backend_state(elector);
    state->request.verb = COORD_VERB_NONE;
    state->script->abandons++;
}

static void scripted_process(struct coord_elector *elector, coord_ms now)
{
    struct scripted *state = coord_backend_state(elector);
    if (state->request.verb == COORD_VERB_NONE || state->script->silent) {
        return;
    }
    struct coord_reply reply = {
        .id = state->request.id, .outcome = state->script->outcome, .fence = 41, .retry_in = 500};
    static const struct coord_observation rival = {
        .leading = true, .identity = "rival", .fence = 40};
    reply.leader = reply.outcome == COORD_HELD ? &rival : NULL;
    if (reply.outcome == COORD_FAILED) {
        COORD_IGNORE(coord_error_set(&reply.error, state->script->code, "broken: mend it"),
                     "the code is the script's own");
    }
    state->request.verb = COORD_VERB_NONE;
    coord_backend_reply(elector, &reply, now);
}

static size_t scripted_descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    (void)elector;
    (void)out;
    return 0;
}

static coord_ms scripted_deadline(struct coord_elector *elector)
{
    const struct scripted *state = coord_backend_state(elector);
    return state->request.verb == COORD_VERB_NONE || state->script->silent ? COORD_NEVER : 0;
}

static const char *const scripted_options[] = {"fs", NULL};

static const struct coord_backend_ops scripted_ops = {
    .size = sizeof(struct coord_backend_ops),
    .abi = COORD_BACKEND_ABI,
    .name = "scripted",
    .state_bytes = sizeof(struct scripted),
    .default_ttl = 3000,
    .options = scripted_options,
    .init = scripted_init,
    .fini = scripted_fini,
    .request = scripted_request,
    .abandon = scripted_abandon,
    .process = scripted_process,
    .descriptors = scripted_descriptors,
    .deadline = scripted_deadline,
};

static struct coord_elector_config config_for(struct script *script)
{
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    config.name = "jobs";
    config.name_bytes = 4;
    config.identity = "a{1}";
    config.identity_bytes = 4;
    config.backend_ctx = script;
    config.owner[0] = 0xa7;
    return config;
}

static struct coord_elector *make(struct script *script)
{
    const struct coord_elector_config config = config_for(script);
    struct coord_elector *elector = NULL;
    assert_int_equal(coord_elector_new(&scripted_ops, &config, NOW, &elector, NULL), COORD_OK);
    return elector;
}

static void refuses(const struct coord_elector_config *config, enum coord_err code,
                    const char *word)
{
    struct coord_elector *elector = NULL;
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_elector_new(&scripted_ops, config, NOW, &elector, &error), code);
    assert_null(elector);
    assert_int_equal(error.code, code);
    assert_non_null(strstr(error.text, word));
}

static void test_elector__refuses_bad_names_identities_metadata_and_ttls(void **state)
{
    (void)state;
    struct script script = {.silent = true};
    struct coord_elector_config config = config_for(&script);
    config.name_bytes = 0;
    refuses(&config, COORD_E_BAD_NAME, "name");
    config = config_for(&script);
    config.identity_bytes = 256;
    refuses(&config, COORD_E_BAD_NAME, "identity");
    config = config_for(&script);
    config.metadata_bytes = COORD_METADATA_MAX + 1;
    refuses(&config, COORD_E_BAD_METADATA, "1024");
    config = config_for(&script);
    config.ttl = 99;
    refuses(&config, COORD_E_BAD_TTL, "100ms");
    config = config_for(&script);
    config.grace = 2900;
    refuses(&config, COORD_E_BAD_TTL, "ttl of at least");
    config = config_for(&script);
    config.size = 8;
    refuses(&config, COORD_E_VERSION_MISMATCH, "versions");
    assert_int_equal(script.finis, 0);
}

static void test_elector__passes_on_what_its_backend_refuses(void **state)
{
    (void)state;
    struct script script = {.code = COORD_E_NOT_LOCAL};
    const struct coord_elector_config config = config_for(&script);
    refuses(&config, COORD_E_NOT_LOCAL, "use another");
    assert_int_equal(script.finis, 0);
}

static void test_elector__takes_its_options_from_the_uri_and_refuses_unknown_ones(void **state)
{
    (void)state;
    struct script script = {.silent = true};
    struct coord_uri uri;
    struct coord_elector_config config = config_for(&script);
    config.uri = &uri;
    assert_int_equal(
        coord_uri_parse("file:/x?coord.ttl=6s&coord.priority=3&coord.fs=trust", &uri, NULL),
        COORD_OK);
    struct coord_elector *elector = NULL;
    assert_int_equal(coord_elector_new(&scripted_ops, &config, NOW, &elector, NULL), COORD_OK);
    assert_int_equal(coord_elector_timing(elector)->lease, 6000);
    assert_int_equal(coord_elector_lease(elector)->config.rank, 3);
    coord_elector_free(elector, false);

    assert_int_equal(coord_uri_parse("file:/x?coord.tll=6s", &uri, NULL), COORD_OK);
    refuses(&config, COORD_E_UNKNOWN_OPTION, "coord.tll");
    assert_int_equal(coord_uri_parse("file:/x?coord.ttl=6", &uri, NULL), COORD_OK);
    refuses(&config, COORD_E_BAD_OPTION, "6");
    assert_int_equal(coord_uri_parse("file:/x?coord.ttl=0", &uri, NULL), COORD_OK);
    refuses(&config, COORD_E_BAD_TTL, "100ms");
    assert_int_equal(coord_uri_parse("file:/x?coord.priority=first", &uri, NULL), COORD_OK);
    refuses(&config, COORD_E_BAD_OPTION, "first");
}

static void test_elector__escapes_names_and_writes_the_owner_in_hex(void **state)
{
    (void)state;
    struct script script = {.silent = true};
    struct coord_elector *elector = make(&script);
    size_t bytes = 0;
    assert_string_equal(coord_backend_name(elector), "jobs");
    assert_string_equal(coord_backend_identity(elector), "a%7b1%7d");
    assert_string_equal(coord_backend_owner(elector), "a7000000000000000000000000000000");
    assert_memory_equal(coord_backend_raw_name(elector, &bytes), "jobs", 4);
    assert_int_equal(bytes, 4);
    coord_elector_free(elector, true);
    assert_true(script.forked);
    coord_elector_free(NULL, false);
}

static void test_elector__leads_in_one_call_on_a_store_that_answers_at_once(void **state)
{
    (void)state;
    struct script script = {.outcome = COORD_GRANTED};
    struct coord_elector *elector = make(&script);
    struct coord_explanation why;
    coord_elector_explain(elector, NOW, &why);
    assert_int_equal(why.reason, COORD_REASON_NOT_STANDING);
    coord_lease_stand(coord_elector_lease(elector), NOW);
    coord_elector_process(elector, NOW);
    assert_true(coord_elector_leading_at(elector, NOW));
    coord_elector_explain(elector, NOW, &why);
    assert_int_equal(why.reason, COORD_REASON_LEADING);
    assert_non_null(strstr(why.text, "fence 41"));
    coord_elector_free(elector, false);
}

static void test_elector__gives_up_a_silent_store_and_says_so_to_the_backend(void **state)
{
    (void)state;
    struct script script = {.silent = true};
    struct coord_elector *elector = make(&script);
    coord_lease_stand(coord_elector_lease(elector), NOW);
    coord_elector_process(elector, NOW);
    assert_int_equal(script.requests, 1);
    const coord_ms at = coord_elector_deadline(elector);
    assert_int_equal(at, NOW + coord_elector_timing(elector)->attempt);
    coord_elector_process(elector, at);
    assert_int_equal(script.abandons, 1);
    assert_int_equal(script.requests, 2); /* asked again at once */
    coord_elector_free(elector, false);
}

static void count_records(void *ctx, const struct coord_log_record *record)
{
    unsigned *counts = ctx;
    counts[record->code == COORD_OK ? 1 : 0]++;
    assert_string_equal(record->subject, "jobs");
}

static void test_elector__tells_a_failure_once_and_its_end_once(void **state)
{
    (void)state;
    unsigned counts[2] = {0, 0};
    struct script script = {.outcome = COORD_FAILED, .code = COORD_E_UNREACHABLE};
    struct coord_elector_config config = config_for(&script);
    config.log = (struct coord_log){.fn = count_records, .ctx = counts};
    struct coord_elector *elector = NULL;
    assert_int_equal(coord_elector_new(&scripted_ops, &config, NOW, &elector, NULL), COORD_OK);
    coord_lease_stand(coord_elector_lease(elector), NOW);
    coord_ms now = NOW;
    for (int i = 0; i < 50; i++) {
        coord_elector_process(elector, now);
        now = coord_ms_max(now + 1, coord_elector_deadline(elector));
    }
    assert_true(script.requests > 10);
    assert_int_equal(counts[0], 1);
    struct coord_explanation why;
    coord_elector_explain(elector, now, &why);
    assert_int_equal(why.reason, COORD_REASON_RETRYING);
    assert_int_equal(why.code, COORD_E_UNREACHABLE);
    assert_non_null(strstr(why.text, why.error));
    assert_non_null(strstr(why.text, "asks again in"));
    assert_non_null(strstr(why.error, "mend it"));
    assert_null(strstr(why.error, "asks again"));
    script.outcome = COORD_HELD;
    coord_elector_process(elector, now + 10000);
    assert_int_equal(counts[1], 1);
    coord_elector_explain(elector, now + 10000, &why);
    assert_int_equal(why.reason, COORD_REASON_HELD);
    assert_non_null(strstr(why.text, "rival leads"));
    coord_elector_free(elector, false);
}

static void test_elector__names_every_reason_and_end(void **state)
{
    (void)state;
    for (int i = COORD_REASON_LEADING; i <= COORD_REASON_RESIGNING; i++) {
        assert_string_not_equal(coord_reason_name((enum coord_reason)i), "UNKNOWN");
    }
    for (int i = COORD_END_NONE; i <= COORD_END_LOST; i++) {
        assert_string_not_equal(coord_end_name((enum coord_end)i), "UNKNOWN");
    }
    assert_string_equal(coord_reason_name((enum coord_reason)99), "UNKNOWN");
    assert_string_equal(coord_end_name((enum coord_end)99), "UNKNOWN");
    assert_true(strlen(coord_version()) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elector__refuses_bad_names_identities_metadata_and_ttls),
        cmocka_unit_test(test_elector__passes_on_what_its_backend_refuses),
        cmocka_unit_test(test_elector__takes_its_options_from_the_uri_and_refuses_unknown_ones),
        cmocka_unit_test(test_elector__escapes_names_and_writes_the_owner_in_hex),
        cmocka_unit_test(test_elector__leads_in_one_call_on_a_store_that_answers_at_once),
        cmocka_unit_test(test_elector__gives_up_a_silent_store_and_says_so_to_the_backend),
        cmocka_unit_test(test_elector__tells_a_failure_once_and_its_end_once),
        cmocka_unit_test(test_elector__names_every_reason_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
