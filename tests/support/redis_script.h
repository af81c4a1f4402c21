/* SPDX-License-Identifier: MIT
 * tests/support/redis_script.h - the scripts of the Redis elector, called one by one.
 */
#ifndef TEST_REDIS_SCRIPT_H
#define TEST_REDIS_SCRIPT_H

#include "electors/redis_scripts.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

enum {
    SCRIPT_TTL = 15000
};

#define ANNA "a0000000000000000000000000000001"
#define BERT "b0000000000000000000000000000002"

/* A name of its own for each test, and a server of its own for those that need a young or a
 * broken one. */
struct script_world {
    struct redis_server server;
    bool private;
    redisContext *context;
    char name[64];
    char key[3][96]; /* lease, fence, ask */
};

/* A script's answer, taken apart. */
struct script_answer {
    long long status;
    long long at_us;
    long long number[4]; /* what follows, where it is a number */
    char text[512];      /* the first text that follows */
};

struct script_candidate {
    const char *owner;
    unsigned attempt;
    unsigned ttl;
    unsigned long long seen;
    const char *run; /* known by the caller ... */
    unsigned age;    /* ... for so long */
};

/** Fixtures: of the group; of a test on the group's server; of a test on its own. */
int script_start_common(void **state);
int script_stop_common(void **state);
int script_set_up(void **state);
int script_set_up_private(void **state);
int script_tear_down(void **state);
void script_reconnect(struct script_world *f);

/** Run one script. Arguments end with NULL; the second form fails the test on an error reply. */
redisReply *script_call_with(struct script_world *f, redisContext *context, enum coord_verb verb,
                             const char *const *arguments);
struct script_answer script_call(struct script_world *f, enum coord_verb verb,
                                 const char *const *arguments);
/** A number as text, into room for 24. */
const char *script_digits(char *out, unsigned long long number);
struct script_answer script_acquire_as(struct script_world *f, const struct script_candidate *who);
struct script_answer script_acquire(struct script_world *f, const char *owner, unsigned attempt);
/** The beginning of a lease's value, into room for 128. */
void script_write_line(char *out, const char *owner, unsigned attempt, long long fence);
struct script_answer script_renew(struct script_world *f, const char *owner, unsigned attempt,
                                  long long fence, const char *mode);
struct script_answer script_release_to(struct script_world *f, const char *owner, unsigned attempt,
                                       long long fence, const char *to, const char *reserve);
struct script_answer script_release(struct script_world *f, const char *owner, unsigned attempt,
                                    long long fence);
struct script_answer script_undo(struct script_world *f, const char *owner, unsigned attempt);
struct script_answer script_observe(struct script_world *f);
struct script_answer script_ask(struct script_world *f, long long fence, const char *to);
struct script_answer script_init(struct script_world *f);

/** A field of the record, or "(none)". */
void script_field(struct script_world *f, const char *name, char *out, size_t bytes);
void script_assert_field(struct script_world *f, const char *name, const char *expected);
/** What a command says of a key (0 lease, 1 record, 2 ask). */
long long script_integer(struct script_world *f, const char *command, int key);
/** A command with a key and a value, by printf's rules; fails the test on an error reply. */
void script_command(struct script_world *f, const char *format, const char *key, const char *value);
/** The record as it would look had another run of the server written it. */
void script_of_another_run(struct script_world *f);
/** Until the server's uptime says so much. */
void script_wait_for_uptime(struct script_world *f, unsigned seconds);
/** The run of the server, as records name it. */
void script_run_now(struct script_world *f, char *out, size_t bytes);

#endif /* TEST_REDIS_SCRIPT_H */
