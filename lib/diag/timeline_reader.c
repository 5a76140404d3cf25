/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the ring of events; see timeline_reader.h. */
#include "diag/timeline_reader.h"

#include <errno.h>

#include "segment/segment_side.h"

enum { EVENTS_AT_ONCE = 256 };

static rmm_side_table_t events_of(const rmm_timeline_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->events_offset,
        .stride = header->events_stride,
        .count = header->events_count,
        .least_stride = sizeof(rmm_timeline_event_t)};
}

/* A newer writer's events are longer; they are read one by one all the same. */
static bool header_holds(const rmm_timeline_header_t *header, uint64_t file_bytes)
{
    const rmm_side_table_t events = events_of(header);
    return header->magic == RMM_TIMELINE_MAGIC &&
           header->version_major == RMM_TIMELINE_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes && events.count > 0 &&
           events.count <= RMM_TIMELINE_EVENTS_MAX &&
           rmm__side_table_fits(&events, header->header_bytes, header->file_bytes);
}

int rmm__timeline_attach(rmm_timeline_file_t *file, int fd)
{
    uint64_t file_bytes;
    int error;
    file->fd = -1;
    error = rmm__side_file_header(
        fd, &file->header, sizeof(file->header), offsetof(rmm_timeline_header_t, ready),
        &file_bytes);
    if (error != 0) {
        return error;
    }
    if (!header_holds(&file->header, file_bytes)) {
        return -EPROTO;
    }
    file->fd = fd;
    return 0;
}

int rmm__timeline_open(
    rmm_timeline_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    int fd = rmm__side_file_open(dirfd, segment, RMM_TIMELINE_SUFFIX, owner);
    if (fd < 0) {
        file->fd = -1;
        return fd;
    }
    return rmm__side_file_keep(&file->fd, fd, rmm__timeline_attach(file, fd));
}

void rmm__timeline_close(rmm_timeline_file_t *file)
{
    rmm__file_close(&file->fd);
}

static uint64_t written(const rmm_timeline_file_t *file)
{
    return atomic_load_explicit(&file->header.written, memory_order_relaxed);
}

/* The oldest event of a full ring is left out: its writer may have died in it. */
uint64_t rmm__timeline_kept(const rmm_timeline_file_t *file)
{
    uint64_t count = file->header.events_count;
    return written(file) < count ? written(file) : count - 1;
}

uint64_t rmm__timeline_lost(const rmm_timeline_file_t *file)
{
    return written(file) - rmm__timeline_kept(file);
}

/* How many events from `first` on are in one piece of the file, and are wanted. */
static uint64_t piece_at(const rmm_timeline_file_t *file, uint64_t first)
{
    uint64_t count = file->header.events_count;
    uint64_t piece = written(file) - first;
    piece = piece < EVENTS_AT_ONCE ? piece : EVENTS_AT_ONCE;
    piece = piece < count - first % count ? piece : count - first % count;
    return file->header.events_stride == sizeof(rmm_timeline_event_t) ? piece : 1;
}

bool rmm__timeline_each(
    const rmm_timeline_file_t *file, rmm_timeline_fn visit, void *arg)
{
    rmm_timeline_event_t events[EVENTS_AT_ONCE];
    const rmm_timeline_header_t *header = &file->header;
    uint64_t next = rmm__timeline_lost(file);
    while (next < written(file)) {
        uint64_t piece = piece_at(file, next);
        uint64_t offset =
            header->events_offset + next % header->events_count * header->events_stride;
        if (!rmm__read_at(file->fd, events, piece * sizeof(events[0]), offset)) {
            return false;
        }
        for (uint64_t i = 0; i < piece; i++) {
            if (!visit(&events[i], arg)) {
                return true;
            }
        }
        next += piece;
    }
    return true;
}
