/* SPDX-License-Identifier: MIT
 * cli/main.c - coordctl: one table of verbs.
 */
#include "cli/args.h"
#include "cli/exits.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "coord/elector.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_verb *const verbs[] = {
    &cli_verb_run,
    &cli_verb_status,
    &cli_verb_step_down,
    &cli_verb_init,
    &cli_verb_doctor,
    &cli_verb_agent,
    &cli_verb_announce,
    &cli_verb_assign,
    &cli_verb_peers,
    &cli_verb_orphans,
    &cli_verb_message,
    &cli_verb_demo,
    NULL,
};

static int help(void)
{
    printf("coordctl - run work on one of many: leader election from the command line\n\n"
           "usage: coordctl VERB [OPTION...]\n\n");
    for (size_t i = 0; verbs[i] != NULL; i++) {
        printf("  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    printf("\nelections: file:DIR, redis://HOST/DB, postgresql://HOST/DATABASE\n"
           "buses:     local:DIR, or one of these servers\n\n"
           "'coordctl VERB --help' tells more; 'coordctl --version' the version.\n");
    return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
}

static int help_verb(const struct cli_verb *verb)
{
    printf("usage: coordctl %s%s%s\n\n%s\n\n", verb->name, verb->synopsis[0] != '\0' ? " " : "",
           verb->synopsis, verb->summary);
    cli_args_describe(verb);
    if (verb->details != NULL) {
        printf("\n%s", verb->details);
    }
    return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
}

static int version(void)
{
    printf("coordctl %s\n", coord_version());
    return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
}

/* A descriptor of ours must not become somebody's standard output. */
static void open_standard_descriptors(void)
{
    int fd = 0;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static int run_verb(const struct cli_verb *verb, char **argv)
{
    struct cli_args args;
    const int status = cli_args_parse(verb, argv, &args);
    if (status != 0) {
        return status;
    }
    return args.value[CLI_HELP] != NULL ? help_verb(verb) : verb->run(&args);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        return cli_say_usage("no verb; see 'coordctl --help'");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return help();
    }
    if (strcmp(argv[1], "--version") == 0) {
        return version();
    }
    for (size_t i = 0; verbs[i] != NULL; i++) {
        if (strcmp(argv[1], verbs[i]->name) == 0) {
            return run_verb(verbs[i], argv + 2);
        }
    }
    return cli_say_usage("no such verb; see 'coordctl --help'");
}

int main(int argc, char **argv)
{
    if (!cli_args_hide(argc, argv)) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    open_standard_descriptors();
    const int status = run(argc, argv);
    if (status == CLI_FAILED && ferror(stdout)) {
        cli_say("standard output cannot be written: see whether its disk is full, or its reader "
                "gone");
    }
    return status;
}
