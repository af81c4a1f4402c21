/* SPDX-License-Identifier: MIT
 * cli/args.c - the command line: verbs, their options, and the secrets among them.
 */
#include "cli/args.h"

#include "cli/exits.h"
#include "cli/say.h"
#include "coord/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option {
    const char *name;
    const char *value;       /* NULL: a flag */
    const char *environment; /* NULL: none */
    const char *help;
};

static const struct option options[CLI_OPTIONS] = {
    [CLI_ELECTOR] = {"elector", "URI", "COORD_ELECTOR", "where the election is held"},
    [CLI_NAME] = {"name", "NAME", "COORD_NAME", "of the election"},
    [CLI_ID] = {"id", "ID", "COORD_ID", "of the candidate, or the member; run makes one up"},
    [CLI_TTL] = {"ttl", "DUR", NULL, "the lease, such as 15s"},
    [CLI_WAIT] = {"wait", "DUR", NULL, "how long to wait; 0: one attempt; or forever"},
    [CLI_KILL_AFTER] = {"kill-after", "DUR", NULL, "from SIGTERM to SIGKILL; default: ttl / 5"},
    [CLI_RESTART] = {"restart", NULL, NULL, "stand again after a lost leadership"},
    [CLI_STDIN] = {"stdin", NULL, NULL, "give COMMAND the standard input"},
    [CLI_TO] = {"to", "ID", NULL, "the candidate or member that is meant"},
    [CLI_WATCH] = {"watch", NULL, NULL, "go on, and print each change"},
    [CLI_JSON] = {"json", NULL, NULL, "one JSON object a line"},
    [CLI_SET] = {"option", "KEY=VALUE", NULL, "the same as coord.KEY=VALUE in the URI"},
    [CLI_TYPE] = {"type", "TYPE", NULL,
                  "heartbeat, shutdown, work_assignment, finished or orphans (also: orphan)"},
    [CLI_FORMAT] = {"format", "FORMAT", NULL, "of messages: msgpack or json; default: msgpack"},
    [CLI_TAKEOVER] = {"takeover", "safe|fast", NULL,
                      "with --name: how the election is taken over from now on"},
    [CLI_BUS] = {"bus", "URI", "COORD_BUS", "what carries the fleet's messages"},
    [CLI_SUBSCRIPTIONS] = {"subscriptions", "A,B", NULL, "the work that is meant, by its names"},
    [CLI_ROLE] = {"role", "ROLE", NULL, "member (the default), or observer: it only listens"},
    [CLI_ON_ORPHAN] = {"on-orphan", "CMD", NULL,
                       "run by sh for each report, which it reads as one line of JSON"},
    [CLI_ON_ASSIGN] = {"on-assign", "CMD", NULL,
                       "run by sh for each assignment, which it reads as one line of JSON"},
    [CLI_INTENT] = {"intent", "INTENT", NULL,
                    "graceful, preemption, health_failure or maintenance"},
    [CLI_DEADLINE] = {"deadline", "DUR", NULL, "until it has to be gone; default: 120s"},
    [CLI_METADATA] = {"metadata", "KEY=VALUE", NULL, "told with the notice; more than once"},
    [CLI_PRIORITY] = {"priority", "N", NULL,
                      "of the work, as the fleet understands it; default: 0"},
    [CLI_FOR] = {"for", "DUR", NULL, "how long to listen; default: 20s"},
    [CLI_FOLLOW] = {"follow", NULL, NULL, "go on, and print each report as it comes"},
    [CLI_CLOUDEVENTS] = {"cloudevents", NULL, NULL, "one CloudEvent a line, in JSON"},
    [CLI_TIMEOUT] = {"timeout", "DUR", NULL,
                     "of the fleet: who is silent that long is dead; default: 15s"},
    [CLI_TOPIC_PREFIX] = {"topic-prefix", "PREFIX", "COORD_TOPIC_PREFIX",
                          "of the fleet's topics, where fleets share a bus"},
    [CLI_HELP] = {"help", NULL, NULL, "this text"},
    [CLI_VERSION] = {"version", NULL, NULL, "the version"},
};

/* ---------------------------------------------------------------- secrets */

static const char *const secret_variables[] = {"COORD_ELECTOR", "COORD_BUS"};

/* Whatever a URI may hide behind its scheme: user info, and queries of servers' own libraries. */
static bool may_hold_secret(const char *text)
{
    return strpbrk(text, "@?=") != NULL;
}

static void overwrite(char *text)
{
    char *from = strchr(text, ':');
    from = from == NULL ? text : from + 1;
    while (*from != '\0') {
        *from++ = '*';
    }
}

bool cli_args_hide(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char *value = argv[i];
        if (strncmp(value, "--", 2) == 0) {
            value += strcspn(value, "=");
            value += *value == '=' ? 1 : 0;
        }
        if (!may_hold_secret(value)) {
            continue;
        }
        char *const copy = strdup(argv[i]);
        if (copy == NULL) {
            return false;
        }
        overwrite(value);
        argv[i] = copy;
    }
    for (size_t i = 0; i < sizeof secret_variables / sizeof *secret_variables; i++) {
        char *const value = getenv(secret_variables[i]);
        char *const copy = value == NULL ? NULL : strdup(value);
        if (value == NULL) {
            continue;
        }
        if (copy == NULL) {
            return false;
        }
        overwrite(value);
        const int failed = setenv(secret_variables[i], copy, 1);
        free(copy);
        if (failed != 0) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- parsing */

static bool is_taken(const struct cli_verb *verb, int option)
{
    return option == CLI_HELP || (verb->takes & CLI_TAKES(option)) != 0;
}

/* "name" or "name=value". @return the option, or -1. */
static int find_option(const struct cli_verb *verb, const char *text)
{
    const size_t length = strcspn(text, "=");
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (is_taken(verb, i) && strlen(options[i].name) == length &&
            strncmp(options[i].name, text, length) == 0) {
            return i;
        }
    }
    return -1;
}

static int store_metadata(struct cli_args *out, const char *value)
{
    if (strchr(value, '=') == NULL || value[0] == '=') {
        return cli_say_usage("--metadata is KEY=VALUE, such as reason=spot");
    }
    if (out->metadata_count == CLI_METADATA_MAX) {
        return cli_say_usage("more than %d times --metadata; leave some out",
                             (int)CLI_METADATA_MAX);
    }
    out->metadata[out->metadata_count++] = value;
    return 0;
}

static int store(struct cli_args *out, int option, const char *value)
{
    const char *name = options[option].name;
    if (option == CLI_SET) {
        if (out->set_count == COORD_URI_OPTIONS_MAX) {
            return cli_say_usage("more than %d times --option; leave some out",
                                 (int)COORD_URI_OPTIONS_MAX);
        }
        /* Both spellings are understood: that of the URI and the short one. */
        out->set[out->set_count++] = strncmp(value, "coord.", 6) == 0 ? value + 6 : value;
        return 0;
    }
    if (option == CLI_METADATA) {
        return store_metadata(out, value);
    }
    if (out->value[option] != NULL && options[option].value != NULL) {
        return cli_say_usage("--%s is given twice; give it once", name);
    }
    if (options[option].value != NULL && value[0] == '\0' && option != CLI_SET) {
        return cli_say_usage("--%s is empty; give it a %s", name, options[option].value);
    }
    out->value[option] = value;
    return 0;
}

/* @return how many arguments it took, or a negative exit status. */
static int take_option(const struct cli_verb *verb, char **argv, struct cli_args *out)
{
    const char *text = argv[0] + 2;
    const int option = find_option(verb, text);
    if (option < 0) {
        return -cli_say_usage("%s has no option --%.*s; see 'coordctl %s --help'", verb->name,
                              (int)strcspn(text, "="), text, verb->name);
    }
    const char *equals = strchr(text, '=');
    if (options[option].value == NULL) {
        return equals != NULL ? -cli_say_usage("--%s takes no value; leave out what follows it",
                                               options[option].name)
                              : (store(out, option, "") == 0 ? 1 : -CLI_USAGE);
    }
    if (equals == NULL && (argv[1] == NULL || strcmp(argv[1], "--") == 0)) {
        return -cli_say_usage("--%s needs a value: --%s %s", options[option].name,
                              options[option].name, options[option].value);
    }
    const int status = store(out, option, equals != NULL ? equals + 1 : argv[1]);
    return status != 0 ? -status : (equals != NULL ? 1 : 2);
}

static int check_needs(const struct cli_verb *verb, const struct cli_args *args)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if ((verb->needs & CLI_TAKES(i)) != 0 && args->value[i] == NULL) {
            const char *place = options[i].environment;
            return cli_say_usage("%s needs --%s %s%s%s", verb->name, options[i].name,
                                 options[i].value, place != NULL ? "; it may also stand in " : "",
                                 place != NULL ? place : "");
        }
    }
    if (verb->command && !verb->may_lack_command && args->command == NULL) {
        return cli_say_usage("%s needs a command: put it at the end, after --", verb->name);
    }
    return 0;
}

/* The one word that some verbs begin with. */
static const char *word_of(const struct cli_verb *verb, const char *argument)
{
    for (size_t i = 0; verb->words != NULL && argument != NULL && verb->words[i] != NULL; i++) {
        if (strcmp(verb->words[i], argument) == 0) {
            return verb->words[i];
        }
    }
    return NULL;
}

/* Not repeated, as it may be a URI with a password. */
static int refuse_word(const struct cli_verb *verb)
{
    return verb->command ? cli_say_usage("the command of coordctl %s stands behind --: "
                                         "'coordctl %s [OPTION...] -- COMMAND'",
                                         verb->name, verb->name)
                         : cli_say_usage("%s takes options only; see 'coordctl %s --help'",
                                         verb->name, verb->name);
}

static int take_command(const struct cli_verb *verb, char **argv, struct cli_args *out)
{
    if (!verb->command) {
        return cli_say_usage("%s takes no command; leave out -- and what follows", verb->name);
    }
    out->command = *argv == NULL ? NULL : argv;
    return 0;
}

static void take_environment(const struct cli_verb *verb, struct cli_args *out)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (options[i].environment != NULL && is_taken(verb, i) && out->value[i] == NULL) {
            const char *value = getenv(options[i].environment);
            out->value[i] = value != NULL && value[0] != '\0' ? value : NULL;
            out->from_environment |= out->value[i] != NULL ? CLI_TAKES(i) : 0;
        }
    }
}

int cli_args_parse(const struct cli_verb *verb, char **argv, struct cli_args *out)
{
    *out = (struct cli_args){.verb = verb, .word = word_of(verb, *argv)};
    argv += out->word != NULL ? 1 : 0;
    while (*argv != NULL && strcmp(*argv, "--") != 0) {
        if (strcmp(*argv, "-h") == 0) {
            out->value[CLI_HELP] = "";
            return 0;
        }
        if (strncmp(*argv, "--", 2) != 0) {
            return refuse_word(verb);
        }
        const int taken = take_option(verb, argv, out);
        if (taken < 0) {
            return -taken;
        }
        if (out->value[CLI_HELP] != NULL) {
            return 0;
        }
        argv += taken;
    }
    const int status = *argv == NULL ? 0 : take_command(verb, argv + 1, out);
    if (status != 0) {
        return status;
    }
    if (verb->words != NULL && out->word == NULL) {
        return cli_say_usage("%s needs a word first: coordctl %s %s", verb->name, verb->name,
                             verb->synopsis);
    }
    take_environment(verb, out);
    return check_needs(verb, out);
}

void cli_args_describe(const struct cli_verb *verb)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (!is_taken(verb, i)) {
            continue;
        }
        char head[48];
        snprintf(head, sizeof head, "--%s%s%s", options[i].name,
                 options[i].value != NULL ? " " : "",
                 options[i].value != NULL ? options[i].value : "");
        printf("  %-21s  %s%s%s%s\n", head, options[i].help,
               options[i].environment != NULL ? " [" : "",
               options[i].environment != NULL ? options[i].environment : "",
               options[i].environment != NULL ? "]" : "");
    }
}

int cli_args_duration(const struct cli_args *args, enum cli_option option, coord_ms otherwise,
                      coord_ms *out)
{
    const char *text = args->value[option];
    struct coord_error error;
    if (text == NULL) {
        *out = otherwise;
        return 0;
    }
    if (option == CLI_WAIT && strcmp(text, "forever") == 0) {
        *out = COORD_NEVER;
        return 0;
    }
    if (coord_duration_parse(text, out, &error) != COORD_OK) {
        return cli_say_usage("--%s: %s", options[option].name, error.text);
    }
    return 0;
}

int cli_args_length(const struct cli_args *args, enum cli_option option, coord_ms *out)
{
    const int status = cli_args_duration(args, option, 0, out);
    if (status == 0 && *out == 0 && args->value[option] != NULL) {
        return cli_say_usage("--%s cannot be 0; give a duration such as 15s, or leave it out",
                             options[option].name);
    }
    return status;
}

int cli_args_form(const struct cli_args *args, enum coord_form *out)
{
    const char *name = args->value[CLI_FORMAT];
    const bool json = name != NULL && strcmp(name, "json") == 0;
    *out = json ? COORD_FORM_JSON : COORD_FORM_MSGPACK;
    return name == NULL || json || strcmp(name, "msgpack") == 0
               ? 0
               : cli_say_usage("no such --format: use msgpack or json");
}
