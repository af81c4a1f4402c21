/* SPDX-License-Identifier: MIT
 * cli/verbs.h - the verbs of coordctl, one in each file; cli/main.c has the table.
 */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli/args.h"

extern const struct cli_verb cli_verb_run;
extern const struct cli_verb cli_verb_status;
extern const struct cli_verb cli_verb_step_down;
extern const struct cli_verb cli_verb_init;
extern const struct cli_verb cli_verb_doctor;
extern const struct cli_verb cli_verb_demo;
extern const struct cli_verb cli_verb_message;
extern const struct cli_verb cli_verb_agent;
extern const struct cli_verb cli_verb_announce;
extern const struct cli_verb cli_verb_assign;
extern const struct cli_verb cli_verb_peers;
extern const struct cli_verb cli_verb_orphans;

#endif /* CLI_VERBS_H */
