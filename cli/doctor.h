/* SPDX-License-Identifier: MIT
 * cli/doctor.h - what `coordctl doctor` finds, of an election's server and of a bus.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/args.h"
#include "coord/check.h"
#include "coord/timing.h"
#include "coord/uri.h"

enum {
    CLI_FINDINGS_OWN = 8 /* that coordctl adds by itself */
};

struct cli_findings {
    const struct coord_timing *timing; /* of the elections that are meant; NULL: of a bus */
    size_t count;
    struct coord_check list[COORD_CHECKS_MAX + CLI_FINDINGS_OWN];
};

/** Print them, as text or as --json says. @return the exit status. */
int cli_doctor_print(const struct cli_args *args, const struct cli_findings *found);

/** Add what this host does to whoever leads on it. */
void cli_doctor_host(struct cli_findings *found);

/** Add how long the names of a URI's hosts take; nothing where it has only addresses. */
void cli_doctor_names(struct cli_findings *found, const struct coord_uri *uri);

/**
 * How often a control group, or one above it, used up its CPU time.
 *
 * @param groups  in the form of /proc/self/cgroup.
 * @param root    as /sys/fs/cgroup.
 * @return        false: it is not told, as there is no limit.
 */
bool cli_doctor_throttled(const char *groups, const char *root, uint64_t *periods,
                          uint64_t *throttled);

/**
 * Look at the bus that --bus says, and print what was found.
 *
 * @param options  --option is meant for it.
 * @return         the exit status; what is no finding was said on stderr.
 */
int cli_doctor_bus(const struct cli_args *args, bool options);

#endif /* CLI_DOCTOR_H */
