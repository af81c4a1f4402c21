/* SPDX-License-Identifier: MIT
 * cli/demo.c - `coordctl demo`: four workers on this host, no server, and what happens to them.
 *
 * This process only watches, kills and stops; it takes no part in the election.
 */
#include "cli/demo.h"

#include "cli/exits.h"
#include "cli/say.h"
#include "cli/schemes.h"
#include "cli/verbs.h"
#include "runtime/election.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PACE_MS = 1200,      /* between two events, for the reader */
    PATIENCE_MS = 15000, /* a takeover that takes longer has failed */
    URI_BYTES = CLI_DEMO_FOLDER + 32
};

/* Set by the handler alone, so that ^C leaves nothing behind. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = signal;
}

/* ---------------------------------------------------------------- what is printed */

void cli_demo_print(const struct cli_demo *demo, const char *colour, const char *format, ...)
{
    va_list arguments;
    const uint64_t ms = (cli_demo_now() - demo->began) / 1000000;
    printf("%3" PRIu64 ".%03" PRIu64 " s  ", ms / 1000, ms % 1000);
    if (demo->colour) {
        printf("\033[%sm", colour);
    }
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("%s\n", demo->colour ? "\033[0m" : "");
    fflush(stdout);
}

bool cli_demo_interrupted(void)
{
    return interrupted != 0;
}

#define PLAIN  CLI_DEMO_PLAIN
#define GREEN  CLI_DEMO_GREEN
#define RED    CLI_DEMO_RED
#define YELLOW CLI_DEMO_YELLOW

/* ---------------------------------------------------------------- waiting */

static void nap(void)
{
    const struct timespec time = {.tv_nsec = 200000};
    nanosleep(&time, NULL);
}

static bool pause_for(coord_ms time)
{
    const uint64_t until = cli_demo_now() + time * 1000000u;
    while (!interrupted && cli_demo_now() < until) {
        nap();
    }
    return !interrupted;
}

/* Wait for the next term. @return its index, or -1. */
static int wait_for_term(const struct cli_demo *demo, unsigned before)
{
    const uint64_t until = cli_demo_now() + PATIENCE_MS * 1000000ull;
    while (!interrupted && cli_demo_now() < until) {
        for (unsigned i = before; i < CLI_DEMO_TERMS; i++) {
            if (atomic_load(&demo->page->terms[i].worker) != 0) {
                return (int)i;
            }
        }
        const int failed = atomic_load(&demo->page->failed);
        if (failed != 0) {
            cli_say("a worker failed: %s", coord_err_name((enum coord_err)failed));
            return -1;
        }
        nap();
    }
    if (!interrupted) {
        cli_demo_print(demo, RED, "nobody leads after %d s", PATIENCE_MS / 1000);
    }
    return -1;
}

/* Print who leads now, and how long that took. @return the worker's number, or -1. */
static int next_leader(const struct cli_demo *demo, unsigned before, uint64_t since)
{
    const int i = wait_for_term(demo, before);
    if (i < 0) {
        return -1;
    }
    const struct cli_demo_term *term = &demo->page->terms[i];
    const uint64_t from = atomic_load(&term->from);
    const uint64_t us = from > since ? (from - since) / 1000 : 0;
    const int worker = atomic_load(&term->worker) - 1;
    cli_demo_print(demo, GREEN, "%s leads, fence %" PRIu64 ", after %" PRIu64 ".%" PRIu64 " ms",
                   cli_demo_names[worker], atomic_load(&term->fence), us / 1000, us % 1000 / 100);
    return worker;
}

/* ---------------------------------------------------------------- processes */

bool cli_demo_start(struct cli_demo *demo, int worker, bool member)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(CLI_FAILED);
        }
        if (member) {
            cli_demo_be_member(demo->page, worker, demo->uri, demo->bus);
        }
        cli_demo_work(demo->page, worker, demo->uri);
    }
    demo->workers[worker] = pid > 0 ? pid : 0;
    return pid > 0;
}

void cli_demo_end(struct cli_demo *demo, int worker)
{
    if (demo->workers[worker] > 0) {
        kill(demo->workers[worker], SIGKILL);
        waitpid(demo->workers[worker], NULL, 0);
        demo->workers[worker] = 0;
    }
}

/* The operator's word that nobody leads, in a process of its own: this one opens nothing. */
static bool write_first_record(const struct cli_demo *demo)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct coord_runtime *runtime = NULL;
        struct coord_election *election = NULL;
        struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
        struct coord_error error;
        config.name = "demo";
        config.name_bytes = strlen("demo");
        if (coord_runtime_new(NULL, &runtime, &error) != COORD_OK ||
            coord_election_open(runtime, cli_schemes, demo->uri, &config, &election, &error) !=
                COORD_OK ||
            coord_election_init_record(election, PATIENCE_MS, &error) != COORD_OK) {
            cli_say_error(&error);
            _exit(CLI_FAILED);
        }
        _exit(CLI_DONE);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* ---------------------------------------------------------------- the story */

static int tell_start(struct cli_demo *demo)
{
    cli_demo_print(demo, PLAIN, "%d workers stand for one election, in %s", CLI_DEMO_WORKERS,
                   demo->folder);
    const uint64_t since = cli_demo_now();
    for (int i = 0; i < CLI_DEMO_WORKERS; i++) {
        if (!cli_demo_start(demo, i, false)) {
            cli_say_no_room("a worker", errno);
            return -1;
        }
    }
    return next_leader(demo, 0, since);
}

static int tell_kill(struct cli_demo *demo, int leader)
{
    const unsigned before = atomic_load(&demo->page->term_count);
    const uint64_t since = cli_demo_now();
    kill(demo->workers[leader], SIGKILL);
    cli_demo_print(demo, YELLOW, "kill -9 %s: the kernel frees its lock", cli_demo_names[leader]);
    const int next = next_leader(demo, before, since);
    cli_demo_end(demo, leader);
    return next;
}

/* It asks itself first of all when it goes on. */
static bool says_no(const struct cli_demo *demo, int worker, uint64_t resumed)
{
    const uint64_t until = cli_demo_now() + PATIENCE_MS * 1000000ull;
    while (!interrupted && cli_demo_now() < until) {
        if (atomic_load(&demo->page->workers[worker].looked) > resumed) {
            return atomic_load(&demo->page->workers[worker].leading) == 0;
        }
        nap();
    }
    return false;
}

static int tell_stop(struct cli_demo *demo, int leader)
{
    const unsigned before = atomic_load(&demo->page->term_count);
    const uint64_t since = cli_demo_now();
    kill(demo->workers[leader], SIGSTOP);
    cli_demo_print(demo, YELLOW, "SIGSTOP %s: it hangs, and its lease runs out",
                   cli_demo_names[leader]);
    const int next = next_leader(demo, before, since);
    if (next < 0) {
        return -1;
    }
    const uint64_t resumed = cli_demo_now();
    kill(demo->workers[leader], SIGCONT);
    const bool no = says_no(demo, leader, resumed);
    cli_demo_print(demo, no ? PLAIN : RED,
                   "SIGCONT %s: it goes on, asks whether it leads, and hears %s",
                   cli_demo_names[leader], no ? "no" : "YES");
    return no ? next : -1;
}

static int tell_hand_over(struct cli_demo *demo, int leader)
{
    int to = (leader + 1) % CLI_DEMO_WORKERS;
    while (demo->workers[to] == 0) {
        to = (to + 1) % CLI_DEMO_WORKERS;
    }
    const unsigned before = atomic_load(&demo->page->term_count);
    const uint64_t since = cli_demo_now();
    atomic_store(&demo->page->successor, to);
    atomic_store(&demo->page->hand_over, leader + 1);
    cli_demo_print(demo, YELLOW, "%s steps down, and names %s", cli_demo_names[leader],
                   cli_demo_names[to]);
    const int next = next_leader(demo, before, since);
    if (next >= 0 && next != to) {
        cli_demo_print(demo, RED, "that is not who was named");
        return -1;
    }
    return next;
}

/* On a busy machine a leader may have lost its term without our doing. @return -1: nobody leads. */
static int present_leader(const struct cli_demo *demo)
{
    const uint64_t until = cli_demo_now() + PATIENCE_MS * 1000000ull;
    while (!interrupted && cli_demo_now() < until) {
        for (int i = 0; i < CLI_DEMO_WORKERS; i++) {
            if (demo->workers[i] != 0 && atomic_load(&demo->page->workers[i].leading) != 0) {
                return i;
            }
        }
        nap();
    }
    return -1;
}

/* Time for the reader, and then the next event. */
static bool tell_next(struct cli_demo *demo, int (*tell)(struct cli_demo *demo, int leader))
{
    if (!pause_for(PACE_MS)) {
        return false;
    }
    const int leader = present_leader(demo);
    return leader >= 0 && tell(demo, leader) >= 0;
}

static bool tell_story(struct cli_demo *demo)
{
    return tell_start(demo) >= 0 && tell_next(demo, tell_kill) && tell_next(demo, tell_stop) &&
           tell_next(demo, tell_hand_over) && pause_for(PACE_MS / 4);
}

/* ---------------------------------------------------------------- around it */

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    closedir(folder);
    rmdir(path);
}

static bool set_up(struct cli_demo *demo)
{
    const char *where = getenv("TMPDIR");
    const int length = snprintf(demo->folder, sizeof demo->folder, "%s/coordctl-demo-XXXXXX",
                                where != NULL && where[0] == '/' ? where : "/tmp");
    if (length < 0 || (size_t)length >= sizeof demo->folder || mkdtemp(demo->folder) == NULL) {
        cli_say("no temporary folder: %s; set TMPDIR to one on a local disk", strerror(errno));
        return false;
    }
    snprintf(demo->uri, sizeof demo->uri, "file:%s?coord.ttl=1s", demo->folder);
    snprintf(demo->bus, sizeof demo->bus, "local:%s/bus", demo->folder);
    demo->page =
        mmap(NULL, sizeof *demo->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (demo->page == MAP_FAILED) {
        cli_say("out of memory");
        remove_folder(demo->folder);
        return false;
    }
    return true;
}

static void end_all(struct cli_demo *demo)
{
    for (int i = 0; i < CLI_DEMO_WORKERS; i++) {
        cli_demo_end(demo, i);
    }
}

static int run_demo(const struct cli_args *args)
{
    struct cli_demo demo = {.began = cli_demo_now()};
    struct sigaction action = {.sa_handler = interrupt};
    const char *no_colour = getenv("NO_COLOR");
    (void)args;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGPIPE, &action, NULL); /* whoever reads it has seen enough */
    demo.colour = isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0');
    if (!set_up(&demo)) {
        return CLI_FAILED;
    }
    int status = CLI_FAILED;
    const bool told = write_first_record(&demo) && tell_story(&demo);
    end_all(&demo);
    if (told) {
        status = cli_demo_judge(&demo);
    }
    if (status == CLI_DONE && !(pause_for(PACE_MS) && cli_demo_tell_fleet(&demo))) {
        status = CLI_FAILED;
    }
    end_all(&demo);
    munmap(demo.page, sizeof *demo.page);
    remove_folder(strchr(demo.bus, ':') + 1);
    remove_folder(demo.folder);
    if (interrupted) {
        return CLI_BY_SIGNAL + interrupted;
    }
    return status;
}

const struct cli_verb cli_verb_demo = {
    .name = "demo",
    .synopsis = "",
    .summary = "a fleet on this host, no server, with a kill -9 in it",
    .details =
        "Four workers, one election; the leader is killed, stopped, and asked to hand over.\n"
        "What they recorded is checked: one leader, fences that rise. Then they form a fleet:\n"
        "one is preempted, one crashes, and their work finds another worker.\n\n"
        "exit: 0 all of it held; 125 not\n",
    .run = run_demo,
};
