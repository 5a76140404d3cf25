/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judge of order (diag/order.h), and short ways to tell it calls. Streams are numbers, 0 is the
 * legacy default stream; blocks are numbers, too.
 */
#ifndef RMM_TESTS_UNIT_ORDER_FIXTURE_H
#define RMM_TESTS_UNIT_ORDER_FIXTURE_H

#include <string.h>

#include "diag/order.h"

#define ORDER_BASE 0x7f0000000000ull
#define ORDER_BLOCK_BYTES 4096u
#define ORDER_ROWS 16u

static rmm_order_t order;
static rmm_order_conflict_t conflict;
static uint64_t
    captured_streams; /* bit N: the calls of stream N say that they are captured */
static int32_t devices[64]; /* of streams, as their calls tell it */

static inline int open_order(void **state)
{
    (void)state;
    captured_streams = 0;
    memset(devices, 0, sizeof(devices));
    assert_true(rmm__order_init(&order, ORDER_ROWS));
    return 0;
}

static inline int close_order(void **state)
{
    (void)state;
    rmm__order_fini(&order);
    return 0;
}

static inline rmm_stream_t stream(uint32_t number)
{
    return number == 0 ? RMM_STREAM_LEGACY
                       : (rmm_stream_t)(uintptr_t)(0x10000u + number * 16u);
}

static inline uint32_t is_captured(uint32_t on)
{
    return on < 64 ? captured_streams >> on & 1 : 0;
}

static inline int32_t device_of(uint32_t on)
{
    return on < 64 ? devices[on] : 0;
}

static inline rmm_diag_block_v1_t block(uint32_t index, uint32_t on)
{
    return (rmm_diag_block_v1_t){
        .address = ORDER_BASE + index * (uint64_t)ORDER_BLOCK_BYTES,
        .bytes = ORDER_BLOCK_BYTES,
        .stream_id = on,
        .stream = stream(on),
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER};
}

static inline void tell(uint32_t kind, uint32_t on, uint64_t word)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .device = device_of(on),
        .stream = stream(on),
        .words = &word,
        .word_count = 1,
        .capturing = is_captured(on)};

    rmm__order_event(&order, &event);
}

static inline void make(uint32_t number, bool is_non_blocking)
{
    tell(RMM_DIAG_STREAM_CREATE, number, is_non_blocking ? 1 : 0);
}

/* The host waits for this device. */
static inline void synchronize(int32_t device)
{
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event), .kind = RMM_DIAG_DEVICE_SYNC, .device = device};

    rmm__order_event(&order, &event);
}

static inline void allocate(uint32_t index, uint32_t on)
{
    rmm_diag_block_v1_t given = block(index, on);

    rmm__order_allocated(&order, index, &given);
}

static inline bool is_bad_free(uint32_t index, uint32_t on)
{
    rmm_diag_block_v1_t given = block(index, on);

    return rmm__order_freed(&order, index, &given, &conflict);
}

typedef struct use {
    uint32_t call;
    rmm_order_access_t access;
    uint64_t from, to; /* within the block */
} use_t;

static const use_t kernel = {RMM_DIAG_LAUNCH, RMM_ORDER_KERNEL, 0, 0};
static const use_t fill = {RMM_DIAG_SET, RMM_ORDER_WRITE, 0, ORDER_BLOCK_BYTES};
static const use_t fill_begin = {RMM_DIAG_SET, RMM_ORDER_WRITE, 0, 1000};
static const use_t fill_end = {RMM_DIAG_SET, RMM_ORDER_WRITE, 1000, ORDER_BLOCK_BYTES};
static const use_t read_all = {RMM_DIAG_COPY, RMM_ORDER_READ, 0, ORDER_BLOCK_BYTES};
static const use_t fill_rows = {
    RMM_DIAG_SET, RMM_ORDER_SOME_WRITE, 0, ORDER_BLOCK_BYTES};

static inline bool is_bad_use(uint32_t index, uint32_t on, const use_t *how)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = how->call,
        .device = device_of(on),
        .stream = stream(on),
        .capturing = is_captured(on)};
    uint64_t address = ORDER_BASE + index * (uint64_t)ORDER_BLOCK_BYTES;
    rmm_order_use_t use = {
        .start = address + how->from,
        .end = address + how->to,
        .user = 100 + on,
        .access = (uint8_t)how->access};

    return rmm__order_begin(&order, &event, &use) &&
           rmm__order_use(&order, index, &use, &conflict);
}

#endif /* RMM_TESTS_UNIT_ORDER_FIXTURE_H */
