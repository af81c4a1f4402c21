/* SPDX-License-Identifier: MIT
 * connections/redis_tls.c - TLS over a socket of ours, or the word that this build has none.
 *
 * OpenSSL gets its bytes through memory, so that the socket is read and written here: never
 * blocking, and never raising SIGPIPE, which its own writes would.
 */
#include "connections/redis_link.h"

#include <errno.h>

#ifdef COORD_HAVE_OPENSSL

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CHUNK = 16 * 1024
};

struct coord__redis_tls {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in;                            /* from the socket; the ssl's */
    BIO *out;                           /* to the socket; the ssl's */
    struct coord__redis_buffer waiting; /* taken from it, and not yet by the socket */
};

enum coord_err coord__redis_tls_check(const struct coord__redis_target *target,
                                      struct coord_error *error)
{
    if ((target->cert[0] == '\0') != (target->key[0] == '\0')) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "coord.tls_cert and coord.tls_key belong together: give both");
    }
    return COORD_OK;
}

/* Without one OpenSSL asks at the terminal for what a key is locked with, and waits. */
static int no_passphrase(char *out, int room, int writing, void *ctx)
{
    (void)out;
    (void)room;
    (void)writing;
    (void)ctx;
    return -1;
}

static bool load_files(SSL_CTX *context, const struct coord__redis_target *target)
{
    const int trusted = target->ca[0] != '\0'
                            ? SSL_CTX_load_verify_locations(context, target->ca, NULL)
                            : SSL_CTX_set_default_verify_paths(context);
    if (trusted != 1) {
        return false;
    }
    return target->cert[0] == '\0' ||
           (SSL_CTX_use_certificate_chain_file(context, target->cert) == 1 &&
            SSL_CTX_use_PrivateKey_file(context, target->key, SSL_FILETYPE_PEM) == 1);
}

static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    const bool is_number =
        inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
    if (is_number) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    }
    char name[COORD__REDIS_HOST_MAX]; /* the macro takes the const away */
    memcpy(name, host, strlen(host) + 1);
    return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, host) == 1;
}

/* Its buffers are given to the ssl, which frees them. */
static bool make_ssl(struct coord__redis_tls *tls, const char *host)
{
    tls->ssl = SSL_new(tls->context);
    if (tls->ssl == NULL) {
        return false;
    }
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (tls->in == NULL || tls->out == NULL) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        return false;
    }
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    return expect_host(tls->ssl, host);
}

struct coord__redis_tls *coord__redis_tls_new(const struct coord__redis_target *target,
                                              const char *host, struct coord_error *error)
{
    struct coord__redis_tls *tls = calloc(1, sizeof *tls);
    ERR_clear_error();
    coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some");
    if (tls == NULL) {
        return NULL;
    }
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context != NULL) {
        SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    }
    if (tls->context != NULL && !load_files(tls->context, target)) {
        coord_error_set(error, COORD_E_BAD_OPTION,
                        "a file of TLS cannot be read (%.100s): see coord.tls_ca, .tls_cert and "
                        ".tls_key; a key must not need a passphrase",
                        ERR_reason_error_string(ERR_peek_last_error()));
        coord__redis_tls_free(tls);
        return NULL;
    }
    if (tls->context != NULL) {
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
        SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    }
    if (tls->context == NULL || !make_ssl(tls, host)) {
        coord__redis_tls_free(tls);
        return NULL;
    }
    return tls;
}

void coord__redis_tls_free(struct coord__redis_tls *tls)
{
    if (tls != NULL) {
        SSL_free(tls->ssl); /* without a word to the server: a forked child does this, too */
        SSL_CTX_free(tls->context);
        coord__redis_buffer_free(&tls->waiting);
        free(tls);
    }
}

/* ---------------------------------------------------------------- between memory and socket */

/* @return false with errno, EAGAIN among them. */
static bool pass_out(struct coord__redis_tls *tls, int fd)
{
    struct coord__redis_buffer *waiting = &tls->waiting;
    char bytes[CHUNK];
    for (int n = BIO_read(tls->out, bytes, CHUNK); n > 0; n = BIO_read(tls->out, bytes, CHUNK)) {
        if (!coord__redis_buffer_add(waiting, bytes, (size_t)n)) {
            errno = ENOMEM;
            return false;
        }
    }
    while (waiting->start < waiting->end) {
        const ssize_t sent =
            send(fd, waiting->bytes + waiting->start, waiting->end - waiting->start, MSG_NOSIGNAL);
        if (sent < 0) {
            return false;
        }
        waiting->start += (size_t)sent;
    }
    waiting->start = 0;
    waiting->end = 0;
    return true;
}

/* @return as recv(). */
static long pass_in(struct coord__redis_tls *tls, int fd)
{
    char bytes[CHUNK];
    const ssize_t count = recv(fd, bytes, sizeof bytes, 0);
    if (count > 0 && BIO_write(tls->in, bytes, (int)count) != (int)count) {
        errno = ENOMEM;
        return -1;
    }
    return count;
}

static enum coord__redis_io not_trusted(const struct coord__redis_tls *tls,
                                        struct coord_error *error)
{
    const long verdict = SSL_get_verify_result(tls->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (verdict != X509_V_OK) {
        coord_error_set(error, COORD_E_PROTOCOL,
                        "the server's certificate is refused (%.120s): renew it, name the host as "
                        "it does, or give its authority in coord.tls_ca",
                        X509_verify_cert_error_string(verdict));
    } else {
        coord_error_set(error, COORD_E_PROTOCOL,
                        "no TLS came about (%.120s): is it the TLS port of the server?",
                        reason != NULL ? reason : "the server closed the connection");
    }
    return COORD__REDIS_IO_BROKEN;
}

enum coord__redis_io coord__redis_tls_handshake(struct coord__redis_tls *tls, int fd,
                                                struct coord_error *error)
{
    for (;;) {
        ERR_clear_error();
        const int rc = SSL_do_handshake(tls->ssl);
        const int why = SSL_get_error(tls->ssl, rc);
        const bool out = pass_out(tls, fd);
        if (!out && errno == EAGAIN) {
            return COORD__REDIS_IO_LATER;
        }
        if (rc == 1 && out) {
            return COORD__REDIS_IO_DONE;
        }
        if (why != SSL_ERROR_WANT_READ || !out) {
            return not_trusted(tls, error);
        }
        const long count = pass_in(tls, fd);
        if (count < 0 && errno == EAGAIN) {
            return COORD__REDIS_IO_LATER;
        }
        if (count <= 0) {
            return not_trusted(tls, error);
        }
    }
}

long coord__redis_tls_send(struct coord__redis_tls *tls, int fd, const char *bytes, size_t count)
{
    if (!pass_out(tls, fd)) {
        return -1;
    }
    ERR_clear_error();
    const int written = SSL_write(tls->ssl, bytes, count > INT_MAX ? INT_MAX : (int)count);
    if (written <= 0) {
        errno = EPROTO;
        return -1;
    }
    /* What the socket does not take now waits in memory. */
    return pass_out(tls, fd) || errno == EAGAIN ? written : -1;
}

long coord__redis_tls_recv(struct coord__redis_tls *tls, int fd, char *bytes, size_t room)
{
    COORD_IGNORE(!pass_out(tls, fd), "one that refuses us says why, which can still be read");
    for (;;) {
        ERR_clear_error();
        const int count = SSL_read(tls->ssl, bytes, room > INT_MAX ? INT_MAX : (int)room);
        if (count > 0) {
            return count;
        }
        const int why = SSL_get_error(tls->ssl, count);
        if (why == SSL_ERROR_ZERO_RETURN) {
            return 0;
        }
        if (why != SSL_ERROR_WANT_READ) {
            errno = EPROTO;
            return -1;
        }
        const long more = pass_in(tls, fd);
        if (more <= 0) {
            return more;
        }
    }
}

void coord__redis_tls_explain(struct coord_error *error)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    coord_error_set(error, COORD_E_PROTOCOL,
                    "TLS was broken off (%.100s): see the server's log; if it asks for a "
                    "certificate, give ours in coord.tls_cert and coord.tls_key",
                    reason != NULL ? reason : "without a reason");
}

/* Before the first bytes, too: that the socket is connected shows by its taking some. */
bool coord__redis_tls_wants_write(const struct coord__redis_tls *tls)
{
    return tls->waiting.start < tls->waiting.end || SSL_in_before(tls->ssl) == 1;
}

#else

enum coord_err coord__redis_tls_check(const struct coord__redis_target *target,
                                      struct coord_error *error)
{
    (void)target;
    return coord_error_set(error, COORD_E_NO_TLS,
                           "this build has no TLS, which rediss:// needs: build it with OpenSSL, "
                           "or go through stunnel and redis+unix://");
}

struct coord__redis_tls *coord__redis_tls_new(const struct coord__redis_target *target,
                                              const char *host, struct coord_error *error)
{
    (void)host;
    COORD_IGNORE(coord__redis_tls_check(target, error), "it fails by design");
    return NULL;
}

void coord__redis_tls_free(struct coord__redis_tls *tls)
{
    (void)tls;
}

enum coord__redis_io coord__redis_tls_handshake(struct coord__redis_tls *tls, int fd,
                                                struct coord_error *error)
{
    (void)tls;
    (void)fd;
    (void)error;
    return COORD__REDIS_IO_BROKEN;
}

long coord__redis_tls_send(struct coord__redis_tls *tls, int fd, const char *bytes, size_t count)
{
    (void)tls;
    (void)fd;
    (void)bytes;
    (void)count;
    errno = EPROTO;
    return -1;
}

long coord__redis_tls_recv(struct coord__redis_tls *tls, int fd, char *bytes, size_t room)
{
    (void)tls;
    (void)fd;
    (void)bytes;
    (void)room;
    errno = EPROTO;
    return -1;
}

void coord__redis_tls_explain(struct coord_error *error)
{
    COORD_IGNORE(coord__redis_tls_check(NULL, error), "it fails by design");
}

bool coord__redis_tls_wants_write(const struct coord__redis_tls *tls)
{
    (void)tls;
    return false;
}

#endif /* COORD_HAVE_OPENSSL */
