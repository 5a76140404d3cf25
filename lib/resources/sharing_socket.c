/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An export over a Unix socket: the record's header, the rest of the record, and the descriptors,
 * in messages of a size that both sides know from the header. So it works over a stream and over
 * one of packets. A message carries up to 250 descriptors, of 253 that Linux allows, and a byte for
 * each, because a stream does not keep messages without bytes apart.
 *
 * What comes is not trusted: descriptors that the header does not name are closed.
 */
#include "resources/sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"

#define MESSAGE_DESCRIPTORS 250u
#define KERNEL_DESCRIPTORS 253u /* SCM_MAX_FD */
#define MESSAGE_BYTES ((size_t)32 * 1024)
#define OTHER_BYTES                                                                    \
    4096 /* for what options of the socket add: credentials, labels, times */
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04 /* since Linux 6.5, with SO_PASSPIDFD */
#endif

typedef union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(KERNEL_DESCRIPTORS * sizeof(int)) + OTHER_BYTES];
} control_t;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static rmm_status_t socket_failed(const char *call)
{
    int error = errno;

    return rmm__error(
        RMM_ERR_IO, "%s on the socket of an export failed: %s", call, strerror(error));
}

static rmm_status_t too_many_on_their_way(void)
{
    return rmm__error(
        RMM_ERR_IO,
        "this user's processes have sent more file descriptors that nobody has "
        "received "
        "yet than RLIMIT_NOFILE allows: let importers receive them, or raise it "
        "(ulimit -n)");
}

/* The call may go on: it was interrupted, or a socket that does not wait is ready now. */
static bool may_go_on(int socket, short events)
{
    struct pollfd wait = {.fd = socket, .events = events};

    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return poll(&wait, 1, -1) >= 0 || errno == EINTR;
    }
    return errno == EINTR;
}

/* --- send ------------------------------------------------------------------------------ */

static rmm_status_t send_message(int socket, struct msghdr *message)
{
    struct iovec *bytes = message->msg_iov;

    while (bytes->iov_len != 0) {
        ssize_t sent = sendmsg(socket, message, MSG_NOSIGNAL);

        if (sent < 0 && errno == ETOOMANYREFS) {
            return too_many_on_their_way();
        }
        if (sent < 0 && !may_go_on(socket, POLLOUT)) {
            return socket_failed("sendmsg");
        }
        if (sent > 0) {
            bytes->iov_base = (char *)bytes->iov_base + sent;
            bytes->iov_len -= (size_t)sent;
            message->msg_control = NULL; /* went with the first byte */
            message->msg_controllen = 0;
        }
    }
    return RMM_OK;
}

static rmm_status_t send_bytes(int socket, const void *from, size_t count)
{
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)from, .iov_len = count};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

    return send_message(socket, &message);
}

static rmm_status_t send_descriptors(int socket, const int *fds, size_t count)
{
    char marks[MESSAGE_DESCRIPTORS] = {0};
    struct iovec bytes = {.iov_base = marks, .iov_len = count};
    control_t control = {.bytes = {0}};
    struct msghdr message = {
        .msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    return send_message(socket, &message);
}

rmm_status_t rmm_pool_export_send(const rmm_pool_exported_t *exported, int socket)
{
    RMM_UNCANCELLED;
    const char *record;
    size_t at = sizeof(rmm_sharing_header_t);
    rmm_status_t status;

    RMM_CHECK_ARG(exported != NULL, "exported is NULL");
    RMM_CHECK_ARG(
        exported->struct_size == sizeof(*exported),
        "exported was not made with RMM_POOL_EXPORTED_INIT");
    RMM_CHECK_ARG(
        exported->record != NULL && exported->record_bytes > at, "there is no export");
    record = exported->record;
    status = send_bytes(socket, record, at);
    while (status == RMM_OK && at < exported->record_bytes) {
        size_t count = least(exported->record_bytes - at, MESSAGE_BYTES);

        status = send_bytes(socket, record + at, count);
        at += count;
    }
    for (size_t i = 0; status == RMM_OK && i < exported->descriptor_count;
         i += MESSAGE_DESCRIPTORS) {
        status = send_descriptors(
            socket, exported->descriptors + i,
            least(exported->descriptor_count - i, MESSAGE_DESCRIPTORS));
    }
    return status;
}

/* --- receive --------------------------------------------------------------------------- */

/* The descriptors that have come, and how many may come. */
typedef struct receipt {
    int socket;
    int *fds;
    size_t fd_count, fd_most;
    bool is_table_full;
} receipt_t;

static bool keep_descriptors(receipt_t *receipt, struct msghdr *message)
{
    bool fits = true;

    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
         head = CMSG_NXTHDR(message, head)) {
        bool is_pidfd = head->cmsg_type == SCM_PIDFD; /* nobody here asked for it */
        size_t count = head->cmsg_level == SOL_SOCKET &&
                               (head->cmsg_type == SCM_RIGHTS || is_pidfd)
                           ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int)
                           : 0;

        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
            if (is_pidfd) {
                close(fd);
            } else if (receipt->fd_count < receipt->fd_most) {
                receipt->fds[receipt->fd_count++] = fd;
            } else {
                close(fd);
                fits = false;
            }
        }
    }
    return fits;
}

static rmm_status_t not_an_export(void)
{
    return rmm__error(
        RMM_ERR_INVALID_ARGUMENT,
        "what came over the socket is no export: other descriptors than it names");
}

/* One call's worth. */
static rmm_status_t
receive_some(receipt_t *receipt, struct iovec *bytes, size_t *count_out)
{
    control_t control;
    struct msghdr message = {
        .msg_iov = bytes,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes)};
    ssize_t count = recvmsg(receipt->socket, &message, MSG_CMSG_CLOEXEC);

    *count_out = 0;
    if (count < 0) {
        return may_go_on(receipt->socket, POLLIN) ? RMM_OK : socket_failed("recvmsg");
    }
    if (!keep_descriptors(receipt, &message)) {
        return not_an_export();
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        receipt->is_table_full = true;
    }
    if (count == 0) {
        return rmm__error(
            RMM_ERR_IO, "the exporter closed the socket before all of the export came");
    }
    if ((message.msg_flags & MSG_TRUNC) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "what came over the socket is no export: a message is longer than one");
    }
    *count_out = (size_t)count;
    return RMM_OK;
}

static rmm_status_t receive_bytes(receipt_t *receipt, void *into, size_t count)
{
    rmm_status_t status = RMM_OK;
    char *at = into;

    while (status == RMM_OK && count != 0) {
        struct iovec bytes = {.iov_base = at, .iov_len = least(count, MESSAGE_BYTES)};
        size_t got;

        status = receive_some(receipt, &bytes, &got);
        at += got;
        count -= got;
    }
    return status;
}

static rmm_status_t receive_descriptors(receipt_t *receipt, size_t count)
{
    char marks[MESSAGE_DESCRIPTORS];
    rmm_status_t status = RMM_OK;

    for (size_t i = 0; status == RMM_OK && i < count; i += MESSAGE_DESCRIPTORS) {
        receipt->fd_most = least(count, i + MESSAGE_DESCRIPTORS);
        status = receive_bytes(receipt, marks, receipt->fd_most - i);
    }
    if (receipt->is_table_full || (status == RMM_OK && receipt->fd_count != count)) {
        status =
            receipt->is_table_full ? rmm__sharing_table_full(count) : not_an_export();
    }
    return status;
}

/* The descriptors' numbers are above those of the standard streams. */
static rmm_status_t raise_descriptors(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] <= STDERR_FILENO) {
            int above = fcntl(fds[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

            if (above < 0) {
                return rmm__sharing_table_full(count);
            }
            close(fds[i]);
            fds[i] = above;
        }
    }
    return RMM_OK;
}

/* `header` has come; the rest into a fresh export. */
static rmm_status_t receive_rest(
    receipt_t *receipt, const rmm_sharing_header_t *header, rmm_pool_exported_t *fresh)
{
    size_t count = header->descriptor_count;
    rmm_status_t status;

    fresh->record_bytes = (size_t)header->record_bytes;
    fresh->record = rmm__calloc(1, fresh->record_bytes);
    fresh->descriptors = rmm__calloc(count != 0 ? count : 1, sizeof(int));
    if (fresh->record == NULL || fresh->descriptors == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    receipt->fds = fresh->descriptors;
    memcpy(fresh->record, header, sizeof(*header));
    status = receive_bytes(
        receipt, (char *)fresh->record + sizeof(*header),
        fresh->record_bytes - sizeof(*header));
    if (status == RMM_OK) {
        status = receive_descriptors(receipt, count);
    }
    fresh->descriptor_count = receipt->fd_count;
    return status == RMM_OK ? raise_descriptors(fresh->descriptors, count) : status;
}

rmm_status_t rmm_pool_export_receive(int socket, rmm_pool_exported_t *out)
{
    RMM_UNCANCELLED;
    receipt_t receipt = {.socket = socket};
    rmm_pool_exported_t fresh = RMM_POOL_EXPORTED_INIT;
    rmm_sharing_header_t header;
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    RMM_CHECK_ARG(
        out->struct_size == sizeof(*out),
        "out was not made with RMM_POOL_EXPORTED_INIT");
    status = receive_bytes(&receipt, &header, sizeof(header));
    if (status == RMM_OK) {
        status = rmm__sharing_check(&header);
    }
    if (status == RMM_OK) {
        status = receive_rest(&receipt, &header, &fresh);
    }
    if (status != RMM_OK) {
        rmm_pool_export_release(&fresh);
        return status;
    }
    *out = fresh;
    return RMM_OK;
}
