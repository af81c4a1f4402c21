/* SPDX-License-Identifier: MIT
 * cli/message.c - `coordctl message`: bytes of a bus into JSON, and back.
 */
#include "coord/message.h"
#include "cli/exits.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    REFUSED = 1 /* it is no message of that type */
};

static bool type_of(const char *name, enum coord_message_type *out)
{
    for (int type = 0; type < COORD_MESSAGE_TYPES; type++) {
        if (strcmp(name, coord_message_type_name((enum coord_message_type)type)) == 0) {
            *out = (enum coord_message_type)type;
            return true;
        }
    }
    *out = COORD_MESSAGE_ORPHANS;
    return strcmp(name, "orphan") == 0;
}

/* What to do about a fault, behind the sentence that names it. */
static const char *cure_of(enum coord_message_fault fault)
{
    switch (fault) {
    case COORD_FAULT_TOO_LONG:
    case COORD_FAULT_DEPTH:
    case COORD_FAULT_COUNT:
        return "say less in one message";
    case COORD_FAULT_TRUNCATED:
    case COORD_FAULT_TRAILING:
    case COORD_FAULT_SYNTAX:
        return "give the bytes of one message, and all of them";
    case COORD_FAULT_BAD_TIME:
    case COORD_FAULT_NAIVE_TIME:
        return "write it as 2026-11-29T23:31:38Z";
    case COORD_FAULT_BAD_INTENT:
        return "use graceful, preemption, health_failure or maintenance";
    case COORD_FAULT_BAD_TEXT:
    case COORD_FAULT_BAD_NUMBER:
    case COORD_FAULT_NOT_A_MAP:
    case COORD_FAULT_BAD_KEY:
    case COORD_FAULT_MISSING_KEY:
    case COORD_FAULT_WRONG_TYPE:
    case COORD_FAULT_BAD_ID:
    case COORD_FAULT_OUT_OF_RANGE:
    case COORD_FAULT_BAD_WORD:
    case COORD_FAULT_NONE:
    default:
        return "docs/fleet.md has what may be in it; is --type right?";
    }
}

static int say_refused(enum coord_message_type type, enum coord_message_fault fault,
                       const void *bytes, size_t count)
{
    struct coord_record record;
    const char *key = "";
    if (fault == COORD_FAULT_MISSING_KEY) {
        key = coord_record_read(type, bytes, count, &record) == COORD_FAULT_MISSING_KEY
                  ? coord_record_missing(&record)
              : type == COORD_MESSAGE_HEARTBEAT ? "intent or remaining_ms of leaving"
                                                : "one of a report";
    }
    cli_say("%s: this is no %s message: %s%s%s; %s", coord_fault_name(fault),
            coord_message_type_name(type), coord_fault_text(fault), key[0] != '\0' ? ": " : "", key,
            cure_of(fault));
    return REFUSED;
}

/* JSON is a line. */
static int print(const void *bytes, size_t count, enum coord_form form)
{
    bool written = fwrite(bytes, 1, count, stdout) == count;
    if (written && form == COORD_FORM_JSON) {
        written = putchar('\n') != EOF;
    }
    if (!written || fflush(stdout) != 0) {
        return CLI_FAILED;
    }
    return 0;
}

static int run_message(const struct cli_args *args)
{
    static unsigned char in[COORD_MESSAGE_MAX + 1];
    static unsigned char out[COORD_MESSAGE_MAX];
    enum coord_message_type type = COORD_MESSAGE_HEARTBEAT;
    enum coord_form form = COORD_FORM_MSGPACK;
    struct coord_message message;
    if (!type_of(args->value[CLI_TYPE], &type)) {
        return cli_say_usage("no such type of message: use heartbeat, shutdown, work_assignment, "
                             "finished or orphans (orphan is the same)");
    }
    if (cli_args_form(args, &form) != 0) {
        return CLI_USAGE;
    }
    if (strcmp(args->word, "decode") == 0) {
        form = COORD_FORM_JSON;
    }
    size_t count = fread(in, 1, sizeof in, stdin);
    if (ferror(stdin)) {
        cli_say("standard input: %s", strerror(errno));
        return CLI_FAILED;
    }
    enum coord_message_fault fault = coord_message_decode(type, in, count, &message);
    if (fault != COORD_FAULT_NONE) {
        return say_refused(type, fault, in, count);
    }
    if (coord_message_encode(&message, form, out, sizeof out, &count) != COORD_OK) {
        cli_say("the message is longer than 64 KiB in this format: use the other one");
        return REFUSED;
    }
    return print(out, count, form);
}

static const char *const words[] = {"decode", "encode", NULL};

const struct cli_verb cli_verb_message = {
    .name = "message",
    .synopsis = "decode|encode --type TYPE [--format msgpack|json]",
    .summary = "read a message of the bus on stdin, and print it as JSON, or the other way",
    .details = "Both read msgpack or JSON, by the first byte. decode prints JSON; encode prints\n"
               "FORMAT. Every value is checked as a member of the fleet would check it. The keys\n"
               "are those of docs/fleet.md.\n\n"
               "exit: 0 done; 1 no such message; 125 cannot be read or written; 2 usage\n",
    .takes = CLI_TAKES(CLI_TYPE) | CLI_TAKES(CLI_FORMAT),
    .needs = CLI_TAKES(CLI_TYPE),
    .words = words,
    .run = run_message,
};
