/* SPDX-License-Identifier: MIT
 * tests/sim/file_driver.c - a backend that runs the file protocol that ships over a simulated file.
 *
 * It does what electors/file.c does, but a process can be stopped between any two calls of the
 * file, and inside a write.
 */
#include <inttypes.h>
#include <string.h>

#include "electors/file_terms.h"
#include "tests/sim/world.h"

enum {
    STEPS_MAX = 4096,
    ECHOES = 2
};

struct file_state {
    struct coord__file_terms terms;
    struct sim_process *process;
    bool busy;
    bool cut;       /* it has to be stopped before its next step */
    bool hot;       /* it has just locked or written: a good moment to be stopped */
    uint64_t fence; /* of the last slot that it took */
    coord_ms not_before;
    coord_ms echo[ECHOES];
};

/* The kernel tells of a closed file before it frees its locks: look once more a little later. */
static const coord_ms echo_after[ECHOES] = {1, 3};

/* ---------------------------------------------------------------- the file's operations */

static struct sim_disk *disk_of(const struct file_state *state)
{
    return &state->process->world->disk;
}

static enum coord_err open_file(void *ctx, enum coord__file_mode mode, uint64_t *inode,
                                struct coord_error *error)
{
    const struct file_state *state = ctx;
    struct sim_disk *disk = disk_of(state);
    if (!sim_disk_open(disk, state->process->index, mode == COORD__FILE_CREATE)) {
        error->code = COORD_E_NOT_INITIALISED;
        return error->code;
    }
    *inode = disk->inodes[disk->linked].number;
    return COORD_OK;
}

static enum coord_err check_file(void *ctx, struct coord_error *error)
{
    const struct file_state *state = ctx;
    if (sim_disk_is_linked(disk_of(state), state->process->index) ||
        sim_planted(SIM_PLANT_PATH_UNCHECKED)) {
        return COORD_OK;
    }
    error->code = COORD_E_FOREIGN_RECORD;
    return error->code;
}

static enum coord_err lock_byte(void *ctx, uint64_t number, bool *taken, struct coord_error *error)
{
    struct file_state *state = ctx;
    (void)error;
    *taken = sim_disk_lock(disk_of(state), state->process->index, number);
    state->hot = *taken;
    SIM_TRACE(state->process->world, "p%u %s byte %" PRIu64, state->process->index,
              *taken ? "locks" : "does not get", number);
    return COORD_OK;
}

static enum coord_err find_locked(void *ctx, uint64_t first, uint64_t last, uint64_t *number,
                                  struct coord_error *error)
{
    const struct file_state *state = ctx;
    (void)error;
    const unsigned skip = (unsigned)sim_below(&state->process->world->random, 3);
    *number = sim_disk_locked(disk_of(state), state->process->index, first, last, skip);
    return COORD_OK;
}

static enum coord_err read_blocks(void *ctx, unsigned block, unsigned count, uint8_t *bytes,
                                  struct coord_error *error)
{
    const struct file_state *state = ctx;
    (void)error;
    sim_disk_read(disk_of(state), state->process->index, block, count, bytes);
    return COORD_OK;
}

static enum coord_err write_block(void *ctx, unsigned block, const uint8_t *from, size_t bytes,
                                  struct coord_error *error)
{
    struct file_state *state = ctx;
    struct sim_world *world = state->process->world;
    size_t now = bytes;
    (void)error;
    if (sim_has(world, SIM_FAULT_TORN) && sim_chance(&world->random, 1, 20)) {
        now = sim_below(&world->random, bytes);
        state->cut = true;
    }
    const uint64_t fence = state->terms.mine.term.fence;
    state->hot = state->terms.request.verb == COORD_VERB_ACQUIRE;
    const bool slot = block >= COORD__FILE_SLOTS_AT && block < COORD__FILE_TEXTS_AT;
    if (slot && state->terms.request.verb == COORD_VERB_ACQUIRE && fence != state->fence) {
        state->fence = fence;
        sim_check_grant(state->process, fence);
    }
    SIM_TRACE(world, "p%u writes block %u%s", state->process->index, block,
              now < bytes ? ", in part" : "");
    sim_disk_write(disk_of(state), state->process->index, block, from, bytes, now);
    return COORD_OK;
}

/* inotify: those who have the same file open hear of it, if they could get a watch. */
static void tell_watchers(struct sim_world *world, int inode, unsigned by)
{
    const bool watched = inode >= 0 && world->profile.watched;
    for (unsigned i = 0; watched && i < world->profile.processes; i++) {
        if (i != by && world->disk.opens[i].inode == inode) {
            sim_plan(world, world->now + 20 + sim_below(&world->random, 300), SIM_EVENT_HINT, i, 0);
        }
    }
}

static void unlock_byte(void *ctx, uint64_t number)
{
    const struct file_state *state = ctx;
    SIM_TRACE(state->process->world, "p%u unlocks byte %" PRIu64, state->process->index, number);
    sim_disk_unlock(disk_of(state), state->process->index, number);
}

static void touch_file(void *ctx)
{
    const struct file_state *state = ctx;
    const unsigned process = state->process->index;
    tell_watchers(state->process->world, disk_of(state)->opens[process].inode, process);
}

void sim_file_changed(struct sim_world *world, int inode)
{
    tell_watchers(world, inode, SIM_NOBODY);
}

/* ---------------------------------------------------------------- stopped between two steps */

static bool is_cut(struct file_state *state)
{
    struct sim_world *world = state->process->world;
    const unsigned cuts = state->hot && world->profile.cuts > 0 ? 40 : world->profile.cuts;
    const bool cut = state->cut || (!world->quiet && sim_chance(&world->random, cuts, 100));
    state->cut = false;
    return cut;
}

/* Not for long, or for as long as a process can be stopped; a signal does not interrupt a write. */
static void cut(struct file_state *state, coord_ms now)
{
    struct sim_process *process = state->process;
    struct sim_world *world = process->world;
    const bool writes = world->disk.opens[process->index].half;
    sim_us takes = 10 + sim_below(&world->random, writes ? 3000 : 200);
    /* Where terms follow each other fast, all the others have to go on meanwhile. */
    const unsigned rare = (state->hot ? 6U : 40U) * (sim_has(world, SIM_FAULT_CHURN) ? 15U : 1U);
    state->hot = false;
    if (!writes && sim_has(world, SIM_FAULT_PAUSE) && sim_chance(&world->random, 1, rare)) {
        takes = sim_below(&world->random, 3 * world->profile.lease_max * 1000);
        SIM_TRACE(world, "p%u is stopped between two steps", process->index);
    }
    process->stopped = true;
    process->stale = true;
    process->stale_now = now;
    sim_plan(world, world->now + takes, SIM_EVENT_GO_ON, process->index, process->go_on);
}

/* ---------------------------------------------------------------- driving it */

static void answer(struct coord_elector *elector, struct file_state *state, coord_ms now)
{
    const struct coord_reply *reply = coord__file_terms_reply(&state->terms);
    const struct sim_process *process = state->process;
    struct sim_world *world = process->world;
    state->busy = false;
    SIM_TRACE(world,
              "p%u #%" PRIu64 ": %s fence %" PRIu64 " owed %" PRId64 " retry in %" PRId64
              "; newest term %" PRIu64 ", top byte %" PRIu64,
              process->index, reply->id, sim_outcome_name(reply->outcome), reply->fence,
              (int64_t)reply->owed, (int64_t)reply->retry_in, state->terms.newest,
              state->terms.top);
    if (reply->outcome == COORD_GRANTED) {
        world->counts.grants++;
        world->counts.owed += reply->owed > 0;
    }
    coord_backend_reply(elector, reply, now);
}

static void go_on(struct coord_elector *elector, struct file_state *state, coord_ms now)
{
    struct sim_world *world = state->process->world;
    if (!state->busy || (state->not_before != 0 && now < state->not_before)) {
        return;
    }
    const uint64_t wall_us = sim_clock_us(&world->disk.wall, world->now);
    state->not_before = 0;
    for (int i = 0; i < STEPS_MAX; i++) {
        const enum coord__file_step step = coord__file_terms_step(&state->terms, now, wall_us);
        if (step == COORD__FILE_DONE) {
            state->cut = false; /* it does not go on before its write is whole */
            sim_disk_finish(&world->disk, state->process->index);
            answer(elector, state, now);
            return;
        }
        if (step == COORD__FILE_FRESH) {
            state->not_before = now + 1;
            return;
        }
        if (is_cut(state)) {
            cut(state, now);
            return;
        }
    }
}

static void notice(struct coord_elector *elector, struct file_state *state, coord_ms now)
{
    bool hint = false;
    if (state->process->wants_hint) {
        state->process->wants_hint = false;
        hint = true;
        for (int i = 0; i < ECHOES; i++) {
            state->echo[i] = now + echo_after[i];
        }
    }
    for (int i = 0; i < ECHOES; i++) {
        if (state->echo[i] <= now) {
            state->echo[i] = COORD_NEVER;
            hint = true;
        }
    }
    if (hint) {
        coord_backend_hint(elector, now);
    }
}

static void process_file(struct coord_elector *elector, coord_ms now)
{
    struct file_state *state = coord_backend_state(elector);
    if (state->process->stopped) {
        return; /* its call has not come back yet */
    }
    sim_disk_finish(disk_of(state), state->process->index);
    notice(elector, state, now);
    go_on(elector, state, now);
}

static void request(struct coord_elector *elector, const struct coord_request *asked, coord_ms now)
{
    struct file_state *state = coord_backend_state(elector);
    (void)now;
    COORD_ASSERT(!state->busy);
    SIM_TRACE(state->process->world,
              "p%u #%" PRIu64 " %s, attempt %" PRIu64 " fence %" PRIu64 " led %d",
              state->process->index, asked->id, sim_verb_name(asked->verb), asked->attempt,
              asked->fence, asked->led);
    coord__file_terms_begin(&state->terms, asked);
    state->busy = true;
    state->not_before = 0;
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct file_state *state = coord_backend_state(elector);
    (void)now;
    SIM_TRACE(state->process->world, "p%u gives up", state->process->index);
    coord__file_terms_abandon(&state->terms);
    state->busy = false;
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct file_state *state = coord_backend_state(elector);
    if (state->process->stopped) {
        return COORD_NEVER;
    }
    coord_ms at = state->busy ? state->not_before : COORD_NEVER;
    for (int i = 0; i < ECHOES; i++) {
        at = coord_ms_min(at, state->echo[i]);
    }
    return at;
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    (void)elector;
    (void)out;
    return 0;
}

/* ---------------------------------------------------------------- begin and end */

static enum coord_err init(struct coord_elector *elector, const struct coord_elector_config *config,
                           struct coord_error *error)
{
    struct file_state *state = coord_backend_state(elector);
    const struct sim_process *process = config->backend_ctx;
    struct coord__file_config terms = {.io = {.ctx = state,
                                              .open = open_file,
                                              .check = check_file,
                                              .lock = lock_byte,
                                              .locked = find_locked,
                                              .read = read_blocks,
                                              .write = write_block,
                                              .unlock = unlock_byte,
                                              .touch = touch_file},
                                       .place = {.time_namespace = process->time_namespace},
                                       .lease = coord_backend_lease(elector),
                                       .identity = coord_backend_identity(elector)};
    (void)error;
    state->process = config->backend_ctx;
    terms.place.boot[0] = process->world->disk.boot;
    memcpy(terms.owner, config->owner, COORD_OWNER_BYTES);
    terms.chunk = process->world->profile.chunk;
    coord__file_terms_init(&state->terms, &terms);
    for (int i = 0; i < ECHOES; i++) {
        state->echo[i] = COORD_NEVER;
    }
    return COORD_OK;
}

/* The kernel closes what it had open, and tells those who watch. */
static void fini(struct coord_elector *elector, bool forked)
{
    const struct file_state *state = coord_backend_state(elector);
    const unsigned process = state->process->index;
    struct sim_disk *disk = disk_of(state);
    const int inode = disk->opens[process].inode;
    (void)forked;
    if (!state->process->world->crashes) {
        sim_disk_finish(disk, process);
    }
    sim_disk_close(disk, process);
    tell_watchers(state->process->world, inode, process);
}

const struct coord_backend_ops sim_file_ops = {
    .size = sizeof(struct coord_backend_ops),
    .abi = COORD_BACKEND_ABI,
    .name = "file",
    .state_bytes = sizeof(struct file_state),
    .default_ttl = 3000,
    .hint_jitter = 0,
    .init = init,
    .fini = fini,
    .request = request,
    .abandon = abandon,
    .process = process_file,
    .descriptors = descriptors,
    .deadline = deadline,
};
