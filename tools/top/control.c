/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to programs; see control.h. */
#include "top/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "top/figure_text.h"

#define LOOK_NS 1000000u

typedef struct asking {
    const segments_t *segments;
    const open_segment_t *one;
    const ui_request_t *request;
    rmm_control_t control;
    uint32_t index; /* of the slot or of the location */
} asking_t;

/* --- what it is about --------------------------------------------------------------------- */

static bool find_slot(asking_t *asking, const node_t *node)
{
    for (uint32_t i = 0; i < node->resource_count; i++) {
        const node_resource_t *resource = &node->resources[i];
        rmm_record_t record;
        if (node->processes[resource->process].id == asking->request->id &&
            resource->instance_id == asking->request->resource_id &&
            rmm__segment_read_slot(
                &asking->one->segment, resource->slot, &record, NULL) &&
            rmm__record_slot(&record)->instance_id == resource->instance_id) {
            asking->index = resource->slot;
            return true;
        }
    }
    return false;
}

static bool find_location(asking_t *asking, const node_t *node)
{
    for (uint32_t i = 0; i < node->use_count; i++) {
        const node_use_t *use = &node->uses[i];
        if (node->processes[use->process].id == asking->request->id &&
            use->device == asking->request->device) {
            asking->index = use->location;
            return true;
        }
    }
    return false;
}

/* 0, or a negative errno. */
static int begin(asking_t *asking, const node_t *node)
{
    if (asking->one == NULL || !rmm__segment_is_live(&asking->one->segment)) {
        return -ESRCH;
    }
    if (geteuid() != 0 && asking->one->segment.uid != geteuid()) {
        return -EPERM;
    }
    bool is_there = asking->request->is_resource ? find_slot(asking, node)
                                                 : find_location(asking, node);
    if (!is_there) {
        return -ENODEV;
    }
    int dirfd = segments_open_dir(asking->segments, asking->one);
    int error = dirfd >= 0
                    ? rmm__control_open(&asking->control, dirfd, &asking->one->segment)
                    : -errno;
    if (dirfd >= 0) {
        close(dirfd);
    }
    return error;
}

/* --- requests ----------------------------------------------------------------------------- */

static int reset_peak(asking_t *asking)
{
    return asking->request->is_resource
               ? rmm__control_reset_slot_peak(&asking->control, asking->index)
               : rmm__control_reset_location_peak(&asking->control, asking->index);
}

static int set_limit(asking_t *asking)
{
    const ui_request_t *request = asking->request;
    return request->is_resource
               ? rmm__control_limit_slot(
                     &asking->control, asking->index, request->resource_id,
                     request->limit_bytes)
               : rmm__control_limit_location(
                     &asking->control, asking->index, request->limit_bytes);
}

static bool is_trimmed(const asking_t *asking, uint32_t number)
{
    uint32_t seen;
    return rmm__segment_trim_seen(&asking->one->segment, &seen) && seen == number;
}

static int trim(asking_t *asking)
{
    static const struct timespec pause = {.tv_nsec = LOOK_NS};
    const ui_request_t *request = asking->request;
    uint32_t of =
        request->is_resource ? request->resource_id : RMM_TRIM_LOCATION | asking->index;
    uint32_t number;
    uint64_t until_ns = clock_ns() + CONTROL_WAIT_NS;
    int error = rmm__control_begin_trim(&asking->control, of, 0, &number);
    while (error == 0 && !is_trimmed(asking, number) && clock_ns() < until_ns) {
        (void)nanosleep(&pause, NULL);
    }
    bool is_done = error == 0 && is_trimmed(asking, number);
    int ended = rmm__control_end_trim(&asking->control, !is_done);
    if (error != 0 || ended != 0) {
        return error != 0 ? error : ended;
    }
    return is_done ? 0 : -ETIMEDOUT;
}

static int ask(asking_t *asking)
{
    switch (asking->request->kind) {
    case UI_REQUEST_RESET:
        return reset_peak(asking);
    case UI_REQUEST_LIMIT:
        return set_limit(asking);
    case UI_REQUEST_TRIM:
        return trim(asking);
    case UI_REQUEST_NONE:
        break;
    }
    return -EINVAL;
}

/* --- the answer --------------------------------------------------------------------------- */

static const char *reason_of(int error)
{
    switch (error) {
    case -ESRCH:
        return "the program has ended";
    case -EPERM:
    case -EACCES:
        return "only the program's user and root may do that";
    case -ENODEV:
        return "it is gone";
    case -ENOENT:
    case -EOPNOTSUPP:
        return "the program does not support this request";
    case -ETIMEDOUT:
        return "the program did not allocate within 0.1 s: request withdrawn";
    default:
        return strerror(-error);
    }
}

static void say_done(const ui_request_t *request, char message[UI_MESSAGE_BYTES])
{
    const char *name = request->name;
    if (request->kind == UI_REQUEST_RESET) {
        snprintf(
            message, UI_MESSAGE_BYTES, "peak of %s: reset at its next allocation",
            name);
    } else if (request->kind == UI_REQUEST_TRIM) {
        snprintf(message, UI_MESSAGE_BYTES, "%s has returned its unused memory", name);
    } else if (request->limit_bytes == RMM_SEGMENT_NO_LIMIT) {
        snprintf(message, UI_MESSAGE_BYTES, "%s has no limit now", name);
    } else {
        snprintf(
            message, UI_MESSAGE_BYTES, "limit of %s: %s, from its next allocation on",
            name, figure_bytes(request->limit_bytes).text);
    }
}

void control_do(
    const segments_t *segments, const node_t *node, const ui_request_t *request,
    char message[UI_MESSAGE_BYTES])
{
    static const char *const words[] = {
        [UI_REQUEST_NONE] = "asked",
        [UI_REQUEST_RESET] = "reset",
        [UI_REQUEST_LIMIT] = "limited",
        [UI_REQUEST_TRIM] = "trimmed"};
    asking_t asking = {
        .segments = segments,
        .one = segments_find(segments, request->id),
        .request = request};
    int error = begin(&asking, node);
    if (error == 0) {
        error = ask(&asking);
        rmm__control_close(&asking.control);
    }
    if (error == 0) {
        say_done(request, message);
    } else {
        snprintf(
            message, UI_MESSAGE_BYTES, "%s is not %s: %s", request->name,
            words[request->kind], reason_of(error));
    }
}
