/* SPDX-License-Identifier: MIT
 * tests/support/fleet_calls.c - verbs of coordctl about one fleet.
 */
#include "tests/support/fleet_calls.h"

#include "tests/support/support.h"

#include <string.h>

void fleet_calls_open(struct fleet_calls *out)
{
    char path[COORDCTL_PATH];
    memset(out, 0, sizeof *out);
    scene_open(&out->scene, "coord.ttl=1s");
    snprintf(out->local, sizeof out->local, "local:%s", scene_path(&out->scene, "bus", path));
    out->bus = out->local;
}

void fleet_calls_close(struct fleet_calls *fleet)
{
    scene_close(&fleet->scene);
}

void fleet_start(struct fleet_calls *fleet, struct coordctl *out, const char *verb,
                 const char *const *rest)
{
    const char *arguments[32] = {verb, "--bus", fleet->bus};
    size_t count = 3;
    if (fleet->prefix != NULL) {
        arguments[count++] = "--topic-prefix";
        arguments[count++] = fleet->prefix;
    }
    if (strcmp(verb, "announce") != 0 && strcmp(verb, "assign") != 0) {
        arguments[count++] = "--timeout";
        arguments[count++] = "2s";
    }
    for (; *rest != NULL && count < 31; rest++) {
        arguments[count++] = *rest;
    }
    coordctl_start(&fleet->scene, out, arguments);
}

int fleet_call(struct fleet_calls *fleet, char out[COORDCTL_TEXT], const char *verb,
               const char *const *rest)
{
    struct coordctl called;
    fleet_start(fleet, &called, verb, rest);
    const int status = coordctl_wait(&called);
    coordctl_output(called.out, out);
    return status;
}

void fleet_start_agent(struct fleet_calls *fleet, struct coordctl *out, const char *id,
                       const char *const *rest)
{
    const char *all[24] = {"--elector", fleet->scene.uri, "--name", "jobs", "--id", id};
    for (size_t count = 6; *rest != NULL && count < 23; rest++) {
        all[count++] = *rest;
    }
    fleet_start(fleet, out, "agent", all);
}

json_t *fleet_line_with(const char *lines, const char *text)
{
    const char *at = strstr(lines, text);
    assert_non_null(at);
    while (at > lines && at[-1] != '\n') {
        at--;
    }
    json_t *object = json_loadb(at, strcspn(at, "\n"), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    return object;
}

const char *fleet_text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}
