/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a snapshot as JSON; see node_json.h. */
#include "top/node_json.h"

#include "common/json.h"

static bool put_figure(json_t *object, const char *key, uint64_t value)
{
    return json_put(object, key, json_count_or_null(value != FIGURE_UNKNOWN, value));
}

static bool
put_figures(json_t *object, const figure_name_t *names, const figures_t *figures)
{
    bool is_whole = true;
    for (; is_whole && names->name != NULL; names++) {
        is_whole =
            put_figure(object, names->name, figure_value(figures, names->offset));
    }
    return is_whole;
}

/* Which node of several; nothing where there is only one. */
static bool put_site(json_t *object, const node_t *node, uint32_t site)
{
    return node->site_count == 0 ||
           json_put(object, "node", json_string(node->sites[site].name));
}

static json_t *device_json(const node_t *node, const node_device_t *device)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        object != NULL && put_site(object, node, device->site) &&
            json_put(object, "device", json_string(device->name)) &&
            json_put(object, "uuid", json_text_or_null(device->uuid)) &&
            json_put(object, "pci_bus_id", json_text_or_null(device->pci_bus_id)) &&
            json_put(object, "model", json_text_or_null(device->model)) &&
            put_figure(object, "capacity_bytes", device->capacity_bytes) &&
            put_figure(object, "device_free_bytes", device->device_free_bytes) &&
            put_figure(object, "others_bytes", node_others_bytes(device)) &&
            put_figures(object, figures_of_locations, &device->figures));
}

static bool is_silent(const node_t *node, uint32_t site)
{
    return node->site_count > 0 && node->sites[site].reason[0] != '\0';
}

/* Of each node GPUs by number, then host memory. */
static json_t *devices_json(const node_t *node)
{
    json_t *array = json_array();
    bool is_whole = array != NULL;
    for (uint32_t host = 0, i = 0; is_whole && i < node->device_count; host = i) {
        for (i = host + 1; i < node->device_count && !node->devices[i].is_host; i++) {
        }
        for (uint32_t j = host + 1; is_whole && j <= i; j++) {
            const node_device_t *device = &node->devices[j < i ? j : host];
            is_whole = is_silent(node, device->site) ||
                       json_array_append_new(array, device_json(node, device)) == 0;
        }
    }
    return json_whole_or_null(array, is_whole);
}

static json_t *site_json(const void *from, size_t i)
{
    const node_site_t *site = &((const node_t *)from)->sites[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object, object != NULL && json_put(object, "node", json_string(site->name)) &&
                    json_put(object, "error", json_text_or_null(site->reason)));
}

static json_t *use_json(const node_t *node, const node_use_t *use)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        object != NULL &&
            json_put(object, "device", json_string(node->devices[use->device].name)) &&
            put_figures(object, figures_of_locations, &use->figures));
}

static json_t *resource_json(const node_t *node, const node_resource_t *resource)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        object != NULL &&
            json_put(object, "instance_id", json_count(resource->instance_id)) &&
            json_put(
                object, "upstream_id",
                json_count_or_null(
                    resource->upstream_id != 0, resource->upstream_id)) &&
            json_put(object, "name", json_text_or_null(resource->name)) &&
            json_put(object, "type", json_text_or_null(resource->type)) &&
            json_put(
                object, "device", json_string(node->devices[resource->device].name)) &&
            put_figures(object, figures_of_resources, &resource->figures));
}

static json_t *uses_json(const node_t *node, uint32_t process)
{
    json_t *array = json_array();
    bool is_whole = array != NULL;
    for (uint32_t i = 0; is_whole && i < node->use_count; i++) {
        if (node->uses[i].process == process) {
            is_whole =
                json_array_append_new(array, use_json(node, &node->uses[i])) == 0;
        }
    }
    return json_whole_or_null(array, is_whole);
}

static json_t *resources_json(const node_t *node, uint32_t process)
{
    json_t *array = json_array();
    bool is_whole = array != NULL;
    for (uint32_t i = 0; is_whole && i < node->resource_count; i++) {
        if (node->resources[i].process == process) {
            is_whole = json_array_append_new(
                           array, resource_json(node, &node->resources[i])) == 0;
        }
    }
    return json_whole_or_null(array, is_whole);
}

/* To whom it belongs; the keys are those of rmmfs. */
static bool put_groups(json_t *object, const cgroup_t *group)
{
    return json_put(object, "slurm_job", json_text_or_null(group->job)) &&
           json_put(object, "slurm_step", json_text_or_null(group->step)) &&
           json_put(object, "pod_uid", json_text_or_null(group->pod)) &&
           json_put(object, "container", json_text_or_null(group->container)) &&
           json_put(object, "unit", json_text_or_null(group->unit));
}

static json_t *process_json(const void *from, size_t i)
{
    const node_t *node = from;
    const node_process_t *process = &node->processes[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object, object != NULL && put_site(object, node, process->site) &&
                    json_put(
                        object, "pid",
                        json_count_or_null(process->pid > 0, (uint64_t)process->pid)) &&
                    json_put(object, "uid", json_count(process->uid)) &&
                    json_put(object, "user", json_text_or_null(process->user)) &&
                    json_put(object, "comm", json_text_or_null(process->comm)) &&
                    json_put(object, "command", json_text_or_null(process->command)) &&
                    put_groups(object, &process->group) &&
                    json_put(object, "devices", uses_json(node, (uint32_t)i)) &&
                    json_put(object, "resources", resources_json(node, (uint32_t)i)));
}

json_t *node_json(const node_t *node)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        object != NULL &&
            json_put(object, "schema_version", json_integer(NODE_JSON_SCHEMA)) &&
            (node->site_count == 0 ||
             json_put(
                 object, "nodes", json_array_of(node->site_count, site_json, node))) &&
            json_put(object, "devices", devices_json(node)) &&
            json_put(
                object, "processes",
                json_array_of(node->process_count, process_json, node)) &&
            json_put(object, "unreadable_programs", json_count(node->forbidden)) &&
            json_put(object, "implausible_programs", json_count(node->refused)) &&
            json_put(object, "left_out_programs", json_count(node->left_out)));
}
