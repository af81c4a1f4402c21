/* SPDX-License-Identifier: MIT
 * tests/support/support.h - cmocka with what it needs before it, and texts at the edge of a page.
 *
 * Everything here is inline: a unit test needs no library for it.
 */
#ifndef COORD_TESTS_SUPPORT_H
#define COORD_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/** Bytes whose last one is the last that may be read: one more is a fault. */
struct guarded {
    void *mapping;
    size_t mapping_bytes;
    char *at;
};

static inline struct guarded guarded_copy(const void *bytes, size_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t body = (count / page + 1) * page;
    struct guarded g = {.mapping_bytes = body + page};
    g.mapping =
        mmap(NULL, g.mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g.mapping, MAP_FAILED);
    assert_int_equal(mprotect((char *)g.mapping + body, page, PROT_NONE), 0);
    g.at = (char *)g.mapping + body - count;
    if (count > 0) {
        memcpy(g.at, bytes, count);
    }
    return g;
}

/** A text, its NUL included. */
static inline struct guarded guarded_text(const char *text)
{
    return guarded_copy(text, strlen(text) + 1);
}

static inline void guarded_free(struct guarded *g)
{
    munmap(g->mapping, g->mapping_bytes);
}

/** Say why before skip(): a skip without a reason hides a hole. */
#define skip_because(reason)                          \
    do {                                              \
        print_message("[  REASON  ] %s\n", (reason)); \
        skip();                                       \
    } while (0)

/** The same for what CI has to have: there its lack is a failure. */
static inline void skip_but_in_ci(const char *reason)
{
    const char *ci = getenv("CI");
    if (ci != NULL && strcmp(ci, "true") == 0) {
        fail_msg("%s; and CI=true", reason);
    }
    skip_because(reason);
}

#endif /* COORD_TESTS_SUPPORT_H */
