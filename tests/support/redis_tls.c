/* SPDX-License-Identifier: MIT
 * tests/support/redis_tls.c - see redis_tls.h.
 */
#include "tests/support/redis_tls.h"

#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <sys/wait.h>

void redis_tls_openssl(const char *const *argv)
{
    union {
        const char *const *from;
        char *const *to;
    } arguments = {.from = argv};
    const pid_t pid = fork();
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        execvp(argv[0], arguments.to);
        _exit(127);
    }
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        fail_msg("%s", "openssl failed: is it installed?");
    }
}

void redis_tls_certify(const char *cert, const char *key)
{
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:prime256v1",
                                "-nodes",
                                "-keyout",
                                key,
                                "-out",
                                cert,
                                "-days",
                                "2",
                                "-subj",
                                "/CN=coord test",
                                "-addext",
                                "subjectAltName=IP:127.0.0.1",
                                NULL};
    redis_tls_openssl(argv);
}

void redis_tls_start(struct redis_tls *tls)
{
    const char *const options[] = {"--tls-port",
                                   "auto",
                                   "--tls-cert-file",
                                   tls->cert,
                                   "--tls-key-file",
                                   tls->key,
                                   "--tls-ca-cert-file",
                                   tls->cert,
                                   "--tls-auth-clients",
                                   "optional",
                                   NULL};
    memset(tls, 0, sizeof *tls);
    scratch_make("tls", tls->folder, sizeof tls->folder);
    snprintf(tls->cert, sizeof tls->cert, "%s/cert.pem", tls->folder);
    snprintf(tls->key, sizeof tls->key, "%s/key.pem", tls->folder);
    redis_tls_certify(tls->cert, tls->key);
    redis_server_start(&tls->server, options);
    snprintf(tls->uri, sizeof tls->uri, "rediss://127.0.0.1:%d?coord.tls_ca=%s",
             tls->server.tls_port, tls->cert);
}

void redis_tls_stop(struct redis_tls *tls)
{
    redis_server_stop(&tls->server);
    scratch_remove(tls->folder);
}
