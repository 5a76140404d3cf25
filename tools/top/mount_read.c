/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `json` and command lines of a tree; see mount_read.h. */
#include "top/mount_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "core/numbers.h"
#include "top/json_values.h"
#include "top/list.h"
#include "top/sample.h"
#include "top/segments.h"

#define TREE_VERSION "1"
#define TREE_SCHEMA 1u

void mount_read_init(mount_reading_t *reading, const char *path)
{
    memset(reading, 0, sizeof(*reading));
    snprintf(reading->path, sizeof(reading->path), "%s", path);
    node_init(&reading->node);
    reading->has_memory = true;
}

void mount_read_fini(mount_reading_t *reading)
{
    node_fini(&reading->node);
    free(reading->programs);
    free(reading->text);
    memset(reading, 0, sizeof(*reading));
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

/* At most bytes - 1, terminated; -1 with errno. */
static ssize_t read_file(int dirfd, const char *name, char *text, size_t bytes)
{
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = fd >= 0 ? 1 : -1;
    while (got > 0 && used + 1 < bytes) {
        got = read(fd, text + used, bytes - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    text[used] = '\0';
    errno = error;
    return got < 0 ? -1 : (ssize_t)used;
}

/* The whole of it, into reading->text. */
static bool read_json_text(mount_reading_t *reading, int dirfd, size_t *length_out)
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
        ssize_t got = read_file(dirfd, "json", reading->text, room);
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

static void name_user(mount_program_t *program, uid_t uid)
{
    const struct passwd *user = getpwuid(uid);
    char number[16];
    snprintf(number, sizeof(number), "%u", (unsigned)uid);
    rmm__text_copy(
        program->user, sizeof(program->user), user != NULL ? user->pw_name : number);
}

static void read_command(mount_program_t *program, int dirfd)
{
    char path[80], text[sizeof(program->command) + 1];
    snprintf(path, sizeof(path), "proc/%s/cmdline", program->name);
    if (strchr(program->name, '/') == NULL &&
        read_file(dirfd, path, text, sizeof(text)) > 0) {
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
static mount_program_t *
meet(mount_reading_t *reading, int dirfd, const json_t *object, uid_t uid)
{
    char name[sizeof(reading->programs[0].name)];
    uint64_t start_time_ns;
    (void)json_get_text(object, "pid", name, sizeof(name));
    (void)json_get_figure(object, "start_time_ns", &start_time_ns);
    mount_program_t *program = find_program(reading, name, start_time_ns);
    if (program == NULL) {
        mount_program_t *larger = list_make_room(
            reading->programs, reading->program_count, &reading->program_room,
            sizeof(*larger));
        if (larger == NULL) {
            return NULL;
        }
        reading->programs = larger;
        program = &larger[reading->program_count++];
        *program =
            (mount_program_t){.start_time_ns = start_time_ns, .id = ++reading->last_id};
        memcpy(program->name, name, sizeof(name));
        name_user(program, uid);
        read_command(program, dirfd);
    }
    program->is_seen = true;
    return program;
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

/* A snapshot that is made; is_true: the tree says what it must. */
typedef struct making {
    mount_reading_t *reading;
    int dirfd;
    bool is_true;
} making_t;

/* Totals of a device include those of programs that have ended, whose blocks are gone. */
static void free_ended(const json_t *object, node_figures_t *figures)
{
    uint64_t live;
    if (json_get_figure(object, "current_count", &live) && live != NODE_UNKNOWN &&
        figures->total_count != NODE_UNKNOWN && live <= figures->total_count) {
        figures->freed_count = figures->total_count - live;
    }
}

static bool take_device(making_t *making, const json_t *object)
{
    node_device_t *device = node_add_device(&making->reading->node);
    if (device == NULL) {
        return false;
    }
    making->is_true =
        json_get_text(object, "device", device->name, sizeof(device->name)) &&
        device->name[0] != '\0';
    (void)json_get_text(object, "uuid", device->uuid, sizeof(device->uuid));
    (void)json_get_text(
        object, "pci_bus_id", device->pci_bus_id, sizeof(device->pci_bus_id));
    (void)json_get_text(object, "name", device->model, sizeof(device->model));
    (void)json_get_figure(object, "capacity_bytes", &device->capacity_bytes);
    (void)json_get_figure(object, "device_free_bytes", &device->device_free_bytes);
    (void)json_get_figures(object, &device->figures);
    free_ended(object, &device->figures);
    return true;
}

/* Host memory is the last one there, and the first one here. */
static bool take_devices(making_t *making, const json_t *list)
{
    node_t *node = &making->reading->node;
    size_t count = json_array_size(list);
    making->is_true = count > 0 && count <= SAMPLE_GPUS_MAX + 1;
    for (size_t i = 0; making->is_true && i < count; i++) {
        if (!take_device(making, json_array_get(list, i == 0 ? count - 1 : i - 1))) {
            return false;
        }
    }
    if (making->is_true) {
        node->devices[NODE_HOST].is_host = true;
        making->is_true = strcmp(node->devices[NODE_HOST].name, "host") == 0;
    }
    return true;
}

static bool take_resource(making_t *making, const json_t *object, uint32_t device)
{
    node_t *node = &making->reading->node;
    node_resource_t *resource = node_add_resource(node);
    char name[sizeof(resource->name)];
    if (resource == NULL) {
        return false;
    }
    resource->process = node->process_count - 1;
    resource->device = device;
    (void)json_get_number(object, "instance_id", &resource->instance_id);
    (void)json_get_number(object, "upstream_id", &resource->upstream_id);
    (void)json_get_text(object, "type", resource->type, sizeof(resource->type));
    (void)json_get_text(object, "resource", name, sizeof(name)); /* <id>.<name> */
    const char *point = strchr(name, '.');
    rmm__text_copy(
        resource->name, sizeof(resource->name), point != NULL ? point + 1 : name);
    (void)json_get_figures(object, &resource->figures);
    (void)json_get_figure(object, "free_bytes", &resource->free_bytes);
    (void)json_get_figure(object, "largest_free_bytes", &resource->largest_free_bytes);
    return true;
}

static bool take_use(making_t *making, const json_t *object)
{
    node_t *node = &making->reading->node;
    const char *name = json_string_value(json_object_get(object, "device"));
    uint32_t device = name != NULL ? node_find_device(node, name) : NODE_NO_INDEX;
    making->is_true = device != NODE_NO_INDEX;
    if (!making->is_true) {
        return true;
    }
    node_use_t *use = node_add_use(node);
    if (use == NULL) {
        return false;
    }
    use->process = node->process_count - 1;
    use->device = device;
    node->devices[device].use_count++;
    (void)json_get_figures(object, &use->figures);
    const json_t *resources = json_object_get(object, "resources");
    bool is_whole = true;
    for (size_t i = 0; is_whole && i < json_array_size(resources); i++) {
        is_whole = take_resource(making, json_array_get(resources, i), device);
    }
    return is_whole;
}

static bool add_process(making_t *making, const json_t *object)
{
    uint32_t uid = 0;
    uint64_t pid = 0;
    making->is_true = json_get_number(object, "uid", &uid);
    const mount_program_t *program =
        meet(making->reading, making->dirfd, object, (uid_t)uid);
    node_process_t *process =
        program != NULL ? node_add_process(&making->reading->node) : NULL;
    if (process == NULL) {
        return false;
    }
    process->id = program->id;
    process->uid = (uid_t)uid;
    if (rmm__number_parse(program->name, strlen(program->name), &pid) ==
            RMM_NUMBER_OK &&
        pid <= INT32_MAX) {
        process->pid = (pid_t)pid;
    }
    (void)json_get_text(object, "comm", process->comm, sizeof(process->comm));
    memcpy(process->user, program->user, sizeof(process->user));
    memcpy(process->command, program->command, sizeof(process->command));
    return true;
}

static bool take_process(making_t *making, const json_t *object)
{
    node_t *node = &making->reading->node;
    const char *state = json_string_value(json_object_get(object, "state"));
    const json_t *uses = json_object_get(object, "devices");
    if (state == NULL || strcmp(state, "live") != 0) {
        node->refused += state != NULL && strcmp(state, "unreadable") == 0;
        return true;
    }
    if (node->process_count >= SEGMENTS_MAX) {
        node->left_out++;
        return true;
    }
    bool is_whole = add_process(making, object);
    for (size_t i = 0; is_whole && making->is_true && i < json_array_size(uses); i++) {
        is_whole = take_use(making, json_array_get(uses, i));
    }
    return is_whole;
}

/* False: no memory. */
static bool take_all(making_t *making, const json_t *json)
{
    const json_t *processes = json_object_get(json, "processes");
    uint32_t schema;
    node_clear(&making->reading->node);
    making->is_true = json_get_number(json, "schema_version", &schema) &&
                      schema == TREE_SCHEMA && json_is_array(processes);
    bool is_whole =
        !making->is_true || take_devices(making, json_object_get(json, "devices"));
    for (size_t i = 0; is_whole && making->is_true && i < json_array_size(processes);
         i++) {
        is_whole = take_process(making, json_array_get(processes, i));
    }
    return is_whole;
}

static void take_json(mount_reading_t *reading, int dirfd)
{
    json_error_t error;
    size_t length = 0;
    if (!read_json_text(reading, dirfd, &length)) {
        return;
    }
    uint64_t now_ns = clock_ns();
    json_t *json = json_loadb(reading->text, length, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        (void)say(reading, "json is damaged");
        return;
    }
    making_t making = {reading, dirfd, true};
    reading->has_memory = take_all(&making, json);
    json_decref(json);
    if (!making.is_true) {
        (void)say(reading, "json is not that of a node");
    }
    reading->node.time_ns = now_ns;
    forget_ended(reading);
}

void mount_read(mount_reading_t *reading)
{
    char version[16];
    reading->reason[0] = '\0';
    int dirfd = open(reading->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0) {
        (void)say(reading, "%s", strerror(errno));
        return;
    }
    ssize_t got = read_file(dirfd, "version", version, sizeof(version));
    if (got < 0 && errno == ENOENT) {
        (void)say(reading, "rmmfs is not mounted there");
    } else if (got < 0) {
        (void)say(reading, "%s", strerror(errno));
    } else if (strcmp(version, TREE_VERSION "\n") != 0) {
        (void)say(reading, "its version is not " TREE_VERSION);
    } else {
        take_json(reading, dirfd);
    }
    close(dirfd);
}
