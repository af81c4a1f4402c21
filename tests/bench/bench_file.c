/* SPDX-License-Identifier: MIT
 * tests/bench/bench_file.c - what each verb of the file elector costs, system calls included.
 *
 * The floor is what any election over a file has to pay in the same run: lock a byte, write a
 * slot, unlock.
 */
#include "electors/file_io.h"
#include "tests/bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CALLS = 4000,
    ROUNDS = 7
};

static struct coord__file_disk disk;
static struct coord__file_disk other_disk;
static struct coord__file_terms leader;
static struct coord__file_terms waiter;
static coord_ms now = 1000;

static enum coord_outcome run(struct coord__file_terms *terms, struct coord_request request)
{
    static uint64_t wall_us = UINT64_C(1800000000000000);
    request.sent = now;
    request.lease = 1000000;
    coord__file_terms_begin(terms, &request);
    while (coord__file_terms_step(terms, now, ++wall_us) != COORD__FILE_DONE) {
    }
    return coord__file_terms_reply(terms)->outcome;
}

static enum coord_outcome acquire(struct coord__file_terms *terms)
{
    return run(terms, (struct coord_request){.verb = COORD_VERB_ACQUIRE,
                                             .attempt = terms->mine.attempt + 1});
}

static enum coord_outcome of_mine(struct coord__file_terms *terms, enum coord_verb verb)
{
    return run(terms, (struct coord_request){.verb = verb,
                                             .attempt = terms->mine.attempt,
                                             .fence = terms->mine.term.fence,
                                             .led = true});
}

static int pair(void)
{
    return acquire(&leader) != COORD_GRANTED || of_mine(&leader, COORD_VERB_RELEASE) != COORD_DONE;
}

static int renew(void)
{
    return of_mine(&leader, COORD_VERB_RENEW) != COORD_RENEWED;
}

static int lose(void)
{
    return acquire(&waiter) != COORD_HELD;
}

static int observe(void)
{
    return run(&waiter, (struct coord_request){.verb = COORD_VERB_OBSERVE}) != COORD_HELD;
}

static int floor_of_all(void)
{
    static const uint8_t slot[256];
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 << 30, .l_len = 1};
    const int fd = other_disk.file.fd;
    const int failed =
        fcntl(fd, F_OFD_SETLK, &byte) != 0 || pwrite(fd, slot, sizeof slot, 1 << 20) < 0;
    byte.l_type = F_UNLCK;
    return failed || fcntl(fd, F_OFD_SETLK, &byte) != 0;
}

static double best_of(int (*what)(void), int *failures)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_us();
        for (int i = 0; i < CALLS; i++) {
            *failures += what();
        }
        const double each = (now_us() - start) / CALLS;
        best = each < best ? each : best;
    }
    return best;
}

static int open_one(struct coord__file_disk *at, struct coord__file_terms *terms,
                    const char *folder, const char *identity)
{
    struct coord_error error;
    if (coord__file_disk_init(at, folder, "bench", 5, true, &error) != COORD_OK) {
        return 1;
    }
    struct coord__file_config config = {
        .io = coord__file_disk_io(at), .lease = 1000000, .identity = identity};
    if (coord__file_place_find(&config.place, &error) != COORD_OK) {
        return 1;
    }
    coord__file_terms_init(terms, &config);
    return 0;
}

int main(void)
{
    char folder[] = "/tmp/coord-bench-XXXXXX";
    int failures = 0;
    if (mkdtemp(folder) == NULL || open_one(&disk, &leader, folder, "a") != 0 ||
        open_one(&other_disk, &waiter, folder, "b") != 0 ||
        run(&waiter, (struct coord_request){.verb = COORD_VERB_INIT}) != COORD_DONE) {
        return 1;
    }
    const double least = best_of(floor_of_all, &failures);
    const double both = best_of(pair, &failures);
    failures += acquire(&leader) != COORD_GRANTED;
    printf("file acquire+release  %8.1f us   %5.2fx of lock, write, unlock %.1f us\n", both,
           both / least, least);
    printf("file renew            %8.1f us\n", best_of(renew, &failures));
    printf("file losing acquire   %8.1f us\n", best_of(lose, &failures));
    printf("file observe          %8.1f us\n", best_of(observe, &failures));
    unlink(disk.path);
    rmdir(folder);
    return failures;
}
