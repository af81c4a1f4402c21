/* SPDX-License-Identifier: MIT
 * tests/integration/doctor.h - coordctl doctor, the servers that it looks at, and what it says.
 */
#ifndef COORD_TESTS_DOCTOR_H
#define COORD_TESTS_DOCTOR_H

#include "tests/support/coordctl.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

struct place {
    struct scene scene;
    struct redis_server redis;
    struct postgres_server postgres;
};

static struct place place;

static inline int open_place(void **state)
{
    (void)state;
    memset(&place, 0, sizeof place);
    scene_open(&place.scene, "");
    return 0;
}

static inline int close_place(void **state)
{
    (void)state;
    if (place.redis.folder[0] != '\0') {
        redis_server_stop(&place.redis);
    }
    if (place.postgres.folder[0] != '\0') {
        postgres_server_stop(&place.postgres);
    }
    scene_close(&place.scene);
    return 0;
}

/* The line of one check, "verdict name: value - why; cure: ...", or fails. */
static inline const char *line_of(const char *out, const char *verdict, const char *name)
{
    static char line[1024];
    char head[128];
    snprintf(head, sizeof head, "%-4s %s: ", verdict, name);
    const char *at = strstr(out, head);
    if (at == NULL || (at != out && at[-1] != '\n')) {
        fail_msg("no line \"%s\" in:\n%s", head, out);
    }
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

/* There is that line, and it has that part. */
static inline void expect(const char *out, const char *verdict, const char *name, const char *part)
{
    const char *line = line_of(out, verdict, name);
    if (strstr(line, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, line);
    }
}

#endif /* COORD_TESTS_DOCTOR_H */
