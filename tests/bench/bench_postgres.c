/* SPDX-License-Identifier: MIT
 * tests/bench/bench_postgres.c - the PostgreSQL elector against raw libpq with the same prepared
 * statements, and psycopg2 where it is installed.
 *
 * All over a unix socket to one server that does not wait for its disk, in turns; raw libpq sends
 * acquire and gate in one pipeline, as the elector does, and listens as every candidate does. It
 * prints medians and their ratio. Best read with client and server on one processor: taskset -c 0.
 */
#include "coord/elector.h"
#include "electors/postgres.h"
#include "electors/postgres_sql.h"
#include "runtime/clock.h"
#include "tests/bench/measure.h"
#include "tests/support/postgres_raw.h"
#include "tests/support/postgres_world.h"
#include "tests/support/support.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum {
    ROUNDS = 31,
    OPERATIONS = 200,
    HANDOVERS = 15, /* in a round */
    MANY = 100,
    TTL = 6000
};

static struct postgres_server server;

static void rest(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* ---------------------------------------------------------------- electors */

static struct coord_elector *make(const char *name, const char *identity, struct coord_share *share)
{
    static struct coord_uri uri;
    static uint64_t seed;
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    struct coord_elector *elector = NULL;
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_uri_parse(server.uri, &uri, &error), COORD_OK);
    config.uri = &uri;
    config.name = name;
    config.name_bytes = strlen(name);
    config.identity = identity;
    config.identity_bytes = strlen(identity);
    config.ttl = TTL;
    config.share = share;
    config.seed = ++seed;
    memcpy(config.owner, &config.seed, sizeof config.seed);
    if (coord_elector_new(coord_postgres_elector(), &config, coord_clock_now(), &elector, &error) !=
        COORD_OK) {
        fail_msg("%s", error.text);
    }
    return elector;
}

static void take_edges(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    struct coord_edge edge;
    while (coord_lease_next_edge(lease, &edge)) {
        coord_lease_edge_done(lease, coord_clock_now());
    }
}

static bool leads(struct coord_elector *elector)
{
    return coord_elector_leading_at(elector, coord_clock_now());
}

/* Wait for the sessions of some electors, and let each do what it can. */
static void turn(struct coord_elector *const *electors, size_t waited_for, size_t count)
{
    struct pollfd fds[2 * COORD_DESCRIPTORS_MAX];
    nfds_t used = 0;
    coord_ms at = COORD_NEVER;
    for (size_t i = 0; i < waited_for; i++) {
        struct coord_descriptor wanted[COORD_DESCRIPTORS_MAX];
        const size_t found = coord_elector_descriptors(electors[i], wanted);
        for (size_t k = 0; k < found; k++) {
            fds[used++] = (struct pollfd){
                .fd = wanted[k].fd,
                .events = (short)((wanted[k].read ? POLLIN : 0) | (wanted[k].write ? POLLOUT : 0))};
        }
        at = coord_ms_min(at, coord_elector_deadline(electors[i]));
    }
    poll(fds, used, (int)coord_ms_min(coord_ms_sub(at, coord_clock_now()), 100));
    for (size_t i = 0; i < count; i++) {
        coord_elector_process(electors[i], coord_clock_now());
        take_edges(electors[i]);
    }
}

static void acquire(struct coord_elector *elector)
{
    coord_lease_stand(coord_elector_lease(elector), coord_clock_now());
    coord_elector_process(elector, coord_clock_now());
    while (!leads(elector)) {
        turn(&elector, 1, 1);
    }
    take_edges(elector);
}

static void resign(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    coord_lease_withdraw(lease, coord_clock_now());
    take_edges(elector);
    coord_elector_process(elector, coord_clock_now());
    take_edges(elector);
    while (!coord_lease_settled(lease)) {
        turn(&elector, 1, 1);
    }
}

static void renew_all(struct coord_elector *const *electors, size_t count)
{
    size_t left = count;
    for (size_t i = 0; i < count; i++) {
        coord_lease_renew(coord_elector_lease(electors[i]), coord_clock_now());
    }
    for (size_t i = 0; i < count; i++) {
        coord_elector_process(electors[i], coord_clock_now());
    }
    while (left > 0) {
        turn(electors, 1, count);
        left = 0;
        for (size_t i = 0; i < count; i++) {
            left += coord_elector_lease(electors[i])->request.verb != COORD_VERB_NONE;
        }
    }
}

/* ---------------------------------------------------------------- measures */

static void measure_pairs(struct postgres_raw *raw, const char *name)
{
    double values[2][ROUNDS];
    struct coord_share share = {.first = NULL};
    struct coord_elector *elector = make("ours", "ours", &share);
    acquire(elector);
    resign(elector);
    for (int round = 0; round < ROUNDS; round++) {
        double sum[2] = {0, 0};
        /* One by one, so that what else runs on the machine disturbs both alike. */
        for (int i = 0; i < OPERATIONS; i++) {
            const double start = now_us();
            postgres_raw_acquire(raw, name);
            postgres_raw_release(raw);
            const double between = now_us();
            acquire(elector);
            resign(elector);
            sum[0] += between - start;
            sum[1] += now_us() - between;
        }
        values[0][round] = sum[0] / OPERATIONS;
        values[1][round] = sum[1] / OPERATIONS;
    }
    const double floor = median(values[0], ROUNDS);
    const double ours = median(values[1], ROUNDS);
    printf("postgres acquire+release  %7.1f us   raw %7.1f us   %.3fx\n", ours, floor,
           ours / floor);
    coord_elector_free(elector, false);
}

/* Of a NOTIFY that is heard and answered by one acquire. */
static double floor_of_handover(struct postgres_raw *raw, PGconn *other, const char *name)
{
    char notify[64];
    double sum = 0;
    snprintf(notify, sizeof notify, "notify %s", raw->channel);
    for (int i = 0; i < HANDOVERS; i++) {
        rest(20); /* as below */
        const double start = now_us();
        PQclear(PQexec(other, notify));
        postgres_raw_hear(raw, 1000);
        postgres_raw_acquire(raw, name);
        sum += now_us() - start;
        postgres_raw_release(raw);
        postgres_raw_hear(raw, 5);
    }
    return sum / HANDOVERS;
}

static bool is_told(struct coord_elector *elector)
{
    const struct coord_lease *lease = coord_elector_lease(elector);
    return lease->last_outcome == COORD_HELD && lease->request.verb == COORD_VERB_NONE;
}

static double handover(struct coord_elector **pair)
{
    double sum = 0;
    for (int i = 0; i < HANDOVERS; i++) {
        struct coord_elector *from = pair[i % 2];
        struct coord_elector *to = pair[1 - i % 2];
        coord_lease_stand(coord_elector_lease(to), coord_clock_now());
        do {
            turn(pair, 2, 2);
        } while (!is_told(to));
        rest(20); /* it has been waiting for a while, as candidates have */
        turn(pair, 2, 2);
        const double start = now_us();
        coord_lease_withdraw(coord_elector_lease(from), coord_clock_now());
        take_edges(from);
        coord_elector_process(from, coord_clock_now());
        while (!leads(to)) {
            turn(pair, 2, 2);
        }
        sum += now_us() - start;
        take_edges(to);
    }
    coord_elector_process(pair[HANDOVERS % 2], coord_clock_now());
    return sum / HANDOVERS;
}

static void measure_handover(struct postgres_raw *raw, const char *name)
{
    double values[2][ROUNDS];
    struct coord_share shares[2] = {{.first = NULL}};
    PGconn *other = postgres_server_connect(&server);
    struct coord_elector *pair[] = {make("pair", "a", &shares[0]), make("pair", "b", &shares[1])};
    for (int round = 0; round < ROUNDS; round++) {
        values[0][round] = floor_of_handover(raw, other, name);
        acquire(pair[0]);
        values[1][round] = handover(pair);
        resign(pair[HANDOVERS % 2]);
    }
    const double floor = median(values[0], ROUNDS);
    const double ours = median(values[1], ROUNDS);
    printf("postgres hand-over        %7.1f us   raw %7.1f us   %.3fx\n", ours, floor,
           ours / floor);
    coord_elector_free(pair[0], false);
    coord_elector_free(pair[1], false);
    PQfinish(other);
}

/* From the superuser's word to the leader's "no". A new name each time leads at once. */
static void measure_fatal(void)
{
    double values[ROUNDS];
    char name[32];
    PGconn *other = postgres_server_connect(&server);
    for (int round = 0; round < ROUNDS; round++) {
        struct coord_share share = {.first = NULL};
        snprintf(name, sizeof name, "ended %d", round);
        struct coord_elector *elector = make(name, "ours", &share);
        acquire(elector);
        rest(20); /* it is in the middle of nothing */
        turn(&elector, 1, 1);
        const double start = now_us();
        PQclear(PQexec(other, "select pg_terminate_backend(pid) from pg_locks where locktype = "
                              "'advisory'"));
        while (leads(elector)) {
            turn(&elector, 1, 1);
        }
        values[round] = now_us() - start;
        coord_elector_free(elector, false);
    }
    const double usual = median(values, ROUNDS); /* sorts them */
    printf("postgres loss on FATAL    %7.1f us   at most %.1f us\n", usual, values[ROUNDS - 1]);
    PQfinish(other);
}

static void measure_renewals(struct postgres_raw *raw, const char *name)
{
    static struct coord_elector *electors[MANY];
    static const size_t counts[] = {1, 10, MANY};
    struct coord_share share = {.first = NULL};
    double values[ROUNDS];
    char names[32];
    size_t open = 0;
    postgres_raw_acquire(raw, name);
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_us();
        for (int i = 0; i < OPERATIONS; i++) {
            postgres_raw_renew(raw);
        }
        values[round] = (now_us() - start) / OPERATIONS;
    }
    postgres_raw_release(raw);
    const double floor = median(values, ROUNDS);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        while (open < counts[c]) {
            snprintf(names, sizeof names, "many %zu", open);
            electors[open] = make(names, "ours", &share);
            acquire(electors[open++]);
        }
        renew_all(electors, open);
        for (int round = 0; round < ROUNDS; round++) {
            const double start = now_us();
            for (int i = 0; i < OPERATIONS / 10; i++) {
                renew_all(electors, open);
            }
            values[round] = (now_us() - start) / (OPERATIONS / 10);
        }
        const double ours = median(values, ROUNDS);
        printf("postgres renew %3zu        %7.1f us   raw one %3.1f us  %.1f us each\n", open, ours,
               floor, ours / (double)open);
    }
    while (open > 0) {
        coord_elector_free(electors[--open], false);
    }
}

/* ---------------------------------------------------------------- psycopg2 */

static const char program[] =
    "import json, sys, time, statistics\n"
    "try:\n"
    "    import psycopg2\n"
    "except ImportError:\n"
    "    sys.exit(3)\n"
    "j = json.load(sys.stdin)\n"
    "c = psycopg2.connect(j['uri'])\n"
    "c.autocommit = True\n"
    "q = c.cursor()\n"
    "for n in ('acquire', 'gate', 'release'):\n"
    "    q.execute('prepare ' + n + ' as ' + j[n])\n"
    "a = 'execute acquire(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)'\n"
    "v = (j['name'], j['key'], j['owner'], 'psycopg2', 6000, j['run'], j['timeline'], 0, 'safe', "
    "None)\n"
    "def pair():\n"
    "    q.execute(a, v)\n"
    "    f = q.fetchone()[2]\n"
    "    q.execute('execute gate(%s,%s)', (j['key'], j['owner']))\n"
    "    q.execute('execute release(%s,%s,%s,true,null,0,%s)', (j['key'], j['owner'], f, "
    "j['channel']))\n"
    "r = []\n"
    "for i in range(31):\n"
    "    s = time.perf_counter()\n"
    "    for k in range(100): pair()\n"
    "    r.append((time.perf_counter() - s) / 100)\n"
    "print('postgres psycopg2         %7.1f us' % (statistics.median(r) * 1e6))\n";

static void write_json(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":\"", key);
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            fputs("\\n", out);
        } else {
            fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
        }
    }
    fputs("\",", out);
}

static void measure_psycopg2(const struct postgres_raw *raw, const char *name)
{
    char path[128];
    char command[512];
    snprintf(path, sizeof path, "%s/bench.py", server.folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(program, out);
    fclose(out);
    fflush(stdout);
    /* The system's own Python, where another one comes first and has no psycopg2. */
    snprintf(command, sizeof command,
             "if python3 -c 'import psycopg2' 2>/dev/null; then exec python3 %s; fi; "
             "exec /usr/bin/python3 %s",
             path, path);
    FILE *python = popen(command, "w");
    assert_non_null(python);
    fputc('{', python);
    write_json(python, "uri", server.uri);
    write_json(python, "acquire", coord__postgres_sql(COORD__POSTGRES_ACQUIRE)->text);
    write_json(python, "gate", coord__postgres_sql(COORD__POSTGRES_GATE)->text);
    write_json(python, "release", coord__postgres_sql(COORD__POSTGRES_RELEASE)->text);
    write_json(python, "name", name);
    write_json(python, "key", raw->key);
    write_json(python, "owner", POSTGRES_RAW_OWNER);
    write_json(python, "run", raw->run);
    write_json(python, "timeline", raw->timeline);
    write_json(python, "channel", raw->channel);
    fputs("\"end\":0}\n", python);
    if (pclose(python) != 0) {
        printf("postgres psycopg2         is not measured: python3 with psycopg2 is not here\n");
    }
}

static void run(void **state)
{
    static const char name[] = "raw";
    struct postgres_raw raw;
    (void)state;
    postgres_server_start(&server, NULL);
    world_prepare(&server);
    postgres_raw_open(&raw, &server, name);
    measure_pairs(&raw, name);
    measure_psycopg2(&raw, name);
    measure_handover(&raw, name);
    measure_fatal();
    measure_renewals(&raw, name);
    postgres_raw_close(&raw);
    postgres_server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(run)};
    if (postgres_server_programs() == NULL) {
        printf("postgres: not measured: there is no PostgreSQL server here\n");
        return 0;
    }
    return cmocka_run_group_tests_name("bench_postgres", tests, NULL, NULL);
}
