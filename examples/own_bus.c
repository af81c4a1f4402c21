/* SPDX-License-Identifier: MIT
 * examples/own_bus.c - coord over a bus that the program has already: two calls plug it in.
 *
 * usage: own_bus     the "bus" is a pair of sockets, that hands back whatever is written to it
 */
#include <runtime/bus.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A topic with its NUL, and a message: the longest. */
enum {
    PACKET = COORD_BROKER_TOPIC_MAX + COORD_BROKER_MESSAGE_MAX
};

static int ends[2]; /* of the bus; a real one is a client of some broker */

/* Out: coord says what is to be published. A bus that would have to wait puts it into a queue. */
static bool publish(void *ctx, const struct coord_broker_message *message)
{
    char packet[PACKET];
    const size_t topic = strlen(message->topic) + 1;
    memcpy(packet, message->topic, topic);
    memcpy(packet + topic, message->bytes, message->count);
    (void)ctx;
    return send(ends[0], packet, topic + message->count, MSG_NOSIGNAL) > 0;
}

/* In: whatever the bus brings is handed to coord, from the thread on which it comes. */
static void *listen_to_the_bus(void *ctx)
{
    struct coord_bus *bus = ctx;
    char packet[PACKET];
    ssize_t n;
    while ((n = recv(ends[1], packet, sizeof packet, 0)) > 0) {
        const size_t topic = strnlen(packet, (size_t)n) + 1;
        if (topic <= (size_t)n) {
            coord_bus_deliver(bus, packet, packet + topic, (size_t)n - topic);
        }
    }
    return NULL;
}

int main(void)
{
    struct coord_runtime *runtime = NULL;
    struct coord_bus *bus = NULL;
    struct coord_broker_message message;
    struct coord_error error = {.code = COORD_OK};
    pthread_t listener;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        coord_runtime_new(NULL, &runtime, &error) != COORD_OK ||
        coord_bus_open_own(runtime, publish, NULL, NULL, &bus, &error) != COORD_OK ||
        pthread_create(&listener, NULL, listen_to_the_bus, bus) != 0) {
        fprintf(stderr, "cannot begin: %s\n", error.text);
        return 1;
    }
    int code = 1;
    if (coord_runtime_start(runtime, &error) == COORD_OK &&
        coord_bus_subscribe(bus, "fleet.heartbeat", &error) == COORD_OK &&
        coord_bus_publish(bus, "fleet.heartbeat", "alive", 5, &error) == COORD_OK &&
        coord_bus_next(bus, 10000, &message) == COORD_OK) {
        printf("%s: %.*s\n", message.topic, (int)message.count, (const char *)message.bytes);
        code = 0;
    } else {
        fprintf(stderr, "nothing came back: %s\n", error.text);
    }
    shutdown(ends[1], SHUT_RDWR); /* the listener ends before the bus that it delivers to */
    pthread_join(listener, NULL);
    coord_bus_close(bus);
    coord_runtime_free(runtime);
    return code;
}
