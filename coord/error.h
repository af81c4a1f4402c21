/* SPDX-License-Identifier: MIT
 * coord/error.h - errors as values: a stable code, and one sentence with the cause and the cure.
 */
#ifndef COORD_ERROR_H
#define COORD_ERROR_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the caller can do about it. */
enum coord_error_class {
    COORD_CLASS_NONE = 0,    /* no error */
    COORD_CLASS_USAGE = 1,   /* the call or its options are wrong: change them */
    COORD_CLASS_REFUSED = 2, /* the store refuses: an operator has to change something there */
    COORD_CLASS_RETRY = 3,   /* the store cannot be asked just now: coord tries again by itself */
    COORD_CLASS_STATE = 4,   /* not possible in the present state of the object */
    COORD_CLASS_SYSTEM = 5   /* memory, descriptors, threads of this process */
};

/*
 * X(symbol, value, class, text). The values are stable for ever; the text is the cause without
 * its particulars, which stand in struct coord_error.
 */
#define COORD_ERRORS(X)                                                                          \
    X(OK, 0, NONE, "no error")                                                                   \
    X(BAD_ARGUMENT, -1, USAGE, "an argument is outside its range")                               \
    X(BAD_URI, -2, USAGE, "the URI cannot be read")                                              \
    X(UNKNOWN_SCHEME, -3, USAGE, "no backend has this URI scheme")                               \
    X(UNKNOWN_OPTION, -4, USAGE, "no such option")                                               \
    X(BAD_OPTION, -5, USAGE, "the value of an option cannot be read")                            \
    X(BAD_NAME, -6, USAGE, "a name or an identity is 1 to 255 bytes")                            \
    X(BAD_TTL, -7, USAGE, "the ttl or the grace is out of range")                                \
    X(BAD_METADATA, -8, USAGE, "metadata is at most 1024 bytes")                                 \
    X(NO_TLS, -9, USAGE, "this build has no TLS")                                                \
    X(NOT_INSTALLED, -10, USAGE, "the backend is not installed")                                 \
    X(VERSION_MISMATCH, -11, USAGE, "the libraries are of different versions")                   \
    X(DUPLICATE_ELECTION, -12, USAGE, "this election is already stood for over this connection") \
    X(BAD_MESSAGE, -13, USAGE, "the message cannot be read")                                     \
    X(NOT_SUPPORTED, -14, USAGE, "this broker cannot do that")                                   \
    X(BAD_TOPIC, -15, USAGE, "a topic is 1 to 255 printable characters without blanks")          \
    X(TOO_LARGE, -16, USAGE, "the message is too large")                                         \
    X(NO_MEMORY, -20, SYSTEM, "out of memory")                                                   \
    X(SYSTEM, -21, SYSTEM, "the operating system refused")                                       \
    X(FORKED, -22, STATE, "the object belongs to the parent process")                            \
    X(CLOSED, -23, STATE, "the object was closed")                                               \
    X(NOT_LEADER, -24, STATE, "not the leader")                                                  \
    X(NO_LEADER, -25, STATE, "nobody leads")                                                     \
    X(TIMEOUT, -26, STATE, "the time was up")                                                    \
    X(BUSY, -27, STATE, "a callback still runs")                                                 \
    X(LIMIT, -28, STATE, "a limit is reached")                                                   \
    X(LEASE_LOST, -29, STATE, "the lease of the partition is another's")                         \
    X(UNREACHABLE, -40, RETRY, "the server cannot be reached")                                   \
    X(NO_ANSWER, -41, RETRY, "the server did not answer in time")                                \
    X(SERVER_STARTING, -42, RETRY, "the server is not ready yet")                                \
    X(SERVER_FULL, -43, RETRY, "the server has no room")                                         \
    X(NAME_UNRESOLVED, -44, RETRY, "the host name cannot be resolved")                           \
    X(BLOCKED_BY_FENCED_WORK, -45, RETRY, "guarded work of an earlier term is still open")       \
    X(WRONG_PASSWORD, -60, REFUSED, "the server refused the login")                              \
    X(NO_RIGHT, -61, REFUSED, "a right is missing")                                              \
    X(READ_ONLY, -62, REFUSED, "the store cannot be written")                                    \
    X(NO_SPACE, -63, REFUSED, "the disk is full")                                                \
    X(FOREIGN_RECORD, -64, REFUSED, "the store holds something that is not coord's")             \
    X(NEWER_FORMAT, -65, REFUSED, "the record was written by a newer version")                   \
    X(NOT_LOCAL, -66, REFUSED, "the file system is not known to be local")                       \
    X(RING_FULL, -67, RETRY, "stopped former leaders hold every slot")                           \
    X(SERVER_TOO_OLD, -68, REFUSED, "the server is too old")                                     \
    X(POOLER, -69, REFUSED, "a connection pooler stands in between")                             \
    X(STANDBY, -70, REFUSED, "the server is a replica")                                          \
    X(STALE_SERVER, -71, REFUSED, "the server is behind what this process has seen")             \
    X(NOT_INITIALISED, -72, REFUSED, "the store was not prepared")                               \
    X(KEY_COLLISION, -73, REFUSED, "two names share one key")                                    \
    X(TAKEOVER_MISMATCH, -74, REFUSED, "the election has another takeover mode")                 \
    X(PROTOCOL, -75, REFUSED, "the server's answer makes no sense")

enum coord_err {
#define X(symbol, value, class_, text) COORD_E_##symbol = (value),
    COORD_ERRORS(X)
#undef X
};

/** COORD_E_OK has a name of its own, as it is the one that is compared with most. */
#define COORD_OK COORD_E_OK

enum {
    COORD_ERROR_TEXT_MAX = 320
};

/** The detail of one failure; owned by the object or the caller that it was given to. */
struct coord_error {
    enum coord_err code;
    char text[COORD_ERROR_TEXT_MAX]; /* one line: what happened, then what to do; no secret */
};

/**
 * The stable name of a code, such as "WRONG_PASSWORD".
 *
 * @param code  any value; an unknown one gives "UNKNOWN".
 * @return      static text.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: COORD_ERRORS, tests/unit/test_error.c.
 */
COORD_API const char *coord_err_name(enum coord_err code);

/**
 * The cause that a code stands for, without particulars.
 *
 * @param code  any value.
 * @return      static text without a full stop.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: COORD_ERRORS, tests/unit/test_error.c.
 */
COORD_API const char *coord_err_text(enum coord_err code);

/**
 * What kind of answer a code asks for.
 *
 * @param code  any value; an unknown one is of class SYSTEM.
 * @return      the class; act on it rather than on single codes.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: COORD_ERRORS, tests/unit/test_error.c.
 */
COORD_API enum coord_error_class coord_err_class(enum coord_err code);

/**
 * Fill in an error; overlong text is cut, control characters become '?'.
 *
 * @param error   written; may be NULL, then only the code is returned.
 * @param code    what happened.
 * @param format  printf format of one line: cause, then cure. Never a secret.
 * @return        code, so that `return coord_error_set(...)` reads well.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#errors, tests/unit/test_error.c.
 */
COORD_API enum coord_err coord_error_set(struct coord_error *error, enum coord_err code,
                                         const char *format, ...) COORD_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ERROR_H */
