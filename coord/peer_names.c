/* SPDX-License-Identifier: MIT
 * coord/peer_names.c - subscriptions and lists of them, each kept once however many peers have it.
 */
#include "coord/coordinator_inside.h"

#include <stdlib.h>
#include <string.h>

bool coord__pack_list(const struct coord_value *subscriptions, unsigned char *packed, size_t room,
                      uint32_t *bytes, uint32_t *count)
{
    struct coord_walk walk;
    struct coord_value name;
    size_t used = 0;
    *count = 0;
    coord_walk_begin(subscriptions, &walk);
    while (coord_walk_next(&walk, NULL, &name)) {
        size_t length = name.escaped ? coord_view_text(&name, NULL, 0) : name.count;
        if (length > COORD_NAME_MAX || room - used < length + 2) {
            return false;
        }
        if (length <= COORD__PACKED_SHORT) {
            packed[used++] = (unsigned char)(0xa0 | length);
        } else {
            packed[used++] = 0xd9;
            packed[used++] = (unsigned char)length;
        }
        (void)coord_view_text(&name, (char *)packed + used, length);
        used += length;
        (*count)++;
    }
    *bytes = (uint32_t)used;
    return true;
}

/* Room for one element more. */
static bool more_room(void **array, uint32_t *room, size_t each)
{
    uint32_t grown = *room == 0 ? 16 : *room * 2;
    void *at = realloc(*array, grown * each);
    if (at == NULL) {
        return false;
    }
    *array = at;
    *room = grown;
    return true;
}

/* The same for an array whose places are used again, and for the list of those that are empty. */
static bool more_places(void **array, uint32_t **empty, uint32_t *room)
{
    uint32_t wanted = *room;
    return more_room((void **)empty, &wanted, sizeof(uint32_t)) &&
           more_room(array, room, sizeof(void *));
}

static uint32_t fail(enum coord_refusal *why, enum coord_refusal what)
{
    *why = what;
    return COORD__NO_REF;
}

/* ---- names ---- */

static uint32_t find_name(const struct coord__names *names, const char *text, uint32_t bytes,
                          uint32_t hash)
{
    struct coord__probe probe = coord__index_begin(&names->by_text, hash);
    uint32_t ref = coord__index_next(&names->by_text, &probe);
    while (ref != COORD__NO_REF &&
           (names->name[ref]->bytes != bytes || memcmp(names->name[ref]->text, text, bytes) != 0)) {
        ref = coord__index_next(&names->by_text, &probe);
    }
    return ref;
}

static struct coord__name *make_name(const char *text, uint32_t bytes, uint32_t hash)
{
    struct coord__name *name = calloc(1, sizeof *name + bytes + 1);
    if (name != NULL) {
        name->text = (char *)(name + 1);
        memcpy(name->text, text, bytes);
        name->bytes = bytes;
        name->hash = hash;
        name->refs = 1;
        name->reports = COORD__NO_REF;
    }
    return name;
}

uint32_t coord__name_take(struct coord__names *names, const char *text, uint32_t bytes,
                          enum coord_refusal *why)
{
    uint32_t hash = coord__hash(names->seed, text, bytes);
    uint32_t ref = find_name(names, text, bytes, hash);
    if (ref != COORD__NO_REF) {
        names->name[ref]->refs++;
        return ref;
    }
    if (names->by_text.used >= names->most) {
        return fail(why, COORD_REFUSED_SUBSCRIPTIONS_FULL);
    }
    if (names->names_free == 0 && names->name_count == names->name_room &&
        !more_places((void **)&names->name, &names->name_free, &names->name_room)) {
        return fail(why, COORD_REFUSED_NO_MEMORY);
    }
    struct coord__name *name = make_name(text, bytes, hash);
    ref = names->names_free > 0 ? names->name_free[names->names_free - 1] : names->name_count;
    if (name == NULL || !coord__index_add(&names->by_text, hash, ref)) {
        free(name);
        return fail(why, COORD_REFUSED_NO_MEMORY);
    }
    names->names_free -= ref < names->name_count ? 1 : 0;
    names->name_count += ref == names->name_count ? 1 : 0;
    names->name[ref] = name;
    return ref;
}

void coord__name_drop(struct coord__names *names, uint32_t ref)
{
    struct coord__name *name = names->name[ref];
    if (--name->refs > 0) {
        return;
    }
    coord__index_remove(&names->by_text, name->hash, ref);
    free(name);
    names->name[ref] = NULL;
    names->name_free[names->names_free++] = ref;
}

/* ---- sets ---- */

static struct coord__set *make_set(const unsigned char *packed, uint32_t bytes, uint32_t count,
                                   uint32_t hash)
{
    struct coord__set *set = calloc(1, sizeof *set + count * sizeof(uint32_t) + bytes);
    if (set != NULL) {
        set->names = (uint32_t *)(void *)(set + 1);
        set->packed = (unsigned char *)(set->names + count);
        memcpy(set->packed, packed, bytes);
        set->packed_bytes = bytes;
        set->hash = hash;
        set->refs = 1;
    }
    return set;
}

/* All names of a set; false: taken back. */
static bool fill_set(struct coord__names *names, struct coord__set *set, uint32_t count,
                     enum coord_refusal *why)
{
    const unsigned char *at = set->packed;
    while (set->count < count) {
        uint32_t bytes = coord__packed_next(&at);
        uint32_t name = coord__name_take(names, (const char *)at, bytes, why);
        if (name == COORD__NO_REF) {
            while (set->count > 0) {
                coord__name_drop(names, set->names[--set->count]);
            }
            return false;
        }
        set->names[set->count++] = name;
        at += bytes;
    }
    return true;
}

static uint32_t find_set(const struct coord__names *names, const unsigned char *packed,
                         uint32_t bytes, uint32_t hash)
{
    struct coord__probe probe = coord__index_begin(&names->by_list, hash);
    uint32_t ref = coord__index_next(&names->by_list, &probe);
    while (ref != COORD__NO_REF && (names->set[ref]->packed_bytes != bytes ||
                                    memcmp(names->set[ref]->packed, packed, bytes) != 0)) {
        ref = coord__index_next(&names->by_list, &probe);
    }
    return ref;
}

uint32_t coord__set_take(struct coord__names *names, const unsigned char *packed, uint32_t bytes,
                         uint32_t count, enum coord_refusal *why)
{
    uint32_t hash = coord__hash(names->seed, packed, bytes);
    uint32_t ref = find_set(names, packed, bytes, hash);
    if (ref != COORD__NO_REF) {
        names->set[ref]->refs++;
        return ref;
    }
    if (names->sets_free == 0 && names->set_count == names->set_room &&
        !more_places((void **)&names->set, &names->set_free, &names->set_room)) {
        return fail(why, COORD_REFUSED_NO_MEMORY);
    }
    struct coord__set *set = make_set(packed, bytes, count, hash);
    ref = names->sets_free > 0 ? names->set_free[names->sets_free - 1] : names->set_count;
    if (set == NULL || !coord__index_add(&names->by_list, hash, ref)) {
        free(set);
        return fail(why, COORD_REFUSED_NO_MEMORY);
    }
    if (!fill_set(names, set, count, why)) {
        coord__index_remove(&names->by_list, hash, ref);
        free(set);
        return COORD__NO_REF;
    }
    names->sets_free -= ref < names->set_count ? 1 : 0;
    names->set_count += ref == names->set_count ? 1 : 0;
    names->set[ref] = set;
    return ref;
}

void coord__set_drop(struct coord__names *names, uint32_t ref)
{
    if (ref == COORD__NO_REF || --names->set[ref]->refs > 0) {
        return;
    }
    struct coord__set *set = names->set[ref];
    COORD_ASSERT(set->healthy == 0);
    for (uint32_t i = 0; i < set->count; i++) {
        coord__name_drop(names, set->names[i]);
    }
    coord__index_remove(&names->by_list, set->hash, ref);
    free(set);
    names->set[ref] = NULL;
    names->set_free[names->sets_free++] = ref;
}

void coord__names_fini(struct coord__names *names)
{
    for (uint32_t i = 0; i < names->set_count; i++) {
        free(names->set[i]);
    }
    for (uint32_t i = 0; i < names->name_count; i++) {
        free(names->name[i]);
    }
    free(names->set);
    free(names->set_free);
    free(names->name);
    free(names->name_free);
    coord__index_fini(&names->by_text);
    coord__index_fini(&names->by_list);
}
