/* SPDX-License-Identifier: MIT
 * coord/message_pack.c - msgpack-c, writing into a writer's buffer. The one place that includes it.
 */
#include "coord/message_write.h"

#include <msgpack/pack.h>

static int put(void *data, const char *bytes, size_t count)
{
    coord__put(data, bytes, count);
    return 0;
}

static msgpack_packer packer(struct coord_writer *writer)
{
    msgpack_packer pack;
    msgpack_packer_init(&pack, writer, put);
    return pack;
}

/* Its return value is that of put(), which keeps the failure in the writer. */
#define PACK(call, ...)                         \
    do {                                        \
        msgpack_packer pack = packer(writer);   \
        (void)msgpack_pack_##call(__VA_ARGS__); \
    } while (0)

void coord__pack_map(struct coord_writer *writer, uint32_t pairs)
{
    PACK(map, &pack, pairs);
}

void coord__pack_array(struct coord_writer *writer, uint32_t elements)
{
    PACK(array, &pack, elements);
}

void coord__pack_text(struct coord_writer *writer, size_t bytes)
{
    PACK(str, &pack, bytes);
}

void coord__pack_integer(struct coord_writer *writer, int64_t value)
{
    PACK(int64, &pack, value);
}

void coord__pack_natural(struct coord_writer *writer, uint64_t value)
{
    PACK(uint64, &pack, value);
}

void coord__pack_real(struct coord_writer *writer, double value)
{
    PACK(double, &pack, value);
}

void coord__pack_boolean(struct coord_writer *writer, bool value)
{
    if (value) {
        PACK(true, &pack);
    } else {
        PACK(false, &pack);
    }
}

void coord__pack_null(struct coord_writer *writer)
{
    PACK(nil, &pack);
}
