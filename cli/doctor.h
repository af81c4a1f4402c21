/* SPDX-License-Identifier: MIT
 * cli/doctor.h - what `coordctl doctor` finds, of an election's server and of a bus.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/args.h"
#include "coord/check.h"
#include "coord/timing.h"

enum {
    CLI_FINDINGS_OWN = 4 /* that coordctl adds by itself */
};

struct cli_findings {
    const struct coord_timing *timing; /* of the elections that are meant; NULL: of a bus */
    size_t count;
    struct coord_check list[COORD_CHECKS_MAX + CLI_FINDINGS_OWN];
};

/** Print them, as text or as --json says. @return the exit status. */
int cli_doctor_print(const struct cli_args *args, const struct cli_findings *found);

/**
 * Look at the bus that --bus says, and print what was found.
 *
 * @param options  --option is meant for it.
 * @return         the exit status; what is no finding was said on stderr.
 */
int cli_doctor_bus(const struct cli_args *args, bool options);

#endif /* CLI_DOCTOR_H */
