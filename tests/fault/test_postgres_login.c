/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_login.c - from a host name to a session: a resolver, TLS, a password
 * that a file keeps, and servers that are not good enough.
 */
#include "tests/support/postgres_world.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
    PATH = 96
};

static char folder[64];
static char cert[PATH];
static char key[PATH];
static char other[PATH]; /* a certificate that the server does not have */
static char passwords[PATH];

/* ---------------------------------------------------------------- a server with TLS */

static bool make_certificate(const char *to, const char *key_to)
{
    char command[512];
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout %s "
             "-out %s -days 2 -subj '/CN=coord test' -addext subjectAltName=DNS:db.coord.test "
             "2>/dev/null",
             key_to, to);
    return system(command) == 0;
}

static void write_passwords(void)
{
    FILE *file = fopen(passwords, "w");
    assert_non_null(file);
    fprintf(file, "db.coord.test:*:*:secure:s3cret\n");
    fclose(file);
    assert_int_equal(chmod(passwords, 0600), 0);
}

static int start(void **state)
{
    (void)state;
    static char cert_option[PATH + 16];
    static char key_option[PATH + 16];
    static const char *const options[] = {"port=auto", "ssl=on", cert_option, key_option, NULL};
    char spare[PATH];
    scratch_make("tls", folder, sizeof folder);
    assert_int_equal(chmod(folder, 0711), 0);
    snprintf(cert, sizeof cert, "%s/cert.pem", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    snprintf(other, sizeof other, "%s/other.pem", folder);
    snprintf(spare, sizeof spare, "%s/spare.pem", folder);
    snprintf(passwords, sizeof passwords, "%s/passwords", folder);
    snprintf(cert_option, sizeof cert_option, "ssl_cert_file=%s", cert);
    snprintf(key_option, sizeof key_option, "ssl_key_file=%s", key);
    if (!make_certificate(cert, key) || !make_certificate(other, spare)) {
        fail_msg("%s", "no certificate: is openssl installed?");
    }
    postgres_server_give_away(key); /* the server takes no key of anybody else's */
    write_passwords();
    if (world_start_with(options) != 0 || world_server.pid == 0) {
        return 0;
    }
    postgres_server_do(&world_server, "set password_encryption = 'scram-sha-256'; "
                                      "create role secure login password 's3cret'; "
                                      "grant usage on schema coord to secure; "
                                      "grant select, insert, update on coord.term to secure");
    postgres_server_put_in_hba(&world_server, "hostssl all secure 127.0.0.1/32 scram-sha-256\n"
                                              "hostnossl all secure 127.0.0.1/32 reject");
    return 0;
}

static int stop(void **state)
{
    scratch_remove(folder);
    return world_stop(state);
}

static const char *uri_of(const char *host, const char *ca)
{
    static char text[2 * POSTGRES_URI];
    snprintf(text, sizeof text,
             "postgresql://secure@%s:%d/postgres?sslmode=verify-full&sslrootcert=%s&passfile=%s",
             host, world_server.port, ca, passwords);
    return text;
}

/* ---------------------------------------------------------------- a resolver */

struct coord_resolution {
    char host[64];
    unsigned looks;
};

struct answers {
    const char *address; /* NULL: there is no such name */
    unsigned asked;
    unsigned open; /* not given back */
};

static struct coord_resolution *begin(void *ctx, const char *host)
{
    struct answers *answers = ctx;
    struct coord_resolution *resolution = calloc(1, sizeof *resolution);
    assert_non_null(resolution);
    snprintf(resolution->host, sizeof resolution->host, "%s", host);
    answers->asked++;
    answers->open++;
    return resolution;
}

static enum coord_err look(void *ctx, struct coord_resolution *resolution,
                           struct coord_addresses *out, struct coord_error *error)
{
    const struct answers *answers = ctx;
    if (resolution->looks++ < 2) {
        return COORD_E_BUSY;
    }
    if (answers->address == NULL) {
        return coord_error_set(error, COORD_E_NAME_UNRESOLVED, "there is no host %s: correct it",
                               resolution->host);
    }
    out->count = 1;
    snprintf(out->text[0], sizeof out->text[0], "%s", answers->address);
    return COORD_OK;
}

static void give_back(void *ctx, struct coord_resolution *resolution)
{
    struct answers *answers = ctx;
    answers->open--;
    free(resolution);
}

/* ---------------------------------------------------------------- */

static void test_postgres_login__by_a_name_over_tls_with_a_password_from_a_file(void **state)
{
    (void)state;
    struct world w;
    struct answers answers = {.address = "127.0.0.1"};
    const struct coord_resolver resolver = {&answers, begin, look, give_back};
    world_open(&w, "secure");
    w.wish.ttl = 3000;
    w.wish.resolver = &resolver;
    w.wish.uri = uri_of("db.coord.test", cert);
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    assert_true(answers.asked > 0);
    assert_int_equal(postgres_server_ask(&world_server,
                                         "select ssl from pg_stat_ssl where pid = %d",
                                         (int)world_holder(&w)),
                     1);
    candidates_run(&w.all, 1500); /* it renews, and listens */
    assert_true(candidate_leads(a));
    candidate_resign(&w.all, a);
    world_close(&w);
    assert_int_equal(answers.open, 0);
}

static void expect_refusal(const char *uri, const char *word)
{
    struct world w;
    struct answers answers = {.address = "127.0.0.1"};
    const struct coord_resolver resolver = {&answers, begin, look, give_back};
    world_open(&w, "refused");
    w.wish.resolver = &resolver;
    w.wish.uri = uri;
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_UNREACHABLE);
    assert_non_null(strstr(a->lease->error.text, word));
    assert_null(strstr(a->lease->error.text, "s3cret"));
    world_close(&w);
    assert_int_equal(answers.open, 0);
}

static void test_postgres_login__a_certificate_of_another_name_is_refused(void **state)
{
    (void)state;
    expect_refusal(uri_of("impostor.coord.test", cert), "certificate");
}

static void test_postgres_login__a_certificate_of_nobody_known_is_refused(void **state)
{
    (void)state;
    expect_refusal(uri_of("db.coord.test", other), "certificate");
}

static void test_postgres_login__a_name_that_nobody_knows_is_told(void **state)
{
    (void)state;
    struct world w;
    struct answers answers = {.address = NULL};
    const struct coord_resolver resolver = {&answers, begin, look, give_back};
    world_open(&w, "unknown");
    w.wish.resolver = &resolver;
    w.wish.uri = uri_of("db.coord.test", cert);
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_NAME_UNRESOLVED);
    answers.address = "127.0.0.1"; /* it comes to be known */
    candidates_until(&w.all, a, candidate_leads);
    candidate_resign(&w.all, a);
    world_close(&w);
}

/* ---------------------------------------------------------------- an old server */

static size_t put(char *out, char type, const void *body, size_t bytes)
{
    const size_t length = bytes + 4;
    out[0] = type;
    out[1] = 0;
    out[2] = 0;
    out[3] = (char)(length >> 8);
    out[4] = (char)(length & 0xff);
    memcpy(out + 5, body, bytes);
    return bytes + 5;
}

/* Lets everybody in, and says that it is a PostgreSQL of that version. */
static void greet_as(int listener, const char *version)
{
    char hello[1024];
    char greeting[256];
    char parameter[64] = "server_version";
    const size_t name = strlen(parameter) + 1;
    const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(client >= 0);
    assert_true(recv(client, hello, sizeof hello, 0) > 0);
    snprintf(parameter + name, sizeof parameter - name, "%s", version);
    size_t bytes = put(greeting, 'R', "\0\0\0\0", 4);
    bytes += put(greeting + bytes, 'S', parameter, name + strlen(version) + 1);
    bytes += put(greeting + bytes, 'Z', "I", 1);
    assert_int_equal(send(client, greeting, bytes, MSG_NOSIGNAL), bytes);
    close(client); /* what was sent arrives all the same */
}

static void test_postgres_login__a_server_before_14_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct world w;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char uri[POSTGRES_URI];
    world_open(&w, "old");
    snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.5432", folder);
    snprintf(uri, sizeof uri, "postgresql://postgres@/postgres?host=%s&port=5432", folder);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 4), 0);
    w.wish.uri = uri;
    w.wish.ttl = 20000; /* its patience with one login */
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_turn(&w.all, 0);
    candidates_turn(&w.all, 0);
    greet_as(listener, "13.14 (Debian 13.14-0+deb11u1)");
    candidates_until_error(&w.all, a, COORD_E_SERVER_TOO_OLD);
    assert_non_null(strstr(a->lease->error.text, "PostgreSQL 13: coord needs 14"));
    world_abandon(&w);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_login__by_a_name_over_tls_with_a_password_from_a_file),
        cmocka_unit_test(test_postgres_login__a_certificate_of_another_name_is_refused),
        cmocka_unit_test(test_postgres_login__a_certificate_of_nobody_known_is_refused),
        cmocka_unit_test(test_postgres_login__a_name_that_nobody_knows_is_told),
        cmocka_unit_test(test_postgres_login__a_server_before_14_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
