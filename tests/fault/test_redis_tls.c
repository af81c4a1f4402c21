/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_tls.c - elections over TLS, and the certificates that are not believed.
 */
#include "electors/redis.h"

#include "tests/support/fleet.h"
#include "tests/support/redis_tls.h"
#include "tests/support/support.h"

enum {
    TTL = 600
};

struct world {
    struct redis_tls tls;
    struct fleet fleet;
    char other[96]; /* a certificate that the server does not have */
    char uri[512];
};

static int set_up(void **state)
{
    static struct world w;
    char spare[96];
    memset(&w, 0, sizeof w);
    *state = &w;
    redis_tls_start(&w.tls);
    snprintf(w.other, sizeof w.other, "%s/other.pem", w.tls.folder);
    snprintf(spare, sizeof spare, "%s/spare.pem", w.tls.folder);
    redis_tls_certify(w.other, spare);
    fleet_init(&w.fleet, coord_redis_elector());
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    fleet_fini(&w->fleet);
    redis_tls_stop(&w->tls);
    return 0;
}

static struct fleet_member *stand(struct world *w)
{
    const struct fleet_member_options options = {
        .name = "tls", .identity = "anna", .uri = w->uri, .ttl = TTL, .private = true};
    struct fleet_member *member = fleet_add(&w->fleet, &options);
    if (member == NULL && w->fleet.error.code == COORD_E_NO_TLS) {
        skip_because("this build has no TLS");
    }
    if (member != NULL) {
        coord_lease_stand(member->lease, fleet_now());
    }
    return member;
}

static struct fleet_member *join(struct world *w, const char *host, int port, const char *ca,
                                 const char *more)
{
    snprintf(w->uri, sizeof w->uri, "rediss://%s:%d?coord.tls_ca=%s%s", host, port, ca, more);
    return stand(w);
}

static bool has_failed(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code != COORD_OK;
}

static void assert_refused(struct world *w, struct fleet_member *member, const char *words)
{
    fleet_until(&w->fleet, has_failed, member);
    if (strstr(member->lease->error.text, words) == NULL) {
        fail_msg("%s", member->lease->error.text);
    }
}

static void test_tls__carries_an_election(void **state)
{
    struct world *w = *state;
    struct fleet_member *anna = join(w, "127.0.0.1", w->tls.server.tls_port, w->tls.cert, "");
    assert_non_null(anna);
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_drive(&w->fleet, 2 * TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->lease->error.code, COORD_OK);
    redis_server_kill(&w->tls.server);
    fleet_until(&w->fleet, fleet_leads_not, anna);
    redis_server_again(&w->tls.server);
    fleet_until(&w->fleet, fleet_leads, anna);
}

static void test_tls__asks_sentinels_and_the_server_that_they_name(void **state)
{
    struct world *w = *state;
    static struct redis_server sentinel;
    redis_server_start_sentinel(&sentinel, w->tls.server.tls_port, "main");
    redis_server_kill(&sentinel);
    FILE *file = fopen(sentinel.sentinel, "ae");
    assert_non_null(file);
    fprintf(file,
            "\nport 0\ntls-port %d\ntls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n"
            "tls-auth-clients optional\ntls-replication yes\n",
            sentinel.port, w->tls.cert, w->tls.key, w->tls.cert);
    assert_int_equal(fclose(file), 0);
    redis_server_again(&sentinel);
    snprintf(w->uri, sizeof w->uri, "rediss+sentinel://127.0.0.1:%d/main?coord.tls_ca=%s",
             sentinel.port, w->tls.cert);
    struct fleet_member *anna = stand(w);
    assert_non_null(anna);
    fleet_until(&w->fleet, fleet_leads, anna);
    redis_server_stop(&sentinel);
}

static void test_tls__shows_a_certificate_of_its_own(void **state)
{
    struct world *w = *state;
    char more[256];
    redis_server_do(&w->tls.server, "CONFIG SET tls-auth-clients yes");
    struct fleet_member *without = join(w, "127.0.0.1", w->tls.server.tls_port, w->tls.cert, "");
    assert_non_null(without);
    assert_refused(w, without, "coord.tls_cert");
    fleet_drop(without);
    snprintf(more, sizeof more, "&coord.tls_cert=%s&coord.tls_key=%s", w->tls.cert, w->tls.key);
    struct fleet_member *with = join(w, "127.0.0.1", w->tls.server.tls_port, w->tls.cert, more);
    fleet_until(&w->fleet, fleet_leads, with);
}

static void test_tls__refuses_whom_it_does_not_trust(void **state)
{
    struct world *w = *state;
    struct fleet_member *stranger = join(w, "127.0.0.1", w->tls.server.tls_port, w->other, "");
    assert_non_null(stranger);
    assert_refused(w, stranger, "certificate is refused");
    struct fleet_member *misnamed = join(w, "localhost", w->tls.server.tls_port, w->tls.cert, "");
    assert_refused(w, misnamed, "certificate is refused");
}

static void test_tls__to_a_port_without_it_says_so(void **state)
{
    struct world *w = *state;
    static struct redis_server plain;
    static const char *const options[] = {"--port", "auto", NULL};
    redis_server_start(&plain, options);
    struct fleet_member *anna = join(w, "127.0.0.1", plain.port, w->tls.cert, "");
    if (anna != NULL) {
        assert_refused(w, anna, "is it the TLS port");
    }
    redis_server_stop(&plain);
}

static void test_tls__with_files_that_are_not_there_is_refused(void **state)
{
    struct world *w = *state;
    struct fleet_member *anna = join(w, "127.0.0.1", w->tls.server.tls_port, "/nowhere/ca.pem", "");
    assert_non_null(anna);
    assert_refused(w, anna, "coord.tls_ca");
    assert_null(join(w, "127.0.0.1", w->tls.server.tls_port, w->tls.cert, "&coord.tls_cert=x"));
    assert_int_equal(w->fleet.error.code, COORD_E_BAD_OPTION);
}

/* OpenSSL asks for it at the terminal, or on the standard input, where it has not been told. */
static void test_tls__with_a_key_that_needs_a_passphrase_is_refused(void **state)
{
    struct world *w = *state;
    char more[256];
    char locked[96];
    int ends[2];
    snprintf(locked, sizeof locked, "%s/locked.pem", w->tls.folder);
    const char *const argv[] = {"openssl", "ec",      "-in",      w->tls.key, "-out",
                                locked,    "-aes256", "-passout", "pass:x",   NULL};
    redis_tls_openssl(argv);
    const int input = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x\n", 2), 2); /* the right answer, if it asks */
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    snprintf(more, sizeof more, "&coord.tls_cert=%s&coord.tls_key=%s", w->tls.cert, locked);
    struct fleet_member *anna = join(w, "127.0.0.1", w->tls.server.tls_port, w->tls.cert, more);
    assert_non_null(anna);
    assert_refused(w, anna, "passphrase");
    dup2(input, STDIN_FILENO);
    close(input);
}

#ifndef COORD_HAVE_OPENSSL
/* In a build with it tests/unit/test_redis_without_tls.c looks at the same. */
static void test_tls__is_missing_from_a_build_without_it_by_name(void **state)
{
    struct world *w = *state;
    const struct fleet_member_options options = {
        .name = "tls", .identity = "anna", .uri = "rediss://127.0.0.1", .ttl = TTL};
    assert_null(fleet_add(&w->fleet, &options));
    assert_int_equal(w->fleet.error.code, COORD_E_NO_TLS);
    assert_non_null(strstr(w->fleet.error.text, "stunnel"));
}
#endif

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_tls__carries_an_election),
        CASE(test_tls__asks_sentinels_and_the_server_that_they_name),
        CASE(test_tls__shows_a_certificate_of_its_own),
        CASE(test_tls__refuses_whom_it_does_not_trust),
        CASE(test_tls__to_a_port_without_it_says_so),
        CASE(test_tls__with_files_that_are_not_there_is_refused),
        CASE(test_tls__with_a_key_that_needs_a_passphrase_is_refused),
#ifndef COORD_HAVE_OPENSSL
        CASE(test_tls__is_missing_from_a_build_without_it_by_name),
#endif
    };
#ifndef COORD_HAVE_OPENSSL
    /* A build without TLS has one behaviour to test: that it says so. */
    cmocka_set_test_filter("*is_missing_from_a_build*");
#endif
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_tls", tests, NULL, NULL);
}
