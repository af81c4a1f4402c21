/* SPDX-License-Identifier: MIT
 * brokers/local_doctor.c - what a folder and this host are like, judged for a bus.
 */
#include "brokers/local.h"

#include "brokers/local_parts.h"

#include <stdio.h>
#include <string.h>

enum {
    FEW_DATAGRAMS = 10, /* as kernels come with */
    FIELD = 64
};

static void count_one(void *ctx, const char *name)
{
    size_t *count = ctx;
    (void)name;
    (*count)++;
}

/* How many datagrams a socket holds. @return 0: this system does not tell. */
static unsigned datagrams(void)
{
    FILE *file = fopen("/proc/sys/net/unix/max_dgram_qlen", "re");
    unsigned count = 0;
    if (file != NULL) {
        count = fscanf(file, "%u", &count) == 1 ? count : 0;
        fclose(file);
    }
    return count;
}

size_t coord_local_doctor(const char *folder, struct coord_check *out)
{
    struct coord_checks checks = {out, 0};
    struct coord__local_folder opened = {.fd = -1};
    struct coord_error why = {.code = COORD_OK};
    char value[FIELD];
    size_t members = 0;
    if (coord__local_folder_name(&opened, folder, &why) != COORD_OK ||
        coord__local_folder_open(&opened, &why) != COORD_OK) {
        coord_check_add(&checks, "folder", COORD_VERDICT_FAIL, coord_err_name(why.code),
                        "each member has a socket in it, which is open to nobody else", why.text);
        return checks.count;
    }
    coord_check_add(&checks, "folder", COORD_VERDICT_OK, "this user's alone",
                    "each member has a socket in it, which is open to nobody else", "");
    if (coord__local_each(&opened, count_one, &members)) {
        snprintf(value, sizeof value, "%zu", members);
        coord_check_add(&checks, "members", COORD_VERDICT_OK, value,
                        "who publishes sends to each socket; those of killed processes go with "
                        "the next message",
                        "");
    }
    coord__local_folder_close(&opened);
    const unsigned held = datagrams();
    snprintf(value, sizeof value, "net.unix.max_dgram_qlen = %u", held);
    coord_check_add(&checks, "queue",
                    held == 0               ? COORD_VERDICT_SKIPPED
                    : held >= FEW_DATAGRAMS ? COORD_VERDICT_OK
                                            : COORD_VERDICT_WARN,
                    held == 0 ? "not told" : value,
                    "what a busy member's socket does not take waits with the sender, for two "
                    "seconds",
                    "sysctl -w net.unix.max_dgram_qlen=512");
    return checks.count;
}
