/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a snapshot of the node from segments; see sampler.h. */
#include "node/sampler.h"

#include <stdio.h>
#include <string.h>

#define RETRIES 64u /* of all slots of a program that are being written */

/* --- devices ------------------------------------------------------------------------------ */

/* Those of the driver's list have the numbers that rmmfs gives them. */
static void list_gpus(sampler_t *sampler)
{
    static rmm_driver_gpu_t listed[GPUS_MAX];
    size_t count = rmm__driver_gpus_list(rmm__driver_gpus_root(), listed, GPUS_MAX);

    for (size_t i = 0; i < count; i++) {
        gpu_of_driver(&sampler->gpus[sampler->gpu_count++], &listed[i]);
    }
}

static gpu_t *find_gpu(
    sampler_t *sampler, const gpu_t *reported,
    bool (*is_same)(const gpu_t *gpu, const gpu_t *reported))
{
    for (uint32_t i = 0; i < sampler->gpu_count; i++) {
        if (is_same(&sampler->gpus[i], reported)) {
            return &sampler->gpus[i];
        }
    }
    return NULL;
}

/* The GPU's number, which it keeps; NODE_NO_INDEX: the program does not say which GPU it is, or
 * there are too many. */
static uint32_t number_gpu(sampler_t *sampler, const rmm_segment_location_t *location)
{
    gpu_t reported, *gpu;

    gpu_of_location(&reported, location);
    if (reported.uuid[0] == '\0') {
        return NODE_NO_INDEX;
    }
    gpu = find_gpu(sampler, &reported, gpu_has_uuid_of);
    gpu = gpu != NULL ? gpu : find_gpu(sampler, &reported, gpu_is_unnamed_at);
    if (gpu == NULL && sampler->gpu_count < GPUS_MAX) {
        gpu = &sampler->gpus[sampler->gpu_count++];
        memset(gpu, 0, sizeof(*gpu));
    }
    if (gpu == NULL) {
        return NODE_NO_INDEX;
    }
    gpu_fill_in(gpu, &reported);
    return (uint32_t)(gpu - sampler->gpus);
}

static void show_gpu(const sampler_t *sampler, uint32_t index, node_device_t *device)
{
    const gpu_t *gpu = &sampler->gpus[index];

    snprintf(device->name, sizeof(device->name), "gpu%u", index);
    memcpy(device->uuid, gpu->uuid, sizeof(device->uuid));
    memcpy(device->pci_bus_id, gpu->pci_bus_id, sizeof(device->pci_bus_id));
    memcpy(device->model, gpu->name, sizeof(device->model));
    device->capacity_bytes =
        gpu->capacity_bytes != 0 ? gpu->capacity_bytes : FIGURE_UNKNOWN;
}

/* Host memory, then the GPUs that are known by now. */
static bool add_devices(const sampler_t *sampler, node_t *node)
{
    static const node_device_t host = {
        .name = "host", .is_host = true, .capacity_bytes = FIGURE_UNKNOWN};

    for (uint32_t i = 0; i <= sampler->gpu_count; i++) {
        node_device_t *device = node_add_device(node);

        if (device == NULL) {
            return false;
        }
        if (i == NODE_HOST) {
            *device = host;
        } else {
            show_gpu(sampler, i - 1, device);
        }
    }
    return true;
}

/* The sums over all programs that live. Only a daemon knows the marks of a device. */
static void sum_devices(node_t *node)
{
    for (uint32_t i = 0; i < node->use_count; i++) {
        const node_use_t *use = &node->uses[i];
        node_device_t *device = &node->devices[use->device];

        if (node->processes[use->process].is_live) {
            figures_add_to_device(&device->sum, &use->figures);
            device->use_count++;
        }
    }
    for (uint32_t i = 0; i < node->device_count; i++) {
        node_device_t *device = &node->devices[i];

        figures_end_device(&device->sum);
        device->figures = device->sum.figures;
        figures_forget_marks(&device->figures);
        device->device_free_bytes = device->figures.device_free_bytes != 0
                                        ? device->figures.device_free_bytes
                                        : FIGURE_UNKNOWN;
    }
}

/* --- locations ---------------------------------------------------------------------------- */

/* The index of the device that a location is; NODE_NO_INDEX: it is not shown. */
static uint32_t
device_of(sampler_t *sampler, uint32_t index, const rmm_record_t *record)
{
    uint32_t gpu;

    if (index == RMM_SEGMENT_HOST_LOCATION) {
        return NODE_HOST;
    }
    gpu = number_gpu(sampler, rmm__record_location(record));
    return gpu != NODE_NO_INDEX ? gpu + 1 : NODE_NO_INDEX;
}

/* Finds the locations that a program uses, and their devices, before the list of devices is made.
 * It looks again when the program has opened a location. */
static void find_locations(sampler_t *sampler, open_segment_t *one)
{
    uint32_t count = rmm__segment_location_count(&one->segment), opened = 0;
    bool has_number = rmm__segment_locations_opened(&one->segment, &opened);

    if (one->has_locations && has_number && opened == one->locations_opened) {
        return;
    }
    one->has_locations = true;
    one->locations_opened = opened;
    one->location_count = 0;
    for (uint32_t i = 0; i < count && i < RMM_SEGMENT_LOCATIONS; i++) {
        rmm_record_t record;

        if (rmm__segment_read_location(&one->segment, i, &record)) {
            one->locations[one->location_count++] =
                (open_location_t){i, device_of(sampler, i, &record)};
        }
    }
}

/* --- a program ---------------------------------------------------------------------------- */

typedef struct taking {
    node_t *node;
    open_segment_t *one;
    uint32_t process, first_use;
} taking_t;

static void note_lie(taking_t *taking, figure_lie_t lie)
{
    taking->one->is_odd = taking->one->is_odd || lie.name != NULL;
}

/* NODE_NO_INDEX: not shown. */
static uint32_t device_at(const taking_t *taking, uint32_t location)
{
    for (uint32_t i = 0; i < taking->one->location_count; i++) {
        if (taking->one->locations[i].index == location) {
            return taking->one->locations[i].device;
        }
    }
    return NODE_NO_INDEX;
}

static bool take_location(taking_t *taking, uint32_t location)
{
    const rmm_segment_t *segment = &taking->one->segment;
    uint32_t device = device_at(taking, location);
    rmm_record_t record;
    node_use_t *use;

    if (device == NODE_NO_INDEX ||
        !rmm__segment_read_location(segment, location, &record)) {
        return true;
    }
    use = node_add_use(taking->node);
    if (use == NULL) {
        return false;
    }
    use->process = taking->process;
    use->device = device;
    use->location = location;
    note_lie(taking, figures_of_location(segment, &record, &use->figures));
    return true;
}

/* Adds what is free in a resource to the program's use of its location. */
static void add_free(taking_t *taking, uint32_t location, const figures_t *resource)
{
    node_t *node = taking->node;

    for (uint32_t i = taking->first_use; i < node->use_count; i++) {
        if (node->uses[i].location == location) {
            figures_add_free(&node->uses[i].figures, resource);
        }
    }
}

/* Not all resources were read. */
static void forget_free(taking_t *taking)
{
    node_t *node = taking->node;

    for (uint32_t i = taking->first_use; i < node->use_count; i++) {
        figures_forget_free(&node->uses[i].figures);
    }
}

static bool take_slot(taking_t *taking, uint32_t index, uint32_t *tries_left)
{
    const rmm_segment_t *segment = &taking->one->segment;
    const rmm_segment_slot_t *slot;
    node_resource_t *resource;
    rmm_record_t record;
    uint32_t device;

    if (!rmm__segment_read_slot_within(segment, index, &record, NULL, tries_left)) {
        return true;
    }
    slot = rmm__record_slot(&record);
    device = device_at(taking, slot->location);
    if (device == NODE_NO_INDEX) {
        return true;
    }
    resource = node_add_resource(taking->node);
    if (resource == NULL) {
        return false;
    }
    resource->process = taking->process;
    resource->device = device;
    resource->slot = index;
    resource->instance_id = slot->instance_id;
    resource->upstream_id = slot->upstream_id;
    memcpy(resource->name, slot->name, sizeof(resource->name));
    memcpy(resource->type, slot->type, sizeof(resource->type));
    note_lie(taking, figures_of_slot(segment, &record, &resource->figures));
    add_free(taking, slot->location, &resource->figures);
    return true;
}

static bool take_resources(taking_t *taking)
{
    uint32_t count = rmm__segment_slot_count(&taking->one->segment);
    uint32_t tries_left = RETRIES;
    bool is_whole = true;

    for (uint32_t i = 0; is_whole && i < count && i < SAMPLER_RESOURCES_MAX; i++) {
        is_whole = take_slot(taking, i, &tries_left);
    }
    if (count > SAMPLER_RESOURCES_MAX || tries_left == 0) {
        forget_free(taking);
    }
    return is_whole;
}

static bool add_process(const taking_t *taking)
{
    const open_segment_t *one = taking->one;
    node_process_t *process = node_add_process(taking->node);

    if (process == NULL) {
        return false;
    }
    process->id = one->id;
    process->pid = one->pid;
    process->uid = one->segment.uid;
    process->is_live = one->is_live;
    memcpy(process->user, one->user, sizeof(process->user));
    process->group = one->group;
    memcpy(process->comm, one->segment.header.comm, sizeof(process->comm));
    memcpy(process->command, one->segment.header.cmdline, sizeof(process->command));
    return true;
}

static bool take_process(open_segment_t *one, node_t *node)
{
    taking_t taking = {node, one, node->process_count, node->use_count};
    bool is_whole = add_process(&taking);

    one->is_odd = false;
    for (uint32_t i = 0; is_whole && i < one->location_count; i++) {
        is_whole = take_location(&taking, one->locations[i].index);
    }
    is_whole = is_whole && take_resources(&taking);
    node->refused += one->is_odd;
    return is_whole;
}

/* --- the node ----------------------------------------------------------------------------- */

bool sampler_init(sampler_t *sampler, char *message, size_t message_bytes)
{
    memset(sampler, 0, sizeof(*sampler));
    list_gpus(sampler);
    return segments_init(&sampler->segments, message, message_bytes);
}

int sampler_init_at(sampler_t *sampler, const char *path)
{
    memset(sampler, 0, sizeof(*sampler));
    list_gpus(sampler);
    return segments_init_at(&sampler->segments, path);
}

void sampler_fini(sampler_t *sampler)
{
    segments_fini(&sampler->segments);
}

bool sampler_take(sampler_t *sampler, node_t *node)
{
    segments_t *segments = &sampler->segments;
    bool is_whole;

    node_clear(node);
    if (!segments_list(segments)) {
        return false;
    }
    for (uint32_t i = 0; i < segments->count; i++) {
        find_locations(sampler, segments->list[i]);
    }
    is_whole = add_devices(sampler, node);
    for (uint32_t i = 0; is_whole && i < segments->count; i++) {
        is_whole = take_process(segments->list[i], node);
    }
    sum_devices(node);
    node->forbidden = segments->forbidden;
    node->refused += segments->refused;
    node->left_out = segments->left_out;
    return is_whole;
}
