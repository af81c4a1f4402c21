/* SPDX-License-Identifier: MIT
 * examples/orchestrator.c - hears of work that nobody looks after, and starts a replacement when
 * that is safe. The fleet that it watches is made here as well. */
#include <brokers/memory.h>
#include <electors/memory.h>
#include <runtime/member.h>

#include <stdio.h>
#include <stdlib.h>

static const struct coord_bus_scheme buses[] = {{"memory", coord_memory_broker, NULL}, {0}};
static const struct coord_scheme stores[] = {{"memory", coord_memory_elector, NULL}, {0}};
static struct coord_error error;
static char work[256]; /* one that is open */

static void must(enum coord_err rc)
{
    if (rc != COORD_OK) {
        fprintf(stderr, "%s: %s\n", coord_err_name(rc), error.text);
        exit(1);
    }
}

static struct coord_member *join(struct coord_runtime *runtime, const char *id, const char *serves,
                                 struct coord_election *election)
{
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_member *member = NULL;
    must(coord_bus_open(runtime, buses, "memory:fleet", NULL, &config.bus, &error));
    config.id = id;
    config.election = election;
    config.role = serves == NULL && election == NULL ? COORD_AGENT_OBSERVER : COORD_AGENT_MEMBER;
    config.timeout = 1000; /* short, as this is a show */
    must(coord_member_open(runtime, &config, &member, &error));
    must(coord_member_serve(member, &serves, serves != NULL, 0, 0.0));
    return member;
}

/* What the leader listed as open, in two turns of its table; `safe`: and may be taken by now. */
static size_t open_work(struct coord_member *observer, bool safe)
{
    struct coord_member_orphans *orphans = NULL;
    size_t count = 0;
    must(coord_member_orphans(observer, &orphans));
    for (size_t i = 0; i < orphans->count; i++) {
        const struct coord_orphan *o = &orphans->orphan[i];
        if (o->listed + 2000 > coord_clock_now() && (!safe || o->safe_after <= coord_clock_now())) {
            snprintf(work, sizeof work, "%s", o->subscription);
            count++;
        }
    }
    coord_member_orphans_free(orphans);
    return count;
}

int main(void)
{
    struct coord_election_config config = {.size = sizeof config, .name = "fleet", .name_bytes = 5};
    struct coord_election *election = NULL;
    struct coord_runtime *runtime = NULL;
    must(coord_runtime_new(NULL, &runtime, &error));
    must(coord_election_open(runtime, stores, "memory:fleet", &config, &election, &error));
    join(runtime, "leader", "ledger", election);
    struct coord_member *observer = join(runtime, "orchestrator", NULL, NULL);
    struct coord_member *worker = join(runtime, "w-1", "orders", NULL);
    must(coord_election_wait(election, COORD_NEVER, &error));
    coord_member_leave(worker, COORD_INTENT_PREEMPTION, 10000);
    coord_member_wait(worker, COORD_NEVER, NULL);
    while (open_work(observer, true) == 0) {
        coord_member_wait(observer, 50, NULL); /* it drives, meanwhile */
    }
    printf("\"%s\" is nobody's, and safe to take: w-2 is started for it\n", work);
    join(runtime, "w-2", work, NULL); /* on another machine, as a rule */
    while (open_work(observer, false) > 0) {
        coord_member_wait(observer, 50, NULL);
    }
    printf("resolved: a healthy member works on it\n");
    coord_runtime_free(runtime); /* closes everything */
    return 0;
}
