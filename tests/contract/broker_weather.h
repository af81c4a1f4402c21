/* SPDX-License-Identifier: MIT
 * tests/contract/broker_weather.h - what every bus over a server does when the server cannot be
 * had.
 */
#ifndef COORD_TESTS_BROKER_WEATHER_H
#define COORD_TESTS_BROKER_WEATHER_H

#include "tests/contract/broker_suite.h"

/** The server is down, and is started by `again` later: it is said once, not with each try, and the
 * bus comes up by itself. */
void bus_weather_down_at_start(struct bus_world *world, void (*again)(void));

/** The server goes away in the midst of it and comes back, three times: so does the bus. */
void bus_weather_restarts(struct bus_world *world, void (*down)(void), void (*again)(void));

/** The same, for BUS_SIDES members that share one connection. */
void bus_weather_shared(struct bus_world *world, void (*down)(void), void (*again)(void));

/**
 * The server refuses: it is said once, with a code and a cure, and nothing is left behind.
 *
 * @param cure    a part of the sentence.
 * @param secret  no part of it; may be NULL.
 */
void bus_weather_refused(struct bus_world *world, enum coord_err code, const char *cure,
                         const char *secret);

#endif /* COORD_TESTS_BROKER_WEATHER_H */
