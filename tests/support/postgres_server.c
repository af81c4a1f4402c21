/* SPDX-License-Identifier: MIT
 * tests/support/postgres_server.c - see postgres_server.h.
 */
#include "tests/support/postgres_server.h"

#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    START_TRIES = 6000, /* of 5 ms: a guard against a server that never starts */
    NAP_NS = 5 * 1000 * 1000,
    PATH = 512,
    ARGUMENTS = 80
};

/* ---------------------------------------------------------------- programs and users */

static bool has_server(const char *folder)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/postgres", folder);
    return access(path, X_OK) == 0;
}

static bool ask_pg_config(char *out, size_t room)
{
    FILE *pipe = popen("pg_config --bindir 2>/dev/null", "r");
    const bool read = pipe != NULL && fgets(out, (int)room, pipe) != NULL;
    if (pipe != NULL) {
        pclose(pipe);
    }
    out[read ? strcspn(out, "\n") : 0] = '\0';
    return read;
}

const char *postgres_server_programs(void)
{
    static char found[PATH];
    const char *named = getenv("PG_BINDIR");
    if (named != NULL && named[0] != '\0') {
        return has_server(named) ? named : NULL;
    }
    if (found[0] != '\0') {
        return found;
    }
    if (ask_pg_config(found, sizeof found) && has_server(found)) {
        return found;
    }
    for (int version = 40; version >= 14; version--) {
        snprintf(found, sizeof found, "/usr/lib/postgresql/%d/bin", version);
        if (has_server(found)) {
            return found;
        }
    }
    found[0] = '\0';
    return NULL;
}

void postgres_server_needed(void)
{
    if (postgres_server_programs() == NULL) {
        skip_but_in_ci("no PostgreSQL server: apt-get install postgresql, or name its folder in "
                       "PG_BINDIR");
    }
}

/* PostgreSQL refuses to run as root. */
static const struct passwd *ordinary_user(void)
{
    const struct passwd *user = getpwnam("postgres");
    return user != NULL ? user : getpwnam("nobody");
}

void postgres_server_become_ordinary(void)
{
    if (geteuid() != 0) {
        return;
    }
    const struct passwd *user = ordinary_user();
    if (user == NULL || setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0) {
        _exit(126);
    }
}

void postgres_server_give_away(const char *folder)
{
    if (geteuid() == 0) {
        const struct passwd *user = ordinary_user();
        assert_non_null(user);
        assert_int_equal(chown(folder, user->pw_uid, user->pw_gid), 0);
    }
}

int postgres_server_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* ---------------------------------------------------------------- processes */

static void nap(void)
{
    const struct timespec pause = {.tv_nsec = NAP_NS};
    nanosleep(&pause, NULL);
}

/* Run one of PostgreSQL's programs as the ordinary user, its output in a file of the folder. */
static pid_t launch(const char *folder, const char *program, const char *const *arguments)
{
    char path[PATH];
    char log[PATH];
    snprintf(path, sizeof path, "%s/%s", postgres_server_programs(), program);
    snprintf(log, sizeof log, "%s/log", folder);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0) {
        return pid;
    }
    postgres_server_become_ordinary();
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    const int null = open("/dev/null", O_RDONLY);
    const int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (getppid() != parent || null < 0 || out < 0 || chdir(folder) != 0) {
        _exit(1);
    }
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    /* By its whole path, as PostgreSQL's programs look for each other beside it. execv() takes
     * char *const *, and changes none of them. */
    const char *line[ARGUMENTS + 1] = {path};
    for (size_t i = 1; i < ARGUMENTS && arguments[i] != NULL; i++) {
        line[i] = arguments[i];
    }
    union {
        const char *const *from;
        char *const *to;
    } cast = {.from = line};
    execv(path, cast.to);
    _exit(127);
}

static void run(const char *folder, const char *program, const char *const *arguments)
{
    int status = 0;
    const pid_t pid = launch(folder, program, arguments);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        fail_msg("%s failed with %d: see %s/log", program, status, folder);
    }
}

bool postgres_server_answers(struct postgres_server *server)
{
    PGconn *conn = PQconnectdb(server->uri);
    const bool yes = PQstatus(conn) == CONNECTION_OK;
    PQfinish(conn);
    if (!yes && server->pid != 0 && postgres_server_ended(server)) {
        fail_msg("PostgreSQL ended at its start: see %s/log", server->folder);
    }
    return yes;
}

bool postgres_server_ended(struct postgres_server *server)
{
    int status = 0;
    if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
        server->pid = 0;
    }
    return server->pid == 0;
}

void postgres_server_begin(struct postgres_server *server)
{
    char data[PATH];
    char sockets[PATH];
    char port[32];
    snprintf(data, sizeof data, "%s/data", server->folder);
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", server->folder);
    snprintf(port, sizeof port, "port=%d", server->port != 0 ? server->port : 5432);
    const char *argv[ARGUMENTS] = {"postgres",
                                   "-D",
                                   data,
                                   "-c",
                                   sockets,
                                   "-c",
                                   port,
                                   "-c",
                                   server->port != 0 ? "listen_addresses=127.0.0.1"
                                                     : "listen_addresses=",
                                   "-c",
                                   "fsync=off",
                                   "-c",
                                   "shared_buffers=16MB",
                                   "-c",
                                   "max_wal_senders=4",
                                   "-c",
                                   "log_line_prefix=%m %p "};
    size_t count = 17;
    for (size_t i = 0; server->options[i] != NULL; i++) {
        if (strcmp(server->options[i], "port=auto") != 0) {
            argv[count++] = "-c";
            argv[count++] = server->options[i];
        }
    }
    assert_int_equal(server->pid, 0);
    server->pid = launch(server->folder, "postgres", argv);
}

void postgres_server_again(struct postgres_server *server)
{
    postgres_server_begin(server);
    for (int i = 0; i < START_TRIES && !postgres_server_answers(server); i++) {
        nap();
    }
    assert_true(postgres_server_answers(server));
}

static void make_folder(struct postgres_server *server, const char *const *options)
{
    memset(server, 0, sizeof *server);
    scratch_make("postgres", server->folder, sizeof server->folder);
    assert_int_equal(chmod(server->folder, 0711), 0);
    postgres_server_give_away(server->folder);
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        assert_true(i < POSTGRES_SERVER_OPTIONS);
        server->options[i] = options[i];
        if (strcmp(options[i], "port=auto") == 0) {
            server->port = postgres_server_free_port();
        }
    }
    snprintf(server->uri, sizeof server->uri, "postgresql://postgres@/postgres?host=%s&port=%d",
             server->folder, server->port != 0 ? server->port : 5432);
    snprintf(server->tcp_uri, sizeof server->tcp_uri, "postgresql://postgres@127.0.0.1:%d/postgres",
             server->port);
}

void postgres_server_start(struct postgres_server *server, const char *const *options)
{
    const char *given = getenv("COORD_TEST_POSTGRES");
    if (options == NULL && given != NULL && given[0] != '\0') {
        memset(server, 0, sizeof *server);
        snprintf(server->uri, sizeof server->uri, "%s", given);
        assert_true(postgres_server_answers(server));
        return;
    }
    postgres_server_needed();
    char data[PATH];
    make_folder(server, options);
    snprintf(data, sizeof data, "%s/data", server->folder);
    const char *const initdb[] = {
        "initdb", "-D",        data, "-U",   "postgres",         "-A",
        "trust",  "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions",
        NULL};
    run(server->folder, "initdb", initdb);
    postgres_server_again(server);
}

void postgres_server_follow(struct postgres_server *server, const struct postgres_server *primary)
{
    char data[PATH];
    make_folder(server, primary->options);
    snprintf(data, sizeof data, "%s/data", server->folder);
    const char *const backup[] = {
        "pg_basebackup", "-d", primary->uri, "-D",        data, "-R", "-X",
        "stream",        "-c", "fast",       "--no-sync", NULL};
    run(server->folder, "pg_basebackup", backup);
    postgres_server_again(server);
}

void postgres_server_end(struct postgres_server *server, int signal_number)
{
    if (server->pid == 0) {
        return;
    }
    int status = 0;
    kill(server->pid, signal_number);
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    server->pid = 0;
}

void postgres_server_stop(struct postgres_server *server)
{
    postgres_server_end(server, SIGQUIT);
    if (server->folder[0] != '\0') {
        scratch_remove(server->folder);
        server->folder[0] = '\0';
    }
}

/* ---------------------------------------------------------------- statements */

PGconn *postgres_server_connect(const struct postgres_server *server)
{
    PGconn *conn = PQconnectdb(server->uri);
    if (PQstatus(conn) != CONNECTION_OK) {
        fail_msg("%s", PQerrorMessage(conn));
    }
    return conn;
}

__attribute__((format(printf, 2, 0))) static PGresult *ask(PGconn *conn, const char *format,
                                                           va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    PGresult *result = PQexec(conn, text);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        fail_msg("%s: %s", text, PQresultErrorMessage(result));
    }
    return result;
}

void postgres_server_do(const struct postgres_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PGconn *conn = postgres_server_connect(server);
    PQclear(ask(conn, format, arguments));
    PQfinish(conn);
    va_end(arguments);
}

static int64_t first_value(const PGresult *result)
{
    if (PQntuples(result) == 0 || PQgetisnull(result, 0, 0)) {
        return -1;
    }
    const char *text = PQgetvalue(result, 0, 0);
    return text[0] == 't' ? 1 : text[0] == 'f' ? 0 : strtoll(text, NULL, 10);
}

int64_t postgres_server_ask(const struct postgres_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PGconn *conn = postgres_server_connect(server);
    PGresult *result = ask(conn, format, arguments);
    const int64_t value = first_value(result);
    PQclear(result);
    PQfinish(conn);
    va_end(arguments);
    return value;
}

const char *postgres_server_try(PGconn *conn, const char *format, ...)
{
    static char state[8];
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    PGresult *result = PQexec(conn, text);
    const char *field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    snprintf(state, sizeof state, "%s",
             field != NULL                      ? field
             : PQstatus(conn) == CONNECTION_BAD ? "ended"
                                                : "");
    PQclear(result);
    return state;
}

void postgres_server_until(const struct postgres_server *server, const char *format, ...)
{
    va_list arguments;
    PGconn *conn = postgres_server_connect(server);
    for (int i = 0;; i++) {
        va_start(arguments, format);
        PGresult *result = ask(conn, format, arguments);
        va_end(arguments);
        const int64_t value = first_value(result);
        PQclear(result);
        if (value == 1) {
            break;
        }
        if (i >= START_TRIES) {
            fail_msg("never true: %s", format);
        }
        nap();
    }
    PQfinish(conn);
}

void postgres_server_put_in_hba(const struct postgres_server *server, const char *line)
{
    char path[PATH];
    char old[16384];
    const int64_t before = postgres_server_ask(
        server, "select (extract(epoch from pg_conf_load_time()) * 1000000)::bigint");
    snprintf(path, sizeof path, "%s/data/pg_hba.conf", server->folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t bytes = fread(old, 1, sizeof old, file);
    fclose(file);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", line);
    assert_int_equal(fwrite(old, 1, bytes, file), bytes);
    fclose(file);
    kill(server->pid, SIGHUP);
    /* The server reads it when it gets to it: a reload moves this time. */
    postgres_server_until(server,
                          "select (extract(epoch from pg_conf_load_time()) * 1000000)::bigint > "
                          "%" PRId64,
                          before);
}

/* ---------------------------------------------------------------- the log */

static char *read_log(const struct postgres_server *server, size_t from)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/log", server->folder);
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(file);
    assert_non_null(text);
    assert_int_equal(fseek(file, (long)from, SEEK_SET), 0);
    const size_t bytes = fread(text, 1, (1 << 20) - 1, file);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

size_t postgres_server_log_size(const struct postgres_server *server)
{
    char *text = read_log(server, 0);
    const size_t bytes = strlen(text);
    free(text);
    return bytes;
}

unsigned postgres_server_counted(const struct postgres_server *server, size_t from,
                                 const char *what)
{
    char *text = read_log(server, from);
    unsigned count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    free(text);
    return count;
}

bool postgres_server_logged(const struct postgres_server *server, size_t from, const char *what)
{
    return postgres_server_counted(server, from, what) > 0;
}

void postgres_server_name(char *out, size_t bytes, const char *what)
{
    static unsigned count;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(out, bytes, "test-%s-%ld-%ld-%u", what, (long)getpid(), now.tv_nsec, ++count);
}
