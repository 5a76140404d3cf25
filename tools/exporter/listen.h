/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that rmm-exporter listens on: its own, and those that systemd passes. */
#ifndef RMM_EXPORTER_LISTEN_H
#define RMM_EXPORTER_LISTEN_H

#include <stddef.h>

#define LISTEN_MAX 8
#define LISTEN_DEFAULT "127.0.0.1:19400"

typedef struct listen_sockets {
    int fds[LISTEN_MAX];
    size_t count;
} listen_sockets_t;

/* Those of the service manager (sd_listen_fds(3)), if there are some. Returns NULL, or what is
 * wrong with them. */
const char *listen_inherit(listen_sockets_t *sockets);

/* One more, on ADDRESS:PORT, [ADDRESS]:PORT or :PORT. Returns NULL, or what is wrong. There is
 * room for it. */
const char *listen_open(listen_sockets_t *sockets, const char *address);

#endif /* RMM_EXPORTER_LISTEN_H */
