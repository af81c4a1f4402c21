/* SPDX-License-Identifier: MIT
 * cli/peers_print.c - peers of a fleet as lines.
 */
#include "cli/peers_print.h"

#include "cli/json.h"
#include "cli/say.h"
#include "coord/report_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    FIRST_ROOM = 64,
    TIME_TEXT = 32,
    ROWS = 24,
    COLUMNS = 80,
    LINE_ROOM = 512 * 1024 /* the longest list of work, escaped */
};

/* ---------------------------------------------------------------- the list */

static int by_id(const void *left, const void *right)
{
    const struct coord_peer *a = left;
    const struct coord_peer *b = right;
    const size_t shorter = a->id_bytes < b->id_bytes ? a->id_bytes : b->id_bytes;
    const int order = memcmp(a->id, b->id, shorter);
    if (order != 0) {
        return order;
    }
    if (a->id_bytes != b->id_bytes) {
        return a->id_bytes < b->id_bytes ? -1 : 1;
    }
    return memcmp(a->incarnation, b->incarnation, sizeof a->incarnation);
}

bool cli_peers_list(const struct cli_fleet *fleet, struct cli_peers *out)
{
    struct coord_peer peer;
    uint32_t at = 0;
    size_t room = FIRST_ROOM;
    *out = (struct cli_peers){.fleet = fleet, .now = coord_clock_now()};
    out->peer = calloc(room, sizeof peer);
    while (out->peer != NULL && coord_coordinator_next_peer(fleet->coordinator, &at, &peer)) {
        if (out->count == room) {
            room *= 2;
            struct coord_peer *more = realloc(out->peer, room * sizeof peer);
            if (more == NULL) {
                free(out->peer);
                out->peer = NULL;
                break;
            }
            out->peer = more;
        }
        out->peer[out->count++] = peer;
    }
    if (out->peer == NULL) {
        return false;
    }
    qsort(out->peer, out->count, sizeof peer, by_id);
    return true;
}

/* ---------------------------------------------------------------- for people */

static void put_work(const struct cli_fleet *fleet, const struct coord_peer *peer, FILE *out)
{
    const char *name = NULL;
    size_t bytes = 0;
    char text[COORD_ESCAPED_MAX];
    for (uint32_t i = 0; coord_coordinator_subscription(fleet->coordinator, peer->id,
                                                        peer->id_bytes, i, &name, &bytes);
         i++) {
        fprintf(out, "%s%s", i > 0 ? "," : "", cli_fleet_text(name, bytes, text));
    }
}

static void put_peer(const struct cli_peers *peers, const struct coord_peer *peer, FILE *out)
{
    char id[COORD_ESCAPED_MAX];
    char time[TIME_TEXT];
    fprintf(out, "%-24s %-9s %8s %-6s %4.2f %9lld ", cli_fleet_text(peer->id, peer->id_bytes, id),
            coord_peer_status_name(peer->status),
            cli_say_time(coord_ms_sub(peers->now, peer->last_heard), time),
            peer->is_leader ? "leader" : "", peer->load_factor, (long long)peer->in_flight_count);
    if (peer->status == COORD_PEER_LEAVING) {
        fprintf(out, "[%s", coord_intent_name(peer->intent));
        if (peer->deadline < COORD_ENDLESS) {
            fprintf(out, ", %s left", cli_say_time(coord_ms_sub(peer->deadline, peers->now), time));
        }
        fputs("] ", out);
    }
    put_work(peers->fleet, peer, out);
}

/* Everything in a line is printable ASCII, so that a byte is a column. */
static void put_line(const char *line, size_t columns, FILE *out)
{
    fprintf(out, "%.*s\n", columns > 0 ? (int)columns : LINE_ROOM, line);
}

static bool put_lines(const struct cli_peers *peers, size_t count, size_t columns, FILE *out)
{
    char heading[COLUMNS + 1];
    bool good = true;
    snprintf(heading, sizeof heading, "%-24s %-9s %8s %-6s %4s %9s %s", "ID", "STATUS", "HEARD",
             "LEADS", "LOAD", "IN FLIGHT", "WORK");
    put_line(heading, columns, out);
    for (size_t i = 0; i < count && good; i++) {
        char *line = NULL;
        size_t bytes = 0;
        FILE *text = open_memstream(&line, &bytes);
        good = text != NULL;
        if (good) {
            put_peer(peers, &peers->peer[i], text);
            good = fclose(text) == 0;
            put_line(good ? line : "", columns, out);
        }
        free(line);
    }
    return good && !ferror(out);
}

bool cli_peers_table(const struct cli_peers *peers, size_t columns, FILE *out)
{
    return peers->count == 0 || put_lines(peers, peers->count, columns, out);
}

bool cli_peers_draw(const struct cli_fleet *fleet, size_t *lines)
{
    struct winsize size = {.ws_row = 0};
    struct cli_peers peers;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 4 || size.ws_col < 8) {
        size = (struct winsize){.ws_row = ROWS, .ws_col = COLUMNS};
    }
    if (!cli_peers_list(fleet, &peers)) {
        cli_say("out of memory");
        return false;
    }
    /* A heading, the count, and the line of the cursor are there as well. */
    const size_t room = (size_t)size.ws_row - 3;
    const size_t shown = peers.count < room ? peers.count : room;
    const struct coord_coordinator_counts counts = coord_coordinator_counts(fleet->coordinator);
    if (*lines > 0) {
        printf("\033[%zuA", *lines);
    }
    printf("\r\033[J");
    const bool good = put_lines(&peers, shown, (size_t)size.ws_col - 1, stdout);
    printf("%zu known, %u healthy%s\n", peers.count, (unsigned)counts.healthy,
           shown < peers.count ? "; the terminal has no room for all" : "");
    *lines = shown + 2;
    free(peers.peer);
    return fflush(stdout) == 0 && good;
}

/* ---------------------------------------------------------------- as JSON */

static void put_key(struct coord_writer *w, const char *key)
{
    coord_write_text(w, key, strlen(key));
}

static void put_word(struct coord_writer *w, const char *key, const char *word)
{
    put_key(w, key);
    if (word != NULL) {
        coord_write_text(w, word, strlen(word));
    } else {
        coord_write_null(w);
    }
}

/* An instant of our clock. */
static void put_time(struct coord_writer *w, const char *key, coord_ms at, coord_ms now)
{
    char text[COORD_TIME_TEXT_MAX];
    coord_report_time(coord_time_at((int64_t)coord_clock_wall_us(), now, at), text);
    put_word(w, key, text);
}

static void put_leaving(struct coord_writer *w, const struct coord_peer *peer, coord_ms now)
{
    const bool leaves = peer->status == COORD_PEER_LEAVING || peer->status == COORD_PEER_OVERRUN;
    put_word(w, "intent", leaves ? coord_intent_name(peer->intent) : NULL);
    if (leaves && peer->deadline < COORD_ENDLESS) {
        put_time(w, "deadline", peer->deadline, now);
    } else {
        put_word(w, "deadline", NULL);
    }
}

static void put_subscriptions(struct coord_writer *w, const struct cli_fleet *fleet,
                              const struct coord_peer *peer)
{
    const char *name = NULL;
    size_t bytes = 0;
    uint32_t count = 0;
    while (coord_coordinator_subscription(fleet->coordinator, peer->id, peer->id_bytes, count,
                                          &name, &bytes)) {
        count++;
    }
    put_key(w, "subscriptions");
    coord_write_array(w, count);
    for (uint32_t i = 0; i < count; i++) {
        if (coord_coordinator_subscription(fleet->coordinator, peer->id, peer->id_bytes, i, &name,
                                           &bytes)) {
            coord_write_text(w, name, bytes);
        }
    }
    coord_write_end(w);
}

static void put_incarnation(struct coord_writer *w, const struct coord_peer *peer)
{
    char text[COORD_REPORT_ID_TEXT];
    coord_report_id_text(peer->incarnation, text);
    put_word(w, "incarnation", peer->has_incarnation ? text : NULL);
}

static bool print_object(const struct cli_fleet *fleet, const struct coord_peer *peer,
                         const char *event, coord_ms now)
{
    static unsigned char line[LINE_ROOM];
    struct coord_writer w;
    size_t bytes = 0;
    coord_writer_begin(&w, COORD_FORM_JSON, line, sizeof line);
    coord_write_map(&w, event != NULL ? 11 : 10);
    if (event != NULL) {
        put_word(&w, "event", event);
    }
    put_key(&w, "id");
    coord_write_text(&w, peer->id, peer->id_bytes);
    put_incarnation(&w, peer);
    put_word(&w, "status", coord_peer_status_name(peer->status));
    put_time(&w, "last_heard", peer->last_heard, now);
    put_key(&w, "is_leader");
    coord_write_boolean(&w, peer->is_leader);
    put_leaving(&w, peer, now);
    put_key(&w, "in_flight_count");
    coord_write_integer(&w, peer->in_flight_count);
    put_key(&w, "load_factor");
    coord_write_real(&w, peer->load_factor);
    put_subscriptions(&w, fleet, peer);
    coord_write_end(&w);
    if (coord_writer_finish(&w, &bytes) != COORD_OK) {
        cli_say("a peer is left out: it has too much work for one line");
        return true;
    }
    return fwrite(line, 1, bytes, stdout) == bytes && putchar('\n') != EOF;
}

bool cli_peers_json(const struct cli_fleet *fleet, const struct cli_peers *peers)
{
    bool good = true;
    for (size_t i = 0; i < peers->count && good; i++) {
        good = print_object(fleet, &peers->peer[i], NULL, peers->now);
    }
    return good;
}

/* ---------------------------------------------------------------- changes */

bool cli_peers_change(const struct cli_fleet *fleet, const struct coord_event *event, bool json)
{
    char time[COORD_TIME_TEXT_MAX];
    char id[COORD_ESCAPED_MAX];
    const bool of_peer =
        (event->kind >= COORD_EVENT_PEER_APPEARED && event->kind <= COORD_EVENT_PEER_FINISHED) ||
        event->kind == COORD_EVENT_DUPLICATE_IDENTITY;
    if (!of_peer) {
        return true;
    }
    if (json) {
        return print_object(fleet, &event->peer, coord_event_name(event->kind),
                            coord_clock_now()) &&
               fflush(stdout) == 0;
    }
    printf("%s %s %s\n", cli_time_text(coord_clock_wall_us(), time),
           cli_fleet_text(event->peer.id, event->peer.id_bytes, id), coord_event_name(event->kind));
    return fflush(stdout) == 0;
}
