/* SPDX-License-Identifier: MIT
 * cli/args.h - the command line: verbs, their options, and the secrets among them.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "coord/error.h"
#include "coord/message_view.h"
#include "coord/uri.h"

enum cli_option {
    CLI_ELECTOR = 0,
    CLI_NAME,
    CLI_ID,
    CLI_TTL,
    CLI_WAIT,
    CLI_KILL_AFTER,
    CLI_RESTART,
    CLI_STDIN,
    CLI_TO,
    CLI_WATCH,
    CLI_JSON,
    CLI_SET, /* --option KEY=VALUE */
    CLI_TYPE,
    CLI_FORMAT,
    CLI_TAKEOVER,
    CLI_BUS,
    CLI_SUBSCRIPTIONS,
    CLI_ROLE,
    CLI_ON_ORPHAN,
    CLI_ON_ASSIGN,
    CLI_INTENT,
    CLI_DEADLINE,
    CLI_METADATA, /* KEY=VALUE, more than once */
    CLI_PRIORITY,
    CLI_FOR,
    CLI_FOLLOW,
    CLI_CLOUDEVENTS,
    CLI_TIMEOUT,
    CLI_TOPIC_PREFIX,
    CLI_HELP,
    CLI_VERSION,
    CLI_OPTIONS
};

enum {
    CLI_METADATA_MAX = 32
};

#define CLI_TAKES(option) (1u << (option))

struct cli_args;

/** One line of the table of verbs. */
struct cli_verb {
    const char *name;
    const char *synopsis;  /* what follows the name */
    const char *summary;   /* one line for `coordctl --help` */
    const char *details;   /* for `coordctl VERB --help`, after the options; ends with a newline */
    unsigned takes;        /* CLI_TAKES() of each option; --help is taken by all */
    unsigned needs;        /* those that have to be given, here or in the environment */
    bool command;          /* takes `-- COMMAND [ARG...]` */
    bool may_lack_command; /* ... or does without */
    const char *const *words; /* NULL: none; else its first argument is one of them */
    /* @return the exit status. */
    int (*run)(const struct cli_args *args);
};

/** What was given: flag before environment before default. */
struct cli_args {
    const struct cli_verb *verb;
    const char *value[CLI_OPTIONS]; /* NULL: not given; a flag that is given is "" */
    unsigned from_environment;      /* CLI_TAKES() of each value that stood there */
    const char *set[COORD_URI_OPTIONS_MAX];
    size_t set_count;
    const char *metadata[CLI_METADATA_MAX];
    size_t metadata_count;
    char **command;   /* NULL-terminated, or NULL */
    const char *word; /* of verb->words, or NULL */
};

/**
 * Take copies of what may hold a secret, and overwrite it where ps and /proc can see it: the
 * arguments before `--`, and COORD_ELECTOR and COORD_BUS. To be called before anything else.
 *
 * @param argv  its strings are overwritten, and its pointers lead to the copies afterwards.
 * @return      false: no memory.
 */
bool cli_args_hide(int argc, char **argv);

/**
 * Read the arguments of one verb.
 *
 * @param argv  without the program's and the verb's name; kept; NULL-terminated.
 * @param out   written.
 * @return      0, or CLI_USAGE, said on stderr.
 */
int cli_args_parse(const struct cli_verb *verb, char **argv, struct cli_args *out);

/** The options of a verb, as `coordctl VERB --help` lists them. */
void cli_args_describe(const struct cli_verb *verb);

/** A duration option. @return 0, or CLI_USAGE, said. @param out `otherwise` when not given. */
int cli_args_duration(const struct cli_args *args, enum cli_option option, coord_ms otherwise,
                      coord_ms *out);

/** The same for one that cannot be 0; `out` is 0 when it is not given. */
int cli_args_length(const struct cli_args *args, enum cli_option option, coord_ms *out);

/** --format of messages, msgpack when not given. @return 0, or CLI_USAGE, said. */
int cli_args_form(const struct cli_args *args, enum coord_form *out);

#endif /* CLI_ARGS_H */
