/* SPDX-License-Identifier: MIT
 * tests/support/file_world.c - see file_world.h.
 */
#include "tests/support/file_world.h"

#include "tests/support/support.h"

/* ---------------------------------------------------------------- a file in memory */

struct disk disk;
struct machine machines[MACHINES];
coord_ms now;

static struct disk_file *file_of(struct machine *m)
{
    m->calls++;
    assert_true(m->open >= 0);
    return &disk.files[m->open];
}

void free_locks(const void *owner)
{
    for (int f = 0; f < FILES; f++) {
        for (int i = 0; i < LOCKS; i++) {
            if (disk.files[f].locks[i].owner == owner) {
                disk.files[f].locks[i].owner = NULL;
            }
        }
    }
}

static enum coord_err io_open(void *ctx, enum coord__file_mode mode, uint64_t *inode,
                              struct coord_error *error)
{
    struct machine *m = ctx;
    m->calls++;
    if (m->open != disk.path) {
        free_locks(m);
        m->open = disk.path;
    }
    if (disk.path < 0) {
        if (mode != COORD__FILE_CREATE) {
            return coord_error_set(error, COORD_E_NOT_INITIALISED, "none");
        }
        assert_true(disk.made < FILES);
        m->open = disk.path = disk.made++;
    }
    *inode = 100 + (uint64_t)m->open;
    return COORD_OK;
}

static enum coord_err io_check(void *ctx, struct coord_error *error)
{
    const struct machine *m = ctx;
    return m->open == disk.path ? COORD_OK
                                : coord_error_set(error, COORD_E_FOREIGN_RECORD, "replaced");
}

static enum coord_err io_lock(void *ctx, uint64_t number, bool *taken, struct coord_error *error)
{
    (void)error;
    struct disk_file *file = file_of(ctx);
    int room = -1;
    *taken = true;
    for (int i = 0; i < LOCKS; i++) {
        if (file->locks[i].owner == NULL) {
            room = i;
        } else if (file->locks[i].number == number && file->locks[i].owner != ctx) {
            *taken = false;
        }
    }
    if (*taken) {
        assert_true(room >= 0);
        file->locks[room].number = number;
        file->locks[room].owner = ctx;
    }
    return COORD_OK;
}

static enum coord_err io_locked(void *ctx, uint64_t first, uint64_t last, uint64_t *number,
                                struct coord_error *error)
{
    (void)error;
    const struct disk_file *file = file_of(ctx);
    assert_true(first <= last);
    *number = 0;
    for (int i = 0; i < LOCKS; i++) {
        const uint64_t n = file->locks[i].number;
        if (file->locks[i].owner != NULL && file->locks[i].owner != ctx && n >= first &&
            n <= last) {
            *number = n;
        }
    }
    return COORD_OK;
}

static enum coord_err io_read(void *ctx, unsigned block, unsigned count, uint8_t *bytes,
                              struct coord_error *error)
{
    (void)error;
    const struct disk_file *file = file_of(ctx);
    assert_true(block + count <= COORD__FILE_BLOCKS);
    memcpy(bytes, file->bytes + block * COORD__FILE_BLOCK, count * COORD__FILE_BLOCK);
    const bool slots = block >= COORD__FILE_SLOTS_AT && block < COORD__FILE_TEXTS_AT;
    for (unsigned i = 0; slots && i < count && disk.torn_reads > 0; i++) {
        if (bytes[i * COORD__FILE_BLOCK] != 0) {
            bytes[i * COORD__FILE_BLOCK + 60] ^= 0x5a;
            disk.torn_reads--;
        }
    }
    return COORD_OK;
}

static enum coord_err io_write(void *ctx, unsigned block, const uint8_t *from, size_t bytes,
                               struct coord_error *error)
{
    struct disk_file *file = file_of(ctx);
    if (disk.full) {
        return coord_error_set(error, COORD_E_NO_SPACE, "full");
    }
    memcpy(file->bytes + block * COORD__FILE_BLOCK, from, bytes);
    ((struct machine *)ctx)->writes++;
    return COORD_OK;
}

static void io_unlock(void *ctx, uint64_t number)
{
    struct disk_file *file = file_of(ctx);
    for (int i = 0; i < LOCKS; i++) {
        if (file->locks[i].number == number && file->locks[i].owner == ctx) {
            file->locks[i].owner = NULL;
        }
    }
}

static void io_touch(void *ctx)
{
    (void)ctx;
    disk.touches++;
}

/* ---------------------------------------------------------------- machines */

static void start(struct machine *m, const char *identity)
{
    memset(m, 0, sizeof *m);
    m->open = -1;
    struct coord__file_config config = {
        .io = {m, io_open, io_check, io_lock, io_locked, io_read, io_write, io_unlock, io_touch},
        .lease = LEASE,
        .identity = identity,
        .metadata = "where",
        .metadata_bytes = 5};
    memset(config.place.boot, 1, sizeof config.place.boot);
    config.place.time_namespace = 1;
    coord__file_terms_init(&m->terms, &config);
}

int world_setup(void **state)
{
    static const char *const names[MACHINES] = {"a", "b", "c", "d"};
    (void)state;
    memset(&disk, 0, sizeof disk);
    disk.path = -1;
    now = 100000;
    for (int i = 0; i < MACHINES; i++) {
        start(&machines[i], names[i]);
    }
    return 0;
}

void begin(struct machine *m, struct coord_request request)
{
    request.id = ++m->ids;
    request.sent = m->now = now;
    request.lease = LEASE;
    coord__file_terms_begin(&m->terms, &request);
}

static uint64_t wall(void)
{
    return WALL_US + now * 1000;
}

enum coord__file_step step(struct machine *m)
{
    const uint64_t calls = m->calls;
    const enum coord__file_step step = coord__file_terms_step(&m->terms, m->now, wall());
    assert_true(m->calls <= calls + 1); /* one call a step: it can be stopped before each */
    if (step == COORD__FILE_FRESH) {
        m->now = now;
    }
    return step;
}

const struct coord_reply *finish(struct machine *m)
{
    for (int i = 0; i < 5000; i++) {
        if (step(m) == COORD__FILE_DONE) {
            return coord__file_terms_reply(&m->terms);
        }
    }
    fail_msg("a request does not end");
    return NULL;
}

/* Step until `reached` holds, and go back before the step that made it so. */
static void stop_before(struct machine *m, bool (*reached)(const struct machine *, uint64_t),
                        uint64_t wanted)
{
    for (;;) {
        static struct machine kept;
        static struct disk_file kept_file;
        kept = *m;
        if (m->open >= 0) {
            kept_file = disk.files[m->open];
        }
        assert_int_not_equal(step(m), COORD__FILE_DONE);
        if (reached(m, wanted)) {
            disk.files[m->open] = kept_file;
            *m = kept;
            return;
        }
    }
}

static bool has_written(const struct machine *m, uint64_t writes)
{
    return m->writes == writes;
}

static bool has_locked(const struct machine *m, uint64_t unused)
{
    (void)unused;
    return m->terms.half;
}

void stop_before_write(struct machine *m, int nth)
{
    stop_before(m, has_written, m->writes + (uint64_t)nth);
}

void stop_before_lock(struct machine *m)
{
    stop_before(m, has_locked, 0);
}

const struct coord_reply *acquire(struct machine *m, uint64_t attempt)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = attempt});
    return finish(m);
}

void begin_renew(struct machine *m, bool led)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_RENEW,
                                    .attempt = m->terms.mine.attempt,
                                    .fence = m->terms.mine.term.fence,
                                    .led = led});
}

const struct coord_reply *renew(struct machine *m, bool led)
{
    begin_renew(m, led);
    return finish(m);
}

const struct coord_reply *release(struct machine *m, const char *to)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_RELEASE,
                                    .attempt = m->terms.mine.attempt,
                                    .fence = m->terms.mine.term.fence,
                                    .successor = to,
                                    .reserve = LEASE / 2});
    return finish(m);
}

const struct coord_reply *ask(struct machine *m, enum coord_verb verb)
{
    begin(m, (struct coord_request){.verb = verb});
    return finish(m);
}

/* The process dies; another one begins in its place. */
void kill_machine(struct machine *m)
{
    const struct coord__file_place place = m->terms.place;
    const unsigned chunk = m->terms.config.chunk;
    char identity[2] = {(char)m->terms.identity[0], '\0'};
    free_locks(m);
    start(m, identity);
    m->terms.place.time_namespace = place.time_namespace;
    m->terms.config.chunk = chunk;
}

/* Put a clear record where nothing was, and let one lead. @return its fence. */
uint64_t lead(struct machine *m)
{
    if (disk.path < 0) {
        assert_int_equal(ask(&machines[3], COORD_VERB_INIT)->outcome, COORD_DONE);
        assert_int_equal(machines[3].terms.mine.term.number, 0);
    }
    const struct coord_reply *reply = acquire(m, 1 + m->terms.mine.attempt);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, 0);
    return reply->fence;
}

struct disk_file *file_there(void)
{
    assert_true(disk.path >= 0);
    return &disk.files[disk.path];
}

uint8_t *slot_bytes(uint64_t number)
{
    const unsigned block = COORD__FILE_SLOTS_AT + coord__file_slot_of(number);
    return file_there()->bytes + block * COORD__FILE_BLOCK;
}

bool byte_locked(uint64_t number)
{
    const struct disk_file *file = file_there();
    for (int i = 0; i < LOCKS; i++) {
        if (file->locks[i].owner != NULL && file->locks[i].number == number) {
            return true;
        }
    }
    return false;
}

void lock_for(const void *owner, uint64_t number)
{
    struct disk_file *file = file_there();
    for (int i = 0; i < LOCKS; i++) {
        if (file->locks[i].owner == NULL) {
            file->locks[i].owner = owner;
            file->locks[i].number = number;
            return;
        }
    }
    fail_msg("too many locks");
}
