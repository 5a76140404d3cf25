/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of `limits`; see limit_lines.h. */
#include "control/limit_lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "model/node_events.h"
#include "model/state.h"
#include "programs/sharing_out.h"
#include "segment/job_label.h"
#include "support/daemon_log.h"

#define LINE_BYTES_MAX 320
#define WORDS_MAX 4u
#define PASSWD "/etc/passwd"

/* --- refusing ------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int
refuse(const command_t *command, int error, const char *format, ...)
{
    char reason[LINE_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    log_of_user(command->uid, LOG_LEVEL_WARN, "limits: %s", reason);
    node_event_t event;
    node_event_init(&event, EVENT_ERROR, command->uid, 0, "");
    event.is_private = true;
    (void)snprintf(event.text, sizeof(event.text), "limits: %.100s", reason);
    node_events_note(command->model->events, &event);
    return error;
}

/* --- words ---------------------------------------------------------------------------- */

/* Cuts the line. 0: too long, or bytes that are no text. */
static uint32_t
split(const command_t *command, char line[LINE_BYTES_MAX], char *words[WORDS_MAX + 1])
{
    size_t length = command->length;
    uint32_t count = 0;
    char *rest;
    if (length >= LINE_BYTES_MAX || memchr(command->bytes, '\0', length) != NULL) {
        return 0;
    }
    memcpy(line, command->bytes, length);
    line[length > 0 && line[length - 1] == '\n' ? length - 1 : length] = '\0';
    if (line[strcspn(line, "\n")] != '\0') {
        return 0;
    }
    for (char *word = strtok_r(line, " \t", &rest); word != NULL && count <= WORDS_MAX;
         word = strtok_r(NULL, " \t", &rest)) {
        words[count++] = word;
    }
    return count;
}

static bool parse_uid(const char *word, uid_t *uid_out)
{
    uint64_t number;
    bool good = rmm__number_parse(word, strlen(word), &number) == RMM_NUMBER_OK &&
                number < UINT32_MAX;
    *uid_out = good ? (uid_t)number : 0;
    return good;
}

/* No directory service is asked, which might not answer. */
static bool find_user(const char *name, uid_t *uid_out)
{
    char line[512];
    size_t length = strlen(name);
    bool is_found = false;
    FILE *file = fopen(PASSWD, "re");
    if (file == NULL) {
        return false;
    }
    while (!is_found && fgets(line, sizeof(line), file) != NULL) {
        char *password = line + length + 1;
        if (strncmp(line, name, length) == 0 && line[length] == ':' &&
            strchr(password, ':') != NULL) {
            char *uid = strchr(password, ':') + 1;
            uid[strcspn(uid, ":")] = '\0';
            is_found = parse_uid(uid, uid_out);
        }
    }
    (void)fclose(file);
    return is_found;
}

static bool parse_device(const model_t *model, const char *word, uint32_t *device_out)
{
    uint64_t number;
    if (strcmp(word, "all") == 0) {
        *device_out = LIMIT_EACH_GPU;
    } else if (strcmp(word, "host") == 0) {
        *device_out = DEVICE_HOST;
    } else if (
        strncmp(word, "gpu", 3) == 0 &&
        rmm__number_parse(word + 3, strlen(word + 3), &number) == RMM_NUMBER_OK &&
        number < model->gpu_count) {
        *device_out = (uint32_t)number;
    } else {
        return false;
    }
    return true;
}

static bool parse_amount(const char *word, uint64_t *bytes_out)
{
    *bytes_out = UINT64_MAX;
    return strcmp(word, "none") == 0 || strcmp(word, "max") == 0 ||
           (rmm__number_parse_bytes(word, strlen(word), bytes_out) == RMM_NUMBER_OK &&
            *bytes_out <= INT64_MAX);
}

/* --- who ------------------------------------------------------------------------------ */

static bool is_manager(const command_t *command)
{
    return command->uid == 0 || command->uid == command->model->uid;
}

static int name_user(const command_t *command, const char *word, limit_t *limit)
{
    if (!parse_uid(word, &limit->uid) && !find_user(word, &limit->uid)) {
        return refuse(
            command, -EINVAL, "no user '%s' in " PASSWD "; write a number", word);
    }
    (void)snprintf(limit->name, sizeof(limit->name), "%u", (unsigned)limit->uid);
    if (!is_manager(command) && limit->uid != command->uid) {
        return refuse(
            command, -EPERM, "user %u may not limit user %s", (unsigned)command->uid,
            word);
    }
    return 0;
}

/* Names in the tree are printable words of this length at most. */
static int name_job(const command_t *command, const char *word, limit_t *limit)
{
    if (strlen(word) >= JOB_NAME_BYTES ||
        (limit->kind == JOB_LABEL && !rmm__job_label_is_valid(word))) {
        return refuse(
            command, -EINVAL, "'%.80s' cannot be the name of a %s", word,
            limit_kind_name(limit->kind));
    }
    (void)snprintf(limit->name, sizeof(limit->name), "%s", word);
    limit->uid = command->uid == 0 ? LIMIT_ANY_USER : command->uid;
    return 0;
}

static int check_device_limit(const command_t *command, const limit_t *limit)
{
    if (limit->device == LIMIT_EACH_GPU) {
        return refuse(command, -EINVAL, "write a line for each GPU: gpu gpu0 BYTES");
    }
    return is_manager(command)
               ? 0
               : refuse(command, -EPERM, "only root may limit a GPU as a whole");
}

/* --- setting -------------------------------------------------------------------------- */

static int set(const command_t *command, limit_t *limit)
{
    char group[LIMIT_GROUP_BYTES];
    limit->set_by = command->uid == command->model->uid ? 0 : command->uid;
    limit_print_group(limit, group);
    int error = limits_set(&command->model->limits, limit);
    switch (error) {
    case 0:
        state_want(command->model);
        sharing_out(command->model, true);
        return 0;
    case -EPERM:
        return refuse(command, error, "root has set the limit of %s", group);
    case -EDQUOT:
        return refuse(
            command, error, "no more than %u limits of one user, %u of all",
            LIMITS_OF_USER, LIMITS_MAX);
    default:
        return error;
    }
}

static int read_group(const command_t *command, char *const *words, limit_t *limit)
{
    const char *device = words[limit->kind == LIMIT_OF_DEVICE ? 1 : 2];
    if (!parse_device(command->model, device, &limit->device)) {
        return refuse(
            command, -EINVAL, "no device '%.40s': gpuN of this node, host, or all",
            device);
    }
    return limit->kind == LIMIT_OF_DEVICE ? check_device_limit(command, limit)
           : limit->kind == JOB_USER      ? name_user(command, words[1], limit)
                                          : name_job(command, words[1], limit);
}

int limit_line_write(const command_t *command)
{
    char line[LINE_BYTES_MAX], *words[WORDS_MAX + 1];
    limit_t limit = {.kind = LIMIT_OF_DEVICE, .uid = 0};
    uint32_t count = split(command, line, words);
    if (count < 3 || !limit_kind_parse(words[0], &limit.kind) ||
        count != (limit.kind == LIMIT_OF_DEVICE ? 3 : 4)) {
        return refuse(
            command, -EINVAL,
            "write one line: user|slurm_job|slurm_step|pod|container|unit|label NAME "
            "gpuN|host|all BYTES|none, or gpu gpuN BYTES|none");
    }
    if (!parse_amount(words[count - 1], &limit.limit_bytes)) {
        return refuse(
            command, -EINVAL, "'%.40s' is no amount: bytes, 8GiB, or none",
            words[count - 1]);
    }
    int error = read_group(command, words, &limit);
    return error == 0 ? set(command, &limit) : error;
}

int limit_device_write(const command_t *command, uint64_t limit_bytes)
{
    limit_t limit = {
        .kind = LIMIT_OF_DEVICE,
        .device = command->node.id,
        .limit_bytes = limit_bytes};
    return set(command, &limit);
}

uint64_t limit_of_device(const model_t *model, uint32_t device)
{
    const limit_t like = {.kind = LIMIT_OF_DEVICE, .device = device};
    const limit_t *limit = limits_find(&model->limits, &like);
    return limit != NULL ? limit->limit_bytes : UINT64_MAX;
}
