/* SPDX-License-Identifier: MIT
 * tests/bench/measure.h - time, and what is in the middle of several measures.
 */
#ifndef COORD_TESTS_MEASURE_H
#define COORD_TESTS_MEASURE_H

#include <stdlib.h>
#include <time.h>

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

#endif /* COORD_TESTS_MEASURE_H */
