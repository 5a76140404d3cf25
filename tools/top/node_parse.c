/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a snapshot from JSON; see node_json.h. Each value is checked before it is used. */
#include <string.h>

#include "top/json_values.h"
#include "top/node_json.h"
#include "top/sample.h"
#include "top/segments.h"

/* Its index; NODE_NO_INDEX: there is none of that name. */
static uint32_t get_device(const node_t *node, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "device"));
    return name != NULL ? node_find_device(node, name) : NODE_NO_INDEX;
}

/* --- parts -------------------------------------------------------------------------------- */

static bool take_device(node_t *node, const json_t *object)
{
    node_device_t *device = node_add_device(node);
    return device != NULL &&
           json_get_text(object, "device", device->name, sizeof(device->name)) &&
           json_get_text(object, "uuid", device->uuid, sizeof(device->uuid)) &&
           json_get_text(
               object, "pci_bus_id", device->pci_bus_id, sizeof(device->pci_bus_id)) &&
           json_get_text(object, "model", device->model, sizeof(device->model)) &&
           json_get_figure(object, "capacity_bytes", &device->capacity_bytes) &&
           json_get_figure(object, "device_free_bytes", &device->device_free_bytes) &&
           json_get_figures(object, &device->figures);
}

/* Host memory is the last one there, and the first one here. */
static bool take_devices(node_t *node, const json_t *list)
{
    size_t count = json_array_size(list);
    bool is_whole = count > 0 && count <= SAMPLE_GPUS_MAX + 1 &&
                    take_device(node, json_array_get(list, count - 1));
    for (size_t i = 0; is_whole && i + 1 < count; i++) {
        is_whole = take_device(node, json_array_get(list, i));
    }
    if (is_whole) {
        node->devices[NODE_HOST].is_host = true;
    }
    return is_whole && strcmp(node->devices[NODE_HOST].name, "host") == 0;
}

static bool take_use(node_t *node, const json_t *object)
{
    uint32_t device = get_device(node, object);
    node_use_t *use = device != NODE_NO_INDEX ? node_add_use(node) : NULL;
    if (use == NULL || !json_get_figures(object, &use->figures)) {
        return false;
    }
    use->process = node->process_count - 1;
    use->device = device;
    node->devices[device].use_count++;
    return true;
}

static bool take_resource(node_t *node, const json_t *object)
{
    uint32_t device = get_device(node, object);
    node_resource_t *resource =
        device != NODE_NO_INDEX ? node_add_resource(node) : NULL;
    if (resource == NULL) {
        return false;
    }
    resource->process = node->process_count - 1;
    resource->device = device;
    bool has_upstream = !json_is_null(json_object_get(object, "upstream_id"));
    return json_get_number(object, "instance_id", &resource->instance_id) &&
           (!has_upstream ||
            json_get_number(object, "upstream_id", &resource->upstream_id)) &&
           json_get_text(object, "name", resource->name, sizeof(resource->name)) &&
           json_get_text(object, "type", resource->type, sizeof(resource->type)) &&
           json_get_figures(object, &resource->figures) &&
           json_get_figure(object, "free_bytes", &resource->free_bytes) &&
           json_get_figure(object, "largest_free_bytes", &resource->largest_free_bytes);
}

typedef bool (*take_fn)(node_t *node, const json_t *object);

static bool take_each(node_t *node, const json_t *list, take_fn take)
{
    bool is_whole = json_is_array(list);
    for (size_t i = 0; is_whole && i < json_array_size(list); i++) {
        is_whole = take(node, json_array_get(list, i));
    }
    return is_whole;
}

static bool take_process(node_t *node, const json_t *object)
{
    node_process_t *process =
        node->process_count < SEGMENTS_MAX ? node_add_process(node) : NULL;
    uint64_t pid;
    uint32_t uid;
    if (process == NULL || !json_get_figure(object, "pid", &pid) ||
        !json_get_number(object, "uid", &uid)) {
        return false;
    }
    process->pid = pid <= INT32_MAX ? (pid_t)pid : 0;
    process->uid = uid;
    return json_get_text(object, "user", process->user, sizeof(process->user)) &&
           json_get_text(object, "comm", process->comm, sizeof(process->comm)) &&
           json_get_text(
               object, "command", process->command, sizeof(process->command)) &&
           take_each(node, json_object_get(object, "devices"), take_use) &&
           take_each(node, json_object_get(object, "resources"), take_resource);
}

/* --- the node ----------------------------------------------------------------------------- */

bool node_from_json(const json_t *json, node_t *node)
{
    uint32_t schema;
    node_clear(node);
    return json_get_number(json, "schema_version", &schema) &&
           schema == NODE_JSON_SCHEMA &&
           take_devices(node, json_object_get(json, "devices")) &&
           take_each(node, json_object_get(json, "processes"), take_process) &&
           json_get_number(json, "unreadable_programs", &node->forbidden) &&
           json_get_number(json, "implausible_programs", &node->refused) &&
           json_get_number(json, "left_out_programs", &node->left_out);
}
