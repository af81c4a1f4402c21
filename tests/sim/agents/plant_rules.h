/* SPDX-License-Identifier: MIT
 * tests/sim/agents/plant_rules.h - what the marked rules of the coordinator and of the agent become
 * when planted.
 *
 * Included before that code, in the simulator's copy of it. A rule that is taken out sees the
 * variables of the place where it stands.
 */
#ifndef SIM_AGENTS_PLANT_RULES_H
#define SIM_AGENTS_PLANT_RULES_H

#include "tests/sim/agents/plant.h"

#define COORD__RULE(name, expression) FLEET_RULE_##name(expression)

#define FLEET_RULE(plant, planted, expression) \
    (fleet_planted(FLEET_PLANT_##plant) ? (planted) : (expression))

/* coord/coordinator.c */
#define FLEET_RULE_hears_itself(e) FLEET_RULE(DEAF_JUDGE, true, e)
#define FLEET_RULE_slept_beyond_its_deadline(e) \
    FLEET_RULE(ASLEEP_BETWEEN_CALLS, now > coord_ms_add(c->now, c->config.timeout / 2), e)
#define FLEET_RULE_is_back_on_the_bus(e)   FLEET_RULE(BACK_UNNOTICED, false, e)
#define FLEET_RULE_has_not_heard_itself(e) FLEET_RULE(ECHO_IGNORED, false, e)

/* coord/coordinator_peers.c */
#define FLEET_RULE_is_a_known_time(e)  FLEET_RULE(CLOCK_BACK_DEAD, extra->ring[i] >= timestamp, e)
#define FLEET_RULE_times_remembered(e) FLEET_RULE(SHORT_MEMORY, extra->ring_count > 0, e)
#define FLEET_RULE_is_no_news(e)       FLEET_RULE(REPLAY_LIVES, false, e)
#define FLEET_RULE_leaves_its_work(e)  FLEET_RULE(DRAINER_RESOLVES, false, e)
#define FLEET_RULE_each_start_has_its_own_silence(e) \
    FLEET_RULE(OLDER_RETIRED, retire_others(c, ref), e)
#define FLEET_RULE_twins_both_go_on(e) \
    FLEET_RULE(TWINS_AT_ONCE, 0, FLEET_RULE(TWINS_UNTOLD, COORD_NEVER, e))
#define FLEET_RULE_a_beat_withdraws(e) FLEET_RULE(NOTICE_STAYS, false, e)

/* coord/coordinator_silence.c */
#define FLEET_RULE_the_leaving_die_too(e) \
    FLEET_RULE(LEAVING_FOR_EVER, coord__peer_leaving(peer) || (e), e)

/* coord/coordinator_reports.c */
#define FLEET_RULE_a_deadline_has_a_reserve(e) FLEET_RULE(SAFE_AT_DEADLINE, 0, e)
#define FLEET_RULE_silent_may_be_at_work(e)    FLEET_RULE(SAFE_AT_DEATH, timeout, e)
#define FLEET_RULE_not_heard_since(e)          FLEET_RULE(RESOLVED_REOPENS, false, e)
#define FLEET_RULE_numbers_rise(e)             FLEET_RULE(NUMBERS_ANEW, 0, e)

/* coord/coordinator_adopt.c */
#define FLEET_RULE_is_adopted(e) FLEET_RULE(NO_ADOPTION, true, e)
#define FLEET_RULE_is_brought_up_first(e) \
    FLEET_RULE(EMPTY_TABLE_CLOSES, true, FLEET_RULE(ABSENT_CLOSES, true, e))
#define FLEET_RULE_is_hinted_at(e) FLEET_RULE(NO_HINTS, false, e)

/* coord/coordinator_send.c */
#define FLEET_RULE_beats_on_time(e) FLEET_RULE(BEATS_DRIFT, c->now, e)

/* coord/coordinator_say.c */
#define FLEET_RULE_says_how_long_it_heard(e) FLEET_RULE(EMPTY_TABLE_CLOSES, 1U << 31, e)
#define FLEET_RULE_reports_in_a_part(e)      2 /* always: so that tables come in parts */

/* coord/agent.c */
#define FLEET_RULE_reads_before_it_judges(e) \
    FLEET_RULE(JUDGES_FIRST, coord_coordinator_next_event(a->coordinator, a->now, &a->event), e)

/* coord/agent_leave.c */
#define FLEET_RULE_a_deadline_ends_each_step(e) FLEET_RULE(NO_DEADLINE, false, e)
#define FLEET_RULE_releases_before_it_drains(e) FLEET_RULE(LEADS_ON, true, e)

#endif /* SIM_AGENTS_PLANT_RULES_H */
