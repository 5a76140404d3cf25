/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sd_notify(3) without libsystemd; see notify.h.
 */
#include "daemon/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/daemon_log.h"

void notify_manager(const char *message)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path != NULL ? strlen(path) : 0;
    if (length < 2 || length >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* abstract */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const struct sockaddr *to = (const void *)&address;
    if (fd < 0 || sendto(fd, message, strlen(message), MSG_NOSIGNAL, to, bytes) < 0) {
        log_warn("cannot notify the service manager: %s", strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}
