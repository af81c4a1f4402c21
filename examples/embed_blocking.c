/* SPDX-License-Identifier: MIT
 * examples/embed_blocking.c - a tool that works only while it leads, with blocking calls alone.
 *
 * usage: embed_blocking [URI [NAME]]     such as embed_blocking file:/run/jobs nightly
 */
#include <electors/file.h>
#include <electors/memory.h>
#include <runtime/election.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int work_while_leading(struct coord_election *election)
{
    struct coord_error error;
    for (int piece = 1; piece <= 3; piece++) {
        /* Between two calls nobody renews: do it before each piece, and keep pieces short. */
        if (coord_election_renew(election, 2000, &error) != COORD_OK) {
            fprintf(stderr, "lost it: %s\n", error.text);
            return 1;
        }
        const struct coord_claim claim = coord_election_claim(election);
        printf("piece %d, under fence %" PRIu64 ", with %" PRIu64 " ms left\n", piece, claim.fence,
               claim.remaining);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct coord_scheme schemes[] = {{"memory", coord_memory_elector, NULL},
                                           {"file", coord_file_elector, NULL},
                                           {NULL, NULL, NULL}};
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_election *election = NULL;
    struct coord_error error;
    config.name = argc > 2 ? argv[2] : "example";
    config.name_bytes = strlen(config.name);
    if (coord_runtime_new(NULL, &runtime, &error) != COORD_OK ||
        coord_election_open(runtime, schemes, argc > 1 ? argv[1] : "memory:", &config, &election,
                            &error) != COORD_OK) {
        fprintf(stderr, "%s\n", error.text);
        coord_runtime_free(runtime);
        return 2;
    }
    int status = 1;
    if (coord_election_wait(election, 10000, &error) == COORD_OK) {
        status = work_while_leading(election);
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    /* The work has ended: say so, and somebody else may lead at once. */
    if (coord_election_release(election, 2000, &error) != COORD_OK) {
        fprintf(stderr, "not resigned, the lease runs out: %s\n", error.text);
    }
    coord_election_close(election);
    coord_runtime_free(runtime);
    return status;
}
