/* SPDX-License-Identifier: MIT
 * tests/support/fleet_calls.h - verbs of coordctl about one fleet, which is described once.
 */
#ifndef TEST_FLEET_CALLS_H
#define TEST_FLEET_CALLS_H

#include "tests/support/coordctl.h"

#include <jansson.h>

/** Of the scene's election "jobs", with a time-out of 2 s. */
struct fleet_calls {
    struct scene scene;
    const char *bus;
    char local[COORDCTL_PATH]; /* a bus in the scene's folder */
    const char *prefix;        /* NULL: the usual one */
};

/** A scene with coord.ttl=1s, and its local bus. */
void fleet_calls_open(struct fleet_calls *out);
void fleet_calls_close(struct fleet_calls *fleet);

/** Start a verb over the fleet's bus; `rest` ends with NULL. */
void fleet_start(struct fleet_calls *fleet, struct coordctl *out, const char *verb,
                 const char *const *rest);

/** The same, waited for. @param out what it printed. @return its exit status. */
int fleet_call(struct fleet_calls *fleet, char out[COORDCTL_TEXT], const char *verb,
               const char *const *rest);

/** Start an agent of that id. */
void fleet_start_agent(struct fleet_calls *fleet, struct coordctl *out, const char *id,
                       const char *const *rest);

/** The first of several lines of JSON that has a text in it; the caller drops it. */
json_t *fleet_line_with(const char *lines, const char *text);

/** A text of an object, or NULL. */
const char *fleet_text_of(const json_t *object, const char *key);

#endif /* TEST_FLEET_CALLS_H */
