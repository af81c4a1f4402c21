/* SPDX-License-Identifier: MIT
 * tests/support/memory_use.h - how many bytes this process has allocated, by the allocator's word.
 */
#ifndef TEST_MEMORY_USE_H
#define TEST_MEMORY_USE_H

#include <malloc.h>
#include <stddef.h>

#if defined(__has_feature)
#define MEMORY_USE_HAS(feature) __has_feature(feature)
#else
#define MEMORY_USE_HAS(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    MEMORY_USE_HAS(address_sanitizer) || MEMORY_USE_HAS(thread_sanitizer)
#include <sanitizer/allocator_interface.h>
enum {
    MEMORY_USE_SANITIZED = 1
};

static inline size_t memory_in_use(void)
{
    return __sanitizer_get_current_allocated_bytes();
}
#else
enum {
    MEMORY_USE_SANITIZED = 0
};

static inline size_t memory_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#endif

#endif /* TEST_MEMORY_USE_H */
