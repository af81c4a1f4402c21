/* SPDX-License-Identifier: MIT
 * tests/support/redis_server.c - see redis_server.h.
 */
#include "tests/support/redis_server.h"

#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    START_TRIES = 4000, /* of 5 ms: a guard against a server that never starts */
    NAP_NS = 5 * 1000 * 1000
};

static const char *program(void)
{
    const char *named = getenv("REDIS_SERVER");
    if (named != NULL) {
        return named;
    }
    static const char *const places[] = {"/usr/bin/redis-server", "/usr/local/bin/redis-server",
                                         "/usr/bin/valkey-server", "/opt/redis/bin/redis-server"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (access(places[i], X_OK) == 0) {
            return places[i];
        }
    }
    return NULL;
}

void redis_server_needed(void)
{
    if (program() == NULL) {
        skip_but_in_ci(
            "no redis-server: apt-get install redis-server, or name one in REDIS_SERVER");
    }
}

static void nap(void)
{
    const struct timespec pause = {.tv_nsec = NAP_NS};
    nanosleep(&pause, NULL);
}

/* A loopback port that was free a moment ago. */
static int free_port(void)
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

static void run_server(const struct redis_server *server, const char *path)
{
    char port[16];
    char tls_port[16];
    char log[96];
    snprintf(port, sizeof port, "%d", server->port);
    snprintf(tls_port, sizeof tls_port, "%d", server->tls_port);
    snprintf(log, sizeof log, "%s/log", server->folder);
    const char *argv[32 + REDIS_SERVER_OPTIONS] = {path,
                                                   "--port",
                                                   port,
                                                   "--bind",
                                                   "127.0.0.1",
                                                   "--unixsocket",
                                                   server->socket,
                                                   "--dir",
                                                   server->folder,
                                                   "--logfile",
                                                   log,
                                                   "--save",
                                                   "",
                                                   "--daemonize",
                                                   "no"};
    size_t count = 15;
    for (size_t i = 0; server->options[i] != NULL; i += 2) {
        if (strcmp(server->options[i], "--port") != 0) {
            const bool is_tls_port = strcmp(server->options[i], "--tls-port") == 0;
            argv[count++] = server->options[i];
            argv[count++] = is_tls_port ? tls_port : server->options[i + 1];
        }
    }
    if (server->sentinel[0] != '\0') {
        argv[1] = server->sentinel;
        argv[2] = "--sentinel";
        count = 3;
    }
    argv[count] = NULL;
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    /* execv() takes char *const *, and changes none of them. */
    union {
        const char **from;
        char *const *to;
    } arguments = {.from = argv};
    execv(path, arguments.to);
    _exit(127);
}

void redis_server_launch(struct redis_server *server)
{
    const char *path = program();
    assert_non_null(path);
    assert_int_equal(server->pid, 0);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        run_server(server, path);
    }
    server->pid = pid;
}

static bool answers(const struct redis_server *server)
{
    redisContext *context = redisConnectUnix(server->socket);
    bool yes = false;
    if (context != NULL && context->err == 0) {
        redisReply *reply = redisCommand(context, "PING");
        yes = reply != NULL && reply->type != REDIS_REPLY_ERROR;
        /* One that wants a password has started, too. */
        yes = yes || (reply != NULL && strncmp(reply->str, "NOAUTH", 6) == 0);
        freeReplyObject(reply);
    }
    if (context != NULL) {
        redisFree(context);
    }
    return yes;
}

void redis_server_again(struct redis_server *server)
{
    redis_server_launch(server);
    for (int i = 0; i < START_TRIES && !answers(server); i++) {
        int status = 0;
        if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
            server->pid = 0;
            fail_msg("%s", "redis-server ended at its start");
        }
        nap();
    }
    assert_true(answers(server));
}

static void make_folder(struct redis_server *server)
{
    scratch_make("redis", server->folder, sizeof server->folder);
    snprintf(server->socket, sizeof server->socket, "%s/s", server->folder);
    snprintf(server->uri, sizeof server->uri, "redis+unix://%s", server->socket);
}

void redis_server_start_sentinel(struct redis_server *server, int port, const char *master)
{
    memset(server, 0, sizeof *server);
    make_folder(server);
    server->port = free_port();
    snprintf(server->sentinel, sizeof server->sentinel, "%s/sentinel.conf", server->folder);
    FILE *file = fopen(server->sentinel, "we");
    assert_non_null(file);
    fprintf(file,
            "port %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\nlogfile %s/log\n"
            "sentinel monitor %s 127.0.0.1 %d 1\nsentinel down-after-milliseconds %s 300\n"
            "sentinel failover-timeout %s 3000\n",
            server->port, server->socket, server->folder, server->folder, master, port, master,
            master);
    assert_int_equal(fclose(file), 0);
    redis_server_again(server);
}

void redis_server_start(struct redis_server *server, const char *const *options)
{
    memset(server, 0, sizeof *server);
    const char *given = getenv("COORD_TEST_REDIS");
    if (options == NULL && given != NULL && given[0] != '\0') {
        const char *path = strncmp(given, "redis+unix://", 13) == 0 ? given + 13 : given;
        snprintf(server->socket, sizeof server->socket, "%s", path);
        snprintf(server->uri, sizeof server->uri, "redis+unix://%s", path);
        assert_true(answers(server));
        return;
    }
    redis_server_needed();
    make_folder(server);
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        assert_true(i < REDIS_SERVER_OPTIONS);
        server->options[i] = options[i];
        if (i % 2 == 0 && strcmp(options[i], "--port") == 0) {
            server->port = free_port();
        }
        if (i % 2 == 0 && strcmp(options[i], "--tls-port") == 0) {
            server->tls_port = free_port();
        }
    }
    snprintf(server->tcp_uri, sizeof server->tcp_uri, "redis://127.0.0.1:%d", server->port);
    redis_server_again(server);
}

static void end_by(struct redis_server *server, int signal_number)
{
    if (server->pid == 0) {
        return;
    }
    kill(server->pid, signal_number);
    int status = 0;
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    server->pid = 0;
}

void redis_server_kill(struct redis_server *server)
{
    end_by(server, SIGKILL);
}

void redis_server_end(struct redis_server *server)
{
    end_by(server, SIGTERM);
}

void redis_server_stop(struct redis_server *server)
{
    redis_server_kill(server);
    scratch_remove(server->folder);
}

struct redisContext *redis_server_connect(const struct redis_server *server)
{
    redisContext *context = redisConnectUnix(server->socket);
    assert_non_null(context);
    assert_int_equal(context->err, 0);
    return context;
}

static redisReply *ask(const struct redis_server *server, const char *format, va_list arguments)
{
    redisContext *context = redis_server_connect(server);
    redisReply *reply = redisvCommand(context, format, arguments);
    assert_non_null(reply);
    redisFree(context);
    return reply;
}

struct redisReply *redis_server_command(const struct redis_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(server, format, arguments);
    va_end(arguments);
    return reply;
}

void redis_server_do(const struct redis_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = ask(server, format, arguments);
    va_end(arguments);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", format, reply->str);
    }
    freeReplyObject(reply);
}

void redis_server_name(char *out, size_t bytes, const char *what)
{
    static unsigned count;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(out, bytes, "test-%s-%ld-%ld-%u", what, (long)getpid(), now.tv_nsec, ++count);
}
