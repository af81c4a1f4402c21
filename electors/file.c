/* SPDX-License-Identifier: MIT
 * electors/file.c - the file elector: carries requests to the protocol, and events to the base.
 */
#include "electors/file.h"

#include "electors/file_io.h"

#include <string.h>
#include <time.h>

enum {
    DEFAULT_TTL = 3000,
    STEPS_MAX = 4096, /* of one call; a request takes some 60 to 300 */
    ECHOES = 2
};

/* The kernel tells of a closed file before it frees its locks: look once more a little later. */
static const coord_ms echo_after[ECHOES] = {1, 3};

struct file {
    struct coord__file_terms terms;
    struct coord__file_disk disk;
    bool busy;             /* a request is outstanding */
    coord_ms not_before;   /* it goes on with a later time than this; 0: with any */
    coord_ms echo[ECHOES]; /* hints to come; COORD_NEVER: none */
    coord_ms flush_at;     /* COORD_NEVER: nothing new */
    bool told_no_watch;
};

static struct file *file_of(struct coord_elector *elector)
{
    return coord_backend_state(elector);
}

/* ---------------------------------------------------------------- init, fini */

static enum coord_err read_trust(const struct coord_uri *uri, bool *trust,
                                 struct coord_error *error)
{
    const char *value = coord_uri_option(uri, "fs");
    *trust = value != NULL && strcmp(value, "trust") == 0;
    if (value != NULL && !*trust && strcmp(value, "local") != 0) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "coord.fs=%s is neither local nor trust: use one of these", value);
    }
    return COORD_OK;
}

static int hex_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static struct coord__file_config config_of(struct coord_elector *elector, struct file *file)
{
    struct coord__file_config out = {.io = coord__file_disk_io(&file->disk),
                                     .lease = coord_backend_lease(elector),
                                     .identity = coord_backend_identity(elector)};
    const char *owner = coord_backend_owner(elector);
    out.metadata = coord_backend_metadata(elector, &out.metadata_bytes);
    for (size_t i = 0; i < COORD_OWNER_BYTES; i++) {
        out.owner[i] = (uint8_t)(hex_digit(owner[2 * i]) << 4 | hex_digit(owner[2 * i + 1]));
    }
    return out;
}

static enum coord_err init(struct coord_elector *elector, const struct coord_elector_config *config,
                           struct coord_error *error)
{
    struct file *file = file_of(elector);
    const struct coord_uri *uri = config->uri;
    if (uri == NULL || uri->path == NULL || uri->path[0] == '\0') {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the file elector needs a folder: use file:DIR, such as "
                               "file:/run/myservice");
    }
    bool trust = false;
    size_t name_bytes = 0;
    const void *name = coord_backend_raw_name(elector, &name_bytes);
    enum coord_err rc = read_trust(uri, &trust, error);
    if (rc == COORD_OK) {
        rc = coord__file_disk_init(&file->disk, uri->path, name, name_bytes, trust, error);
    }
    struct coord__file_config terms = config_of(elector, file);
    if (rc == COORD_OK) {
        rc = coord__file_place_find(&terms.place, error);
    }
    if (rc == COORD_OK) {
        coord__file_terms_init(&file->terms, &terms);
        for (int i = 0; i < ECHOES; i++) {
            file->echo[i] = COORD_NEVER;
        }
        file->flush_at = COORD_NEVER;
    }
    return rc;
}

/* Closing frees the byte, unless a guardian holds a copy: then it is held until that one lets go.
 * In a forked child it changes nothing for the parent. */
static void fini(struct coord_elector *elector, bool forked)
{
    (void)forked;
    coord__file_disk_fini(&file_of(elector)->disk);
}

/* ---------------------------------------------------------------- requests */

static void request(struct coord_elector *elector, const struct coord_request *request,
                    coord_ms now)
{
    (void)now;
    struct file *file = file_of(elector);
    COORD_ASSERT(!file->busy);
    coord__file_terms_begin(&file->terms, request);
    file->busy = true;
    file->not_before = 0;
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    (void)now;
    struct file *file = file_of(elector);
    coord__file_terms_abandon(&file->terms);
    file->busy = false;
}

/* The wall clock is the store's own, as that of a server would be. */
static uint64_t store_clock_us(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_REALTIME, &t) != 0 || t.tv_sec < 0) {
        return 0;
    }
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void watch(struct coord_elector *elector, struct file *file, coord_ms now)
{
    if (coord__file_disk_watch(&file->disk) || file->told_no_watch || file->disk.watch_errno == 0) {
        return;
    }
    file->told_no_watch = true;
    coord_log_write(coord_backend_log(elector), now, COORD_LOG_WARN, COORD_E_SYSTEM,
                    coord_backend_name(elector),
                    "the election's file cannot be watched (error %d): changes are seen by timer "
                    "only; raise fs.inotify.max_user_instances and max_user_watches",
                    file->disk.watch_errno);
}

static void answer(struct coord_elector *elector, struct file *file, coord_ms now)
{
    const struct coord_reply *reply = coord__file_terms_reply(&file->terms);
    file->busy = false;
    watch(elector, file, now);
    if (reply->outcome == COORD_GRANTED) {
        file->flush_at = now + 1;
    }
    coord_backend_reply(elector, reply, now);
}

static void go_on(struct coord_elector *elector, struct file *file, coord_ms now)
{
    if (!file->busy || (file->not_before != 0 && now < file->not_before)) {
        return;
    }
    const uint64_t wall_us = store_clock_us();
    file->not_before = 0;
    for (int i = 0; i < STEPS_MAX; i++) {
        const enum coord__file_step step = coord__file_terms_step(&file->terms, now, wall_us);
        if (step == COORD__FILE_DONE) {
            answer(elector, file, now);
            return;
        }
        if (step == COORD__FILE_FRESH) {
            /* A later time was surely read after this one was given to us. */
            file->not_before = now + 1;
            return;
        }
    }
}

/* ---------------------------------------------------------------- events */

static void notice(struct coord_elector *elector, struct file *file, coord_ms now)
{
    bool hint = false;
    if (coord__file_disk_drain(&file->disk)) {
        hint = true;
        for (int i = 0; i < ECHOES; i++) {
            file->echo[i] = now + echo_after[i];
        }
    }
    for (int i = 0; i < ECHOES; i++) {
        if (file->echo[i] <= now) {
            file->echo[i] = COORD_NEVER;
            hint = true;
        }
    }
    if (hint) {
        coord_backend_hint(elector, now);
    }
}

static void process(struct coord_elector *elector, coord_ms now)
{
    struct file *file = file_of(elector);
    notice(elector, file, now);
    go_on(elector, file, now);
    /* After leading, and without waiting: docs/decisions says why that is enough. */
    if (file->flush_at <= now) {
        file->flush_at = COORD_NEVER;
        coord__file_disk_flush(&file->disk);
    }
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    const struct coord__file_disk *disk = &file_of(elector)->disk;
    if (disk->watch.fd < 0) {
        return 0;
    }
    out[0] = (struct coord_descriptor){
        .fd = disk->watch.fd, .read = true, .generation = disk->generation};
    return 1;
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct file *file = file_of(elector);
    coord_ms at = file->busy ? file->not_before : COORD_NEVER;
    for (int i = 0; i < ECHOES; i++) {
        at = coord_ms_min(at, file->echo[i]);
    }
    return coord_ms_min(at, file->flush_at);
}

/* ---------------------------------------------------------------- the table */

const struct coord_backend_ops *coord_file_elector(void)
{
    static const char *const options[] = {"fs", NULL};
    static const struct coord_backend_ops ops = {.size = sizeof ops,
                                                 .abi = COORD_BACKEND_ABI,
                                                 .name = "file",
                                                 .state_bytes = sizeof(struct file),
                                                 .default_ttl = DEFAULT_TTL,
                                                 .hint_jitter = 0,
                                                 .options = options,
                                                 .init = init,
                                                 .fini = fini,
                                                 .request = request,
                                                 .abandon = abandon,
                                                 .process = process,
                                                 .descriptors = descriptors,
                                                 .deadline = deadline};
    return &ops;
}

int coord_file_elector_liveness_fd(struct coord_elector *elector)
{
    return file_of(elector)->disk.file.fd;
}
