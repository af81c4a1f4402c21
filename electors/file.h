/* SPDX-License-Identifier: MIT
 * electors/file.h - election among the processes of one host, through a file: no server.
 *
 *   file:DIR   one file for each name in the folder DIR, which is made where it is missing
 *
 * The kernel tells at once when a leader is dead; a stopped one is followed when its lease runs
 * out. A new name waits one lease, since a new folder looks like one that was removed under a
 * leader; coordctl init spares that.
 */
#ifndef COORD_FILE_H
#define COORD_FILE_H

#include "coord/check.h"
#include "coord/elector.h"
#include "coord/uri.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The backend's table. Its option besides coord.ttl, .grace and .priority: coord.fs=local (the
 * default) takes only file systems that are known to be local, coord.fs=trust takes any, on your
 * word that one machine alone mounts it.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#takeover, tests/unit/test_file_terms.c, tests/fault/test_file.c.
 */
COORD_API const struct coord_backend_ops *coord_file_elector(void);

/**
 * The descriptor whose open file carries the lock of the present term. A process that is given a
 * copy (by dup, SCM_RIGHTS or inheritance) keeps the term's lock alive when this one dies, until
 * it closes the copy; it must not unlock it. Ask again for each term: the file may be another.
 *
 * @param elector  of coord_file_elector().
 * @return         borrowed until the term ends; -1: no file is open.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md, tests/fault/test_file.c.
 */
COORD_API int coord_file_elector_liveness_fd(struct coord_elector *elector);

/**
 * Look at a folder as `coordctl doctor` does: a file is made in it as an election would make it,
 * and removed again.
 *
 * @param uri  of file:DIR; coord.fs counts.
 * @param out  room for COORD_CHECKS_MAX; a folder that cannot be used is one FAIL.
 * @return     how many were written.
 * Thread: any.   Blocks: for the disk.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md, tests/integration/test_cli_doctor.c.
 */
COORD_API size_t coord_file_doctor(const struct coord_uri *uri, struct coord_check *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_FILE_H */
