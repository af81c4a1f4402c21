/* SPDX-License-Identifier: MIT
 * brokers/local.h - a bus among the processes of one host, through sockets in a folder: no server.
 *
 *   local:DIR   a folder of one user, made where it is missing (mode 0700)
 *
 * Each member that listens has a socket in the folder; who publishes sends to all that are there.
 * Nobody waits for a member that does not read: what it misses is counted by the sender. Sockets
 * that a killed process left behind are removed by whoever meets them first.
 */
#ifndef COORD_BROKER_LOCAL_H
#define COORD_BROKER_LOCAL_H

#include "coord/broker.h"
#include "coord/check.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The broker's table. It has no options.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#local, tests/contract/test_broker_local.c, tests/fault/test_broker_local.c.
 */
COORD_API const struct coord_broker_ops *coord_local_broker(void);

/**
 * Look at a folder as `coordctl doctor --bus local:DIR` does. One that is missing is made.
 *
 * @param folder  NUL-terminated.
 * @param out     room for COORD_CHECKS_MAX; a folder that will not do is one FAIL.
 * @return        how many were written.
 * Thread: any.   Blocks: for the file system.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#doctor, tests/integration/test_cli_doctor_bus.c.
 */
COORD_API size_t coord_local_doctor(const char *folder, struct coord_check *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_LOCAL_H */
