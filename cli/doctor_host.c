/* SPDX-License-Identifier: MIT
 * cli/doctor_host.c - what this host does to whoever leads on it: sleep, slow it down, hide others.
 */
#include "cli/doctor.h"

#include "runtime/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

enum {
    CLOCK_READS = 1000,
    CLOCK_ROUNDS = 9,
    FEW_DESCRIPTORS = 256,
    THROTTLED_PERCENT = 1,
    LINE = 512
};

static void add(struct cli_findings *found, const char *name, enum coord_verdict verdict,
                const char *value, const char *why, const char *cure)
{
    struct coord_check *check = &found->list[found->count++];
    *check = (struct coord_check){.name = name, .verdict = verdict, .why = why};
    snprintf(check->value, sizeof check->value, "%s", value);
    if (verdict != COORD_VERDICT_OK) {
        snprintf(check->cure, sizeof check->cure, "%s", cure);
    }
}

static enum coord_verdict warn_unless(bool good)
{
    return good ? COORD_VERDICT_OK : COORD_VERDICT_WARN;
}

/* ---------------------------------------------------------------- clocks */

static uint64_t read_clock(void)
{
    return coord_clock_now();
}

static uint64_t call_kernel(void)
{
    struct timespec t = {.tv_sec = 0};
    return syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &t) == 0 ? (uint64_t)t.tv_sec : 0;
}

/* ns for one call, of the fastest round: what others do on the machine counts least there. */
static uint64_t cost_of(uint64_t (*call)(void))
{
    uint64_t least = UINT64_MAX;
    volatile uint64_t kept = 0; /* or the loop goes */
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        struct timespec from = {.tv_sec = 0};
        struct timespec to = {.tv_sec = 0};
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < CLOCK_READS; i++) {
            kept = call();
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        const uint64_t took = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 +
                              (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
        least = took < least ? took : least;
    }
    (void)kept;
    return least / CLOCK_READS;
}

/* A read that costs half of a system call and more is one. */
static void check_clock_read(struct cli_findings *found)
{
    char value[COORD_CHECK_VALUE_MAX];
    const uint64_t read = cost_of(read_clock);
    const uint64_t kernel = cost_of(call_kernel);
    const bool fast = 2 * read < kernel;
    snprintf(value, sizeof value, "%" PRIu64 " ns, %s; a system call takes %" PRIu64 " ns", read,
             fast ? "in the vDSO" : "a system call", kernel);
    add(found, "clock read", warn_unless(fast), value, "is_leader() reads the clock each time",
        "nothing is wrong but the speed: a kernel from 5.3 on, with the clock source tsc");
}

/* CLOCK_BOOTTIME counts what a host sleeps, CLOCK_MONOTONIC does not. */
static void check_suspend(struct cli_findings *found)
{
    char value[COORD_CHECK_VALUE_MAX];
    struct timespec awake = {.tv_sec = 0};
    struct timespec all = {.tv_sec = 0};
    clock_gettime(CLOCK_MONOTONIC, &awake);
    clock_gettime(CLOCK_BOOTTIME, &all);
    const int64_t asleep = (int64_t)all.tv_sec - (int64_t)awake.tv_sec;
    snprintf(value, sizeof value, "asleep for %" PRId64 " s since boot", asleep);
    /* Two reads can have a second's end between them. */
    add(found, "suspend", warn_unless(asleep <= 1 && asleep >= -1), value,
        "a host that sleeps renews nothing: who leads on it has lost its lease when it wakes",
        "mask sleep.target on hosts that are to lead");
}

static void check_time_server(struct cli_findings *found)
{
    char value[COORD_CHECK_VALUE_MAX];
    struct timex state = {.modes = 0}; /* only read */
    const int rc = adjtimex(&state);
    const bool follows = rc != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
    snprintf(value, sizeof value, "%s",
             rc < 0    ? strerror(errno)
             : follows ? "the clock follows one"
                       : "the kernel knows of none");
    add(found, "time server", rc < 0 ? COORD_VERDICT_SKIPPED : warn_unless(follows), value,
        "a clock that nobody keeps drifts until somebody sets it, and a jump of a server's clock "
        "ends leases early",
        "chronyd or systemd-timesyncd, here and on the server; in a container it is the host's");
}

/* ---------------------------------------------------------------- limits */

/* Adds up one cpu.stat. @return false: it does not tell. */
static bool read_stat(const char *path, uint64_t *periods, uint64_t *throttled)
{
    FILE *file = fopen(path, "re");
    char line[LINE];
    bool told = false;
    if (file == NULL) {
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t number = 0;
        if (sscanf(line, "nr_periods %" SCNu64, &number) == 1) {
            *periods = number;
        } else if (sscanf(line, "nr_throttled %" SCNu64, &number) == 1) {
            *throttled = number;
            told = true;
        }
    }
    fclose(file);
    return told;
}

/* The worst of a group and of all above it, as each may have a limit. */
static bool read_group(const char *root, char *group, uint64_t *periods, uint64_t *throttled)
{
    bool told = false;
    for (;;) {
        char path[2 * LINE];
        uint64_t of = 0;
        uint64_t times = 0;
        snprintf(path, sizeof path, "%s%s/cpu.stat", root, group);
        if (read_stat(path, &of, &times)) {
            told = true;
            if (times >= *throttled) {
                *throttled = times;
                *periods = of;
            }
        }
        char *end = strrchr(group, '/');
        if (end == NULL) {
            return told;
        }
        *end = '\0';
    }
}

/* Among "cpuset,cpu,cpuacct", not as a part of another's name. */
static bool has_cpu(const char *controllers)
{
    const size_t length = strcspn(controllers, ",");
    return (length == 3 && memcmp(controllers, "cpu", 3) == 0) ||
           (controllers[length] != '\0' && has_cpu(controllers + length + 1));
}

bool cli_doctor_throttled(const char *groups, const char *root, uint64_t *periods,
                          uint64_t *throttled)
{
    FILE *file = fopen(groups, "re");
    char line[LINE];
    bool told = false;
    *periods = 0;
    *throttled = 0;
    while (file != NULL && !told && fgets(line, sizeof line, file) != NULL) {
        char mount[LINE];
        char *const controllers = strchr(line, ':');
        char *const group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) {
            continue;
        }
        *group = '\0';
        group[1 + strcspn(group + 1, "\n")] = '\0';
        /* Of version 2 there is one line, "0::GROUP"; of version 1 one for each controller. */
        const bool second = controllers[1] == '\0';
        snprintf(mount, sizeof mount, "%.256s%s", root, second ? "" : "/cpu");
        if (second || has_cpu(controllers + 1)) {
            told = read_group(mount, group + 1, periods, throttled);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return told;
}

static void check_throttling(struct cli_findings *found)
{
    char value[COORD_CHECK_VALUE_MAX];
    uint64_t periods = 0;
    uint64_t throttled = 0;
    const bool told =
        cli_doctor_throttled("/proc/self/cgroup", "/sys/fs/cgroup", &periods, &throttled);
    snprintf(value, sizeof value, "held up in %" PRIu64 " of %" PRIu64 " periods", throttled,
             periods);
    add(found, "cpu limit", warn_unless(throttled * 100 <= periods * THROTTLED_PERCENT),
        told ? value : "none, or not told", "a leader that is held up misses renewals",
        "a higher CPU limit (cpu.max), or a longer coord.ttl");
}

static void check_descriptors(struct cli_findings *found)
{
    char value[COORD_CHECK_VALUE_MAX];
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    COORD_IGNORE(getrlimit(RLIMIT_NOFILE, &limit) != 0, "only a bad address fails");
    if (limit.rlim_cur == RLIM_INFINITY) {
        snprintf(value, sizeof value, "no limit");
    } else {
        snprintf(value, sizeof value, "%" PRIu64, (uint64_t)limit.rlim_cur);
    }
    add(found, "open files", warn_unless(limit.rlim_cur >= FEW_DESCRIPTORS), value,
        "who has no descriptor left cannot connect again: the lease runs out",
        "ulimit -n 1024, or LimitNOFILE=1024 in its unit");
}

/* The kernel shows process 1 to everybody, unless /proc is mounted with hidepid. */
static void check_proc(struct cli_findings *found)
{
    const bool shown = access("/proc/1/stat", R_OK) == 0;
    add(found, "processes", warn_unless(shown),
        shown ? "all are shown" : "/proc hides those of other users",
        "coordctl run finds in /proc what COMMAND leaves behind; what has changed its user is not "
        "found when it is hidden",
        "mount /proc without hidepid, or let COMMAND keep its user");
}

/* ---------------------------------------------------------------- names */

static bool is_name(const char *host)
{
    return host[0] != '\0' && host[0] != '/' && strchr(host, ':') == NULL &&
           host[strspn(host, "0123456789.")] != '\0';
}

/* Of the slowest name of the URI. */
void cli_doctor_names(struct cli_findings *found, const struct coord_uri *uri)
{
    char value[COORD_CHECK_VALUE_MAX];
    coord_ms worst = 0;
    size_t names = 0;
    for (size_t i = 0; i < uri->host_count; i++) {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct addrinfo *addresses = NULL;
        const coord_ms begun = coord_clock_now();
        if (!is_name(uri->hosts[i].host)) {
            continue;
        }
        if (getaddrinfo(uri->hosts[i].host, NULL, &hints, &addresses) == 0) {
            freeaddrinfo(addresses);
        } else {
            snprintf(value, sizeof value, "%.100s is not known", uri->hosts[i].host);
            add(found, "names", COORD_VERDICT_WARN, value,
                "a name is resolved again at each connect", "see to the name server, or the URI");
            return;
        }
        worst = coord_ms_max(worst, coord_clock_now() - begun);
        names++;
    }
    snprintf(value, sizeof value, "resolved within %" PRIu64 " ms", worst);
    if (names > 0) {
        add(found, "names", warn_unless(worst < found->timing->attempt), value,
            "a name is resolved again at each connect; an attempt takes an eighth of a lease",
            "a name server that is nearer, a cache on this host, or an address in the URI");
    }
}

void cli_doctor_host(struct cli_findings *found)
{
    check_clock_read(found);
    check_suspend(found);
    check_time_server(found);
    check_throttling(found);
    check_descriptors(found);
    check_proc(found);
}
