/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands; see control.h.
 */
#include "control.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/numbers.h"
#include "diag/modes.h"

#include "diag_mode.h"
#include "log.h"
#include "log_line.h"
#include "marks.h"
#include "slots.h"
#include "state.h"

#define COMMAND_BYTES_MAX 64

/* --- marks ---------------------------------------------------------------------------- */

/* One without a control page counts with its current value anyway: figures.h. */
static int request_node_reset(member_t *member, uint32_t location)
{
    if (!member->has_control) {
        return 0;
    }
    int error = rmm_control_reset_node_peak(&member->control, location);
    if (error != 0) {
        log_warn(
            "process %s: cannot request a reset of its peak: %s", member->process->name,
            strerror(-error));
        rmm_control_close(&member->control);
        member->has_control = false;
    }
    return error;
}

/* Marks and totals must not come back with the next daemon. */
static int keep(model_t *model)
{
    state_want(model);
    return 0;
}

static int reset_device(model_t *model, node_t node)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        for (uint32_t j = 0; j < process->member_count; j++) {
            member_t *member = process->members[j];
            uint32_t location;
            if (member->state == MEMBER_LIVE &&
                member_location_on(member, node.id, &location)) {
                (void)request_node_reset(member, location);
            }
        }
    }
    marks_reset_device(model, node.id);
    return keep(model);
}

/* A request to one segment; NOT_CONCERNED: it has nothing of what it is about. */
enum { NOT_CONCERNED = 1 };
typedef int (*request_fn)(member_t *member, const void *arg);

/* To every segment of a process that lives, up to the first error. -ESRCH, -EOPNOTSUPP: none
 * takes requests. */
static int request_each(const process_t *process, request_fn request, const void *arg)
{
    int error = process_is_live(process) ? -EOPNOTSUPP : -ESRCH;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        if (member->state != MEMBER_LIVE || !member->has_control) {
            continue;
        }
        int answer = request(member, arg);
        if (answer < 0) {
            return answer;
        }
        error = answer == NOT_CONCERNED ? error : 0;
    }
    return error;
}

static int request_reset(member_t *member, const void *device)
{
    uint32_t location;
    return member_location_on(member, *(const uint32_t *)device, &location)
               ? rmm_control_reset_location_peak(&member->control, location)
               : NOT_CONCERNED;
}

static int reset_process(model_t *model, node_t node)
{
    return request_each(model_process(model, node.serial), request_reset, &node.id);
}

/* The slot of a resource whose process takes requests: 0, or a negative errno. */
static int find_controlled(model_t *model, node_t node, slot_view_t *view_out)
{
    member_t *member = model_member(model, node.serial);
    if (member == NULL || !slots_find_low(member, node.id, view_out)) {
        return -ENOENT;
    }
    if (member->state != MEMBER_LIVE) {
        return -ESRCH;
    }
    return member->has_control ? 0 : -EOPNOTSUPP;
}

static int reset_resource(model_t *model, node_t node)
{
    slot_view_t view;
    int error = find_controlled(model, node, &view);
    return error == 0 ? rmm_control_reset_slot_peak(&view.member->control, view.index)
                      : error;
}

static int reset_peak(model_t *model, node_t node)
{
    switch ((dir_kind_t)node.dir) {
    case DIR_DEVICE:
        return reset_device(model, node);
    case DIR_PROCESS_DEVICE:
        return reset_process(model, node);
    case DIR_RESOURCE:
        return reset_resource(model, node);
    default:
        return -EACCES;
    }
}

/* --- words ---------------------------------------------------------------------------- */

/* The command without the newline that echo adds; false: too long, or bytes that are no
 * text. */
static bool read_word(const char *bytes, size_t length, char word[COMMAND_BYTES_MAX])
{
    if (length > 0 && bytes[length - 1] == '\n') {
        length--;
    }
    if (length == 0 || length >= COMMAND_BYTES_MAX ||
        memchr(bytes, '\0', length) != NULL) {
        return false;
    }
    memcpy(word, bytes, length);
    word[length] = '\0';
    return true;
}

/* It cannot be undone, so any other word is a mistake. */
static int reset_total(model_t *model, node_t node, const char *bytes, size_t length)
{
    char word[COMMAND_BYTES_MAX];
    if (!read_word(bytes, length, word) || strcmp(word, "reset") != 0) {
        return -EINVAL;
    }
    marks_reset_totals(model, node.id);
    return keep(model);
}

static int set_log_level(const char *bytes, size_t length)
{
    char word[COMMAND_BYTES_MAX];
    log_level_t level;
    if (!read_word(bytes, length, word) || !log_level_parse(word, &level)) {
        return -EINVAL;
    }
    log_level_set(level);
    return 0;
}

static int request_log_level(member_t *member, const void *level)
{
    uint32_t wanted = *(const uint32_t *)level, now, least;
    if (rmm_segment_log_level(&member->segment, &now, &least) && wanted < least) {
        return -EINVAL; /* compiled out */
    }
    return rmm_control_set_log_level(&member->control, wanted);
}

static int set_process_log_level(
    const model_t *model, node_t node, const char *bytes, size_t length)
{
    char word[COMMAND_BYTES_MAX];
    uint32_t level;
    if (!read_word(bytes, length, word) || !log_line_level_parse(word, &level)) {
        return -EINVAL;
    }
    return request_each(model_process(model, node.serial), request_log_level, &level);
}

static int request_trace(member_t *member, const void *enable)
{
    return rmm_control_set_trace(&member->control, *(const bool *)enable);
}

static int
set_trace(const model_t *model, node_t node, const char *bytes, size_t length)
{
    char word[COMMAND_BYTES_MAX];
    if (!read_word(bytes, length, word) ||
        (strcmp(word, "0") != 0 && strcmp(word, "1") != 0)) {
        return -EINVAL;
    }
    bool enable = word[0] == '1';
    return request_each(model_process(model, node.serial), request_trace, &enable);
}

/* --- limits --------------------------------------------------------------------------- */

/* Digits, and a unit behind them; below 2^63. */
static bool parse_bytes(const char *word, uint64_t *bytes_out)
{
    return rmm__number_parse_bytes(word, strlen(word), bytes_out) == RMM_NUMBER_OK &&
           *bytes_out <= INT64_MAX;
}

/* `none`: the word that stands for no number. */
static bool
parse_amount(const char *bytes, size_t length, const char *none, uint64_t *amount_out)
{
    char word[COMMAND_BYTES_MAX];
    if (!read_word(bytes, length, word)) {
        return false;
    }
    if (strcmp(word, none) == 0) {
        *amount_out = UINT64_MAX;
        return true;
    }
    return parse_bytes(word, amount_out);
}

typedef struct limit_request {
    uint32_t device;
    uint64_t limit_bytes;
} limit_request_t;

static int request_limit(member_t *member, const void *arg)
{
    const limit_request_t *request = arg;
    uint32_t location;
    return member_location_on(member, request->device, &location)
               ? rmm_control_limit_location(
                     &member->control, location, request->limit_bytes)
               : NOT_CONCERNED;
}

static int limit_resource(model_t *model, node_t node, uint64_t limit_bytes)
{
    slot_view_t view;
    int error = find_controlled(model, node, &view);
    return error == 0 ? rmm_control_limit_slot(
                            &view.member->control, view.index,
                            rmm_record_slot(&view.record)->instance_id, limit_bytes)
                      : error;
}

static int set_limit(model_t *model, node_t node, const char *bytes, size_t length)
{
    limit_request_t request = {.device = node.id};
    if (!parse_amount(bytes, length, "max", &request.limit_bytes)) {
        return -EINVAL;
    }
    return node.dir == DIR_RESOURCE
               ? limit_resource(model, node, request.limit_bytes)
               : request_each(
                     model_process(model, node.serial), request_limit, &request);
}

uint64_t control_process_limit(const process_t *process, uint32_t device)
{
    uint64_t lowest = RMM_SEGMENT_NO_LIMIT;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        uint32_t location;
        if (member->has_control && member_location_on(member, device, &location)) {
            uint64_t limit = rmm_control_location_limit(&member->control, location);
            lowest = limit < lowest ? limit : lowest;
        }
    }
    return lowest;
}

uint64_t control_resource_limit(const slot_view_t *view)
{
    return view->member->has_control ? rmm_control_slot_limit(
                                           &view->member->control, view->index,
                                           rmm_record_slot(&view->record)->instance_id)
                                     : RMM_SEGMENT_NO_LIMIT;
}

/* --- modes ---------------------------------------------------------------------------- */

static int set_mode(
    model_t *model, node_t node, uid_t uid, const char *bytes, size_t length,
    trim_t *trim)
{
    char word[COMMAND_BYTES_MAX], unknown[DIAG_MODE_WORD_BYTES];
    uint32_t modes;
    if (!read_word(bytes, length, word)) {
        return -EINVAL;
    }
    if (!rmm__diag_modes_parse(word, &modes, unknown)) {
        diag_mode_refused(model, node, uid, unknown);
        return -EINVAL;
    }
    return trim_begin_mode(model, node, modes, trim);
}

/* --- all ------------------------------------------------------------------------------ */

static int check_writer(const model_t *model, node_t node, uid_t uid)
{
    node_owner_t owner;
    if (!tree_owner(model, node, &owner)) {
        return -ENOENT;
    }
    /* The kernel has checked when the file was opened; the process that has the
     * descriptor now may be another user's. */
    return tree_may_write(node, &owner, uid) ? 0 : -EACCES;
}

int control_trim(
    model_t *model, node_t node, uid_t uid, const char *bytes, size_t length,
    trim_t *trim)
{
    uint64_t give_bytes;
    int error = check_writer(model, node, uid);
    if (error != 0) {
        return error;
    }
    if (node.file == FILE_MODE) {
        return set_mode(model, node, uid, bytes, length, trim);
    }
    return parse_amount(bytes, length, "all", &give_bytes)
               ? trim_begin(model, node, give_bytes, trim)
               : -EINVAL;
}

int control_write(
    model_t *model, node_t node, uid_t uid, const char *bytes, size_t length)
{
    int error = check_writer(model, node, uid);
    if (error != 0) {
        return error;
    }
    if (length == 0) {
        return -EINVAL;
    }
    switch (node.file) {
    case FILE_peak_bytes:
        return reset_peak(model, node);
    case FILE_total_bytes:
        return reset_total(model, node, bytes, length);
    case FILE_LOG_LEVEL:
        return node.dir == DIR_PROCESS
                   ? set_process_log_level(model, node, bytes, length)
                   : set_log_level(bytes, length);
    case FILE_LIMIT_BYTES:
        return set_limit(model, node, bytes, length);
    case FILE_ENABLE:
        return set_trace(model, node, bytes, length);
    default:
        return -EACCES;
    }
}
