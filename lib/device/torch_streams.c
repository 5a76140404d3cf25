/* SPDX-License-Identifier: Apache-2.0 */
/* See torch_streams.h. */
#include "device/torch_streams.h"

#include <stddef.h>

#include "core/host_memory.h"
#include "driver/driver.h"
#include "log/log.h"

/* --- the lists ------------------------------------------------------------------------ */

static rmm_torch_use_t *find(const rmm_torch_streams_t *streams, const void *ptr)
{
    rmm_pointer_map_entry_t entry = {NULL, 0, NULL};

    return rmm__pointer_map_find_entry(&streams->blocks, ptr, &entry) ? entry.owner
                                                                      : NULL;
}

static bool has(const rmm_torch_use_t *use, rmm_stream_t stream)
{
    while (use != NULL && use->stream != stream) {
        use = use->next;
    }
    return use != NULL;
}

/* The first of its block. */
static bool begin_list(rmm_torch_streams_t *streams, void *ptr, rmm_torch_use_t *use)
{
    if (!rmm__pointer_map_reserve(&streams->blocks)) {
        return false;
    }
    rmm__pointer_map_insert_entry(
        &streams->blocks, &(rmm_pointer_map_entry_t){ptr, 0, use});
    return true;
}

bool rmm__torch_streams_add(
    rmm_torch_streams_t *streams, void *ptr, rmm_stream_t stream)
{
    rmm_torch_use_t *first = find(streams, ptr);
    rmm_torch_use_t *use;

    if (has(first, stream)) {
        return true;
    }
    use = rmm__calloc(1, sizeof(*use));
    if (use == NULL) {
        return false;
    }
    use->stream = stream;
    if (first != NULL) {
        use->next = first->next;
        first->next = use;
    } else if (!begin_list(streams, ptr, use)) {
        rmm__free(use);
        return false;
    }
    return true;
}

rmm_torch_use_t *rmm__torch_streams_take(rmm_torch_streams_t *streams, void *ptr)
{
    rmm_torch_use_t *first = streams->blocks.count != 0 ? find(streams, ptr) : NULL;

    if (first != NULL) {
        (void)rmm__pointer_map_erase(&streams->blocks, ptr);
    }
    return first;
}

/* --- the order ------------------------------------------------------------------------ */

static bool
wait_on_device(const rmm_driver_t *driver, rmm_stream_t stream, rmm_stream_t used)
{
    rmm_driver_event_t event;
    bool waits;

    if (driver->event_create(&event) != RMM_DRIVER_OK) {
        return false;
    }
    waits = driver->event_record(event, used) == RMM_DRIVER_OK &&
            driver->stream_wait_event(stream, event) == RMM_DRIVER_OK;
    (void)driver->event_destroy(event); /* what waits for it goes on waiting */
    return waits;
}

/*
 * An event does not lead into a capture, nor out of one. Where the free is captured, the host
 * waits. Where the use is captured, there is nothing to wait for: it runs when its graph is
 * launched, and a block that a graph uses must outlive the graph.
 */
static void
order_behind(const rmm_driver_t *driver, rmm_stream_t stream, rmm_stream_t used)
{
    rmm_stream_key_t freeing = {0, 0}, using = {0, 0};
    int error;

    if (driver->stream_key(stream, &freeing) == RMM_DRIVER_OK &&
        driver->stream_key(used, &using) == RMM_DRIVER_OK) {
        if (using.capture_id != freeing.capture_id && using.capture_id != 0) {
            return;
        }
        if (using.capture_id == freeing.capture_id &&
            (using.stream_id == freeing.stream_id ||
             wait_on_device(driver, stream, used))) {
            return;
        }
    }
    error = driver->stream_synchronize(used);
    if (error != RMM_DRIVER_OK) {
        (void)rmm__driver_error(driver, error, "waiting for a recorded stream");
        rmm__log_error(
            "PyTorch freed a block recorded on stream %p, but waiting for that stream "
            "failed: %s",
            (void *)used, rmm_last_error_message());
    }
}

void rmm__torch_streams_order(rmm_torch_use_t *uses, int device, rmm_stream_t stream)
{
    rmm_status_t status = RMM_OK;
    const rmm_driver_t *driver = uses != NULL ? rmm__driver(&status) : NULL;
    rmm_driver_scope_t scope;
    bool can_order =
        driver != NULL && rmm__driver_scope_enter(&scope, driver, device) == RMM_OK;

    while (uses != NULL) {
        rmm_torch_use_t *next = uses->next;

        if (can_order) {
            order_behind(driver, stream, uses->stream);
        }
        rmm__free(uses);
        uses = next;
    }
    if (can_order) {
        rmm__driver_scope_leave(&scope);
    }
}
