/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: one thread, which waits for nothing but its sockets, its signals and the ends
 * of its readers. A client whose text is being read is suspended; several that want the same text
 * share a reading.
 */
#ifndef RMM_EXPORTER_SERVER_H
#define RMM_EXPORTER_SERVER_H

#include <stdbool.h>

#include "exporter/listen.h"

/* Serve the tree at `mount` until SIGTERM or SIGINT. False after one line on stderr: it could not
 * start. Takes the sockets. */
bool server_run(
    const listen_sockets_t *sockets, const char *mount, double timeout_seconds);

#endif /* RMM_EXPORTER_SERVER_H */
