/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the allocation events of another process; see segment_events.h.
 */
#include "segment/segment_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/open_in.h"
#include "segment/segment_side.h"

#define STRIDE_MAX 1024u

typedef struct listener {
    rmm_event_fn fn;
    void *arg;
} listener_t;

static int check_file(int fd, uid_t owner, uint64_t *bytes_out)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if (!S_ISREG(status.st_mode) || status.st_nlink > 1 ||
        status.st_size > (off_t)RMM_EVENTS_MAX_BYTES) {
        return -EPROTO;
    }
    *bytes_out = (uint64_t)status.st_size;
    return status.st_uid == owner ? 0 : -EPERM;
}

static bool header_is_good(const rmm_events_header_t *header, uint64_t file_bytes)
{
    return header->magic == RMM_EVENTS_MAGIC &&
           header->version_major == RMM_SEGMENT_MAJOR &&
           atomic_load_explicit(&header->ready, memory_order_relaxed) != 0 &&
           header->header_bytes >= sizeof(*header) &&
           header->records_offset >= header->header_bytes &&
           header->records_offset % 8 == 0 &&
           header->records_stride >= sizeof(rmm_events_record_t) &&
           header->records_stride <= STRIDE_MAX && header->records_stride % 8 == 0 &&
           header->records_count != 0 &&
           header->records_offset +
                   (uint64_t)header->records_stride * header->records_count <=
               file_bytes;
}

int rmm__events_attach(rmm_events_t *events, int fd, uid_t owner)
{
    rmm_events_header_t header;
    uint64_t bytes = 0;
    int error = check_file(fd, owner, &bytes);

    events->fd = -1;
    if (error != 0) {
        return error;
    }
    if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
        !header_is_good(&header, bytes)) {
        return -EPROTO;
    }
    events->fd = fd;
    events->ring = (rmm_ring_t){
        .fd = fd,
        .stride = header.records_stride,
        .count = header.records_count,
        .records_at = header.records_offset,
        .next_at = offsetof(rmm_events_header_t, next)};
    return 0;
}

int rmm__events_open(rmm_events_t *events, int dirfd, const rmm_segment_t *segment)
{
    char name[RMM_SEGMENT_NAME_BYTES + sizeof("." RMM_EVENTS_SUFFIX)];
    int fd, error;

    events->fd = -1;
    snprintf(name, sizeof(name), "%s." RMM_EVENTS_SUFFIX, segment->name);
    fd = rmm__open_in(dirfd, name, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    error = rmm__events_attach(events, fd, segment->uid);
    if (error != 0) {
        close(fd);
    }
    return error;
}

void rmm__events_close(rmm_events_t *events)
{
    rmm__file_close(&events->fd);
}

static void take_event(uint64_t number, const unsigned char *bytes, void *arg)
{
    const listener_t *listener = arg;
    rmm_events_record_t record;
    rmm_event_t event;

    (void)number;
    memcpy(&record, bytes, sizeof(record));
    event = (rmm_event_t){
        .time_ns = record.time_ns,
        .pointer = record.pointer,
        .bytes = record.bytes,
        .stream = record.stream,
        .thread = record.thread,
        .action = record.action};
    listener->fn(&event, listener->arg);
}

int rmm__events_read(
    const rmm_events_t *events, rmm_ring_cursor_t *cursor, bool ended, rmm_event_fn fn,
    void *arg)
{
    listener_t listener = {fn, arg};

    return rmm__ring_read(&events->ring, cursor, ended, take_event, &listener);
}
