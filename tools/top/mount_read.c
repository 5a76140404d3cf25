/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `json` and command lines of a tree; see mount_read.h. */
#include "top/mount_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "core/numbers.h"
#include "segment/list.h"
#include "top/json_values.h"
#include "top/node_json.h"

#define TREE_VERSION "1"

bool mount_read_init(mount_reading_t *reading, const char *path)
{
    memset(reading, 0, sizeof(*reading));
    snprintf(reading->path, sizeof(reading->path), "%s", path);
    node_init(&reading->node);
    reading->has_memory = true;
    return mount_helper_start(&reading->helper);
}

void mount_read_stop(mount_reading_t *reading)
{
    mount_helper_stop(&reading->helper);
}

void mount_read_fini(mount_reading_t *reading)
{
    mount_helper_stop(&reading->helper);
    mount_helper_fini(&reading->helper);
    node_fini(&reading->node);
    free(reading->programs);
    free(reading->text);
    memset(reading, 0, sizeof(*reading));
    reading->helper.fd = -1;
}

__attribute__((format(printf, 2, 3))) static bool
say(mount_reading_t *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reading->reason, sizeof(reading->reason), format, arguments);
    va_end(arguments);
    return false;
}

/* --- files -------------------------------------------------------------------------------- */

/* A file of the tree: at most bytes - 1, terminated; -1 with errno. */
static ssize_t
read_file(mount_reading_t *reading, const char *name, char *text, size_t bytes)
{
    char path[MOUNT_PATH_BYTES + 80];
    snprintf(path, sizeof(path), "%s/%s", reading->path, name);
    return mount_helper_read(&reading->helper, path, text, bytes);
}

/* The whole of it, into reading->text. */
static bool read_json_text(mount_reading_t *reading, size_t *length_out)
{
    for (size_t room = reading->text_room != 0 ? reading->text_room : 65536;;
         room *= 2) {
        if (room > reading->text_room) {
            char *larger = realloc(reading->text, room);
            if (larger == NULL) {
                reading->has_memory = false;
                return false;
            }
            reading->text = larger;
            reading->text_room = room;
        }
        ssize_t got = read_file(reading, "json", reading->text, room);
        if (got < 0) {
            return say(reading, "json: %s", strerror(errno));
        }
        if ((size_t)got + 1 < room) {
            *length_out = (size_t)got;
            return true;
        }
        if (room >= MOUNT_JSON_BYTES_MAX) {
            return say(reading, "json is too long");
        }
    }
}

/* --- programs ----------------------------------------------------------------------------- */

static void read_command(mount_reading_t *reading, mount_program_t *program)
{
    char path[80], text[sizeof(program->command) + 1];
    snprintf(path, sizeof(path), "proc/%s/cmdline", program->name);
    if (strchr(program->name, '/') == NULL &&
        read_file(reading, path, text, sizeof(text)) > 0) {
        text[strcspn(text, "\n")] = '\0';
        rmm__text_copy(program->command, sizeof(program->command), text);
    }
}

static mount_program_t *
find_program(const mount_reading_t *reading, const char *name, uint64_t start_time_ns)
{
    for (uint32_t i = 0; i < reading->program_count; i++) {
        mount_program_t *program = &reading->programs[i];
        if (program->start_time_ns == start_time_ns &&
            strcmp(program->name, name) == 0) {
            return program;
        }
    }
    return NULL;
}

/* NULL: no memory. */
static mount_program_t *add_program(mount_reading_t *reading)
{
    mount_program_t *larger = rmm__list_make_room(
        reading->programs, reading->program_count, &reading->program_room,
        sizeof(*larger));
    if (larger == NULL) {
        return NULL;
    }
    reading->programs = larger;
    return &larger[reading->program_count++];
}

/* NULL: no memory. */
static mount_program_t *
find_or_add(mount_reading_t *reading, const json_t *object, uid_t uid)
{
    char name[sizeof(reading->programs[0].name)];
    uint64_t start_time_ns;
    (void)json_get_text(object, "pid", name, sizeof(name));
    (void)json_get_figure(object, "start_time_ns", &start_time_ns);
    mount_program_t *program = find_program(reading, name, start_time_ns);
    if (program == NULL && (program = add_program(reading)) != NULL) {
        *program =
            (mount_program_t){.start_time_ns = start_time_ns, .id = ++reading->last_id};
        memcpy(program->name, name, sizeof(name));
        node_name_user(uid, program->user, sizeof(program->user));
        read_command(reading, program);
    }
    return program;
}

/* A node_meet_fn. */
static bool meet(void *arg, const json_t *object, node_process_t *process)
{
    mount_program_t *program = find_or_add(arg, object, process->uid);
    uint64_t pid = 0;
    if (program == NULL) {
        return false;
    }
    program->is_seen = true;
    process->id = program->id;
    if (rmm__number_parse(program->name, strlen(program->name), &pid) ==
            RMM_NUMBER_OK &&
        pid <= INT32_MAX) {
        process->pid = (pid_t)pid;
    }
    memcpy(process->user, program->user, sizeof(process->user));
    memcpy(process->command, program->command, sizeof(process->command));
    return true;
}

static void forget_ended(mount_reading_t *reading)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < reading->program_count; i++) {
        if (reading->programs[i].is_seen) {
            reading->programs[i].is_seen = false;
            reading->programs[kept++] = reading->programs[i];
        }
    }
    reading->program_count = kept;
}

/* --- the node ----------------------------------------------------------------------------- */

static void take_json(mount_reading_t *reading)
{
    json_error_t error;
    size_t length = 0;
    if (!read_json_text(reading, &length)) {
        return;
    }
    uint64_t now_ns = clock_ns();
    json_t *json = json_loadb(reading->text, length, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        (void)say(reading, "json is damaged");
        return;
    }
    node_parsed_t parsed = node_from_json(json, meet, reading, &reading->node);
    json_decref(json);
    reading->has_memory = parsed != NODE_NO_MEMORY;
    if (parsed == NODE_IS_NONE) {
        (void)say(reading, "json is not that of a node");
    }
    reading->node.time_ns = now_ns;
    forget_ended(reading);
}

void mount_read(mount_reading_t *reading)
{
    char version[16];
    reading->reason[0] = '\0';
    if (mount_helper_open_directory(&reading->helper, reading->path) != 0) {
        (void)say(reading, "%s", strerror(errno));
        return;
    }
    ssize_t got = read_file(reading, "version", version, sizeof(version));
    if (got < 0 && errno == ENOENT) {
        (void)say(reading, "rmmfs is not mounted there");
    } else if (got < 0) {
        (void)say(reading, "%s", strerror(errno));
    } else if (strcmp(version, TREE_VERSION "\n") != 0) {
        (void)say(reading, "its version is not " TREE_VERSION);
    } else {
        take_json(reading);
    }
}
