/* SPDX-License-Identifier: MIT
 * tests/support/sanitized.h - are these tests built with a sanitizer, which makes everything slower
 * and larger?
 */
#ifndef TEST_SANITIZED_H
#define TEST_SANITIZED_H

#if defined(__has_feature)
#define SANITIZED_HAS(feature) __has_feature(feature)
#else
#define SANITIZED_HAS(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    SANITIZED_HAS(address_sanitizer) || SANITIZED_HAS(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif /* TEST_SANITIZED_H */
