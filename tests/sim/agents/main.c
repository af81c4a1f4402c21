/* SPDX-License-Identifier: MIT
 * tests/sim/agents/main.c - the command: many seeds, one seed with its trace, or planted faults.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/agents/world.h"

enum {
    EXIT_BROKEN = 1,
    EXIT_USAGE = 2,
    JOBS_MAX = 64,
    SHOWN_MAX = 20
};

static const char usage[] =
    "usage: agents [--seeds N] [--first K] [--jobs J]\n"
    "       agents --replay SEED [--plant FAULT] [--trace]\n"
    "       agents --plant FAULT|all|soon [--seeds N]\n"
    "       agents --list-faults\n"
    "\n"
    "Runs schedules of whole agents, one for each seed from K on, and checks what\n"
    "docs/guarantees.md promises of a fleet after every event. A schedule that breaks a promise is\n"
    "printed with the command that runs it again. A planted fault takes one rule out: it has to be\n"
    "noticed.\n";

struct options {
    uint64_t seeds;
    uint64_t first;
    uint64_t replay;
    bool replays;
    bool traces;
    bool lists;
    const char *plant;
    unsigned jobs;
};

/* Shared with the children, so that a crash is known by its seed. */
struct share {
    uint64_t at_seed;
    bool failed;
    struct fleet_counts counts;
};

static const char *program; /* as it was called, for the commands that it prints */
static struct fleet_world world;
static struct share *shares;

/* ---- what is asked for ---- */

static bool read_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool read_jobs(const char *text, struct options *options)
{
    uint64_t jobs = 0;
    const bool good = read_number(text, &jobs) && jobs >= 1 && jobs <= JOBS_MAX;
    options->jobs = (unsigned)jobs;
    return good;
}

/* Not one fault by name. */
static bool is_many(const char *plant)
{
    return strcmp(plant, "all") == 0 || strcmp(plant, "soon") == 0;
}

static bool read_option(int letter, const char *value, struct options *options)
{
    switch (letter) {
    case 'n':
        return read_number(value, &options->seeds);
    case 'f':
        return read_number(value, &options->first);
    case 'r':
        options->replays = true;
        return read_number(value, &options->replay);
    case 'j':
        return read_jobs(value, options);
    case 'p':
        options->plant = value;
        return is_many(value) || fleet_plant_named(value) != FLEET_PLANT_NONE;
    case 't':
        options->traces = true;
        return true;
    case 'l':
        options->lists = true;
        return true;
    default:
        return false;
    }
}

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"seeds", required_argument, NULL, 'n'}, {"first", required_argument, NULL, 'f'},
        {"jobs", required_argument, NULL, 'j'},  {"replay", required_argument, NULL, 'r'},
        {"plant", required_argument, NULL, 'p'}, {"trace", no_argument, NULL, 't'},
        {"list-faults", no_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
    int letter = 0;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (!read_option(letter, optarg, options)) {
            return false;
        }
    }
    return optind == argc;
}

/* ---- one seed, and many ---- */

static void print_broken(uint64_t seed)
{
    printf("agents seed %" PRIu64 " breaks %s at %" PRIu64 " ms: %s\n", seed,
           fleet_promise_name(world.broken), world.broken_at, world.text);
}

static void print_command(uint64_t seed)
{
    printf("    %s --replay %" PRIu64 "%s%s --trace\n", program, seed,
           fleet_plant_now != FLEET_PLANT_NONE ? " --plant " : "",
           fleet_plant_now != FLEET_PLANT_NONE ? fleet_plants[fleet_plant_now].name : "");
}

static int replay(const struct options *options)
{
    if (options->plant != NULL) {
        fleet_plant_now = fleet_plant_named(options->plant);
    }
    fleet_schedule(&world, options->replay, options->traces ? stdout : NULL);
    if (world.broken == FLEET_KEPT) {
        printf("agents seed %" PRIu64 " keeps every promise\n", options->replay);
        return EXIT_SUCCESS;
    }
    print_broken(options->replay);
    return EXIT_BROKEN;
}

/* Every jobs-th seed. */
static void run_seeds(const struct options *options, unsigned job)
{
    unsigned shown = 0;
    for (uint64_t i = job; i < options->seeds; i += options->jobs) {
        shares[job].at_seed = options->first + i;
        fleet_schedule(&world, options->first + i, NULL);
        if (world.broken != FLEET_KEPT && shown++ < SHOWN_MAX) {
            print_broken(options->first + i);
            print_command(options->first + i);
        }
    }
    shares[job].counts = world.counts;
}

static void notice(const struct options *options, enum fleet_plant plant, unsigned job)
{
    const struct fleet_plant_info *info = &fleet_plants[plant];
    const uint64_t most = options->seeds > 0 ? options->seeds : info->schedules;
    const uint64_t needed = fleet_notice(&world, plant, options->first, most);
    if (needed == 0) {
        printf("%-22s NOT noticed in %" PRIu64 " schedules: %s\n", info->name, most, info->text);
        shares[job].failed = true;
        return;
    }
    printf("%-22s %-8s after %6" PRIu64 " schedules: %s\n", info->name,
           fleet_promise_name(world.broken), needed, info->text);
}

static void notice_one(const struct options *options, unsigned job)
{
    if (job > 0) {
        return;
    }
    notice(options, fleet_plant_named(options->plant), job);
    fleet_plant_now = fleet_plant_named(options->plant);
    if (!shares[job].failed) {
        print_broken(world.seed);
        print_command(world.seed);
    }
}

/* Every jobs-th of them. */
static void notice_all(const struct options *options, unsigned job)
{
    const bool all = strcmp(options->plant, "all") == 0;
    for (unsigned i = FLEET_PLANT_NONE + 1 + job; i < FLEET_PLANT_COUNT; i += options->jobs) {
        if (all || fleet_plants[i].schedules <= FLEET_SOON) {
            notice(options, (enum fleet_plant)i, job);
            fflush(stdout);
        }
    }
}

/* A child for each job. @return false: one has failed, or crashed. */
static bool run_jobs(const struct options *options,
                     void (*run)(const struct options *options, unsigned job))
{
    pid_t children[JOBS_MAX];
    bool good = true;
    fflush(stdout);
    for (unsigned job = 0; job < options->jobs; job++) {
        children[job] = fork();
        if (children[job] == 0) {
            run(options, job);
            fflush(stdout);
            _exit(0);
        }
    }
    for (unsigned job = 0; job < options->jobs; job++) {
        int status = 0;
        if (children[job] < 0 || waitpid(children[job], &status, 0) < 0 || status != 0) {
            printf("agents seed %" PRIu64 " crashes\n", shares[job].at_seed);
            print_command(shares[job].at_seed);
            good = false;
        }
        good = good && !shares[job].failed;
    }
    return good;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void add_counts(struct fleet_counts *sum, const struct fleet_counts *part)
{
    sum->schedules += part->schedules;
    sum->messages += part->messages;
    sum->steps += part->steps;
    sum->deaths += part->deaths;
    sum->false_deaths += part->false_deaths;
    sum->reports += part->reports;
    sum->taken += part->taken;
    sum->taken_early += part->taken_early;
    sum->lost += part->lost;
    for (unsigned i = 0; i < FLEET_PROMISES; i++) {
        sum->broken[i] += part->broken[i];
    }
}

static int run_many(const struct options *options)
{
    struct fleet_counts sum = {.schedules = 0};
    const double began = seconds();
    if (!run_jobs(options, run_seeds)) {
        return EXIT_BROKEN;
    }
    const double took = seconds() - began;
    for (unsigned job = 0; job < options->jobs; job++) {
        add_counts(&sum, &shares[job].counts);
    }
    printf("agents: %" PRIu64 " schedules from seed %" PRIu64 ", %" PRIu64 " messages, %" PRIu64
           " steps, %.1f s, %.0f schedules/s\n",
           sum.schedules, options->first, sum.messages, sum.steps, took,
           (double)sum.schedules / took);
    printf("agents: %" PRIu64 " deaths told, %" PRIu64 " of the living where that is not promised "
           "against; %" PRIu64 " events of reports, %" PRIu64
           " orphans that nobody knew of; %" PRIu64 " works taken, %" PRIu64 " early\n",
           sum.deaths, sum.false_deaths, sum.reports, sum.lost, sum.taken, sum.taken_early);
    int result = EXIT_SUCCESS;
    for (int i = FLEET_KEPT + 1; i < FLEET_PROMISES; i++) {
        if (sum.broken[i] > 0) {
            printf("agents: %s broken in %" PRIu64 " schedules\n",
                   fleet_promise_name((enum fleet_promise)i), sum.broken[i]);
            result = EXIT_BROKEN;
        }
    }
    return result;
}

static int list_faults(void)
{
    for (int i = FLEET_PLANT_NONE + 1; i < FLEET_PLANT_COUNT; i++) {
        printf("%-22s %s\n", fleet_plants[i].name, fleet_plants[i].text);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct options options = {.first = 1, .jobs = 1};
    if (processors > 1) {
        options.jobs = processors < JOBS_MAX ? (unsigned)processors : JOBS_MAX;
    }
    program = argv[0];
    if (!read_options(argc, argv, &options)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (options.lists) {
        return list_faults();
    }
    /* An agent is large and mostly untouched: pages that the system clears are cheaper. */
    mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    if (options.replays) {
        return replay(&options);
    }
    shares = mmap(NULL, JOBS_MAX * sizeof *shares, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shares == MAP_FAILED) {
        perror("agents");
        return EXIT_BROKEN;
    }
    if (options.plant != NULL) {
        const bool good = run_jobs(&options, is_many(options.plant) ? notice_all : notice_one);
        return good ? EXIT_SUCCESS : EXIT_BROKEN;
    }
    options.seeds = options.seeds > 0 ? options.seeds : 10000;
    return run_many(&options);
}
