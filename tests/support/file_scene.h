/* SPDX-License-Identifier: MIT
 * tests/support/file_scene.h - a folder for one test of the file elector, and a fleet in it.
 */
#ifndef TEST_FILE_SCENE_H
#define TEST_FILE_SCENE_H

#include "tests/support/fleet.h"

#define TTL 1000

extern struct fleet fleet;
extern char base[64];   /* of this test */
extern char folder[80]; /* of the election */
extern char uri[160];
extern char path[512]; /* of its file, once it is there */

/** For cmocka. */
int scene_setup(void **state);
int scene_teardown(void **state);

struct fleet_member *add(const char *identity);
void stand(struct fleet_member *member);
enum coord_outcome query(struct fleet_member *member, enum coord_verb verb);

/** One leads, on a clear record; `path` is known then. */
struct fleet_member *leader(const char *identity);

/** Fill in `path`. */
void find_path(void);

/** How many files there are in a folder, the hidden ones left out. */
unsigned files_in(const char *where);

/** Does its last request have an error? For fleet_until(). */
bool has_error(void *member);

/** Let it stand, and fail unless it is refused with this code and these words. */
void assert_refused(struct fleet_member *member, enum coord_err code, const char *cure);

/** Run something in a child, which may change itself for good. @return its exit status. */
int in_child(int (*body)(void));

/** What a child gives back when this machine does not permit what it needs. */
enum {
    NOT_PERMITTED = 77
};

/** Run it, and fail unless it gives back 0; skip, and say why, unless it is permitted. */
void assert_child(int (*body)(void), const char *needs);

/** In a child an assert of cmocka would run the rest of the tests a second time. */
#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            print_message("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                             \
        }                                                                         \
    } while (0)

#endif /* TEST_FILE_SCENE_H */
