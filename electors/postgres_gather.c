/* SPDX-License-Identifier: MIT
 * electors/postgres_gather.c - the renewals of one session go together: when one is due, those that
 * would be soon are asked for as well, and one statement carries them all.
 */
#include "electors/postgres_parts.h"

enum {
    PATIENCE = 1 /* ms: a host calls each of its electors in one round */
};

static void answer_call(struct coord__postgres_elector *e)
{
    if (e->called) {
        e->called = false;
        e->session->called--;
    }
}

static void call_others(struct coord__postgres_session *session, coord_ms now)
{
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->held && e->phase == COORD__POSTGRES_IDLE &&
            coord_backend_renew_along(e->base, now)) {
            e->touched = true;
            e->called = true;
            session->called++;
        }
    }
    session->gather_until = coord_ms_add(now, PATIENCE);
}

bool coord__postgres_gather(struct coord__postgres_elector *e, coord_ms now)
{
    struct coord__postgres_session *session = e->session;
    const bool begins = session->called == 0;
    answer_call(e);
    if (e->phase != COORD__POSTGRES_WAITING || e->request.verb != COORD_VERB_RENEW ||
        !session->ready || session->job_count > 0) {
        return false; /* what waits behind a statement goes together in any case */
    }
    if (begins) {
        call_others(session, now);
    }
    return session->called > 0 && now < session->gather_until;
}

void coord__postgres_gathered(struct coord__postgres_session *session)
{
    for (struct coord__postgres_elector *e = session->first; session->called > 0; e = e->next) {
        answer_call(e);
    }
}

void coord__postgres_gather_leave(struct coord__postgres_elector *e)
{
    answer_call(e);
    if (e->session->driver == e) {
        e->session->driver = e->session->first;
    }
}

coord_ms coord__postgres_gather_at(const struct coord__postgres_session *session)
{
    return session->called > 0 ? session->gather_until : COORD_NEVER;
}
