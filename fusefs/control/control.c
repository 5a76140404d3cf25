/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands; see control.h.
 */
#include "control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/numbers.h"
#include "diag/modes.h"

#include "control/diag_mode.h"
#include "control/limit_lines.h"
#include "model/marks.h"
#include "model/slots.h"
#include "model/state.h"
#include "support/daemon_log.h"
#include "support/log_line.h"

#define COMMAND_BYTES_MAX 64

/* --- marks ---------------------------------------------------------------------------- */

/* One without a control page counts with its current value anyway: level_figures.h. */
static int request_node_reset(member_t *member, uint32_t location)
{
    if (!member->has_control) {
        return 0;
    }
    int error = rmm__control_reset_node_peak(&member->control, location);
    if (error != 0) {
        log_warn(
            "process %s: cannot request a reset of its peak: %s", member->process->name,
            strerror(-error));
        rmm__control_close(&member->control);
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
               ? rmm__control_reset_location_peak(&member->control, location)
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
    return error == 0 ? rmm__control_reset_slot_peak(&view.member->control, view.index)
                      : error;
}

static int write_peak_bytes(const command_t *command)
{
    switch ((dir_kind_t)command->node.dir) {
    case DIR_DEVICE:
        return reset_device(command->model, command->node);
    case DIR_PROCESS_DEVICE:
        return reset_process(command->model, command->node);
    case DIR_RESOURCE:
        return reset_resource(command->model, command->node);
    default:
        return -EACCES;
    }
}

/* --- words ---------------------------------------------------------------------------- */

/* The command without the newline that echo adds; false: too long, or bytes that are no
 * text. */
static bool read_word(const command_t *command, char word[COMMAND_BYTES_MAX])
{
    const char *bytes = command->bytes;
    size_t length = command->length;
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
static int write_total_bytes(const command_t *command)
{
    char word[COMMAND_BYTES_MAX];
    if (!read_word(command, word) || strcmp(word, "reset") != 0) {
        return -EINVAL;
    }
    marks_reset_totals(command->model, command->node.id);
    return keep(command->model);
}

static int write_log_level(const command_t *command)
{
    char word[COMMAND_BYTES_MAX];
    log_level_t level;
    if (!read_word(command, word) || !log_level_parse(word, &level)) {
        return -EINVAL;
    }
    log_level_set(level);
    return 0;
}

static int request_log_level(member_t *member, const void *level)
{
    uint32_t wanted = *(const uint32_t *)level, now, least;
    if (rmm__segment_log_level(&member->segment, &now, &least) && wanted < least) {
        return -EINVAL; /* compiled out */
    }
    return rmm__control_set_log_level(&member->control, wanted);
}

static const process_t *process_of(const command_t *command)
{
    return model_process(command->model, command->node.serial);
}

static int write_process_log_level(const command_t *command)
{
    char word[COMMAND_BYTES_MAX];
    uint32_t level;
    if (!read_word(command, word) || !log_line_level_parse(word, &level)) {
        return -EINVAL;
    }
    return request_each(process_of(command), request_log_level, &level);
}

static int request_trace(member_t *member, const void *enable)
{
    return rmm__control_set_trace(&member->control, *(const bool *)enable);
}

static int write_enable(const command_t *command)
{
    char word[COMMAND_BYTES_MAX];
    if (!read_word(command, word) ||
        (strcmp(word, "0") != 0 && strcmp(word, "1") != 0)) {
        return -EINVAL;
    }
    bool enable = word[0] == '1';
    return request_each(process_of(command), request_trace, &enable);
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
parse_amount(const command_t *command, const char *none, uint64_t *amount_out)
{
    char word[COMMAND_BYTES_MAX];
    if (!read_word(command, word)) {
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
               ? rmm__control_limit_location(
                     &member->control, location, request->limit_bytes)
               : NOT_CONCERNED;
}

static int write_limit_bytes(const command_t *command)
{
    limit_request_t request = {.device = command->node.id};
    return parse_amount(command, "max", &request.limit_bytes)
               ? request_each(process_of(command), request_limit, &request)
               : -EINVAL;
}

static int write_limits(const command_t *command)
{
    return limit_line_write(command);
}

static int write_device_limit_bytes(const command_t *command)
{
    uint64_t limit_bytes;
    return parse_amount(command, "max", &limit_bytes)
               ? limit_device_write(command, limit_bytes)
               : -EINVAL;
}

static int write_resource_limit_bytes(const command_t *command)
{
    slot_view_t view;
    uint64_t limit_bytes;
    if (!parse_amount(command, "max", &limit_bytes)) {
        return -EINVAL;
    }
    int error = find_controlled(command->model, command->node, &view);
    return error == 0 ? rmm__control_limit_slot(
                            &view.member->control, view.index,
                            rmm__record_slot(&view.record)->instance_id, limit_bytes)
                      : error;
}

uint64_t control_process_limit(const process_t *process, uint32_t device)
{
    uint64_t lowest = RMM_SEGMENT_NO_LIMIT;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        uint32_t location;
        if (member->has_control && member_location_on(member, device, &location)) {
            uint64_t limit = rmm__control_location_limit(&member->control, location);
            lowest = limit < lowest ? limit : lowest;
        }
    }
    return lowest;
}

uint64_t control_resource_limit(const slot_view_t *view)
{
    return view->member->has_control ? rmm__control_slot_limit(
                                           &view->member->control, view->index,
                                           rmm__record_slot(&view->record)->instance_id)
                                     : RMM_SEGMENT_NO_LIMIT;
}

/* --- commands that wait --------------------------------------------------------------- */

static int write_trim(const command_t *command)
{
    uint64_t give_bytes;
    return parse_amount(command, "all", &give_bytes)
               ? waiting_write_begin_trim(
                     command->model, command->node, give_bytes, command->wait)
               : -EINVAL;
}

static int write_resource_trim(const command_t *command)
{
    return write_trim(command);
}

static int write_mode(const command_t *command)
{
    char word[COMMAND_BYTES_MAX], unknown[DIAG_MODE_WORD_BYTES];
    uint32_t modes;
    if (!read_word(command, word)) {
        return -EINVAL;
    }
    if (!rmm__diag_modes_parse(word, &modes, unknown)) {
        diag_mode_refused(command->model, command->node, command->uid, unknown);
        return -EINVAL;
    }
    return waiting_write_begin_mode(
        command->model, command->node, modes, command->wait);
}

/* --- all ------------------------------------------------------------------------------ */

#define WRITER_READ(id) NULL
#define WRITER_OWNER(id) NULL
#define WRITER_WRITE(id) write_##id
#define WRITER_EACH(id) write_##id
#define WRITER_WAIT(id) write_##id

static int (*const writers[FILE_ID_COUNT])(const command_t *command) = {
#define FILE_ROW(id, name, access, kind, where, collect)                               \
    [FILE_##id] = WRITER_##access(id),
#include "model/tree_files.def"
    [FILE_peak_bytes] = write_peak_bytes,
    [FILE_total_bytes] = write_total_bytes,
};

int control_write(const command_t *command)
{
    node_owner_t owner;
    if (!tree_owner(command->model, command->node, &owner)) {
        return -ENOENT;
    }
    /* The kernel has checked when the file was opened; the process that has the
     * descriptor now may be another user's. */
    if (!tree_may_write(command->node, &owner, command->uid)) {
        return -EACCES;
    }
    if (command->length == 0) {
        return -EINVAL;
    }
    /* a descriptor that was opened for reading may come here too */
    return writers[command->node.file] != NULL ? writers[command->node.file](command)
                                               : -EACCES;
}
