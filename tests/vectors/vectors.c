/* SPDX-License-Identifier: MIT
 * tests/vectors/vectors.c - trees and bytes, made by jansson and msgpack-c and not by our own code.
 */
#include "tests/vectors/vectors.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vectors_begin(struct vectors *v)
{
    v->what[0] = '\0';
}

static char *shown(const json_t *tree)
{
    char *text = tree != NULL ? json_dumps(tree, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    return text != NULL ? text : strdup("(nothing)");
}

void vectors_differ(struct vectors *v, const char *what, const json_t *expected,
                    const json_t *found)
{
    if (v->what[0] != '\0') {
        return;
    }
    char *want = shown(expected);
    char *have = shown(found);
    snprintf(v->what, sizeof v->what, "%s: expected %.200s, found %.200s", what, want, have);
    free(want);
    free(have);
}

void vectors_end(struct vectors *v, const char *name)
{
    if (v->what[0] == '\0') {
        v->passed++;
        return;
    }
    v->failed++;
    printf("FAILED %s %s: %s\n", v->section, name, v->what);
}

bool vectors_is_error(const json_t *tree)
{
    return json_is_object(tree) && json_object_get(tree, "error") != NULL;
}

json_t *vectors_error(void)
{
    return json_pack("{s:s}", "error", "refused");
}

static bool same_number(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        return json_integer_value(a) == json_integer_value(b);
    }
    double x = json_number_value(a);
    double y = json_number_value(b);
    double size = x < 0 ? -x : x;
    double apart = x < y ? y - x : x - y;
    return apart <= size * 1e-15;
}

static bool same_list(const json_t *a, const json_t *b)
{
    size_t count = json_array_size(a);
    for (size_t i = 0; i < count && count == json_array_size(b); i++) {
        if (!vectors_same(json_array_get(a, i), json_array_get(b, i))) {
            return false;
        }
    }
    return count == json_array_size(b);
}

static bool same_map(const json_t *a, const json_t *b)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *map = NULL;
    if (json_object_size(a) != json_object_size(b)) {
        return false;
    }
    map = json_incref((json_t *)(uintptr_t)a);
    bool same = true;
    json_object_foreach(map, key, value)
    {
        same = same && vectors_same(value, json_object_get(b, key));
    }
    json_decref(map);
    return same;
}

bool vectors_same(const json_t *a, const json_t *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    /* Which error the original raises is not ours to repeat. */
    if (vectors_is_error(a) || vectors_is_error(b)) {
        return vectors_is_error(a) && vectors_is_error(b);
    }
    if (json_is_number(a) && json_is_number(b)) {
        return same_number(a, b);
    }
    if (json_typeof(a) != json_typeof(b)) {
        return false;
    }
    if (json_is_array(a)) {
        return same_list(a, b);
    }
    if (json_is_object(a)) {
        return same_map(a, b);
    }
    if (json_is_string(a)) {
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    }
    return true;
}

void vectors_expect(struct vectors *v, const char *what, const json_t *expected, json_t *found)
{
    if (!vectors_same(expected, found)) {
        vectors_differ(v, what, expected, found);
    }
    json_decref(found);
}

/* ---- bytes ---- */

static void pack(msgpack_packer *packer, const json_t *tree);

static void pack_text(msgpack_packer *packer, const char *text, size_t bytes)
{
    msgpack_pack_str(packer, bytes);
    msgpack_pack_str_body(packer, text, bytes);
}

static void pack_map(msgpack_packer *packer, const json_t *tree)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *map = json_incref((json_t *)(uintptr_t)tree);
    msgpack_pack_map(packer, json_object_size(map));
    json_object_foreach(map, key, value)
    {
        pack_text(packer, key, strlen(key));
        pack(packer, value);
    }
    json_decref(map);
}

static void pack(msgpack_packer *packer, const json_t *tree)
{
    switch (json_typeof(tree)) {
    case JSON_OBJECT:
        pack_map(packer, tree);
        break;
    case JSON_ARRAY:
        msgpack_pack_array(packer, json_array_size(tree));
        for (size_t i = 0; i < json_array_size(tree); i++) {
            pack(packer, json_array_get(tree, i));
        }
        break;
    case JSON_STRING:
        pack_text(packer, json_string_value(tree), json_string_length(tree));
        break;
    case JSON_INTEGER:
        msgpack_pack_int64(packer, json_integer_value(tree));
        break;
    case JSON_REAL:
        msgpack_pack_double(packer, json_real_value(tree));
        break;
    case JSON_TRUE:
        msgpack_pack_true(packer);
        break;
    case JSON_FALSE:
        msgpack_pack_false(packer);
        break;
    case JSON_NULL:
    default:
        msgpack_pack_nil(packer);
        break;
    }
}

static void take(struct bytes *out, const void *at, size_t count)
{
    if (count > sizeof out->at) {
        fprintf(stderr, "a message of the file is longer than 64 KiB\n");
        exit(2);
    }
    memcpy(out->at, at, count);
    out->count = count;
}

void vectors_encode(const json_t *tree, enum coord_form form, struct bytes *out)
{
    if (form == COORD_FORM_JSON) {
        char *text = json_dumps(tree, JSON_ENCODE_ANY | JSON_COMPACT);
        take(out, text, strlen(text));
        free(text);
        return;
    }
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    pack(&packer, tree);
    take(out, buffer.data, buffer.size);
    msgpack_sbuffer_destroy(&buffer);
}

static json_t *unpack(const msgpack_object *object)
{
    json_t *tree = NULL;
    switch (object->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        return json_boolean(object->via.boolean);
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return json_integer((json_int_t)object->via.u64);
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return json_integer(object->via.i64);
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return json_real(object->via.f64);
    case MSGPACK_OBJECT_STR:
        return json_stringn(object->via.str.ptr, object->via.str.size);
    case MSGPACK_OBJECT_ARRAY:
        tree = json_array();
        for (uint32_t i = 0; i < object->via.array.size; i++) {
            json_array_append_new(tree, unpack(&object->via.array.ptr[i]));
        }
        return tree;
    case MSGPACK_OBJECT_MAP:
        tree = json_object();
        for (uint32_t i = 0; i < object->via.map.size; i++) {
            const msgpack_object_str *key = &object->via.map.ptr[i].key.via.str;
            char *name = strndup(key->ptr, key->size);
            json_object_set_new(tree, name, unpack(&object->via.map.ptr[i].val));
            free(name);
        }
        return tree;
    case MSGPACK_OBJECT_NIL:
    case MSGPACK_OBJECT_BIN:
    case MSGPACK_OBJECT_EXT:
    default:
        return json_null();
    }
}

json_t *vectors_decode(enum coord_form form, const void *bytes, size_t count)
{
    if (form == COORD_FORM_JSON) {
        return json_loadb(bytes, count, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    }
    msgpack_unpacked result;
    msgpack_unpacked_init(&result);
    size_t used = 0;
    json_t *tree = NULL;
    if (msgpack_unpack_next(&result, bytes, count, &used) == MSGPACK_UNPACK_SUCCESS &&
        used == count) {
        tree = unpack(&result.data);
    }
    msgpack_unpacked_destroy(&result);
    return tree;
}

json_t *vectors_tree(const struct coord_value *value)
{
    static unsigned char buffer[COORD_MESSAGE_MAX];
    struct coord_writer writer;
    size_t used = 0;
    coord_writer_begin(&writer, COORD_FORM_JSON, buffer, sizeof buffer);
    coord_write_value(&writer, value);
    if (coord_writer_finish(&writer, &used) != COORD_OK) {
        return NULL;
    }
    return vectors_decode(COORD_FORM_JSON, buffer, used);
}

json_t *vectors_names(const struct coord_value *subscriptions)
{
    struct coord_names names;
    struct coord_value name;
    json_t *list = json_array();
    coord_names_begin(subscriptions, &names);
    while (coord_names_next(&names, &name)) {
        json_array_append_new(list, vectors_tree(&name));
    }
    return list;
}

int64_t vectors_time(const json_t *text)
{
    struct coord_time time = {0, 0, true};
    if (!json_is_string(text) ||
        !coord_time_text_parse(json_string_value(text), json_string_length(text), &time) ||
        time.naive) {
        char *seen = shown(text);
        fprintf(stderr, "the file has no instant where one is due: %s\n", seen);
        free(seen);
        exit(2);
    }
    return coord_time_epoch(&time);
}

double vectors_number(const json_t *tree, double other)
{
    if (json_is_number(tree)) {
        return json_number_value(tree);
    }
    if (json_is_string(tree)) {
        char *end = NULL;
        double value = strtod(json_string_value(tree), &end);
        return end != json_string_value(tree) ? value : other;
    }
    return other;
}
