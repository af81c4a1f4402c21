/* SPDX-License-Identifier: MIT
 * cli/demo_member.c - one member of the fleet of a demo: it stands, sends heartbeats, and leaves
 * when it is told to.
 */
#include "cli/bus_schemes.h"
#include "cli/demo.h"
#include "cli/exits.h"
#include "cli/schemes.h"
#include "runtime/member.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOK_MS = 20,   /* how often it asks what it is to work on */
    DRAIN_MS = 1000 /* what it takes to end its work */
};

const char *const cli_demo_works[CLI_DEMO_WORKS] = {"ledger", "orders", "mail"};

struct member {
    struct coord_runtime *runtime;
    struct coord_member *member;
    coord_ms drained_at; /* COORD_NEVER: it does not leave */
    bool left;
};

_Noreturn static void fail(struct cli_demo_page *page, enum coord_err code)
{
    atomic_store(&page->failed, (int)code);
    _exit(CLI_FAILED);
}

static void on_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    (void)ctx;
    (void)election;
    (void)edge;
}

static void on_event(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    struct member *m = ctx;
    (void)member;
    if (event->kind == COORD_AGENT_EVENT_DRAIN) {
        m->drained_at = coord_ms_min(coord_clock_now() + DRAIN_MS, event->drain_by);
    } else if (event->kind == COORD_AGENT_EVENT_LEFT) {
        m->left = true;
    }
}

static void join(struct cli_demo_page *page, int worker, const char *uri, const char *bus,
                 struct member *m)
{
    struct coord_election_config election = COORD_ELECTION_CONFIG_INIT;
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    election.name = "fleet";
    election.name_bytes = strlen("fleet");
    election.identity = cli_demo_names[worker];
    election.identity_bytes = strlen(cli_demo_names[worker]);
    config.timeout = CLI_DEMO_TIMEOUT;
    config.explicit_drain = true;
    config.fn = on_event;
    config.ctx = m;
    if (coord_runtime_new(NULL, &m->runtime, &error) != COORD_OK ||
        coord_election_open(m->runtime, cli_schemes, uri, &election, &config.election, &error) !=
            COORD_OK ||
        coord_election_on_edge(config.election, on_edge, NULL) != COORD_OK ||
        coord_bus_open(m->runtime, cli_bus_schemes, bus, NULL, &config.bus, &error) != COORD_OK ||
        coord_member_open(m->runtime, &config, &m->member, &error) != COORD_OK) {
        fail(page, error.code != COORD_OK ? error.code : COORD_E_NO_MEMORY);
    }
}

static void serve(struct cli_demo_page *page, const struct member *m, unsigned works)
{
    const char *names[CLI_DEMO_WORKS];
    size_t count = 0;
    for (unsigned i = 0; i < CLI_DEMO_WORKS; i++) {
        if ((works >> i & 1u) != 0) {
            names[count++] = cli_demo_works[i];
        }
    }
    const enum coord_err code = coord_member_serve(m->member, names, count, 0, 0.0);
    if (code != COORD_OK) {
        fail(page, code);
    }
}

void cli_demo_be_member(struct cli_demo_page *page, int worker, const char *uri, const char *bus)
{
    struct member m = {.drained_at = COORD_NEVER};
    unsigned served = 0;
    signal(SIGINT, SIG_IGN); /* the story ends them all */
    signal(SIGTERM, SIG_IGN);
    while (atomic_load(&page->members[worker].begun) == 0) {
        poll(NULL, 0, LOOK_MS);
    }
    join(page, worker, uri, bus, &m);
    while (!m.left) {
        const unsigned works = atomic_load(&page->members[worker].works);
        struct pollfd wait = {.fd = coord_runtime_fd(m.runtime), .events = POLLIN};
        if (works != served) {
            serve(page, &m, works);
            served = works;
        }
        if (coord_clock_now() >= m.drained_at) {
            COORD_IGNORE(coord_member_drained(m.member) != COORD_OK, "never forked");
            m.drained_at = COORD_NEVER;
        }
        if (coord_runtime_process(m.runtime) != COORD_OK) {
            fail(page, COORD_E_FORKED);
        }
        poll(&wait, 1, LOOK_MS);
    }
    coord_runtime_free(m.runtime);
    _exit(CLI_DONE);
}
