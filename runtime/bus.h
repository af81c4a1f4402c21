/* SPDX-License-Identifier: MIT
 * runtime/bus.h - a bus for programs: opened by URI, driven by a runtime, used from any thread.
 *
 * What coord/broker.h is to a host that drives it itself, this is to everybody else. A program that
 * has a bus already plugs it in with two calls: coord_bus_open_own() is told what to publish,
 * coord_bus_deliver() brings what came in.
 *
 * Where a function does not say otherwise: Thread: any. Blocks: never. Allocates: never.
 * Calls back: never.
 */
#ifndef COORD_BUS_H
#define COORD_BUS_H

#include "coord/broker.h"
#include "runtime/clock.h"
#include "runtime/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_bus;

/** One line of the table of URI schemes, as struct coord_scheme is for electors. */
struct coord_bus_scheme {
    const char *scheme; /* lower case, without the colon; NULL ends the table */
    const struct coord_broker_ops *(*ops)(void); /* linked in, such as coord_local_broker */
    /* Where ops is NULL: load it first. @return its table, or NULL with *error filled in. */
    const struct coord_broker_ops *(*load)(struct coord_error *error);
};

/** A message came in. On the callback thread, or inside the call that drives; it may call coord. */
typedef void (*coord_bus_message_fn)(void *ctx, struct coord_bus *bus,
                                     const struct coord_broker_message *message);

/**
 * Publish on the application's own bus. On the thread that drives, with nothing locked: it may call
 * coord_bus_deliver() at once, but must not wait, as renewals would wait with it.
 *
 * @return  false: it could not be done, and the message is lost.
 */
typedef bool (*coord_bus_publish_fn)(void *ctx, const struct coord_broker_message *message);

/** Start from COORD_BUS_CONFIG_INIT. Copied. */
struct coord_bus_config {
    size_t size;                     /* sizeof(struct coord_bus_config) */
    const char *const *options;      /* `KEY=VALUE`, as after `coord.` in a URI, which they replace;
                                        NULL-terminated; NULL: none */
    coord_bus_message_fn on_message; /* NULL: messages are taken with coord_bus_next() */
    void *ctx;
    size_t inbox_messages; /* these as in struct coord_broker_config; 0: its defaults */
    size_t inbox_bytes;
    size_t outbox_messages;
    size_t outbox_bytes;
    coord_ms outbox_wait;
    struct coord_log log; /* without fn: the runtime's */
};

#define COORD_BUS_CONFIG_INIT COORD__INIT(coord_bus_config, )

/**
 * Find the broker of a scheme and open its library.
 *
 * @param table   borrowed; ends with a line whose scheme is NULL.
 * @param scheme  lower case.
 * @param out     written on success; static for the life of the process.
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; UNKNOWN_SCHEME; or what load() said.
 * Thread: any.   Blocks: while a library is loaded.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md, tests/unit/test_bus.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_scheme_find(
    const struct coord_bus_scheme *table, const char *scheme, const struct coord_broker_ops **out,
    struct coord_error *error);

/**
 * Open a bus. It connects by itself, and again.
 *
 * @param runtime  drives it; outlives it, or closes it as its last act.
 * @param table    borrowed for the call.
 * @param uri      such as "local:/run/user/1000/fleet"; copied.
 * @param config   borrowed; NULL: the defaults.
 * @param out      written on success; give it back with coord_bus_close().
 * @param error    filled in on failure; may be NULL.
 * @return         COORD_OK; BAD_URI, UNKNOWN_SCHEME, NOT_INSTALLED, and what coord_broker_new()
 *                 says; FORKED. Nothing is left behind.
 * Thread: any.   Blocks: while a library is loaded.   Allocates: once.   Calls back: never.
 * Source: docs/buses.md, tests/unit/test_bus.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_open(
    struct coord_runtime *runtime, const struct coord_bus_scheme *table, const char *uri,
    const struct coord_bus_config *config, struct coord_bus **out, struct coord_error *error);

/**
 * Plug in the application's own bus.
 *
 * @param publish  called for each message that is to go out.
 * @param ctx      of publish.
 * @return         as coord_bus_open().
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/buses.md#own, examples/own_bus.c, tests/unit/test_bus.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_open_own(
    struct coord_runtime *runtime, coord_bus_publish_fn publish, void *ctx,
    const struct coord_bus_config *config, struct coord_bus **out, struct coord_error *error);

/**
 * Close it, with what still waits; coord_bus_drain() first waits for that. No callback begins after
 * it returned; it may be called from inside one.
 *
 * @param bus  NULL: nothing happens.
 * Thread: any, as the last call.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md, tests/unit/test_bus.c.
 */
COORD_API void coord_bus_close(struct coord_bus *bus);

/**
 * What came in on the application's own bus. On topics that nobody subscribed to it is passed over.
 *
 * @param topic  NUL-terminated.
 * @param bytes  copied.
 * @return       COORD_OK; NOT_SUPPORTED: it is not of coord_bus_open_own(); FORKED.
 * Thread: any.   Blocks: never.   Allocates: for the time it waits.   Calls back: never.
 * Source: docs/buses.md#own, examples/own_bus.c, tests/unit/test_bus.c.
 */
COORD_API enum coord_err coord_bus_deliver(struct coord_bus *bus, const char *topic,
                                           const void *bytes, size_t count);

/** The application's own bus has broken (`up` false), or works again. Up from the beginning. */
COORD_API enum coord_err coord_bus_report(struct coord_bus *bus, bool up);

/** As coord_broker_publish(), and FORKED. Allocates: for the time it waits. */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_publish(struct coord_bus *bus,
                                                            const char *topic, const void *bytes,
                                                            size_t count,
                                                            struct coord_error *error);

/** As coord_broker_subscribe(), and FORKED. Allocates: for as long as it is heard. */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_subscribe(struct coord_bus *bus,
                                                              const char *topic,
                                                              struct coord_error *error);

/** As coord_broker_unsubscribe(). */
COORD_API void coord_bus_unsubscribe(struct coord_bus *bus, const char *topic);

/**
 * Take the oldest message, where there is no on_message.
 *
 * @param wait  ms to wait for one.
 * @param out   written on success; borrowed until the next call of this, or close. One thread at a
 *              time takes messages.
 * @return      COORD_OK; TIMEOUT: there is none; BAD_ARGUMENT: it has an on_message; NO_MEMORY: it
 *              is lost; CLOSED; FORKED.
 * Thread: any.   Blocks: up to wait.   Allocates: for the message.   Calls back: coord_edge_fn and
 * others, where it drives.
 * Source: docs/buses.md, tests/unit/test_bus.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_next(struct coord_bus *bus, coord_ms wait,
                                                         struct coord_broker_message *out);

/**
 * Wait until it is up: connected, and every subscription in force.
 *
 * @param bound  ms.
 * @return       COORD_OK; TIMEOUT: the sentence says why it is down; CLOSED; FORKED.
 * Thread: any.   Blocks: up to bound.   Allocates: never.   Calls back: as coord_bus_next().
 * Source: docs/buses.md, tests/unit/test_bus.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_await_up(struct coord_bus *bus, coord_ms bound,
                                                             struct coord_error *error);

/** Wait until all that was published is on its way. As coord_bus_await_up(). */
COORD_API COORD_MUST_CHECK enum coord_err coord_bus_drain(struct coord_bus *bus, coord_ms bound,
                                                          struct coord_error *error);

/** As coord_broker_get_status(). @return COORD_OK, or FORKED with nothing written. */
COORD_API enum coord_err coord_bus_get_status(struct coord_bus *bus,
                                              struct coord_broker_status *out);

/** The broker's name, such as "redis"; static. */
COORD_API const char *coord_bus_name(const struct coord_bus *bus);

/** The broker inside; borrowed until close. Thread: who drives the runtime. */
COORD_API struct coord_broker *coord_bus_broker(struct coord_bus *bus);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BUS_H */
