/* SPDX-License-Identifier: MIT
 * tests/support/many.h - two hundred members of a fleet in one process, which share a connection,
 * while their server is restarted and some of them end without a word.
 */
#ifndef TEST_MANY_H
#define TEST_MANY_H

#include "runtime/bus.h"

/**
 * Live through it, and assert what is promised: nobody is called dead over a restart, each death is
 * told and its work reported, what is served again is resolved, and who does not read costs no
 * more than its inbox.
 *
 * @param restart  ends the server without warning, and starts it again.
 */
void many_live_through(const struct coord_bus_scheme *schemes, const char *uri,
                       void (*restart)(void));

#endif /* TEST_MANY_H */
