/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does every read see what was written before it? Random calls on buffers and blocks of two
 * devices, on four kinds of streams of each, while a model on the host says what each byte is.
 * Reads are queued, and their bytes are compared when their stream is next waited for: by then
 * the memory may long have been copied, moved, resized or freed.
 *
 * The traffic orders only what docs/concepts/stream-order.md leaves to the program: it writes
 * to a buffer on the buffer's own stream, and orders the streams of a plain block. All else the
 * library has to order. With `wrong` set it forgets that now and then, so that a test can show
 * that missing order is seen.
 *
 * The caller sets `resources`, `most_bytes`, `random` and the flags, and calls traffic_begin(),
 * traffic_step() again and again, and traffic_end().
 */
#ifndef RMM_TESTS_HARNESS_STREAM_TRAFFIC_H
#define RMM_TESTS_HARNESS_STREAM_TRAFFIC_H

#include "harness/harness.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>

#include "harness/random.h"

enum {
    TRAFFIC_DEVICES = 2,
    TRAFFIC_KINDS = 4, /* of streams: legacy, per thread, blocking, non-blocking */
    TRAFFIC_STREAMS = TRAFFIC_DEVICES * TRAFFIC_KINDS,
    TRAFFIC_RESOURCES = 16, /* at most */
    TRAFFIC_BUFFERS = 16,
    TRAFFIC_BLOCKS = 16,
    TRAFFIC_READS = 64 /* queued and not compared yet, at most */
};

typedef enum traffic_wrong {
    TRAFFIC_RIGHT,
    TRAFFIC_WRONG_FREE, /* a block is freed on a stream that is not ordered */
    TRAFFIC_WRONG_COPY  /* a buffer is read on such a stream */
} traffic_wrong_t;

typedef struct traffic_buffer {
    rmm_device_buffer_t buffer;
    unsigned char *bytes; /* what the memory holds when its stream is done */
} traffic_buffer_t;

typedef struct traffic_block {
    void *ptr; /* NULL: none */
    size_t bytes;
    int resource, place;
    unsigned char value; /* of each byte */
} traffic_block_t;

typedef struct traffic_read {
    int place; /* -1: none is queued */
    size_t bytes;
    unsigned char *found, *expected;
} traffic_read_t;

typedef struct traffic {
    rmm_resource_t *resources[TRAFFIC_RESOURCES];
    int resource_count;
    size_t most_bytes; /* of a buffer or block */
    uint64_t random;
    bool
        own_streams_only; /* a device's memory is used on that device's streams alone */
    traffic_wrong_t wrong;

    rmm_resource_t *pinned; /* for `found`, so that a real GPU copies late as well */
    rmm_stream_t streams[TRAFFIC_STREAMS];
    traffic_buffer_t buffers[TRAFFIC_BUFFERS];
    traffic_block_t blocks[TRAFFIC_BLOCKS];
    traffic_read_t reads[TRAFFIC_READS];
    uint64_t operations, compared, wrong_bytes;
} traffic_t;

static inline uint64_t traffic_draw(traffic_t *t, uint64_t bound)
{
    return draw(&t->random, bound);
}

/* --- streams: a place is a stream of a device ------------------------------------------ */

static inline int place_device(int place)
{
    return place / TRAFFIC_KINDS;
}

static inline bool place_is_built_in(int place)
{
    return place % TRAFFIC_KINDS < 2;
}

static inline void make_stream_at(traffic_t *t, int place)
{
    const rmm_stream_t built_in[] = {RMM_STREAM_LEGACY, RMM_STREAM_PER_THREAD};
    int kind = place % TRAFFIC_KINDS;

    if (kind < 2) {
        t->streams[place] = built_in[kind];
        return;
    }
    assert_ok(rmm_device_set(place_device(place)));
    assert_ok(
        rmm_stream_create(kind == 2 ? 0 : RMM_STREAM_NON_BLOCKING, &t->streams[place]));
}

/* What a handle means to a buffer or a resource of this device. */
static inline int place_of(const traffic_t *t, int device, rmm_stream_t stream)
{
    if (rmm_stream_is_default(stream)) {
        return device * TRAFFIC_KINDS;
    }
    if (rmm_stream_is_per_thread_default(stream)) {
        return device * TRAFFIC_KINDS + 1;
    }
    for (int place = 0; place < TRAFFIC_STREAMS; place++) {
        if (!place_is_built_in(place) && t->streams[place] == stream) {
            return place;
        }
    }
    fail_msg("a stream that the traffic does not know");
    return -1;
}

/* A stream that may be used with memory of this device, as a handle. */
static inline rmm_stream_t draw_stream(traffic_t *t, int device)
{
    int place = (int)traffic_draw(t, TRAFFIC_STREAMS);

    if (t->own_streams_only) {
        place = device * TRAFFIC_KINDS + place % TRAFFIC_KINDS;
    }
    return t->streams[place];
}

static inline size_t draw_bytes(traffic_t *t)
{
    return 1 + (size_t)traffic_draw(t, t->most_bytes);
}

/* --- reads ----------------------------------------------------------------------------- */

static inline void compare_read(traffic_t *t, traffic_read_t *read)
{
    if (memcmp(read->found, read->expected, read->bytes) != 0) {
        for (size_t i = 0; i < read->bytes; i++) {
            t->wrong_bytes += read->found[i] != read->expected[i];
        }
    }
    t->compared += read->bytes;
    read->place = -1;
}

static inline void wait_for_place(traffic_t *t, int place)
{
    assert_ok(rmm_device_set(place_device(place)));
    assert_ok(rmm_stream_synchronize(t->streams[place]));
    for (int i = 0; i < TRAFFIC_READS; i++) {
        if (t->reads[i].place == place) {
            compare_read(t, &t->reads[i]);
        }
    }
}

/* A place for a read that is not compared yet. */
static inline traffic_read_t *room_for_read(traffic_t *t)
{
    int first = (int)traffic_draw(t, TRAFFIC_READS);

    for (int i = 0; i < TRAFFIC_READS; i++) {
        traffic_read_t *read = &t->reads[(first + i) % TRAFFIC_READS];

        if (read->place < 0) {
            return read;
        }
    }
    wait_for_place(t, t->reads[first].place);
    return &t->reads[first];
}

/* With the place's device current. */
static inline traffic_read_t *
queue_read(traffic_t *t, int place, const void *data, size_t bytes)
{
    traffic_read_t *read = room_for_read(t);

    assert_ok(rmm_device_set(place_device(place)));
    assert_ok(rmm_memcpy_async(read->found, data, bytes, t->streams[place]));
    read->place = place;
    read->bytes = bytes;
    return read;
}

/* --- buffers --------------------------------------------------------------------------- */

static inline int place_of_buffer(const traffic_t *t, const traffic_buffer_t *b)
{
    return place_of(
        t, rmm_device_buffer_device(&b->buffer), rmm_device_buffer_stream(&b->buffer));
}

static inline traffic_buffer_t *draw_buffer(traffic_t *t)
{
    return &t->buffers[traffic_draw(t, TRAFFIC_BUFFERS)];
}

/* Uninitialised bytes are of no interest: give them a value. */
static inline void fill_from(traffic_t *t, traffic_buffer_t *b, size_t from)
{
    size_t size = rmm_device_buffer_size(&b->buffer);
    int value = (int)traffic_draw(t, 256);
    int place = place_of_buffer(t, b);
    char *data = rmm_device_buffer_data(&b->buffer);

    if (from >= size) {
        return;
    }
    assert_ok(rmm_device_set(place_device(place)));
    assert_ok(rmm_memset_async(data + from, value, size - from, t->streams[place]));
    memset(b->bytes + from, value, size - from);
}

static inline rmm_resource_t *draw_resource(traffic_t *t)
{
    return t->resources[traffic_draw(t, (uint64_t)t->resource_count)];
}

static inline void begin_buffer(traffic_t *t, traffic_buffer_t *b)
{
    rmm_resource_t *mr = draw_resource(t);

    rmm_device_buffer_fini(&b->buffer);
    assert_ok(rmm_device_buffer_init(
        &b->buffer, draw_bytes(t), draw_stream(t, rmm_resource_device(mr)), mr));
    fill_from(t, b, 0);
}

static inline void read_buffer(traffic_t *t, traffic_buffer_t *b)
{
    size_t size = rmm_device_buffer_size(&b->buffer);
    int place = place_of_buffer(t, b);

    if (size == 0) {
        return;
    }
    if (t->wrong == TRAFFIC_WRONG_COPY && traffic_draw(t, 8) == 0) {
        place = (int)traffic_draw(t, TRAFFIC_STREAMS);
    }
    memcpy(
        queue_read(t, place, rmm_device_buffer_data(&b->buffer), size)->expected,
        b->bytes, size);
}

static inline void
copy_buffer(traffic_t *t, traffic_buffer_t *dst, traffic_buffer_t *src)
{
    rmm_resource_t *mr = draw_resource(t);

    assert_ok(rmm_device_buffer_copy(
        &dst->buffer, &src->buffer, draw_stream(t, rmm_resource_device(mr)), mr));
    memmove(dst->bytes, src->bytes, rmm_device_buffer_size(&src->buffer));
}

static inline void move_buffer(traffic_buffer_t *dst, traffic_buffer_t *src)
{
    if (dst != src) {
        memcpy(dst->bytes, src->bytes, rmm_device_buffer_size(&src->buffer));
        rmm_device_buffer_move(&dst->buffer, &src->buffer);
    }
}

static inline void resize_buffer(traffic_t *t, traffic_buffer_t *b)
{
    size_t before = rmm_device_buffer_size(&b->buffer);
    rmm_stream_t stream = draw_stream(t, rmm_device_buffer_device(&b->buffer));

    switch (traffic_draw(t, 4)) {
    case 0:
        assert_ok(rmm_device_buffer_reserve(&b->buffer, draw_bytes(t), stream));
        break;
    case 1:
        assert_ok(rmm_device_buffer_shrink_to_fit(&b->buffer, stream));
        break;
    case 2:
        rmm_device_buffer_set_stream(&b->buffer, stream);
        break;
    default:
        assert_ok(rmm_device_buffer_resize(&b->buffer, draw_bytes(t), stream));
        break;
    }
    fill_from(t, b, before);
}

/* With the host, which waits: half of it is written, all of it read. */
static inline void exchange_with_host(traffic_t *t, traffic_buffer_t *b)
{
    size_t size = rmm_device_buffer_size(&b->buffer);
    rmm_stream_t stream = rmm_device_buffer_stream(&b->buffer);
    traffic_read_t *read = room_for_read(t);

    memset(b->bytes, (int)traffic_draw(t, 256), size / 2);
    assert_ok(
        rmm_device_buffer_copy_from_host(&b->buffer, 0, b->bytes, size / 2, stream));
    assert_ok(rmm_device_buffer_copy_to_host(&b->buffer, 0, read->found, size, stream));
    memcpy(read->expected, b->bytes, size);
    read->bytes = size;
    compare_read(t, read);
}

static inline void step_buffer(traffic_t *t)
{
    traffic_buffer_t *b = draw_buffer(t);

    if (rmm_device_buffer_resource(&b->buffer) == NULL) {
        begin_buffer(t, b);
        return;
    }
    switch (traffic_draw(t, 16)) {
    case 0:
        begin_buffer(t, b);
        break;
    case 1:
        rmm_device_buffer_fini(&b->buffer);
        break;
    case 2:
        move_buffer(draw_buffer(t), b);
        break;
    case 3:
        exchange_with_host(t, b);
        break;
    case 4:
    case 5:
    case 6:
        copy_buffer(t, draw_buffer(t), b);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        resize_buffer(t, b);
        break;
    case 11:
    case 12:
        fill_from(
            t, b, (size_t)traffic_draw(t, 1 + rmm_device_buffer_size(&b->buffer)));
        break;
    default:
        read_buffer(t, b);
        break;
    }
}

/* --- plain blocks ---------------------------------------------------------------------- */

/* With the place's device current, so that its handle means it: but the legacy default stream
 * is always that of the resource's device. */
static inline int draw_place_for(traffic_t *t, int device)
{
    return place_of(t, device, draw_stream(t, device));
}

static inline void take_block(traffic_t *t, traffic_block_t *block)
{
    int resource = (int)traffic_draw(t, (uint64_t)t->resource_count);
    rmm_resource_t *mr = t->resources[resource];
    int place = draw_place_for(t, rmm_resource_device(mr));

    *block = (traffic_block_t){
        .bytes = draw_bytes(t),
        .resource = resource,
        .place = place,
        .value = (unsigned char)traffic_draw(t, 256)};
    assert_ok(rmm_device_set(place_device(place)));
    assert_ok(rmm_resource_alloc(mr, block->bytes, 0, t->streams[place], &block->ptr));
    assert_ok(
        rmm_memset_async(block->ptr, block->value, block->bytes, t->streams[place]));
}

/* From now on another stream uses it. */
static inline void hand_block_over(traffic_t *t, traffic_block_t *block)
{
    int device = rmm_resource_device(t->resources[block->resource]);
    int place = draw_place_for(t, device);

    assert_ok(rmm_stream_order(
        place_device(block->place), t->streams[block->place], place_device(place),
        t->streams[place]));
    block->place = place;
}

static inline void read_block(traffic_t *t, const traffic_block_t *block)
{
    memset(
        queue_read(t, block->place, block->ptr, block->bytes)->expected, block->value,
        block->bytes);
}

static inline void give_block(traffic_t *t, traffic_block_t *block)
{
    if (t->wrong == TRAFFIC_WRONG_FREE) {
        read_block(t, block);
        block->place =
            draw_place_for(t, rmm_resource_device(t->resources[block->resource]));
    }
    assert_ok(rmm_device_set(place_device(block->place)));
    rmm_resource_dealloc(
        t->resources[block->resource], block->ptr, block->bytes, 0,
        t->streams[block->place]);
    block->ptr = NULL;
}

static inline void step_block(traffic_t *t)
{
    traffic_block_t *block = &t->blocks[traffic_draw(t, TRAFFIC_BLOCKS)];

    if (block->ptr == NULL) {
        take_block(t, block);
        return;
    }
    switch (traffic_draw(t, 4)) {
    case 0:
        give_block(t, block);
        break;
    case 1:
        hand_block_over(t, block);
        break;
    default:
        read_block(t, block);
        break;
    }
}

/* --- all ------------------------------------------------------------------------------- */

/* A stream ends with its work still queued, and another one comes, perhaps of the same handle.
 * Before that all that is on it goes over to another stream. */
static inline void replace_stream_at(traffic_t *t, int place)
{
    if (place_is_built_in(place)) {
        return;
    }
    for (int i = 0; i < TRAFFIC_BLOCKS; i++) {
        while (t->blocks[i].ptr != NULL && t->blocks[i].place == place) {
            hand_block_over(t, &t->blocks[i]);
        }
    }
    for (int i = 0; i < TRAFFIC_BUFFERS; i++) {
        rmm_device_buffer_t *buffer = &t->buffers[i].buffer;

        if (rmm_device_buffer_stream(buffer) == t->streams[place]) {
            rmm_device_buffer_set_stream(buffer, RMM_STREAM_PER_THREAD);
        }
    }
    wait_for_place(t, place); /* for the reads: their memory is the traffic's */
    assert_ok(rmm_stream_destroy(t->streams[place]));
    make_stream_at(t, place);
}

static inline void traffic_step(traffic_t *t)
{
    uint64_t choice = traffic_draw(t, 64);

    t->operations++;
    assert_ok(rmm_device_set((int)traffic_draw(t, TRAFFIC_DEVICES)));
    if (choice == 0) {
        wait_for_place(t, (int)traffic_draw(t, TRAFFIC_STREAMS));
    } else if (choice == 1 && traffic_draw(t, 16) == 0) {
        replace_stream_at(t, (int)traffic_draw(t, TRAFFIC_STREAMS));
    } else if (choice < 40) {
        step_buffer(t);
    } else {
        step_block(t);
    }
}

static inline void *traffic_memory(size_t bytes)
{
    void *memory = malloc(bytes);

    assert_non_null(memory);
    return memory;
}

static inline void traffic_begin(traffic_t *t)
{
    for (int place = 0; place < TRAFFIC_STREAMS; place++) {
        make_stream_at(t, place);
    }
    for (int i = 0; i < TRAFFIC_BUFFERS; i++) {
        t->buffers[i] = (traffic_buffer_t){
            .buffer = RMM_DEVICE_BUFFER_INIT, .bytes = traffic_memory(t->most_bytes)};
    }
    assert_ok(rmm_pinned_resource_create(&t->pinned));
    for (int i = 0; i < TRAFFIC_READS; i++) {
        void *found;

        assert_ok(rmm_resource_alloc_sync(t->pinned, t->most_bytes, 0, &found));
        t->reads[i] = (traffic_read_t){
            .place = -1, .found = found, .expected = traffic_memory(t->most_bytes)};
    }
}

/* Everything goes back, and every read is compared. */
static inline void traffic_end(traffic_t *t)
{
    for (int i = 0; i < TRAFFIC_BUFFERS; i++) {
        rmm_device_buffer_fini(&t->buffers[i].buffer);
        free(t->buffers[i].bytes);
    }
    for (int i = 0; i < TRAFFIC_BLOCKS; i++) {
        if (t->blocks[i].ptr != NULL) {
            give_block(t, &t->blocks[i]);
        }
    }
    for (int place = 0; place < TRAFFIC_STREAMS; place++) {
        wait_for_place(t, place);
        assert_ok(rmm_stream_destroy(t->streams[place]));
    }
    for (int i = 0; i < TRAFFIC_READS; i++) {
        rmm_resource_dealloc_sync(t->pinned, t->reads[i].found, t->most_bytes, 0);
        free(t->reads[i].expected);
    }
    rmm_resource_release(t->pinned);
    for (int i = 0; i < t->resource_count; i++) {
        rmm_stats_t stats = RMM_STATS_INIT;

        assert_ok(rmm_resource_get_stats(t->resources[i], &stats));
        assert_int_equal(stats.invalid_free_count, 0);
        rmm_resource_release(t->resources[i]);
    }
    assert_ok(rmm_device_set(0));
}

#endif /* RMM_TESTS_HARNESS_STREAM_TRAFFIC_H */
