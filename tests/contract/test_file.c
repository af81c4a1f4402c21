/* SPDX-License-Identifier: MIT
 * tests/contract/test_file.c - the contract over a folder of this host.
 */
#include "electors/file.h"
#include "tests/contract/suite.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

static char folder[64];
static char uri_text[80];

static void start(void)
{
    scratch_make("contract", folder, sizeof folder);
    snprintf(uri_text, sizeof uri_text, "file:%s", folder);
}

/* Remove the files of all names. The cases before are over, and use none of them any more. */
static void empty_folder(void)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

static void stop(void)
{
    scratch_remove(folder);
}

static const char *uri(void)
{
    return uri_text;
}

static void lose(const char *name)
{
    (void)name;
    empty_folder();
}

int main(void)
{
    static const struct coord_scheme schemes[] = {{"file", coord_file_elector, NULL},
                                                  {NULL, NULL, NULL}};
    const struct suite_store store = {.name = "file",
                                      .schemes = schemes,
                                      .ttl = 600,
                                      .start = start,
                                      .stop = stop,
                                      .uri = uri,
                                      .bad_option = "fs=maybe",
                                      .contends = true,
                                      .lose = lose};
    return suite_run(&store);
}
