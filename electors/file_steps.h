/* SPDX-License-Identifier: MIT
 * electors/file_steps.h - the phases of the file elector's protocol; for electors/file_*.c only.
 *
 *   ACQUIRE  DROP read formers LOCK look WRITE_TEXTS WRITE_SLOT look TAKEN earlier GRANT
 *   INIT     read formers LOCK look WRITE_TEXTS WRITE_SLOT unlock
 *   OBSERVE  DROP read
 *   ASK      read ASK_WRITE ASK_READ touch
 *   RENEW    RENEW RENEW_WRITE look RENEW_ASK earlier RENEW_OWED
 *   RELEASE  RELEASE RELEASE_TEXTS RELEASE_WRITE unlock
 *   UNDO     UNDO unlock
 *
 * read is OPEN SCAN TOP NEWEST WHO JUDGE. look, formers, earlier, unlock and touch are parts that
 * go on with terms->then.
 */
#ifndef COORD_ELECTORS_FILE_STEPS_H
#define COORD_ELECTORS_FILE_STEPS_H

#include "electors/file_terms.h"

enum coord__file_phase {
    COORD__FILE_IDLE = 0,
    COORD__FILE_DROP,
    COORD__FILE_OPEN,
    COORD__FILE_SCAN,
    COORD__FILE_TOP,
    COORD__FILE_NEWEST,
    COORD__FILE_WHO,
    COORD__FILE_JUDGE,
    COORD__FILE_FORMER,
    COORD__FILE_LOCK,
    COORD__FILE_WRITE_TEXTS,
    COORD__FILE_WRITE_SLOT,
    COORD__FILE_TAKEN,
    COORD__FILE_GRANT,
    COORD__FILE_GIVE_UP,
    COORD__FILE_AGAIN,
    COORD__FILE_RENEW,
    COORD__FILE_RENEW_WRITE,
    COORD__FILE_RENEW_LOST,
    COORD__FILE_RENEW_ASK,
    COORD__FILE_RENEW_OWED,
    COORD__FILE_RELEASE,
    COORD__FILE_RELEASE_TEXTS,
    COORD__FILE_RELEASE_WRITE,
    COORD__FILE_UNDO,
    COORD__FILE_ASK_WRITE,
    COORD__FILE_ASK_READ,
    COORD__FILE_LOOK,
    COORD__FILE_LOOK_LOCK,
    COORD__FILE_LOCKS,
    COORD__FILE_EARLIER_READ,
    COORD__FILE_EARLIER_JUDGE,
    COORD__FILE_UNLOCK,
    COORD__FILE_TOUCH,
    COORD__FILE_FINISH, /* the outcome stands already */
    COORD__FILE_PHASES
};

/** The times of one step. */
struct coord__file_time {
    coord_ms now;
    uint64_t wall_us;
};

typedef enum coord__file_step (*coord__file_phase_fn)(struct coord__file_terms *terms,
                                                      const struct coord__file_time *at);

/* electors/file_ring.c: reading the ring */
enum coord__file_step coord__file_scan(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_top(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_newest(struct coord__file_terms *,
                                         const struct coord__file_time *);
enum coord__file_step coord__file_who(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_look(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_look_lock(struct coord__file_terms *,
                                            const struct coord__file_time *);
enum coord__file_step coord__file_locks(struct coord__file_terms *,
                                        const struct coord__file_time *);
enum coord__file_step coord__file_earlier_read(struct coord__file_terms *,
                                               const struct coord__file_time *);
enum coord__file_step coord__file_earlier_judge(struct coord__file_terms *,
                                                const struct coord__file_time *);

/* electors/file_judge.c: what the ring means */
enum coord__file_step coord__file_judge(struct coord__file_terms *,
                                        const struct coord__file_time *);

/* electors/file_take.c: ACQUIRE and INIT */
enum coord__file_step coord__file_drop(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_open(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_former(struct coord__file_terms *,
                                         const struct coord__file_time *);
enum coord__file_step coord__file_lock(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_write_texts(struct coord__file_terms *,
                                              const struct coord__file_time *);
enum coord__file_step coord__file_write_slot(struct coord__file_terms *,
                                             const struct coord__file_time *);
enum coord__file_step coord__file_taken(struct coord__file_terms *,
                                        const struct coord__file_time *);
enum coord__file_step coord__file_grant(struct coord__file_terms *,
                                        const struct coord__file_time *);
enum coord__file_step coord__file_give_up(struct coord__file_terms *,
                                          const struct coord__file_time *);
enum coord__file_step coord__file_again(struct coord__file_terms *,
                                        const struct coord__file_time *);

/* electors/file_verbs.c: what is done with a term */
enum coord__file_step coord__file_renew(struct coord__file_terms *,
                                        const struct coord__file_time *);
enum coord__file_step coord__file_renew_write(struct coord__file_terms *,
                                              const struct coord__file_time *);
enum coord__file_step coord__file_renew_lost(struct coord__file_terms *,
                                             const struct coord__file_time *);
enum coord__file_step coord__file_renew_ask(struct coord__file_terms *,
                                            const struct coord__file_time *);
enum coord__file_step coord__file_renew_owed(struct coord__file_terms *,
                                             const struct coord__file_time *);
enum coord__file_step coord__file_release(struct coord__file_terms *,
                                          const struct coord__file_time *);
enum coord__file_step coord__file_release_texts(struct coord__file_terms *,
                                                const struct coord__file_time *);
enum coord__file_step coord__file_release_write(struct coord__file_terms *,
                                                const struct coord__file_time *);
enum coord__file_step coord__file_undo(struct coord__file_terms *, const struct coord__file_time *);
enum coord__file_step coord__file_ask_send(struct coord__file_terms *,
                                           const struct coord__file_time *);
enum coord__file_step coord__file_ask_check(struct coord__file_terms *,
                                            const struct coord__file_time *);

/* ---- small parts, in electors/file_terms.c ---- */

/** Go on with another phase. @return MORE. */
enum coord__file_step coord__file_go(struct coord__file_terms *terms, enum coord__file_phase phase);

/** The request is answered. @return DONE. */
enum coord__file_step coord__file_done(struct coord__file_terms *terms, enum coord_outcome outcome);

/** A call failed; terms->reply.error says why. What was locked for this acquire is let go. */
enum coord__file_step coord__file_failed(struct coord__file_terms *terms);

/** Is there a number above `above`? Then go on with `found`, else with `then`. */
enum coord__file_step coord__file_go_look(struct coord__file_terms *terms, uint64_t above,
                                          enum coord__file_phase then,
                                          enum coord__file_phase found);

/** Go through the locked bytes from `low` to `last`: `each` for each of them, then `then`. */
enum coord__file_step coord__file_go_locks(struct coord__file_terms *terms, uint64_t low,
                                           uint64_t last, enum coord__file_phase each,
                                           enum coord__file_phase then);

/** The locked byte that was found is dealt with: go on with the next one. */
enum coord__file_step coord__file_next_lock(struct coord__file_terms *terms);

/** Find out until when earlier terms than `number` have to be waited for, then go on. */
enum coord__file_step coord__file_go_earlier(struct coord__file_terms *terms, uint64_t number,
                                             enum coord__file_phase then);

/** Free our byte and wake those who wait, then go on. */
enum coord__file_step coord__file_go_unlock(struct coord__file_terms *terms,
                                            enum coord__file_phase then);

/** Write our own term's slot. */
enum coord_err coord__file_write_mine(struct coord__file_terms *terms);

/** Write its texts; with the successor that the request names, if it names one. */
enum coord_err coord__file_write_who(struct coord__file_terms *terms);

/** Does the lock of its byte tell whether this term's process lives? */
bool coord__file_same_run(const struct coord__file_terms *terms,
                          const struct coord__file_term *term);

/** ... and can its times be compared with ours? */
bool coord__file_same_clock(const struct coord__file_terms *terms,
                            const struct coord__file_term *term);

/**
 * Did this term lead? Then all before it had ended, for good: a renewal of theirs finds it. The
 * operator's clear record did not look at them; it settles their debts only.
 */
bool coord__file_led(const struct coord__file_terms *terms, const struct coord__file_term *term);

/**
 * When something whose own time says nothing counts as past: one `lease` after it was seen as it
 * is now. COORD_NEVER: it is seen for the first time, and the time of this step may be older than
 * the sight; ask coord__file_want_fresh().
 */
coord_ms coord__file_past_at(struct coord__file_terms *terms, uint64_t number, uint64_t checksum,
                             coord_ms lease, coord_ms now);

/** The same phase again, with a time read after now. @return FRESH. */
enum coord__file_step coord__file_want_fresh(struct coord__file_terms *terms);

#endif /* COORD_ELECTORS_FILE_STEPS_H */
