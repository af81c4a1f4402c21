/* SPDX-License-Identifier: MIT
 * tests/integration/doctor.h - coordctl doctor, the servers that it looks at, and what it says.
 */
#ifndef COORD_TESTS_DOCTOR_H
#define COORD_TESTS_DOCTOR_H

#include "tests/support/coordctl.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

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

/* Type the first line of the server's own language that is advised for this user. */
static inline void follow_advice(const char *out, const char *user)
{
    char line[512];
    snprintf(line, sizeof line, "ACL SETUSER %s ", user);
    const char *at = strstr(out, line);
    assert_non_null(at);
    const int bytes = snprintf(line, sizeof line, "%.*s\r\n", (int)strcspn(at, "\n"), at);
    assert_in_range(bytes, 1, sizeof line - 1);
    redisContext *context = redis_server_connect(&place.redis);
    redisReply *reply = NULL;
    assert_int_equal(redisAppendFormattedCommand(context, line, (size_t)bytes), REDIS_OK);
    assert_int_equal(redisGetReply(context, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(context);
}

#endif /* COORD_TESTS_DOCTOR_H */
