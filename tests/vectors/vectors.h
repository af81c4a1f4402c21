/* SPDX-License-Identifier: MIT
 * tests/vectors/vectors.h - what the runners of vector files share: trees, bytes, and the count.
 */
#ifndef COORD_TESTS_VECTORS_H
#define COORD_TESTS_VECTORS_H

#include "coord/message.h"

#include <jansson.h>

/** One run over a file. */
struct vectors {
    json_t *file;
    unsigned passed;
    unsigned failed;
    const char *section;
    char what[512]; /* of the case that runs; empty: nothing has failed in it yet */
};

/** Bytes of one message in a form. */
struct bytes {
    unsigned char at[COORD_MESSAGE_MAX];
    size_t count;
};

/** Begin a case; everything until vectors_end() belongs to it. */
void vectors_begin(struct vectors *v);

/** Note a difference; the first one of a case is printed. */
void vectors_differ(struct vectors *v, const char *what, const json_t *expected,
                    const json_t *found);

/** End the case: it is counted, and a failed one is named. */
void vectors_end(struct vectors *v, const char *name);

/** Equal, numbers by value. */
bool vectors_same(const json_t *a, const json_t *b);

/** Compare, and note a difference. `found` is taken over. */
void vectors_expect(struct vectors *v, const char *what, const json_t *expected, json_t *found);

/** A tree as bytes, by jansson or by msgpack-c. */
void vectors_encode(const json_t *tree, enum coord_form form, struct bytes *out);

/** Bytes as a tree, by jansson or by msgpack-c; NULL: they are neither. */
json_t *vectors_decode(enum coord_form form, const void *bytes, size_t count);

/** A view as a tree. */
json_t *vectors_tree(const struct coord_value *value);

/** The subscriptions of a record as a list. */
json_t *vectors_names(const struct coord_value *subscriptions);

/** An instant of a vector file, in microseconds. */
int64_t vectors_time(const json_t *text);

/** {"error": ...}? */
bool vectors_is_error(const json_t *tree);

/** A tree that stands for an error of ours. */
json_t *vectors_error(void);

/** A number, also one that JSON has no word for, such as "inf"; `other` when absent. */
double vectors_number(const json_t *tree, double other);

/* ---- sections of eventsource.json ---- */
void run_coordinator_scenario(struct vectors *v, const json_t *scenario, enum coord_form form);
void run_create(struct vectors *v, const json_t *entry, enum coord_form form);

#endif /* COORD_TESTS_VECTORS_H */
