/* SPDX-License-Identifier: MIT
 * coord/message_write.h - writing one value, msgpack or JSON, into the caller's buffer.
 *
 * A writer does not fail half-way: after the first thing that does not fit it writes nothing more,
 * and coord_writer_finish() says so.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_MESSAGE_WRITE_H
#define COORD_MESSAGE_WRITE_H

#include "coord/message_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/** On the caller's stack; its fields are read by coord/message*.c only. */
struct coord_writer {
    unsigned char *buffer;
    size_t room;
    size_t used;
    enum coord_form form;
    bool full;       /* something did not fit */
    bool unsuitable; /* something has no place in this form */
    unsigned depth;
    bool map[COORD_VIEW_DEPTH_MAX + 1];
    uint32_t written[COORD_VIEW_DEPTH_MAX + 1]; /* keys and values of each open container */
};

/**
 * Begin to write.
 *
 * @param buffer  kept until coord_writer_finish().
 * @param room    its size; COORD_MESSAGE_MAX is enough for any message.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API void coord_writer_begin(struct coord_writer *writer, enum coord_form form, void *buffer,
                                  size_t room);

/** Open a map of so many pairs; a key is a text. Close it with coord_write_end(). Thread: any. */
COORD_API void coord_write_map(struct coord_writer *writer, uint32_t pairs);

/** Open an array of so many elements. Close it with coord_write_end(). Thread: any. */
COORD_API void coord_write_array(struct coord_writer *writer, uint32_t elements);

/** Close the innermost map or array. Thread: any. */
COORD_API void coord_write_end(struct coord_writer *writer);

/** A text, UTF-8, without escapes. Thread: any. */
COORD_API void coord_write_text(struct coord_writer *writer, const char *text, size_t bytes);

COORD_API void coord_write_integer(struct coord_writer *writer, int64_t value);
COORD_API void coord_write_natural(struct coord_writer *writer, uint64_t value);
COORD_API void coord_write_real(struct coord_writer *writer, double value);
COORD_API void coord_write_boolean(struct coord_writer *writer, bool value);
COORD_API void coord_write_null(struct coord_writer *writer);

/**
 * Write what a view shows, with all that it contains, from either form.
 *
 * @param value  borrowed; an absent one is written as null.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API void coord_write_value(struct coord_writer *writer, const struct coord_value *value);

/**
 * End the writing.
 *
 * @param bytes  written on success.
 * @return       COORD_OK; LIMIT: the buffer was too small; BAD_MESSAGE: a value has no place in
 *               this form, such as a binary in JSON.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_writer_finish(struct coord_writer *writer,
                                                              size_t *bytes);

/* ---- between coord/message*.c only ---- */
void coord__put(struct coord_writer *writer, const void *bytes, size_t count);
void coord__pack_map(struct coord_writer *writer, uint32_t pairs);
void coord__pack_array(struct coord_writer *writer, uint32_t elements);
void coord__pack_text(struct coord_writer *writer, size_t bytes);
void coord__pack_integer(struct coord_writer *writer, int64_t value);
void coord__pack_natural(struct coord_writer *writer, uint64_t value);
void coord__pack_real(struct coord_writer *writer, double value);
void coord__pack_boolean(struct coord_writer *writer, bool value);
void coord__pack_null(struct coord_writer *writer);

#ifdef __cplusplus
}
#endif
#endif /* COORD_MESSAGE_WRITE_H */
