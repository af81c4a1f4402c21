/* SPDX-License-Identifier: MIT
 * examples/embed_loop.c - an election inside a program's own poll() loop, without any thread.
 *
 * usage: embed_loop [URI [NAME]]     leads once, and ends with the end of its input
 */
#include <electors/file.h>
#include <electors/memory.h>
#include <runtime/election.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Inside coord_runtime_process(): be quick, a renewal may be due. */
static void on_change(void *ctx, struct coord_election *election, bool leading)
{
    int *work = ctx;
    *work = leading ? 1 : 0;
    printf("%s %s\n", coord_election_identity(election), leading ? "leads" : "leads no more");
}

static void work_on_input(struct coord_election *election, bool *end)
{
    char line[256];
    const ssize_t n = read(STDIN_FILENO, line, sizeof line);
    *end = n <= 0;
    /* Asked before each piece of work; this needs no lock and no system call. */
    if (n > 0 && coord_election_is_leader(election)) {
        printf("worked on %zd bytes\n", n);
    }
}

int main(int argc, char **argv)
{
    const struct coord_scheme schemes[] = {{"memory", coord_memory_elector, NULL},
                                           {"file", coord_file_elector, NULL},
                                           {NULL, NULL, NULL}};
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_election *election = NULL;
    struct coord_error error = {.code = COORD_OK};
    int work = 0;
    bool end = false;
    config.name = argc > 2 ? argv[2] : "example";
    config.name_bytes = strlen(config.name);
    if (coord_runtime_new(NULL, &runtime, &error) != COORD_OK ||
        coord_election_open(runtime, schemes, argc > 1 ? argv[1] : "memory:", &config, &election,
                            &error) != COORD_OK ||
        coord_election_on_leader_change(election, on_change, &work) != COORD_OK) {
        fprintf(stderr, "%s\n", error.text);
        coord_runtime_free(runtime);
        return 2;
    }
    coord_election_stand(election);
    while (!end) {
        /* One descriptor for all elections and connections; it is readable at deadlines, too. */
        struct pollfd wait[2] = {{.fd = coord_runtime_fd(runtime), .events = POLLIN},
                                 {.fd = work ? STDIN_FILENO : -1, .events = POLLIN}};
        poll(wait, 2, -1);
        if (wait[0].revents != 0) {
            coord_runtime_process(runtime);
        }
        if (wait[1].revents != 0) {
            work_on_input(election, &end);
        }
    }
    enum coord_stop how = COORD_STOP_BUSY;
    coord_election_stop(election, 5000, &how);
    coord_election_close(election);
    coord_runtime_free(runtime);
    return how == COORD_STOP_RELEASED ? 0 : 1;
}
