/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a snapshot from JSON; see node_json.h. rmmfs lists resources below the device of a program,
 * rmm-top below the program; some keys differ. Each value is checked before it is used.
 */
#include <string.h>

#include "node/sampler.h"
#include "node/segments.h"
#include "top/json_values.h"
#include "top/node_json.h"

typedef struct parsing {
    node_t *node;
    node_meet_fn meet;
    void *arg;
    uint32_t device; /* whose resources are read; NODE_NO_INDEX: each says it */
    bool has_memory;
} parsing_t;

typedef bool (*take_fn)(parsing_t *parsing, const json_t *object);

static bool take_each(parsing_t *parsing, const json_t *list, take_fn take)
{
    bool is_whole = list == NULL || json_is_array(list);
    for (size_t i = 0; is_whole && i < json_array_size(list); i++) {
        is_whole = take(parsing, json_array_get(list, i));
    }
    return is_whole;
}

/* A new entry of the node; NULL: no memory. */
static void *added(parsing_t *parsing, void *entry)
{
    parsing->has_memory = parsing->has_memory && entry != NULL;
    return entry;
}

/* Its index; NODE_NO_INDEX: there is none of that name. */
static uint32_t get_device(const node_t *node, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "device"));
    return name != NULL ? node_find_device(node, name) : NODE_NO_INDEX;
}

/* --- devices ------------------------------------------------------------------------------ */

static bool take_device(parsing_t *parsing, const json_t *object)
{
    node_device_t *device = added(parsing, node_add_device(parsing->node));
    const char *model = json_object_get(object, "model") != NULL ? "model" : "name";
    return device != NULL &&
           json_get_text(object, "device", device->name, sizeof(device->name)) &&
           device->name[0] != '\0' &&
           json_get_text(object, "uuid", device->uuid, sizeof(device->uuid)) &&
           json_get_text(
               object, "pci_bus_id", device->pci_bus_id, sizeof(device->pci_bus_id)) &&
           json_get_text(object, model, device->model, sizeof(device->model)) &&
           json_get_figure(object, "capacity_bytes", &device->capacity_bytes) &&
           json_get_figure(object, "device_free_bytes", &device->device_free_bytes) &&
           json_get_figures(object, figures_of_locations, &device->figures);
}

/* Host memory is the last one there, and the first one here. */
static bool take_devices(parsing_t *parsing, const json_t *list)
{
    node_device_t *devices;
    size_t count = json_array_size(list);
    bool is_whole = count > 0 && count <= GPUS_MAX + 1 &&
                    take_device(parsing, json_array_get(list, count - 1));
    for (size_t i = 0; is_whole && i + 1 < count; i++) {
        is_whole = take_device(parsing, json_array_get(list, i));
    }
    if (!is_whole) {
        return false;
    }
    devices = parsing->node->devices;
    devices[NODE_HOST].is_host = true;
    return strcmp(devices[NODE_HOST].name, "host") == 0;
}

/* --- programs ----------------------------------------------------------------------------- */

/* "<id>.<name>" as `resource`, or the name alone. */
static bool get_resource_name(const json_t *object, char *name, size_t bytes)
{
    const json_t *with_id = json_object_get(object, "resource");
    const char *text = json_string_value(with_id);
    const char *point = text != NULL ? strchr(text, '.') : NULL;
    if (with_id == NULL) {
        return json_get_text(object, "name", name, bytes);
    }
    rmm__text_copy(name, bytes, point != NULL ? point + 1 : text);
    return text != NULL;
}

static bool take_resource(parsing_t *parsing, const json_t *object)
{
    node_t *node = parsing->node;
    uint32_t device =
        parsing->device != NODE_NO_INDEX ? parsing->device : get_device(node, object);
    node_resource_t *resource =
        device != NODE_NO_INDEX ? added(parsing, node_add_resource(node)) : NULL;
    if (resource == NULL) {
        return false;
    }
    resource->process = node->process_count - 1;
    resource->device = device;
    return json_get_number(object, "instance_id", &resource->instance_id) &&
           json_get_number(object, "upstream_id", &resource->upstream_id) &&
           get_resource_name(object, resource->name, sizeof(resource->name)) &&
           json_get_text(object, "type", resource->type, sizeof(resource->type)) &&
           json_get_figures(object, figures_of_resources, &resource->figures);
}

static bool take_resources(parsing_t *parsing, const json_t *object, uint32_t device)
{
    parsing->device = device;
    return take_each(parsing, json_object_get(object, "resources"), take_resource);
}

static bool take_use(parsing_t *parsing, const json_t *object)
{
    node_t *node = parsing->node;
    uint32_t device = get_device(node, object);
    node_use_t *use =
        device != NODE_NO_INDEX ? added(parsing, node_add_use(node)) : NULL;
    if (use == NULL || !json_get_figures(object, figures_of_locations, &use->figures)) {
        return false;
    }
    use->process = node->process_count - 1;
    use->device = device;
    node->devices[device].use_count++;
    return take_resources(parsing, object, device);
}

static bool identify(parsing_t *parsing, const json_t *object, node_process_t *process)
{
    uint64_t pid;
    if (parsing->meet != NULL) {
        parsing->has_memory = parsing->meet(parsing->arg, object, process);
        return parsing->has_memory;
    }
    if (!json_get_figure(object, "pid", &pid)) {
        return false;
    }
    process->pid = pid <= INT32_MAX ? (pid_t)pid : 0;
    return json_get_text(object, "user", process->user, sizeof(process->user)) &&
           json_get_text(object, "command", process->command, sizeof(process->command));
}

static bool get_groups(const json_t *object, cgroup_t *group)
{
    return json_get_text(object, "slurm_job", group->job, sizeof(group->job)) &&
           json_get_text(object, "slurm_step", group->step, sizeof(group->step)) &&
           json_get_text(object, "pod_uid", group->pod, sizeof(group->pod)) &&
           json_get_text(
               object, "container", group->container, sizeof(group->container)) &&
           json_get_text(object, "unit", group->unit, sizeof(group->unit));
}

static bool add_process(parsing_t *parsing, const json_t *object)
{
    node_process_t *process = added(parsing, node_add_process(parsing->node));
    uint32_t uid;
    if (process == NULL || !json_is_integer(json_object_get(object, "uid")) ||
        !json_get_number(object, "uid", &uid)) {
        return false;
    }
    process->uid = uid;
    process->is_live = true;
    return json_get_text(object, "comm", process->comm, sizeof(process->comm)) &&
           get_groups(object, &process->group) && identify(parsing, object, process) &&
           take_each(parsing, json_object_get(object, "devices"), take_use) &&
           take_resources(parsing, object, NODE_NO_INDEX);
}

/* rmmfs lists programs that have ended, and those that it cannot read. */
static bool take_process(parsing_t *parsing, const json_t *object)
{
    node_t *node = parsing->node;
    const json_t *state = json_object_get(object, "state");
    const char *word = json_string_value(state);
    if (state != NULL && (word == NULL || strcmp(word, "live") != 0)) {
        node->refused += word != NULL && strcmp(word, "unreadable") == 0;
        return true;
    }
    if (node->process_count >= SEGMENTS_MAX) {
        node->left_out++;
        return true;
    }
    return add_process(parsing, object);
}

/* --- the node ----------------------------------------------------------------------------- */

node_parsed_t
node_from_json(const json_t *json, node_meet_fn meet, void *arg, node_t *node)
{
    parsing_t parsing = {.node = node, .meet = meet, .arg = arg, .has_memory = true};
    const json_t *processes = json_object_get(json, "processes");
    uint32_t schema;
    node_clear(node);
    bool is_whole = json_get_number(json, "schema_version", &schema) &&
                    schema == (meet != NULL ? TREE_JSON_SCHEMA : NODE_JSON_SCHEMA) &&
                    json_is_array(processes) &&
                    json_get_number(json, "unreadable_programs", &node->forbidden) &&
                    json_get_number(json, "implausible_programs", &node->refused) &&
                    json_get_number(json, "left_out_programs", &node->left_out) &&
                    take_devices(&parsing, json_object_get(json, "devices")) &&
                    take_each(&parsing, processes, take_process);
    if (!parsing.has_memory) {
        return NODE_NO_MEMORY;
    }
    return is_whole ? NODE_PARSED : NODE_IS_NONE;
}
