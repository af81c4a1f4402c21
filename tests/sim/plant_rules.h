/* SPDX-License-Identifier: MIT
 * tests/sim/plant_rules.h - what the marked rules of the code that ships become when planted.
 *
 * Included before that code, in the simulator's copy of it. A rule that is taken out sees the
 * variables of the place where it stands.
 */
#ifndef SIM_PLANT_RULES_H
#define SIM_PLANT_RULES_H

#include "tests/sim/plant.h"

#define COORD__RULE(name, expression) SIM_RULE_##name(expression)

#define SIM_RULE(plant, planted, expression) \
    (sim_planted(SIM_PLANT_##plant) ? (planted) : (expression))

/* coord/lease.c */
#define SIM_RULE_stands_aside(e)              SIM_RULE(NOT_ASIDE, 0, e)
#define SIM_RULE_acknowledges_its_own_term(e) SIM_RULE(STRAY_ACKNOWLEDGEMENT, false, e)
#define SIM_RULE_stopping_renews_for_grace(e) SIM_RULE(RENEWS_FOR_EVER, true, e)
#define SIM_RULE_stands_after_its_host(e) \
    SIM_RULE(STANDS_BEFORE_HOST, lease->term.state == COORD__TERM_STOPPED || (e), e)
#define SIM_RULE_tells_what_it_saw(e)        SIM_RULE(SEEN_FORGOTTEN, 0, e)
#define SIM_RULE_waits_without_having_led(e) SIM_RULE(DEBT_STRUCK, true, e)
#define SIM_RULE_waits_from_a_fresh_time(e)  (e) /* too rare: tests/unit/test_lease_regress.c */

/* coord/lease_edge.c */
#define SIM_RULE_stopped_is_no(e) \
    SIM_RULE(ALIVE_AFTER_STOPPED, lease->term.state == COORD__TERM_STOPPED || (e), e)
#define SIM_RULE_hard_at_the_call(e)             SIM_RULE(STALE_YES, true, e)
#define SIM_RULE_return_is_no_acknowledgement(e) SIM_RULE(EARLY_RESIGNATION, true, e)

/* coord/lease_reply.c */
#define SIM_RULE_grant_counts_from_sending(e)   SIM_RULE(GRANT_AT_REPLY, lease->now, e)
#define SIM_RULE_renewal_counts_from_sending(e) SIM_RULE(ANCHOR_AT_REPLY, lease->now, e)
#define SIM_RULE_jump_makes_owed(e)             SIM_RULE(JUMP_IGNORED, false, e)
#define SIM_RULE_attempt_dies_with_its_undo(e)  SIM_RULE(UNDONE_LIVES, 0, e)
#define SIM_RULE_tries_what_is_held_too_long(e) SIM_RULE(LOOKS_FOR_EVER, false, e)

/* electors/file_take.c */
#define SIM_RULE_slot_has_no_former_writer(e)    SIM_RULE(SLOT_STOLEN, false, e)
#define SIM_RULE_taker_reads_late_fences(e)      (e) /* too rare: tests/unit/test_file_regress.c */
#define SIM_RULE_taker_gives_way(e)              SIM_RULE(STUBBORN_TAKER, COORD__FILE_TAKEN, e)
#define SIM_RULE_taker_sees_higher_bytes(e)      (e) /* likewise */
#define SIM_RULE_earlier_terms_are_waited_for(e) SIM_RULE(EARLIER_IGNORED, 0, e)

/* electors/file_verbs.c */
#define SIM_RULE_renewal_gives_way(e)        SIM_RULE(STUBBORN_RENEWAL, COORD__FILE_RENEW_ASK, e)
#define SIM_RULE_lost_term_keeps_its_byte(e) (e) /* its own deadline has passed by then */

/* electors/file_judge.c */
#define SIM_RULE_no_record_owes(e) SIM_RULE(NEW_FILE_CLEAR, false, e)
#define SIM_RULE_copy_owes(e) \
    SIM_RULE(NEW_FILE_CLEAR, newest->number != 0 && (e), SIM_RULE(COPY_TRUSTED, false, e))
#define SIM_RULE_debt_is_inherited(e)             SIM_RULE(FILE_DEBT_LOST, 0, e)
#define SIM_RULE_debt_counts_from_a_fresh_time(e) SIM_RULE(STALE_DEBT, false, e)

/* electors/file_terms.c */
#define SIM_RULE_slot_is_of_this_file(e)       SIM_RULE(COPY_TRUSTED, true, e)
#define SIM_RULE_clock_is_of_this_namespace(e) SIM_RULE(OTHER_CLOCK, true, e)

/* electors/postgres_session.c */
#define SIM_RULE_is_back_within_a_look(e)          SIM_RULE(PG_PATIENT, BACKOFF_CAP, e)
#define SIM_RULE_leaves_its_lock_to_the_session(e) SIM_RULE(PG_LOCK_FORGOTTEN, false, e)
#define SIM_RULE_lets_a_late_grant_go(e)           SIM_RULE(PG_LATE_GRANT, false, e)

/* electors/postgres_work.c */
#define SIM_RULE_takes_no_lock_twice(e) SIM_RULE(PG_LOCKED_TWICE, false, e)

/* electors/postgres_answer.c */
#define SIM_RULE_unlocks_at_hard(e) SIM_RULE(PG_HELD_FOR_EVER, COORD_NEVER, e)

/* electors/postgres_grant.c */
#define SIM_RULE_waits_from_the_answer(e) \
    SIM_RULE(PG_WAIT_FROM_SENDING, coord_ms_sub(e, now - job->sent), e)
#define SIM_RULE_an_error_is_unlocked(e) SIM_RULE(PG_ERROR_KEEPS, false, e)
#define SIM_RULE_passes_the_gate(e)      SIM_RULE(PG_NO_GATE, true, e)

#endif /* SIM_PLANT_RULES_H */
