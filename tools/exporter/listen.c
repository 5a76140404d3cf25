/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See listen.h. Addresses are numbers, not names: a start asks no name server, which might not
 * answer.
 */
#include "exporter/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/numbers.h"

#define FIRST_INHERITED 3 /* SD_LISTEN_FDS_START */

/* --- inherited ---------------------------------------------------------------------------- */

static bool read_variable(const char *name, uint64_t *out)
{
    const char *text = getenv(name);
    return text != NULL && rmm__number_parse(text, strlen(text), out) == RMM_NUMBER_OK;
}

static bool is_listening(int fd)
{
    int flag = 0;
    socklen_t bytes = sizeof(flag);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &flag, &bytes) == 0 && flag != 0;
}

const char *listen_inherit(listen_sockets_t *sockets)
{
    uint64_t pid = 0, count = 0;
    if (!read_variable("LISTEN_PID", &pid) || pid != (uint64_t)getpid() ||
        !read_variable("LISTEN_FDS", &count)) {
        return NULL;
    }
    if (count > LISTEN_MAX) {
        return "more than 8 of them";
    }
    for (int fd = FIRST_INHERITED; fd < FIRST_INHERITED + (int)count; fd++) {
        if (!is_listening(fd)) {
            return "one is no listening stream socket: the unit needs Accept=no";
        }
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        sockets->fds[sockets->count++] = fd;
    }
    return NULL;
}

/* --- its own ------------------------------------------------------------------------------ */

/* "[::1]:80": host "::1"; ":80": host "". False: it has another form. */
static bool split(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL) {
        return false;
    }
    *colon = '\0';
    *port = colon + 1;
    *host = text;
    if (text[0] == '[' && colon > text && colon[-1] == ']') {
        colon[-1] = '\0';
        *host = text + 1;
        return true;
    }
    return strchr(text, ':') == NULL; /* an IPv6 address needs brackets */
}

static bool is_port(const char *text)
{
    uint64_t port = 0;
    return rmm__number_parse(text, strlen(text), &port) == RMM_NUMBER_OK && port > 0 &&
           port <= 65535;
}

/* -1 with errno. An address of IPv6 that stands for all is also that of IPv4. */
static int open_socket(const struct addrinfo *address)
{
    const int on = 1, off = 0;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* -2: it is no address; -1 with errno. */
static int open_on(const char *host, const char *port)
{
    const struct addrinfo hints = {
        .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM};
    struct addrinfo *address;
    if (getaddrinfo(host, port, &hints, &address) != 0) {
        return -2;
    }
    int fd = open_socket(address);
    int error = errno;
    freeaddrinfo(address);
    errno = error;
    return fd;
}

const char *listen_open(listen_sockets_t *sockets, const char *text)
{
    char copy[128], *host, *port;
    int fd = -2;
    (void)strncpy(copy, text, sizeof(copy) - 1);
    copy[sizeof(copy) - 1] = '\0';
    if (strlen(text) < sizeof(copy) && split(copy, &host, &port) && is_port(port)) {
        fd = open_on(host[0] != '\0' ? host : "::", port);
        if (host[0] == '\0' && fd == -1 && errno == EAFNOSUPPORT) {
            fd = open_on("0.0.0.0", port); /* a kernel without IPv6 */
        }
    }
    if (fd == -2) {
        return "not ADDRESS:PORT, such as 127.0.0.1:19400, [::1]:19400 or :19400";
    }
    if (fd < 0) {
        return strerror(errno);
    }
    sockets->fds[sockets->count++] = fd;
    return NULL;
}
