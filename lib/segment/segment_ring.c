/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rings; see ring.h. A piece of the ring is copied twice: what its records' words
 * say must be the same in both copies. One pread if there is nothing new.
 */
#include "segment/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LATE_MESSAGES 16 /* so many later ones are begun: this one's writer is stuck */
#define PIECE_BYTES (64u * 1024u)

/* Records of consecutive numbers, none of them behind the ring's end. */
typedef struct piece {
    unsigned char *records, *again;
    uint64_t first, count;
} piece_t;

static uint64_t commit_of(const unsigned char *record)
{
    uint64_t commit;

    memcpy(&commit, record, sizeof(commit));
    return commit;
}

static bool read_piece(const rmm_ring_t *ring, piece_t *piece)
{
    size_t bytes = (size_t)piece->count * ring->stride;
    off_t at =
        (off_t)(ring->records_at + piece->first % ring->count * (uint64_t)ring->stride);

    return pread(ring->fd, piece->records, bytes, at) == (ssize_t)bytes &&
           pread(ring->fd, piece->again, bytes, at) == (ssize_t)bytes;
}

/* False: the next message is not there yet. */
static bool walk_piece(
    const rmm_ring_t *ring, const piece_t *piece, uint64_t next,
    rmm_ring_cursor_t *cursor, bool ended, rmm_ring_fn fn, void *arg)
{
    for (uint64_t i = 0; i < piece->count; i++) {
        const unsigned char *record = piece->records + i * ring->stride;
        uint64_t number = piece->first + i;
        uint64_t commit = commit_of(record);

        if (commit == 2 * number + 2 &&
            commit == commit_of(piece->again + i * ring->stride)) {
            fn(number, record, arg);
        } else if (
            !ended && commit < 2 * number + 2 && next - number <= LATE_MESSAGES) {
            return false;
        } else {
            cursor->lost++;
        }
        cursor->next++;
    }
    return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int walk(
    const rmm_ring_t *ring, piece_t *piece, uint64_t next, rmm_ring_cursor_t *cursor,
    bool ended, rmm_ring_fn fn, void *arg)
{
    const uint64_t most = PIECE_BYTES / ring->stride;

    while (cursor->next < next) {
        piece->first = cursor->next;
        piece->count = smaller(next - piece->first, most);
        piece->count = smaller(piece->count, ring->count - piece->first % ring->count);
        if (!read_piece(ring, piece)) {
            return -EPROTO;
        }
        if (!walk_piece(ring, piece, next, cursor, ended, fn, arg)) {
            return 0;
        }
    }
    return 0;
}

int rmm__ring_read(
    const rmm_ring_t *ring, rmm_ring_cursor_t *cursor, bool ended, rmm_ring_fn fn,
    void *arg)
{
    piece_t piece;
    uint64_t next;
    int error;

    if (pread(ring->fd, &next, sizeof(next), (off_t)ring->next_at) != sizeof(next)) {
        return -EPROTO;
    }
    if (next <= cursor->next) { /* nothing new; or nonsense, which is no news */
        return 0;
    }
    if (next - cursor->next > ring->count) {
        cursor->lost += next - cursor->next - ring->count;
        cursor->next = next - ring->count;
    }
    piece.records = malloc(2 * (size_t)PIECE_BYTES);
    if (piece.records == NULL) {
        return -ENOMEM;
    }
    piece.again = piece.records + PIECE_BYTES;
    error = walk(ring, &piece, next, cursor, ended, fn, arg);
    free(piece.records);
    return error;
}
