/* SPDX-License-Identifier: MIT
 * tests/sim/world.h - one simulated world: processes, their hosts and clocks, a store, a network.
 *
 * A schedule is one run of it from one seed. What runs in it is what ships: coord/elector.c and
 * coord/lease*.c over a simulated backend, and the file protocol over a simulated file.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdio.h>

#include "coord/elector.h"
#include "tests/sim/clock.h"
#include "tests/sim/fault.h"
#include "tests/sim/file_model.h"
#include "tests/sim/plant.h"
#include "tests/sim/postgres_model.h"
#include "tests/sim/random.h"
#include "tests/sim/redis_model.h"

enum {
    SIM_PROCESSES = 5,
    SIM_EVENTS = 8192,
    SIM_CALLS = 256, /* requests and replies under way */
    SIM_TERMS = 512, /* that led, in one schedule */
    SIM_GRANTS = 16  /* remembered of each process */
};

/* The promises, as docs/guarantees.md names them. */
enum sim_promise {
    SIM_KEPT = 0,
    SIM_E1,    /* two say yes */
    SIM_WORK,  /* the work of two terms overlaps */
    SIM_E2,    /* a fence did not rise */
    SIM_E3,    /* a claim contradicts itself */
    SIM_E4,    /* an edge twice, out of order, or missing */
    SIM_E5,    /* a grant of one's own looked foreign */
    SIM_E6,    /* something was left behind, or it did not end in time */
    SIM_E7,    /* no leader within the bound */
    SIM_ASIDE, /* who stepped down leads again at once */
    SIM_GUARD, /* guarded work was committed after its successor led */
    SIM_PROMISES
};

struct sim_profile {
    uint32_t faults; /* enum sim_fault */
    size_t processes;
    coord_ms lease_max;
    coord_ms lease_min;
    unsigned leases;  /* how many lease_max the time of faults lasts */
    sim_us latency;   /* one way */
    unsigned trouble; /* of 1000 messages, that something happens to */
    unsigned rank_max;
    unsigned cuts;    /* file: of 100 steps, after which the process is stopped */
    unsigned chunk;   /* file: blocks of one read */
    bool watched;     /* file: changes are heard of, and not by timers alone */
    bool fast;        /* postgres: coord.takeover=fast */
    size_t elections; /* postgres: that share a session */
    coord_ms lease_of[SIM_PG_ELECTIONS];
};

/* ---------------------------------------------------------------- a process and its host */

enum sim_host_state {
    SIM_HOST_IDLE = 0,
    SIM_HOST_STARTING, /* the started callback has not returned */
    SIM_HOST_WORKING,
    SIM_HOST_ENDING, /* told to end; ends at ends_at, or at hard */
    SIM_HOST_HANGING /* its work is over; nobody has said so yet */
};

struct sim_host {
    enum sim_host_state state;
    bool explicit_ack;
    bool callback; /* an edge was taken and is not done */
    bool work;     /* something is being done under the fence */
    bool hangs;    /* until everybody leaves */
    uint64_t term;
    uint64_t fence;
    coord_ms hard;  /* the guardian ends the work then, by the clock of the host */
    sim_us ends_at; /* the next thing that the host does by itself */
    uint32_t wake;  /* of its events, older ones are void */
};

struct sim_grant {
    uint64_t fence;
    uint32_t order; /* of all grants of the schedule */
};

/* Another election of a process, on the same session. */
struct sim_companion {
    struct coord_elector *elector; /* NULL: it does not take part */
    uint64_t term;                 /* that its host was told of last */
    bool hangs;                    /* its host acknowledges nothing */
};

struct sim_process {
    struct sim_world *world;
    uint8_t index;
    char identity[4];
    struct coord_share share;
    struct coord_resolver resolver; /* tells the simulated connection whose it is */
    struct sim_companion companions[SIM_PG_ELECTIONS];
    struct sim_clock clock;
    unsigned rank;
    coord_ms lease;
    bool explicit_ack;
    uint64_t time_namespace;

    struct coord_elector *elector; /* NULL: not running */
    struct coord_lease *machine;
    const struct coord_timing *timing;
    uint32_t owner; /* number of this incarnation */
    bool stopped;   /* SIGSTOP */
    bool stale;     /* ... between reading its clock and using it */
    coord_ms stale_now;
    uint32_t go_on; /* of the events that continue it, older ones are void */
    bool wants_hint;
    uint32_t wake; /* of its wake events, older ones are void */
    sim_us wakes_at;
    uint32_t resume; /* of the events that end a fault of it, older ones are void */
    bool leaving;    /* withdrawn, to be freed once settled */
    bool settled;    /* ... and was */
    sim_us withdrawn_at;

    sim_us contact;      /* its last answer with the server's clock was given then; 0: none */
    sim_us contact_sent; /* ... and asked for then */
    sim_us saw_jump;     /* when that jump of the server's clock happened that it could see */
    struct sim_host host;
    struct sim_grant grants[SIM_GRANTS];
    unsigned grant_count;

    uint64_t edge_term; /* what E4 saw last */
    enum coord_edge_kind edge_kind;
    coord_ms aside_until; /* it stepped down: not before that */
};

/* ---------------------------------------------------------------- events */

enum sim_event_kind {
    SIM_EVENT_WAKE = 1, /* a process looks at its deadline */
    SIM_EVENT_HOST,     /* a host does what it had in mind */
    SIM_EVENT_ARRIVE,   /* a request at the server */
    SIM_EVENT_REPLY,    /* a reply at the process */
    SIM_EVENT_HINT,     /* the message of a release */
    SIM_EVENT_FAULT,    /* something happens to a process */
    SIM_EVENT_RESUME,   /* ... and is over */
    SIM_EVENT_GO_ON,    /* a stopped process is continued */
    SIM_EVENT_BOOT,
    SIM_EVENT_SESSION,   /* a session of the server goes on */
    SIM_EVENT_WRITER,    /* guarded work goes on */
    SIM_EVENT_STORE,     /* something happens to the store */
    SIM_EVENT_SERVER_UP, /* ... and is over */
    SIM_EVENT_SNAPSHOT,
    SIM_EVENT_QUIET,  /* faults cease */
    SIM_EVENT_LEADER, /* by now there must be a leader */
    SIM_EVENT_LEAVE,  /* everybody withdraws */
    SIM_EVENT_END
};

struct sim_event {
    sim_us at;
    uint32_t order; /* of two at one instant the one that was planned first */
    uint32_t wake;
    uint16_t index; /* of the process, or of the call */
    uint8_t kind;   /* enum sim_event_kind */
};

/* ---------------------------------------------------------------- the network to the server */

struct sim_call {
    bool used;
    uint8_t process;
    uint32_t owner; /* incarnation that sent it */
    uint32_t connection;
    uint32_t server; /* server epoch that it was sent to */
    uint64_t id;
    bool innocent; /* it had never heard of a fence of this name */
    sim_us sent;
    sim_us executed;
    struct sim_redis_call request;
    struct sim_redis_answer answer;
};

struct sim_link {
    uint32_t connection; /* number; grows with each one that is opened */
    bool open;
    sim_us greeted_at; /* then it knows with which run it speaks */
    uint32_t run;      /* the last one that it met; 0: none */
    coord_ms run_since;
    sim_us last_arrival; /* bytes of one connection do not overtake each other */
    sim_us stalled_until;
};

struct sim_net {
    struct sim_call calls[SIM_CALLS];
    uint16_t free[SIM_CALLS];
    unsigned free_count;
    struct sim_link links[SIM_PROCESSES];
    struct sim_redis redis;
    struct sim_redis_data snapshot;
    bool up;
    uint32_t epoch;    /* connections of an older one are dead */
    sim_us jumped_at;  /* forward */
    uint64_t jump_us;  /* ... by so much */
    sim_us stepped_at; /* either way */
    sim_us lost_at;
    uint8_t comes_up; /* with which data: enum sim_boot_data */
};

/* ---------------------------------------------------------------- what is checked */

struct sim_led {
    uint64_t fence;
    uint32_t order; /* of its grant */
    uint8_t process;
};

struct sim_check {
    enum sim_promise broken;
    sim_us broken_at;
    char text[200];
    struct sim_led led[SIM_TERMS];
    unsigned led_count;
    uint64_t fence_of[SIM_PG_ELECTIONS]; /* of the companion that led last */
    uint32_t grants;
    sim_us void_until;   /* E1 is not promised before this instant */
    bool fence_void;     /* E2 is not promised in this schedule */
    unsigned losses;     /* of data; what led before the schedule left none: 1 */
    uint64_t stepped_us; /* how far the store's clock went back in all */
    sim_us quiet_at;
    sim_us leader_by;
    sim_us leader_since; /* in the quiet; 0: none yet */
    uint8_t leader;
};

/* Sums over schedules. */
struct sim_counts {
    uint64_t schedules;
    uint64_t events;
    uint64_t terms;
    uint64_t grants;
    uint64_t owed;
    uint64_t outside;    /* two leaders where that is not promised */
    uint64_t bound_used; /* the largest share of the E7 bound, in 1/1000 */
    uint64_t broken[SIM_PROMISES];
};

struct sim_world {
    uint64_t seed;
    enum sim_store store;
    struct sim_profile profile;
    struct sim_random random;
    sim_us now;
    uint32_t order;
    uint32_t owners;
    sim_us quiet_from; /* what stands still until then arrives */
    bool quiet;
    bool over;
    bool crashes; /* the host: what was being written is written in part */
    FILE *trace;  /* NULL: none */
    struct sim_process processes[SIM_PROCESSES];
    struct sim_net net;
    struct sim_postgres pg;
    struct sim_check check;
    struct sim_counts counts;
    unsigned event_count;
    /* From here on not wiped between schedules. */
    struct sim_event events[SIM_EVENTS];
    struct sim_disk disk;
    struct sim_pg_message pg_messages[SIM_PG_MESSAGES];
};

/* ---- world.c ---- */
void sim_plan(struct sim_world *world, sim_us at, enum sim_event_kind kind, size_t index,
              uint32_t wake);
bool sim_take(struct sim_world *world, struct sim_event *out);
void sim_trace(struct sim_world *world, const char *format, ...) COORD_PRINTF(2, 3);
void sim_broke(struct sim_world *world, enum sim_promise promise, const char *format, ...)
    COORD_PRINTF(3, 4);
const char *sim_verb_name(enum coord_verb verb);
const char *sim_outcome_name(enum coord_outcome outcome);
static inline bool sim_has(const struct sim_world *world, enum sim_fault fault)
{
    return !world->quiet && (world->profile.faults & (uint32_t)fault) != 0;
}
#define SIM_TRACE(world, ...)                \
    do {                                     \
        if ((world)->trace != NULL) {        \
            sim_trace((world), __VA_ARGS__); \
        }                                    \
    } while (0)

/* ---- profile.c ---- */
void sim_choose(struct sim_world *world);

/* ---- process.c ---- */
struct coord_elector *sim_make(struct sim_process *process, size_t election, coord_ms ttl,
                               bool explicit_ack);
void sim_boot(struct sim_process *process);
void sim_kill(struct sim_process *process);
void sim_run(struct sim_process *process);
coord_ms sim_local(const struct sim_process *process);
bool sim_leads(const struct sim_process *process);

/* ---- host.c ---- */
bool sim_host_edges(struct sim_process *process);
void sim_host_event(struct sim_process *process);
void sim_host_watch(struct sim_process *process);
bool sim_host_works(struct sim_process *process);
void sim_host_ends_itself(struct sim_process *process);
void sim_host_died(struct sim_process *process);
void sim_host_relents(struct sim_process *process);
void sim_host_repeats(struct sim_process *process);

/* ---- companion.c ---- */
extern const char *const sim_elections[SIM_PG_ELECTIONS];
void sim_companions_boot(struct sim_process *process);
void sim_companions_free(struct sim_process *process);
bool sim_companions_run(struct sim_process *process, coord_ms now);
coord_ms sim_companions_deadline(const struct sim_process *process);
void sim_companions_suffer(struct sim_process *process);
void sim_companions_heal(struct sim_process *process);
void sim_companions_withdraw(struct sim_process *process);
void sim_companions_check(struct sim_world *world);
void sim_companions_are_led(struct sim_world *world);
void sim_companions_check_end(struct sim_process *process);

/* ---- faults.c ---- */
void sim_fault_process(struct sim_process *process);
void sim_resume(struct sim_process *process, uint32_t which);
void sim_go_on(struct sim_process *process, uint32_t which);
void sim_heal(struct sim_world *world);
void sim_withdraw(struct sim_process *process);

/* ---- store_faults.c ---- */
void sim_fault_store(struct sim_world *world);
void sim_snapshot(struct sim_world *world);
void sim_fault_server_over(struct sim_world *world);
void sim_clock_steps(struct sim_world *world, int64_t by);
void sim_lose(struct sim_world *world);

/* ---- file_driver.c ---- */
extern const struct coord_backend_ops sim_file_ops;
void sim_file_changed(struct sim_world *world, int inode);

/* ---- redis_net.c ---- */
extern const struct coord_backend_ops sim_redis_ops;
void sim_net_init(struct sim_world *world);
void sim_net_arrive(struct sim_world *world, size_t index);
void sim_net_reply(struct sim_world *world, size_t index);
void sim_net_crash(struct sim_world *world);

/* ---- redis_promises.c ---- */
void sim_redis_note_grant(struct sim_world *world, const struct sim_call *call);
void sim_redis_note_contact(struct sim_process *process, const struct sim_call *call);

/* ---- postgres_*.c ---- */
void sim_postgres_init(struct sim_world *world);
bool sim_postgres_unread(const struct sim_process *process);
void sim_postgres_writer_begins(struct sim_process *process);
void sim_postgres_arrive(struct sim_world *world, size_t index);
void sim_postgres_reply(struct sim_world *world, size_t index);
void sim_postgres_session(struct sim_world *world, size_t slot, uint32_t wake);
void sim_postgres_writer(struct sim_world *world, size_t index, uint32_t wake);
void sim_postgres_suffers(struct sim_world *world);
void sim_postgres_up(struct sim_world *world);
void sim_postgres_heals(struct sim_world *world);
bool sim_postgres_holds(const struct sim_world *world, const struct sim_process *process);

/* ---- check.c ---- */
bool sim_check_promised(const struct sim_world *world);
void sim_check_leaders(struct sim_world *world);
void sim_check_edge(struct sim_process *process, const struct coord_edge *edge);
void sim_check_grant(struct sim_process *process, uint64_t fence);
uint32_t sim_check_order(const struct sim_process *process, uint64_t fence);
void sim_check_guarded(struct sim_world *world, uint8_t process, uint64_t fence, uint32_t order);
void sim_check_work(struct sim_process *process);
void sim_check_settled(struct sim_process *process);
void sim_check_end(struct sim_world *world);
const char *sim_promise_name(enum sim_promise promise);

/* ---- schedule.c ---- */
/* Run one schedule. Its verdict is in world->check; counts grow. */
void sim_schedule(struct sim_world *world, enum sim_store store, uint64_t seed, FILE *trace);
/* Plant a fault and run until it is noticed. @return how many schedules that took; 0: too many. */
uint64_t sim_notice(struct sim_world *world, enum sim_plant plant, uint64_t first, uint64_t most);

#endif /* SIM_WORLD_H */
