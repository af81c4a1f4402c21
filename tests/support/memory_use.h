/* SPDX-License-Identifier: MIT
 * tests/support/memory_use.h - how many bytes this process has allocated, by the allocator's word.
 */
#ifndef TEST_MEMORY_USE_H
#define TEST_MEMORY_USE_H

#include "tests/support/sanitized.h"

#include <malloc.h>
#include <stddef.h>

#if SANITIZED
/* As <sanitizer/allocator_interface.h> has it, which does not come with every gcc. */
size_t __sanitizer_get_current_allocated_bytes(void);

static inline size_t memory_in_use(void)
{
    return __sanitizer_get_current_allocated_bytes();
}
#else
static inline size_t memory_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#endif

#endif /* TEST_MEMORY_USE_H */
