/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands; see control.h.
 */
#include "control.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
    state_save(model);
    return 0;
}

/* A request to one segment; NOT_CONCERNED: it has nothing of what it is about. */
enum { NOT_CONCERNED = 1 };
typedef int (*request_fn)(member_t *member, const void *arg);

/* To every segment of a process that lives, up to the first error. -ESRCH, -EOPNOTSUPP: there
 * is none that can be asked. */
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

static int reset_resource(model_t *model, node_t node)
{
    member_t *member = model_member(model, node.serial);
    slot_view_t view;
    if (member == NULL || !slots_find(member, node.id, &view)) {
        return -ENOENT;
    }
    if (member->state != MEMBER_LIVE) {
        return -ESRCH;
    }
    return member->has_control
               ? rmm_control_reset_slot_peak(&member->control, view.index)
               : -EOPNOTSUPP;
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

/* --- all ------------------------------------------------------------------------------ */

int control_write(
    model_t *model, node_t node, uid_t uid, const char *bytes, size_t length)
{
    node_info_t info;
    if (!tree_info(model, node, &info)) {
        return -ENOENT;
    }
    /* The kernel has checked when the file was opened; whoever has the descriptor now
     * may be somebody else. */
    if ((info.mode & S_IWUSR) == 0 || (uid != 0 && uid != info.uid)) {
        return -EACCES;
    }
    if (length == 0) {
        return -EINVAL;
    }
    switch (node.file) {
    case FILE_peak_bytes:
        return reset_peak(model, node);
    case FILE_LOG_LEVEL:
        return node.dir == DIR_PROCESS
                   ? set_process_log_level(model, node, bytes, length)
                   : set_log_level(bytes, length);
    case FILE_ENABLE:
        return set_trace(model, node, bytes, length);
    default:
        return -EACCES;
    }
}
