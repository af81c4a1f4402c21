/* SPDX-License-Identifier: MIT
 * cli/agent.c - `coordctl agent`: a member of a fleet beside, or around, a program that knows
 * nothing of it.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/fleet.h"
#include "cli/hook.h"
#include "cli/say.h"
#include "cli/schemes.h"
#include "cli/verbs.h"
#include "cli/work.h"
#include "runtime/member.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    LEAVE_WITHIN = 30000, /* told by a signal, or because COMMAND has ended */
    FLUSH_WITHIN = 5000,
    RETRY_FOR = 60000, /* a hook that fails */
    POLL_MAX = 60000,
    TIME_TEXT = 32
};

struct agent {
    const struct cli_args *args;
    bool observes;
    coord_ms timeout;
    enum coord_form form;
    struct cli_names names;
    sigset_t mask; /* before ours */
    struct sigaction on_pipe;
    int signals;
    struct coord_runtime *runtime;
    struct cli_election opened; /* a member's */
    struct coord_bus *bus;
    struct coord_member *member;
    struct coord_sink *sink;
    struct cli_hook on_assign;
    struct cli_work work;
    coord_ms kill_at; /* the command; COORD_NEVER */
    bool killed;
    bool leaving;
    bool left;
    bool drained;
    bool said_down;            /* of the bus */
    enum coord_err said_error; /* of the store; COORD_OK: it answers */
};

/* ---------------------------------------------------------------- events */

static void on_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    (void)ctx;
    if (edge->kind == COORD_EDGE_STARTED) {
        cli_say("leading %s, fence %" PRIu64, coord_election_name(election), edge->fence);
    } else if (edge->kind == COORD_EDGE_STOPPING) {
        cli_say("not leading %s any more", coord_election_name(election));
    }
}

static void say_leaving(const struct coord_agent_event *event)
{
    char time[TIME_TEXT];
    if (event->deadline == COORD_NEVER) {
        cli_say("leaving, %s", coord_intent_name(event->intent));
        return;
    }
    cli_say("leaving, %s, within %s", coord_intent_name(event->intent),
            cli_say_time(coord_ms_sub(event->deadline, coord_clock_now()), time));
}

static void take_fleet(struct agent *agent, const struct coord_event *event)
{
    char text[COORD_ESCAPED_MAX];
    if (event->kind >= COORD_EVENT_PEER_APPEARED && event->kind <= COORD_EVENT_DUPLICATE_IDENTITY) {
        cli_say("%s %s", cli_fleet_text(event->peer.id, event->peer.id_bytes, text),
                coord_event_name(event->kind));
        return;
    }
    if (event->kind != COORD_EVENT_ASSIGNMENT || event->message == NULL) {
        return;
    }
    cli_hook_put(&agent->on_assign, event->message);
    struct coord_walk walk;
    struct coord_value name;
    coord_walk_begin(&event->message->subscriptions, &walk);
    while (coord_walk_next(&walk, NULL, &name)) {
        char raw[COORD_NAME_MAX];
        const size_t length = coord_view_text(&name, raw, sizeof raw);
        cli_say("assigned: %s, fence %" PRIu64, cli_fleet_text(raw, length, text),
                event->message->fence);
    }
}

static void drain(struct agent *agent, const struct coord_agent_event *event)
{
    if (!agent->work.running) {
        COORD_IGNORE(coord_member_drained(agent->member) != COORD_OK, "never forked");
        return;
    }
    agent->kill_at = coord_ms_min(agent->kill_at, event->drain_by);
    cli_work_stop(&agent->work, agent->kill_at);
}

static void on_event(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    struct agent *agent = ctx;
    (void)member;
    switch (event->kind) {
    case COORD_AGENT_EVENT_FLEET:
        take_fleet(agent, event->fleet);
        break;
    case COORD_AGENT_EVENT_LEAVING:
        say_leaving(event);
        agent->leaving = true;
        if (agent->kill_at != COORD_NEVER) {
            agent->kill_at = event->drain_by; /* a new notice, while it drains */
            cli_work_stop(&agent->work, agent->kill_at);
        }
        break;
    case COORD_AGENT_EVENT_DRAIN:
        drain(agent, event);
        break;
    case COORD_AGENT_EVENT_LEFT:
        agent->left = true;
        agent->drained = event->drained;
        break;
    case COORD_AGENT_EVENT_EDGE:
    case COORD_AGENT_EVENT_STAYING:
    default:
        break;
    }
}

/* ---------------------------------------------------------------- the loop */

/* The first one is a notice; with another one there is no time left. */
static void take_signals(struct agent *agent)
{
    struct signalfd_siginfo info;
    while (read(agent->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (agent->leaving) {
            agent->kill_at = coord_clock_now();
        } else {
            COORD_IGNORE(coord_member_leave(agent->member, COORD_INTENT_GRACEFUL, LEAVE_WITHIN) !=
                             COORD_OK,
                         "never forked");
        }
        agent->leaving = true;
    }
}

static void look_at_command(struct agent *agent)
{
    if (agent->work.running && !agent->killed && coord_clock_now() >= agent->kill_at) {
        cli_say("the command has not ended in time, and is killed");
        cli_work_kill(&agent->work);
        agent->killed = true;
    }
    if (!cli_work_has_ended(&agent->work)) {
        return;
    }
    if (!agent->leaving) {
        cli_say("the command has ended with status %d", agent->work.status);
        const enum coord_intent intent =
            agent->work.status == 0 ? COORD_INTENT_GRACEFUL : COORD_INTENT_HEALTH_FAILURE;
        COORD_IGNORE(coord_member_leave(agent->member, intent, LEAVE_WITHIN) != COORD_OK,
                     "never forked");
    }
    COORD_IGNORE(coord_member_drained(agent->member) != COORD_OK, "never forked");
}

/* It works on without a bus and without a store; but somebody should know. */
static void tell_trouble(struct agent *agent)
{
    struct coord_broker_status status = {.up = false};
    struct coord_explanation why = {.reason = COORD_REASON_ASKING};
    COORD_IGNORE(coord_bus_get_status(agent->bus, &status) != COORD_OK, "never forked");
    cli_fleet_say_bus(&status, &agent->said_down);
    if (agent->observes || coord_election_explain(agent->opened.election, &why) != COORD_OK) {
        return;
    }
    const char *name = coord_election_name(agent->opened.election);
    if (cli_election_is_failing(why.reason) && why.code != agent->said_error) {
        cli_say("standing for %s: %s: %s", name, coord_err_name(why.code), why.error);
        agent->said_error = why.code;
    } else if (cli_election_has_answered(why.reason) && agent->said_error != COORD_OK) {
        cli_say("standing for %s: the store answers again", name);
        agent->said_error = COORD_OK;
    }
}

static void wait_for_something(const struct agent *agent)
{
    struct pollfd wait[] = {
        {.fd = coord_runtime_fd(agent->runtime), .events = POLLIN},
        {.fd = agent->signals, .events = POLLIN},
        {.fd = cli_work_fd(&agent->work), .events = POLLIN},
        {.fd = cli_hook_fd(&agent->on_assign), .events = POLLIN},
    };
    const coord_ms now = coord_clock_now();
    coord_ms at = coord_ms_min(now + POLL_MAX, coord_runtime_deadline(agent->runtime));
    at = coord_ms_min(at, cli_hook_deadline(&agent->on_assign));
    if (agent->work.running && !agent->killed) {
        at = coord_ms_min(at, agent->kill_at);
    }
    poll(wait, sizeof wait / sizeof *wait, (int)coord_ms_sub(at, now));
}

static void loop(struct agent *agent)
{
    while (!agent->left || agent->work.running) {
        wait_for_something(agent);
        take_signals(agent);
        look_at_command(agent);
        COORD_IGNORE(coord_runtime_process(agent->runtime) != COORD_OK, "never forked");
        cli_hook_process(&agent->on_assign, coord_clock_now());
        tell_trouble(agent);
        if (agent->left) {
            agent->kill_at = coord_ms_min(agent->kill_at, coord_clock_now());
        }
    }
}

/* ---------------------------------------------------------------- opening */

static int open_election(struct agent *agent)
{
    int status = cli_election_open(agent->args, agent->args->value[CLI_ID], false, &agent->opened);
    if (status != 0) {
        return status;
    }
    agent->runtime = agent->opened.runtime;
    if (coord_election_on_edge(agent->opened.election, on_edge, agent) != COORD_OK) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    return 0;
}

static int join(struct agent *agent)
{
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    config.role = agent->observes ? COORD_AGENT_OBSERVER : COORD_AGENT_MEMBER;
    config.id = agent->args->value[CLI_ID];
    config.election = agent->opened.election;
    config.bus = agent->bus;
    config.topic_prefix = agent->args->value[CLI_TOPIC_PREFIX];
    config.timeout = agent->timeout;
    config.form = agent->form;
    config.explicit_drain = true;
    config.fn = on_event;
    config.ctx = agent;
    if (coord_member_open(agent->runtime, &config, &agent->member, &error) != COORD_OK) {
        return cli_say_error(&error);
    }
    if (coord_member_serve(agent->member, agent->names.name, agent->names.count, 0, 0.0) !=
        COORD_OK) {
        return cli_say_usage("--subscriptions is too long, or no UTF-8");
    }
    return 0;
}

static int open_sink(struct agent *agent)
{
    const char *const argv[] = {"/bin/sh", "-c", agent->args->value[CLI_ON_ORPHAN], NULL};
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    if (argv[2] == NULL) {
        return 0;
    }
    config.fleet = agent->args->value[CLI_NAME];
    config.retry_for = RETRY_FOR;
    config.leader_only = !agent->observes; /* once for the fleet, however many have the option */
    if (coord_sink_command(argv, &config, &agent->sink, &error) != COORD_OK) {
        return cli_say_error(&error);
    }
    if (coord_member_add_sink(agent->member, agent->sink) != COORD_OK) {
        cli_say("the hook cannot be added");
        return CLI_FAILED;
    }
    return 0;
}

static int open_all(struct agent *agent)
{
    struct coord_error error = {.code = COORD_OK};
    /* Its guardian holds copies of nothing that comes later. */
    int status = cli_work_open(agent->args->command, &agent->mask, &agent->on_pipe, &agent->work);
    if (status != 0) {
        return status;
    }
    if (!agent->observes) {
        status = open_election(agent);
    } else if (coord_runtime_new(NULL, &agent->runtime, &error) != COORD_OK) {
        status = cli_say_error(&error);
    }
    if (status == 0) {
        status = cli_fleet_open_bus(agent->args, agent->runtime, &agent->bus);
    }
    if (status == 0) {
        status = join(agent);
    }
    if (status == 0) {
        status = open_sink(agent);
    }
    return status == 0 ? cli_work_begin(&agent->work) : status;
}

static void close_all(struct agent *agent)
{
    cli_work_close(&agent->work);
    cli_hook_close(&agent->on_assign);
    if (agent->sink != NULL) {
        COORD_IGNORE(!coord_member_remove_sink(agent->member, agent->sink), "not added");
        COORD_IGNORE(!coord_sink_flush(agent->sink, FLUSH_WITHIN), "it had its time");
        coord_sink_free(agent->sink);
    }
    coord_member_close(agent->member);
    coord_bus_close(agent->bus);
    if (agent->opened.election != NULL) {
        COORD_IGNORE(coord_election_stop(agent->opened.election,
                                         cli_election_patience(&agent->opened), NULL) != COORD_OK,
                     "never forked");
        cli_election_close(&agent->opened);
    } else {
        coord_runtime_free(agent->runtime);
    }
    cli_names_free(&agent->names);
}

/* ---------------------------------------------------------------- the verb */

static int read_options(const struct cli_args *args, struct agent *out)
{
    const char *role = args->value[CLI_ROLE];
    *out = (struct agent){.args = args, .kill_at = COORD_NEVER, .work = {.guard = {.fd = -1}}};
    cli_hook_open(args->value[CLI_ON_ASSIGN], &out->on_assign);
    out->observes = role != NULL && strcmp(role, "observer") == 0;
    if (role != NULL && !out->observes && strcmp(role, "member") != 0) {
        return cli_say_usage("no such --role: use member or observer");
    }
    if (out->observes &&
        (args->value[CLI_SUBSCRIPTIONS] != NULL || args->value[CLI_ON_ASSIGN] != NULL)) {
        return cli_say_usage("an observer does no work of the fleet: leave out --subscriptions "
                             "and --on-assign");
    }
    int status = cli_fleet_check_prefix(args);
    if (status == 0) {
        status = cli_fleet_timeout(args, &out->timeout);
    }
    if (status == 0) {
        status = cli_args_form(args, &out->form);
    }
    return status != 0 ? status : cli_names_read(args->value[CLI_SUBSCRIPTIONS], &out->names);
}

static bool set_up_signals(struct agent *agent)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaction(SIGPIPE, &ignore, &agent->on_pipe);
    sigaction(SIGCHLD, &plain, NULL); /* ignored by whoever started us, children would vanish */
    sigprocmask(SIG_BLOCK, &set, &agent->mask);
    agent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return agent->signals >= 0;
}

static int run_agent(const struct cli_args *args)
{
    struct agent agent;
    int status = read_options(args, &agent);
    if (status != 0) {
        return status;
    }
    if (!set_up_signals(&agent)) {
        status = cli_say_no_room("a descriptor of signals", errno);
        cli_names_free(&agent.names);
        return status;
    }
    status = open_all(&agent);
    if (status == 0) {
        loop(&agent);
        cli_say(agent.drained ? "left" : "left too late: the deadline was over before the work");
        status = !agent.drained || agent.killed ? CLI_NOT_IN_TIME : agent.work.status;
    }
    close_all(&agent);
    close(agent.signals);
    return status;
}

const struct cli_verb cli_verb_agent = {
    .name = "agent",
    .synopsis = "--elector URI --name NAME --bus URI --id ID [OPTION...] [-- COMMAND [ARG...]]",
    .summary = "be a member of the fleet, beside or around a program",
    .details =
        "It sends heartbeats, stands in the election, and reports orphans while it leads.\n"
        "SIGTERM, or 'coordctl announce', makes it leave: COMMAND gets SIGTERM, and SIGKILL\n"
        "shortly before the deadline; its end is told to the fleet. When COMMAND ends by\n"
        "itself, it leaves as well. CMD of --on-orphan gets the ORPHAN_ variables too; of the\n"
        "members, only the one that leads runs it. CMD of --on-assign gets what the leader\n"
        "assigns to this member, with ASSIGNMENT_FENCE and ASSIGNMENT_PRIORITY; one at a time.\n"
        "When coordctl is killed, a guardian ends COMMAND and all that it started.\n\n"
        "exit: the status of COMMAND, or 128 and its signal; 0 without one; 124 the work had\n"
        "not ended by the deadline; 125 the store, the bus or the system refuses; 126, 127\n"
        "COMMAND cannot be executed; 2 usage\n",
    .takes = CLI_TAKES(CLI_TOPIC_PREFIX) | CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) |
             CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ID) | CLI_TAKES(CLI_SUBSCRIPTIONS) |
             CLI_TAKES(CLI_ROLE) | CLI_TAKES(CLI_ON_ORPHAN) | CLI_TAKES(CLI_ON_ASSIGN) |
             CLI_TAKES(CLI_TIMEOUT) | CLI_TAKES(CLI_FORMAT) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ID),
    .command = true,
    .may_lack_command = true,
    .run = run_agent,
};
