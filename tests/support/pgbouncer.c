/* SPDX-License-Identifier: MIT
 * tests/support/pgbouncer.c - see pgbouncer.h.
 */
#include "tests/support/pgbouncer.h"

#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    START_TRIES = 4000, /* of 5 ms: a guard against one that never starts */
    PATH = 160
};

static const char *program(void)
{
    const char *named = getenv("PGBOUNCER");
    static const char *const places[] = {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer",
                                         "/usr/local/bin/pgbouncer"};
    for (size_t i = 0; named == NULL && i < sizeof places / sizeof places[0]; i++) {
        named = access(places[i], X_OK) == 0 ? places[i] : NULL;
    }
    return named;
}

void pgbouncer_needed(void)
{
    if (program() == NULL) {
        skip_but_in_ci("no pgbouncer: apt-get install pgbouncer, or name one in PGBOUNCER");
    }
}

static void write_file(const struct pgbouncer *pooler, const char *name, const char *text)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", pooler->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0644), 0);
}

static void run(const struct pgbouncer *pooler, pid_t parent)
{
    postgres_server_become_ordinary();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = open("/dev/null", O_RDWR);
    if (getppid() != parent || null < 0 || chdir(pooler->folder) != 0) {
        _exit(1);
    }
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl(program(), "pgbouncer", "pgbouncer.ini", (char *)NULL);
    _exit(127);
}

static bool answers(const struct pgbouncer *pooler)
{
    PGconn *conn = PQconnectdb(pooler->uri);
    const bool yes = PQstatus(conn) == CONNECTION_OK;
    PQfinish(conn);
    return yes;
}

void pgbouncer_start(struct pgbouncer *pooler, const struct postgres_server *server,
                     const char *mode, int size, const char *settings)
{
    char text[2048];
    memset(pooler, 0, sizeof *pooler);
    scratch_make("pgbouncer", pooler->folder, sizeof pooler->folder);
    assert_int_equal(chmod(pooler->folder, 0711), 0);
    postgres_server_give_away(pooler->folder);
    snprintf(text, sizeof text,
             "[databases]\n* = host=%s port=%d user=postgres\n[pgbouncer]\n"
             "listen_addr =\nlisten_port = 6432\nunix_socket_dir = %s\nauth_type = any\n"
             "pool_mode = %s\ndefault_pool_size = %d\nlogfile = %s/log\npidfile = %s/pid\n%s\n",
             server->folder, server->port != 0 ? server->port : 5432, pooler->folder, mode, size,
             pooler->folder, pooler->folder, settings);
    write_file(pooler, "pgbouncer.ini", text);
    snprintf(pooler->uri, sizeof pooler->uri, "postgresql://postgres@/postgres?host=%s&port=6432",
             pooler->folder);
    const pid_t parent = getpid();
    pooler->pid = fork();
    assert_true(pooler->pid >= 0);
    if (pooler->pid == 0) {
        run(pooler, parent);
    }
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    for (int i = 0; i < START_TRIES && !answers(pooler); i++) {
        nanosleep(&pause, NULL);
    }
    assert_true(answers(pooler));
}

void pgbouncer_stop(struct pgbouncer *pooler)
{
    if (pooler->pid != 0) {
        kill(pooler->pid, SIGKILL);
        assert_int_equal(waitpid(pooler->pid, NULL, 0), pooler->pid);
        pooler->pid = 0;
        scratch_remove(pooler->folder);
    }
}
