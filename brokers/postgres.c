/* SPDX-License-Identifier: MIT
 * brokers/postgres.c - the broker's table: options, topics, and what to wait for.
 */
#include "brokers/postgres.h"

#include "brokers/postgres_parts.h"

#include <string.h>

static struct coord__bus_member *of(struct coord_broker *broker)
{
    return coord_broker_state(broker);
}

static enum coord_err init(struct coord_broker *broker, const struct coord_broker_config *config,
                           coord_ms now, struct coord_error *error)
{
    const char *mode = config->uri != NULL ? coord_uri_option(config->uri, "pooler") : NULL;
    (void)now;
    if (config->uri == NULL) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the postgres broker needs a URI, such as "
                               "postgresql://USER@HOST/DATABASE");
    }
    if (mode != NULL && strcmp(mode, "session") != 0) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "coord.pooler=%.40s cannot work: only a pool in session mode hands "
                               "out notifications; use coord.pooler=session, or connect to the "
                               "server itself",
                               mode);
    }
    of(broker)->broker = broker;
    return coord__bus_session_join(of(broker), config, mode != NULL, error);
}

static void fini(struct coord_broker *broker, bool forked)
{
    coord__bus_session_leave(of(broker), forked);
}

static enum coord_err publish(struct coord_broker *broker, const struct coord_broker_message *what,
                              coord_ms now, struct coord_error *error)
{
    return coord__bus_session_send(of(broker), what, now, error);
}

static void report(struct coord_broker *broker, coord_ms now)
{
    struct coord__bus_member *m = of(broker);
    m->said_up = coord__bus_session_is_up(m);
    if (m->said_up) {
        coord_broker_report_up(broker, now);
    } else {
        coord_broker_report_down(
            broker,
            m->refused.code != COORD_OK ? &m->refused : coord__bus_session_trouble(m->session),
            now);
    }
}

static void resubscribe(struct coord_broker *broker, coord_ms now)
{
    coord__bus_session_count(of(broker)->session);
    report(broker, now);
}

static void process(struct coord_broker *broker, coord_ms now)
{
    coord__bus_session_process(of(broker)->session, now);
    report(broker, now);
}

static size_t descriptors(struct coord_broker *broker, struct coord_descriptor *out)
{
    return coord__bus_session_descriptor(of(broker)->session, out);
}

static coord_ms deadline(struct coord_broker *broker)
{
    const struct coord__bus_member *m = of(broker);
    return m->said_up != coord__bus_session_is_up(m) ? 0 : coord__bus_session_deadline(m->session);
}

static bool unwritten(struct coord_broker *broker)
{
    return of(broker)->flying > 0;
}

static const char *const options[] = {"pooler", NULL};

static const struct coord_broker_ops ops = {
    .size = sizeof ops,
    .abi = COORD_BROKER_ABI,
    .name = "postgres",
    .state_bytes = sizeof(struct coord__bus_member),
    .flags = COORD_BROKER_BASIC_PUBSUB,
    .options = options,
    .init = init,
    .fini = fini,
    .publish = publish,
    .resubscribe = resubscribe,
    .process = process,
    .descriptors = descriptors,
    .deadline = deadline,
    .unwritten = unwritten,
};

const struct coord_broker_ops *coord_postgres_broker(void)
{
    return &ops;
}
