/* SPDX-License-Identifier: MIT
 * coord/leadership.c - asked now, and not remembered.
 */
#include "coord/leadership.h"

bool coord_leadership_verify(const struct coord_leadership *leadership)
{
    if (leadership == NULL) {
        return true;
    }
    uint64_t fence = 0;
    enum coord_err err = leadership->renew(leadership->ctx);
    return err == COORD_OK && leadership->is_leader(leadership->ctx, &fence);
}
