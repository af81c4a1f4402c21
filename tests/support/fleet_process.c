/* SPDX-License-Identifier: MIT
 * tests/support/fleet_process.c - see fleet_process.h.
 */
#include "tests/support/fleet_process.h"

#include "tests/support/support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    GUARD = 90000 /* ms, against hanging */
};

const char *const fleet_doomed[FLEET_DOOMED] = {"halted-1", "halted-2", "killed-1", "killed-2"};

/* ---------------------------------------------------------------- what it is told */

/* FLEET_DOOMED: none of them. */
static unsigned doomed(const char *text, size_t bytes)
{
    unsigned i = 0;
    while (i < FLEET_DOOMED &&
           (bytes != strlen(fleet_doomed[i]) || memcmp(text, fleet_doomed[i], bytes) != 0)) {
        i++;
    }
    return i;
}

static void hear_of_peer(struct fleet_news *news, const struct coord_event *event)
{
    const unsigned i = doomed(event->peer.id, event->peer.id_bytes);
    if (i < FLEET_DOOMED) {
        news->silent[i]++;
    } else {
        news->wrongly_silent++;
    }
}

static void hear_of_orphan(struct fleet_news *news, const struct coord_event *event)
{
    const unsigned i = doomed(event->orphan.subscription, event->orphan.subscription_bytes);
    if (i < FLEET_DOOMED) {
        news->opened[i] += event->kind == COORD_EVENT_ORPHAN_OPENED ? 1 : 0;
        news->resolved[i] += event->kind == COORD_EVENT_ORPHAN_RESOLVED ? 1 : 0;
    }
}

void fleet_news_hear(struct fleet_news *news, const struct coord_agent_event *event)
{
    if (event->kind != COORD_AGENT_EVENT_FLEET) {
        return;
    }
    if (event->fleet->kind == COORD_EVENT_PEER_SILENT) {
        hear_of_peer(news, event->fleet);
    } else if (event->fleet->kind == COORD_EVENT_DUPLICATE_IDENTITY) {
        news->duplicates++;
    } else if (event->fleet->kind >= COORD_EVENT_ORPHAN_OPENED) {
        hear_of_orphan(news, event->fleet);
    }
}

/* ---------------------------------------------------------------- pace */

void fleet_pace_turn(struct fleet_pace *pace)
{
    const coord_ms now = coord_clock_now();
    if (pace->last != 0) {
        pace->longest = coord_ms_max(pace->longest, now - pace->last);
    }
    pace->last = now;
}

/* docs/guarantees.md: I + pause + spread of delays + a tick < T. The server and what lies between
 * have a quarter of T, or are kept from running for as long as we are. */
bool fleet_pace_is_good(const struct fleet_pace *pace)
{
    const coord_ms spread = coord_ms_max(FLEET_T / 4, pace->longest);
    return FLEET_T / 4 + pace->longest + spread + 100 < FLEET_T;
}

/* ---------------------------------------------------------------- the process */

struct coord_election *fleet_stand(struct coord_runtime *runtime, const struct fleet_store *store,
                                   const char *id)
{
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_election *election = NULL;
    config.name = "fleet";
    config.name_bytes = strlen(config.name);
    config.identity = id;
    config.identity_bytes = strlen(id);
    config.ttl = FLEET_TTL;
    return coord_election_open(runtime, store->electors, store->uri, &config, &election, NULL) ==
                   COORD_OK
               ? election
               : NULL;
}

static void hear(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    (void)member;
    fleet_news_hear(ctx, event);
}

/* In the child there is no test that could fail: it ends, and is missed. */
static struct coord_runtime *begin(const struct fleet_store *store, const char *id,
                                   struct fleet_news *news)
{
    struct coord_runtime *runtime = NULL;
    struct coord_bus *bus = NULL;
    struct coord_member *member = NULL;
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    if (coord_runtime_new(NULL, &runtime, NULL) != COORD_OK ||
        coord_bus_open(runtime, store->buses, store->uri, NULL, &bus, NULL) != COORD_OK) {
        _exit(3);
    }
    config.id = id;
    config.election = fleet_stand(runtime, store, id);
    config.bus = bus;
    config.timeout = FLEET_T;
    config.fn = hear;
    config.ctx = news;
    if (config.election == NULL || coord_member_open(runtime, &config, &member, NULL) != COORD_OK ||
        coord_member_serve(member, &id, 1, 0, 0) != COORD_OK) {
        _exit(3);
    }
    return runtime;
}

static void run(const struct fleet_store *store, const char *id, int end, int report)
{
    struct fleet_report said = {.pace = {.last = 0}};
    struct coord_runtime *runtime = begin(store, id, &said.news);
    struct pollfd wait[] = {{.fd = coord_runtime_fd(runtime), .events = POLLIN},
                            {.fd = end, .events = POLLIN}};
    while (wait[1].revents == 0) {
        coord_runtime_process(runtime);
        fleet_pace_turn(&said.pace);
        if (poll(wait, 2, 20) < 0) {
            _exit(4);
        }
    }
    _exit(write(report, &said, sizeof said) == (ssize_t)sizeof said ? 0 : 5);
}

void fleet_process_start(struct fleet_process *process, const struct fleet_store *store,
                         const char *id)
{
    int end[2];
    int report[2];
    const pid_t parent = getpid();
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    fflush(NULL);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(2);
        }
        close(end[1]);
        close(report[0]);
        run(store, id, end[0], report[1]);
    }
    close(end[0]);
    close(report[1]);
    process->end = end[1];
    process->report = report[0];
}

void fleet_process_signal(const struct fleet_process *process, int number)
{
    assert_true(process->pid > 1);
    assert_int_equal(kill(process->pid, number), 0);
}

static void forget(struct fleet_process *process)
{
    if (process->pid > 1) {
        close(process->end);
        close(process->report);
        process->pid = 0;
    }
}

void fleet_process_kill(struct fleet_process *process)
{
    if (process->pid > 1) {
        kill(process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
        forget(process);
    }
}

struct fleet_report fleet_process_end(struct fleet_process *process)
{
    struct fleet_report report;
    int status = -1;
    struct pollfd wait = {.fd = process->report, .events = POLLIN};
    assert_true(process->pid > 1);
    assert_int_equal(write(process->end, "", 1), 1);
    assert_int_equal(poll(&wait, 1, GUARD), 1);
    assert_int_equal(read(process->report, &report, sizeof report), sizeof report);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    assert_int_equal(status, 0);
    forget(process);
    return report;
}
