/* SPDX-License-Identifier: MIT
 * tests/sim/main.c - the command: many seeds, one seed with its trace, or planted faults.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/world.h"

enum {
    EXIT_BROKEN = 1,
    EXIT_USAGE = 2,
    JOBS_MAX = 64,
    SHOWN_MAX = 20
};

static const char usage[] =
    "usage: sim [--seeds N] [--first K] [--store redis|file|postgres|all] [--jobs J]\n"
    "       sim --replay SEED [--store redis|file|postgres] [--plant FAULT] [--trace]\n"
    "       sim --plant FAULT|all|soon [--seeds N]\n"
    "       sim --list-faults\n"
    "\n"
    "Runs schedules of simulated elections, one for each seed from K on, and checks the promises\n"
    "of docs/guarantees.md after every event. A schedule that breaks one is printed with the\n"
    "command that runs it again. A planted fault takes one rule out: it has to be noticed.\n";

struct options {
    uint64_t seeds;
    uint64_t first;
    uint64_t replay;
    bool replays;
    bool traces;
    bool lists;
    bool redis;
    bool file;
    bool postgres;
    const char *plant;
    unsigned jobs;
};

static const char *program; /* as it was called, for the commands that it prints */
static struct sim_world world;
static uint64_t *at_seed; /* of each job, shared: where it was when it crashed */

static const char *store_name(enum sim_store store)
{
    static const char *const names[] = {"redis", "file", "postgres"};
    return names[store];
}

/* ---------------------------------------------------------------- what is asked for */

static bool read_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool read_store(const char *text, struct options *options)
{
    options->redis = strcmp(text, "redis") == 0 || strcmp(text, "all") == 0;
    options->file = strcmp(text, "file") == 0 || strcmp(text, "all") == 0;
    options->postgres = strcmp(text, "postgres") == 0 || strcmp(text, "all") == 0;
    return options->redis || options->file || options->postgres;
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
    case 's':
        return read_store(value, options);
    case 'j':
        return read_jobs(value, options);
    case 'p':
        options->plant = value;
        return is_many(value) || sim_plant_named(value) != SIM_PLANT_NONE;
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
    static const struct option known[] = {{"seeds", required_argument, NULL, 'n'},
                                          {"first", required_argument, NULL, 'f'},
                                          {"store", required_argument, NULL, 's'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"replay", required_argument, NULL, 'r'},
                                          {"plant", required_argument, NULL, 'p'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"list-faults", no_argument, NULL, 'l'},
                                          {NULL, 0, NULL, 0}};
    int letter = 0;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (!read_option(letter, optarg, options)) {
            return false;
        }
    }
    if (optind < argc && !read_number(argv[optind++], &options->seeds)) {
        return false;
    }
    if (optind < argc && !read_number(argv[optind++], &options->first)) {
        return false;
    }
    return optind == argc;
}

/* ---------------------------------------------------------------- one seed, and many */

static void print_broken(enum sim_store store, uint64_t seed)
{
    const struct sim_check *check = &world.check;
    printf("%s seed %" PRIu64 " breaks %s at %" PRIu64 " ms: %s\n", store_name(store), seed,
           sim_promise_name(check->broken), check->broken_at / 1000, check->text);
}

static void print_command(enum sim_store store, uint64_t seed)
{
    printf("    %s --store %s --replay %" PRIu64 "%s%s --trace\n", program, store_name(store), seed,
           sim_plant_now != SIM_PLANT_NONE ? " --plant " : "",
           sim_plant_now != SIM_PLANT_NONE ? sim_plants[sim_plant_now].name : "");
}

static int replay(const struct options *options)
{
    enum sim_store store = options->redis  ? SIM_STORE_REDIS
                           : options->file ? SIM_STORE_FILE
                                           : SIM_STORE_POSTGRES;
    if (options->plant != NULL) {
        sim_plant_now = sim_plant_named(options->plant);
        store = sim_plants[sim_plant_now].store;
    }
    sim_schedule(&world, store, options->replay, options->traces ? stdout : NULL);
    if (world.check.broken == SIM_KEPT) {
        printf("%s seed %" PRIu64 " keeps every promise\n", store_name(store), options->replay);
        return EXIT_SUCCESS;
    }
    print_broken(store, options->replay);
    return EXIT_BROKEN;
}

static void add_counts(struct sim_counts *sum, const struct sim_counts *part)
{
    sum->schedules += part->schedules;
    sum->events += part->events;
    sum->terms += part->terms;
    sum->grants += part->grants;
    sum->owed += part->owed;
    sum->outside += part->outside;
    sum->bound_used = sum->bound_used > part->bound_used ? sum->bound_used : part->bound_used;
    for (int i = 0; i < SIM_PROMISES; i++) {
        sum->broken[i] += part->broken[i];
    }
}

/* Every jobs-th seed. */
static void run_share(const struct options *options, enum sim_store store, unsigned job)
{
    unsigned shown = 0;
    for (uint64_t i = job; i < options->seeds; i += options->jobs) {
        at_seed[job] = options->first + i;
        sim_schedule(&world, store, options->first + i, NULL);
        if (world.check.broken != SIM_KEPT && shown++ < SHOWN_MAX) {
            print_broken(store, options->first + i);
            print_command(store, options->first + i);
        }
    }
    fflush(stdout);
}

/* @return the status of a child, or -1. */
static int wait_for(pid_t child)
{
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* A child for each job; what it counted comes back through a pipe. */
static bool run_jobs(const struct options *options, enum sim_store store, struct sim_counts *sum)
{
    pid_t children[JOBS_MAX];
    int ends[2];
    bool good = pipe(ends) == 0;
    fflush(stdout);
    for (unsigned job = 0; job < options->jobs; job++) {
        children[job] = fork();
        if (children[job] == 0) {
            run_share(options, store, job);
            const bool told =
                write(ends[1], &world.counts, sizeof world.counts) == (ssize_t)sizeof world.counts;
            _exit(told ? 0 : 1);
        }
    }
    for (unsigned job = 0; job < options->jobs; job++) {
        struct sim_counts part;
        if (wait_for(children[job]) == 0 && read(ends[0], &part, sizeof part) > 0) {
            add_counts(sum, &part);
        } else {
            printf("%s seed %" PRIu64 " crashes\n", store_name(store), at_seed[job]);
            print_command(store, at_seed[job]);
            good = false;
        }
    }
    close(ends[0]);
    close(ends[1]);
    return good;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_seeds(const struct options *options, enum sim_store store)
{
    struct sim_counts sum = {.schedules = 0};
    const double began = seconds();
    if (!run_jobs(options, store, &sum)) {
        return EXIT_BROKEN;
    }
    const double took = seconds() - began;
    printf("%s: %" PRIu64 " schedules from seed %" PRIu64 ", %" PRIu64 " terms, %" PRIu64
           " grants of which %" PRIu64 " owed, %.1f s, %.0f schedules/s\n",
           store_name(store), sum.schedules, options->first, sum.terms, sum.grants, sum.owed, took,
           (double)sum.schedules / took);
    printf("%s: %" PRIu64 " moments of two leaders where that is not promised; a leader within "
           "%.1f %% of the bound\n",
           store_name(store), sum.outside, (double)sum.bound_used / 10);
    int result = EXIT_SUCCESS;
    for (int i = SIM_KEPT + 1; i < SIM_PROMISES; i++) {
        if (sum.broken[i] > 0) {
            printf("%s: %s broken in %" PRIu64 " schedules\n", store_name(store),
                   sim_promise_name((enum sim_promise)i), sum.broken[i]);
            result = EXIT_BROKEN;
        }
    }
    return result;
}

/* ---------------------------------------------------------------- planted faults */

static int notice(const struct options *options, enum sim_plant plant)
{
    const struct sim_plant_info *info = &sim_plants[plant];
    const uint64_t most = options->seeds > 0 ? options->seeds : info->schedules;
    const uint64_t needed = sim_notice(&world, plant, options->first, most);
    if (needed == 0) {
        printf("%-22s NOT noticed in %" PRIu64 " schedules: %s\n", info->name, most, info->text);
        return EXIT_BROKEN;
    }
    printf("%-22s %-9s after %6" PRIu64 " schedules: %s\n", info->name,
           sim_promise_name(world.check.broken), needed, info->text);
    return EXIT_SUCCESS;
}

static int notice_one(const struct options *options)
{
    const enum sim_plant plant = sim_plant_named(options->plant);
    const int result = notice(options, plant);
    sim_plant_now = plant;
    if (result == EXIT_SUCCESS) {
        print_broken(sim_plants[plant].store, world.seed);
        print_command(sim_plants[plant].store, world.seed);
    }
    return result;
}

/* Every jobs-th of them. */
static int notice_share(const struct options *options, unsigned job)
{
    const bool all = strcmp(options->plant, "all") == 0;
    int result = EXIT_SUCCESS;
    for (unsigned i = SIM_PLANT_NONE + 1 + job; i < SIM_PLANT_COUNT; i += options->jobs) {
        if (all || sim_plants[i].schedules <= SIM_SOON) {
            result |= notice(options, (enum sim_plant)i);
            fflush(stdout);
        }
    }
    return result;
}

static int notice_all(const struct options *options)
{
    pid_t children[JOBS_MAX];
    int result = EXIT_SUCCESS;
    fflush(stdout);
    for (unsigned job = 0; job < options->jobs; job++) {
        children[job] = fork();
        if (children[job] == 0) {
            _exit(notice_share(options, job));
        }
    }
    for (unsigned job = 0; job < options->jobs; job++) {
        result |= wait_for(children[job]) == 0 ? EXIT_SUCCESS : EXIT_BROKEN;
    }
    return result;
}

static int list_faults(void)
{
    for (int i = SIM_PLANT_NONE + 1; i < SIM_PLANT_COUNT; i++) {
        printf("%-22s %-8s %s\n", sim_plants[i].name, store_name(sim_plants[i].store),
               sim_plants[i].text);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct options options = {.first = 1, .redis = true, .file = true, .postgres = true, .jobs = 1};
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
    if (options.replays) {
        return replay(&options);
    }
    if (options.plant != NULL) {
        return is_many(options.plant) ? notice_all(&options) : notice_one(&options);
    }
    options.seeds = options.seeds > 0 ? options.seeds : 10000;
    at_seed = mmap(NULL, JOBS_MAX * sizeof *at_seed, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at_seed == MAP_FAILED) {
        perror("sim");
        return EXIT_BROKEN;
    }
    int result = EXIT_SUCCESS;
    if (options.redis) {
        result |= run_seeds(&options, SIM_STORE_REDIS);
    }
    if (options.file) {
        result |= run_seeds(&options, SIM_STORE_FILE);
    }
    if (options.postgres) {
        result |= run_seeds(&options, SIM_STORE_POSTGRES);
    }
    return result;
}
