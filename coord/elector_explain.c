/* SPDX-License-Identifier: MIT
 * coord/elector_explain.c - the sentence that tells people why a candidate leads, or does not.
 */
#include "coord/elector.h"

#include "coord/duration.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const reason_names[] = {
    [COORD_REASON_LEADING] = "LEADING",
    [COORD_REASON_STOPPING] = "STOPPING",
    [COORD_REASON_NOT_STANDING] = "NOT_STANDING",
    [COORD_REASON_ASKING] = "ASKING",
    [COORD_REASON_HELD] = "HELD",
    [COORD_REASON_TAKING_OVER] = "TAKING_OVER",
    [COORD_REASON_CLAIM_DELAY] = "CLAIM_DELAY",
    [COORD_REASON_RESERVED] = "RESERVED",
    [COORD_REASON_STANDING_ASIDE] = "STANDING_ASIDE",
    [COORD_REASON_WAITING_FOR_HOST] = "WAITING_FOR_HOST",
    [COORD_REASON_PAUSED] = "PAUSED",
    [COORD_REASON_SICK] = "SICK",
    [COORD_REASON_RETRYING] = "RETRYING",
    [COORD_REASON_REFUSED] = "REFUSED",
    [COORD_REASON_RESIGNING] = "RESIGNING",
};

static const char *const end_names[] = {
    [COORD_END_NONE] = "NONE",
    [COORD_END_STOPPED] = "STOPPED",
    [COORD_END_STEPPED_DOWN] = "STEPPED_DOWN",
    [COORD_END_SICK] = "SICK",
    [COORD_END_UNRENEWED] = "UNRENEWED",
    [COORD_END_LOST] = "LOST",
};

const char *coord_reason_name(enum coord_reason reason)
{
    const size_t i = (size_t)reason;
    return i < sizeof reason_names / sizeof reason_names[0] ? reason_names[i] : "UNKNOWN";
}

const char *coord_end_name(enum coord_end end)
{
    const size_t i = (size_t)end;
    return i < sizeof end_names / sizeof end_names[0] ? end_names[i] : "UNKNOWN";
}

struct facts {
    const char *who;  /* the leader, or whoever it is kept for */
    const char *does; /* what the leader does */
    const char *time; /* how long at most */
    const char *error;
    enum coord_err code; /* of error */
    uint64_t fence;
};

static int write_sentence(enum coord_reason reason, const struct facts *f, char *out, size_t room)
{
    switch (reason) {
    case COORD_REASON_LEADING:
        return snprintf(out, room, "leads with fence %" PRIu64 ", for %s without a renewal",
                        f->fence, f->time);
    case COORD_REASON_STOPPING:
        return snprintf(out, room, "leads for %s more at most, so that its work can end", f->time);
    case COORD_REASON_NOT_STANDING:
        return snprintf(out, room, "does not stand: let it stand to make it a candidate");
    case COORD_REASON_ASKING:
        return snprintf(out, room, "has asked the store and waits for its answer");
    case COORD_REASON_HELD:
        return snprintf(out, room, "%s %s; its lease may run out in %s", f->who, f->does, f->time);
    case COORD_REASON_TAKING_OVER:
        if (f->code == COORD_E_BLOCKED_BY_FENCED_WORK) {
            return snprintf(out, room, "holds it, and %s", f->error);
        }
        return snprintf(out, room,
                        "holds it, and waits %s more, as an earlier leader may still work: the "
                        "store has no proof of its end (where nobody leads, init with the name "
                        "before anybody stands spares the wait)",
                        f->time);
    case COORD_REASON_CLAIM_DELAY:
        return snprintf(out, room, "leaves it to those of better rank for %s", f->time);
    case COORD_REASON_RESERVED:
        return snprintf(out, room, "it is kept for %s for %s", f->who, f->time);
    case COORD_REASON_STANDING_ASIDE:
        return snprintf(out, room, "stepped down, and stands aside for %s", f->time);
    case COORD_REASON_WAITING_FOR_HOST:
        return snprintf(out, room, "waits for its host to acknowledge the end of the last term");
    case COORD_REASON_PAUSED:
        return snprintf(out, room, "its candidacy is paused: resume it");
    case COORD_REASON_SICK:
        return snprintf(out, room, "its host reported itself sick");
    case COORD_REASON_RETRYING:
    case COORD_REASON_REFUSED:
        return snprintf(out, room, "%s (asks again in %s)", f->error, f->time);
    case COORD_REASON_RESIGNING:
        return snprintf(out, room, "has ended its term and tells the store");
    }
    return snprintf(out, room, "unknown");
}

void coord_elector_explain(const struct coord_elector *elector, coord_ms now,
                           struct coord_explanation *out)
{
    const struct coord_lease *lease = coord__elector_machine(elector);
    char time[COORD_DURATION_TEXT_MAX];
    out->reason = coord_lease_reason(lease, now, &out->for_ms);
    out->last_end = lease->last_end;
    out->code = lease->error.code;
    snprintf(out->error, sizeof out->error, "%s",
             lease->error.code != COORD_OK ? lease->error.text : "");
    const struct facts facts = {
        .who = lease->leader.identity[0] != '\0' ? lease->leader.identity : "another",
        .does = lease->leader.taking_over ? "takes over" : "leads",
        .time = out->for_ms == COORD_NEVER ? "some time"
                : out->for_ms == 0         ? "a moment"
                                           : coord_duration_format(out->for_ms, time),
        .error = lease->error.text,
        .code = lease->error.code,
        .fence = lease->term.fence,
    };
    if (write_sentence(out->reason, &facts, out->text, sizeof out->text) < 0) {
        out->text[0] = '\0';
    }
}
