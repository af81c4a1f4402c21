/* SPDX-License-Identifier: MIT
 * connections/redis_error.c - what a server says, as a code and a cure.
 *
 * A missing right is NOPERM outside a script and for its keys; inside a script it is a sentence
 * that differs by version. 6.2 wraps every error of a script into a line of its own, where the
 * code word stands behind a dash.
 */
#include "connections/redis.h"

#include <string.h>

#define ACL                                                                                        \
    "ACL SETUSER NAME ~coord:* &coord:* +eval +evalsha +get +set +del +pexpire +pttl +time +hset " \
    "+hmget +info +publish +subscribe +unsubscribe"

#define CHANNELS                                                                                      \
    "grant them: ACL SETUSER NAME &PREFIX.* +publish +subscribe +unsubscribe +ping +info for a bus, " \
    "&coord:* for an election"

struct meaning {
    const char *words;
    bool anywhere; /* else at the beginning, or behind a dash */
    enum coord_err code;
    const char *cure;
};

static const struct meaning meanings[] = {
    {"NOAUTH", false, COORD_E_WRONG_PASSWORD,
     "give a password in the URI, or a file that holds it in REDIS_PASSWORD_FILE"},
    {"WRONGPASS", false, COORD_E_WRONG_PASSWORD, "correct user and password, or enable the user"},
    {"invalid password", true, COORD_E_WRONG_PASSWORD, "correct the password"},
    {"without any password configured", true, COORD_E_WRONG_PASSWORD,
     "take the password out of the URI, or set one on the server"},
    {"no password is set", true, COORD_E_WRONG_PASSWORD,
     "take the password out of the URI, or set one on the server"},
    {"access one of the channels", true, COORD_E_NO_RIGHT, CHANNELS}, /* 6, 7.0 */
    {"access a channel", true, COORD_E_NO_RIGHT, CHANNELS},           /* 7.2 */
    {"NOPERM", false, COORD_E_NO_RIGHT, "grant it: " ACL},
    {"can't run this command", true, COORD_E_NO_RIGHT, "grant it: " ACL},
    {"ACL failure in script", true, COORD_E_NO_RIGHT, "grant it: " ACL},
    {"DENIED", false, COORD_E_NO_RIGHT,
     "protected mode: set a password on the server, or bind it to this address"},
    {"LOADING", false, COORD_E_SERVER_STARTING, "wait until it has read its data"},
    {"BUSY", false, COORD_E_SERVER_STARTING, "a script of somebody runs for too long: SCRIPT KILL"},
    {"CLUSTERDOWN", false, COORD_E_SERVER_STARTING, "repair the cluster"},
    {"TRYAGAIN", false, COORD_E_SERVER_STARTING, "wait until the slot has moved"},
    {"READONLY", false, COORD_E_STANDBY, "name the primary, or use redis+sentinel://"},
    {"MASTERDOWN", false, COORD_E_STANDBY, "name the primary, or use redis+sentinel://"},
    {"MOVED", false, COORD_E_STANDBY,
     "name the node that serves this slot of the cluster; coord does not follow"},
    {"ASK", false, COORD_E_STANDBY, "wait until the slot has moved"},
    {"OOM", false, COORD_E_SERVER_FULL, "raise maxmemory"},
    {"max number of clients reached", true, COORD_E_SERVER_FULL, "raise maxclients"},
    {"MISCONF", false, COORD_E_READ_ONLY, "let it save to its disk again, or see its log"},
    {"NOREPLICAS", false, COORD_E_READ_ONLY, "bring replicas back, or lower min-replicas-to-write"},
    {"WRONGTYPE", false, COORD_E_FOREIGN_RECORD,
     "another program uses a key of this name: delete it, or set coord.prefix"},
    {"unknown command", true, COORD_E_SERVER_TOO_OLD,
     "use Redis 6.2 or later, or Valkey, with its commands not renamed"},
    {"DB index is out of range", true, COORD_E_BAD_URI, "correct the number of the database"},
    {"not allowed in cluster mode", true, COORD_E_BAD_URI, "leave the database out of the URI"},
};

/* A word of the server's own: at the start, or behind the dash that a script's wrapping leaves. */
static bool begins_a_message(const char *text, const char *words)
{
    const size_t bytes = strlen(words);
    for (const char *at = strstr(text, words); at != NULL; at = strstr(at + 1, words)) {
        const bool first = at == text || at[-1] == '-';
        const char after = at[bytes];
        if (first && (after == ' ' || after == '\0' || after == '\r')) {
            return true;
        }
    }
    return false;
}

enum coord_err coord_redis_error(const char *text, struct coord_error *error)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        const struct meaning *m = &meanings[i];
        if (m->anywhere ? strstr(text, m->words) != NULL : begins_a_message(text, m->words)) {
            return coord_error_set(error, m->code, "the server says \"%.90s\": %s", text, m->cure);
        }
    }
    return coord_error_set(error, COORD_E_PROTOCOL,
                           "the server says \"%.160s\": see its log, and report this", text);
}

bool coord_redis_is_noscript(const char *text)
{
    return begins_a_message(text, "NOSCRIPT");
}
