/* SPDX-License-Identifier: MIT
 * tests/support/file_scene.c - see file_scene.h.
 */
#include "tests/support/file_scene.h"

#include "electors/file.h"
#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>

struct fleet fleet;
char base[64];   /* of this test */
char folder[80]; /* of the election */
char uri[160];
char path[512]; /* of its file, once it is there */

int scene_setup(void **state)
{
    (void)state;
    scratch_make("file", base, sizeof base);
    snprintf(folder, sizeof folder, "%s/election", base);
    snprintf(uri, sizeof uri, "file:%s", folder);
    fleet_init(&fleet, coord_file_elector());
    return 0;
}

int scene_teardown(void **state)
{
    (void)state;
    fleet_fini(&fleet);
    scratch_remove(base);
    return 0;
}

struct fleet_member *add(const char *identity)
{
    struct fleet_member *member =
        fleet_add(&fleet, &(struct fleet_member_options){
                              .name = "jobs", .identity = identity, .uri = uri, .ttl = TTL});
    assert_non_null(member);
    return member;
}

void stand(struct fleet_member *member)
{
    coord_lease_stand(member->lease, fleet_now());
}

enum coord_outcome query(struct fleet_member *member, enum coord_verb verb)
{
    return fleet_query(&fleet, member, &(struct coord_request){.verb = verb});
}

void find_path(void)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    path[0] = '\0';
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(dir);
}

unsigned files_in(const char *where)
{
    DIR *dir = opendir(where);
    const struct dirent *entry;
    unsigned count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* One leads, on a clear record. */
struct fleet_member *leader(const char *identity)
{
    struct fleet_member *member = add(identity);
    assert_int_equal(query(member, COORD_VERB_INIT), COORD_DONE);
    stand(member);
    fleet_until(&fleet, fleet_leads, member);
    find_path();
    return member;
}

bool has_error(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code != COORD_OK;
}

void assert_refused(struct fleet_member *member, enum coord_err code, const char *cure)
{
    stand(member);
    fleet_until(&fleet, has_error, member);
    if (member->lease->error.code != code || strstr(member->lease->error.text, cure) == NULL) {
        fail_msg("%s, not %s: %s", coord_err_name(member->lease->error.code), coord_err_name(code),
                 member->lease->error.text);
    }
}

/* Run something in a child, which may change itself for good. @return its exit status. */
int in_child(int (*body)(void))
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void assert_child(int (*body)(void), const char *needs)
{
    const int status = in_child(body);
    if (status == NOT_PERMITTED) {
        skip_because(needs);
    }
    assert_int_equal(status, 0);
}
