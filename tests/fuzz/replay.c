/* SPDX-License-Identifier: MIT
 * tests/fuzz/replay.c - runs a fuzz target over the files of its corpus, without a fuzzer.
 *
 * usage: replay_X DIR. It closes with the lines that the other tests close with.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    INPUT_MAX = 1 << 20
};

static unsigned char input[INPUT_MAX];

/* In memory of the exact size, so that valgrind and the sanitizers see a byte too far. */
static int run(const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    const size_t size = fread(input, 1, sizeof input, file);
    const int failed = ferror(file);
    if (fclose(file) != 0 || failed) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return -1;
    }
    uint8_t *copy = malloc(size ? size : 1);
    if (copy == NULL) {
        fprintf(stderr, "%s: out of memory\n", path);
        return -1;
    }
    memcpy(copy, input, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (dir == NULL) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    unsigned count = 0;
    unsigned bad = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            char path[4096];
            (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
            fprintf(stderr, "[ RUN      ] %s\n", entry->d_name); /* a crash names its input */
            if (run(path) == 0) {
                count++;
            } else {
                bad++;
            }
        }
    }
    (void)closedir(dir);
    if (count == 0) {
        fprintf(stderr, "%s: no corpus\n", argv[1]);
        bad++;
    }
    printf("[==========] %u test(s) run.\n", count + bad);
    printf("[  PASSED  ] %u test(s).\n", count);
    if (bad > 0) {
        printf("[  FAILED  ] %u test(s), listed above.\n", bad);
    }
    return bad > 0;
}
