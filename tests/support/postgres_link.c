/* SPDX-License-Identifier: MIT
 * tests/support/postgres_link.c - see postgres_link.h.
 */
#include "tests/support/postgres_link.h"

#include "tests/support/scratch.h"
#include "tests/support/support.h"

void link_open(struct link *link, const struct postgres_server *server)
{
    char path[160];
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", server->folder);
    proxy_start(&link->proxy, path);
    scratch_make("link", link->folder, sizeof link->folder);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", link->folder);
    assert_int_equal(symlink(link->proxy.socket, path), 0);
    snprintf(link->uri, sizeof link->uri, "postgresql://postgres@/postgres?host=%s&port=5432",
             link->folder);
}

void link_close(struct link *link)
{
    proxy_stop(&link->proxy);
    scratch_remove(link->folder);
}
