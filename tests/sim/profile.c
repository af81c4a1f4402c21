/* SPDX-License-Identifier: MIT
 * tests/sim/profile.c - what a seed stands for: who takes part, and what may happen.
 *
 * Each schedule switches on some of the faults and leaves the others out: with all of them at
 * once a schedule never gets far enough for the subtle ones.
 */
#include "tests/sim/world.h"

static const coord_ms leases[] = {100, 200, 500, 1000, 3000, 15000};

/* In how many of a hundred schedules a fault may happen. */
static const struct {
    enum sim_fault fault;
    unsigned share[SIM_STORES];
} shares[] = {
    {SIM_FAULT_LOSS, {50, 0}},       {SIM_FAULT_SLOW, {50, 30}},
    {SIM_FAULT_STALL, {40, 0}},      {SIM_FAULT_TWICE, {15, 0}},
    {SIM_FAULT_PAUSE, {50, 60}},     {SIM_FAULT_STALE, {25, 40}},
    {SIM_FAULT_KILL, {40, 50}},      {SIM_FAULT_WITHDRAW, {40, 40}},
    {SIM_FAULT_STEP_DOWN, {30, 30}}, {SIM_FAULT_ASK, {15, 15}},
    {SIM_FAULT_HEALTH, {20, 20}},    {SIM_FAULT_CANDIDACY, {15, 15}},
    {SIM_FAULT_SLOW_HOST, {50, 50}}, {SIM_FAULT_HUNG_HOST, {25, 25}},
    {SIM_FAULT_RESTART, {35, 0}},    {SIM_FAULT_FLUSH, {10, 15}},
    {SIM_FAULT_PROMOTE, {10, 0}},    {SIM_FAULT_JUMP, {15, 10}},
    {SIM_FAULT_NO_INFO, {5, 0}},     {SIM_FAULT_LEASES, {10, 20}},
    {SIM_FAULT_RANKS, {25, 25}},     {SIM_FAULT_LATE, {40, 40}},
    {SIM_FAULT_TORN, {0, 20}},       {SIM_FAULT_COPY, {0, 15}},
    {SIM_FAULT_NAMESPACE, {0, 10}},  {SIM_FAULT_REBOOT, {0, 10}},
    {SIM_FAULT_CHURN, {2, 10}},
};

/* The same for PostgreSQL. */
static const struct {
    enum sim_fault fault;
    unsigned share;
} postgres_shares[] = {
    {SIM_FAULT_LOSS, 40},      {SIM_FAULT_SLOW, 50},      {SIM_FAULT_STALL, 40},
    {SIM_FAULT_PAUSE, 50},     {SIM_FAULT_STALE, 25},     {SIM_FAULT_KILL, 40},
    {SIM_FAULT_WITHDRAW, 40},  {SIM_FAULT_STEP_DOWN, 40}, {SIM_FAULT_ASK, 20},
    {SIM_FAULT_HEALTH, 20},    {SIM_FAULT_CANDIDACY, 20}, {SIM_FAULT_SLOW_HOST, 50},
    {SIM_FAULT_HUNG_HOST, 25}, {SIM_FAULT_RESTART, 25},   {SIM_FAULT_FLUSH, 15},
    {SIM_FAULT_PROMOTE, 15},   {SIM_FAULT_JUMP, 15},      {SIM_FAULT_LEASES, 15},
    {SIM_FAULT_RANKS, 25},     {SIM_FAULT_LATE, 40},      {SIM_FAULT_CHURN, 3},
    {SIM_FAULT_TERMINATE, 60}, {SIM_FAULT_WRITERS, 50},   {SIM_FAULT_COMMIT, 15},
    {SIM_FAULT_TABLE, 15},     {SIM_FAULT_COPY, 15},
};

static coord_ms some_lease(struct sim_random *random)
{
    return leases[sim_below(random, sizeof leases / sizeof leases[0])];
}

static void choose_leases(struct sim_world *world)
{
    struct sim_profile *profile = &world->profile;
    const coord_ms some = some_lease(&world->random);
    const coord_ms lease = sim_planted(SIM_PLANT_PG_PATIENT) ? COORD_TTL_MIN : some;
    for (size_t i = 0; i < profile->processes; i++) {
        struct sim_process *process = &world->processes[i];
        process->lease = lease;
        if (sim_has(world, SIM_FAULT_LEASES)) {
            process->lease = sim_between(&world->random, lease, 4 * lease);
        }
        profile->lease_max = coord_ms_max(profile->lease_max, process->lease);
        profile->lease_min =
            i == 0 ? process->lease : coord_ms_min(profile->lease_min, process->lease);
    }
}

static size_t some_processes(struct sim_random *random)
{
    const uint64_t dice = sim_below(random, 10);
    return dice < 2 ? 2 : dice < 7 ? 3 : dice < 9 ? 4 : SIM_PROCESSES;
}

/* On one host all read the same clock; one in another time namespace has it shifted. */
static void share_clock(struct sim_world *world, struct sim_process *process)
{
    process->clock = world->processes[0].clock;
    process->time_namespace = 1;
    if (process->index == 1 && sim_has(world, SIM_FAULT_NAMESPACE)) {
        process->time_namespace = 2;
        process->clock.base += sim_between(&world->random, 1000, 1000000000);
    }
}

static void choose_process(struct sim_world *world, size_t index)
{
    struct sim_process *process = &world->processes[index];
    struct sim_random *random = &world->random;
    process->world = world;
    process->index = (uint8_t)index;
    process->identity[0] = 'p';
    process->identity[1] = (char)('0' + index);
    process->clock.base = sim_between(random, 1000000, 1000000000);
    /* Any two clocks differ by less than 1 %. */
    process->clock.ppm = (int64_t)sim_between(random, 0, 9900) - 4950;
    process->explicit_ack = sim_chance(random, 1, 2);
    if (sim_has(world, SIM_FAULT_CHURN)) {
        process->explicit_ack = true;
    }
    if (world->store == SIM_STORE_FILE) {
        share_clock(world, process);
    }
    process->rank = 0;
    if (sim_has(world, SIM_FAULT_RANKS)) {
        process->rank = (unsigned)sim_below(random, 3);
        if (process->rank > world->profile.rank_max) {
            world->profile.rank_max = process->rank;
        }
    }
}

/* In every second schedule there are others on the session. */
static void choose_elections(struct sim_world *world)
{
    struct sim_profile *profile = &world->profile;
    profile->elections = 1;
    if (world->store == SIM_STORE_POSTGRES) {
        profile->fast = sim_plant_now == SIM_PLANT_NONE && sim_chance(&world->random, 1, 10);
        profile->elections =
            sim_chance(&world->random, 1, 2) ? 1 : sim_between(&world->random, 2, SIM_PG_ELECTIONS);
    }
    if (sim_planted(SIM_PLANT_PG_LATE_GRANT)) {
        profile->elections = SIM_PG_ELECTIONS;
    }
    for (size_t k = 1; k < profile->elections; k++) {
        const coord_ms most = profile->lease_max;
        profile->lease_of[k] =
            sim_chance(&world->random, 1, 2)
                ? most
                : sim_between(&world->random, coord_ms_max(most / 4, COORD_TTL_MIN), most);
    }
}

static coord_ms least_lease(const struct sim_profile *profile)
{
    coord_ms least = profile->lease_min;
    for (size_t k = 1; k < profile->elections; k++) {
        least = coord_ms_min(least, profile->lease_of[k]);
    }
    return least;
}

void sim_choose(struct sim_world *world)
{
    struct sim_profile *profile = &world->profile;
    struct sim_random *random = &world->random;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        if (sim_chance(random, shares[i].share[world->store], 100)) {
            profile->faults |= (uint32_t)shares[i].fault;
        }
    }
    const size_t more = sizeof postgres_shares / sizeof postgres_shares[0];
    for (size_t i = 0; world->store == SIM_STORE_POSTGRES && i < more; i++) {
        if (sim_chance(random, postgres_shares[i].share, 100)) {
            profile->faults |= (uint32_t)postgres_shares[i].fault;
        }
    }
    profile->faults |= sim_plants[sim_plant_now].faults;
    profile->processes = some_processes(random);
    profile->leases = (unsigned)sim_between(random, 6, 16);
    profile->trouble = (unsigned)sim_between(random, 2, 60);
    choose_leases(world);
    for (size_t i = 0; i < profile->processes; i++) {
        choose_process(world, i);
    }
    static const unsigned cuts[] = {0, 1, 5, 20, 50};
    profile->cuts = cuts[sim_below(random, sizeof cuts / sizeof cuts[0])];
    profile->watched = !sim_chance(random, 1, 4);
    profile->chunk = COORD__FILE_CHUNK;
    if (sim_chance(random, 1, 4)) {
        profile->chunk = (unsigned)sim_between(random, 1, COORD__FILE_CHUNK);
    }
    choose_elections(world);
    /* One way takes a small part of an attempt, so that most of them succeed. */
    profile->latency = sim_between(random, 20, least_lease(profile) * 1000 / 80);
}
