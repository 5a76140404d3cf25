/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a snapshot of the node from segments; see sample.h. */
#include "top/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "segment/driver_gpus.h"

/* More than 57 bits of address space hold, and more than a program can count, is a lie. */
#define GAUGE_MAX (UINT64_C(1) << 57)
#define COUNTER_MAX (UINT64_C(1) << 63)
#define RETRIES 64u /* of all slots of a program that are being written */

/* --- figures ------------------------------------------------------------------------------ */

static uint64_t
checked(open_segment_t *one, bool is_known, uint64_t value, uint64_t below)
{
    if (is_known && value >= below) {
        one->is_odd = true;
    }
    return is_known && value < below ? value : NODE_UNKNOWN;
}

/* Both kinds of records have these by the same names. */
#define BELOW_current_bytes GAUGE_MAX
#define BELOW_reserved_bytes GAUGE_MAX
#define BELOW_padding_bytes GAUGE_MAX
#define BELOW_peak_bytes GAUGE_MAX
#define BELOW_total_count COUNTER_MAX
#define BELOW_freed_count COUNTER_MAX
#define BELOW_oom_count COUNTER_MAX

static void take_location_figures(
    open_segment_t *one, const rmm_record_t *record, node_figures_t *figures)
{
    uint64_t value = 0;
    bool is_known;
#define X(name)                                                                        \
    is_known = rmm_segment_location_stat(                                              \
        &one->segment, record, RMM_LOCATION_STAT_##name, &value);                      \
    figures->name = checked(one, is_known, value, BELOW_##name);
    NODE_FIGURES(X)
#undef X
}

static void take_slot_figures(
    open_segment_t *one, const rmm_record_t *record, node_resource_t *resource)
{
    uint64_t value = 0;
    bool is_known;
#define TAKE(target, name, below)                                                      \
    is_known =                                                                         \
        rmm_segment_slot_stat(&one->segment, record, RMM_SLOT_STAT_##name, &value);    \
    (target) = checked(one, is_known, value, below);
#define X(name) TAKE(resource->figures.name, name, BELOW_##name)
    NODE_FIGURES(X)
#undef X
    TAKE(resource->free_bytes, free_bytes, GAUGE_MAX)
    TAKE(resource->largest_free_bytes, largest_free_bytes, GAUGE_MAX)
#undef TAKE
}

/* --- devices ------------------------------------------------------------------------------ */

static node_device_t *add_gpu(sampler_t *sampler)
{
    uint32_t index = sampler->gpu_count++;
    node_device_t *gpu = &sampler->gpus[index];
    memset(gpu, 0, sizeof(*gpu));
    snprintf(gpu->name, sizeof(gpu->name), "gpu%u", index);
    gpu->capacity_bytes = NODE_UNKNOWN;
    return gpu;
}

/* Of the driver's list, in PCI order: their numbers are those that rmmfs gives them. */
static void list_gpus(sampler_t *sampler)
{
    static rmm_driver_gpu_t listed[SAMPLE_GPUS_MAX];
    size_t count =
        rmm__driver_gpus_list(rmm__driver_gpus_root(), listed, SAMPLE_GPUS_MAX);
    for (size_t i = 0; i < count; i++) {
        node_device_t *gpu = add_gpu(sampler);
        memcpy(gpu->uuid, listed[i].uuid, sizeof(gpu->uuid));
        memcpy(gpu->pci_bus_id, listed[i].pci_bus_id, sizeof(gpu->pci_bus_id));
        memcpy(gpu->model, listed[i].name, sizeof(gpu->model));
    }
}

/* The driver hides the uuid of a GPU until a process uses it. */
static bool is_same(const node_device_t *gpu, const node_device_t *told)
{
    return gpu->uuid[0] != '\0' ? strcmp(gpu->uuid, told->uuid) == 0
                                : rmm__gpu_uuid_is_whole(told->uuid) &&
                                      strcmp(gpu->pci_bus_id, told->pci_bus_id) == 0;
}

static node_device_t *find_gpu(sampler_t *sampler, const node_device_t *told)
{
    for (uint32_t i = 0; i < sampler->gpu_count; i++) {
        if (is_same(&sampler->gpus[i], told)) {
            return &sampler->gpus[i];
        }
    }
    return NULL;
}

static void read_told(const rmm_segment_location_t *location, node_device_t *told)
{
    memset(told, 0, sizeof(*told));
    rmm__gpu_uuid_copy(told->uuid, sizeof(told->uuid), location->uuid);
    rmm__gpu_pci_bus_id_copy(
        told->pci_bus_id, sizeof(told->pci_bus_id), location->pci_bus_id);
    memcpy(told->model, location->name, sizeof(told->model));
    told->capacity_bytes =
        location->capacity_bytes != 0 && location->capacity_bytes < GAUGE_MAX
            ? location->capacity_bytes
            : NODE_UNKNOWN;
}

/* What was not known yet. */
static void fill_in(node_device_t *gpu, const node_device_t *told)
{
    if (gpu->uuid[0] == '\0') {
        memcpy(gpu->uuid, told->uuid, sizeof(gpu->uuid));
    }
    if (gpu->pci_bus_id[0] == '\0') {
        memcpy(gpu->pci_bus_id, told->pci_bus_id, sizeof(gpu->pci_bus_id));
    }
    if (gpu->model[0] == '\0') {
        memcpy(gpu->model, told->model, sizeof(gpu->model));
    }
    if (gpu->capacity_bytes == NODE_UNKNOWN) {
        gpu->capacity_bytes = told->capacity_bytes;
    }
}

/* Its number, which it keeps; NODE_NO_INDEX: it says not which GPU it is, or there are too many. */
static uint32_t number_gpu(sampler_t *sampler, const rmm_segment_location_t *location)
{
    node_device_t told;
    read_told(location, &told);
    if (told.uuid[0] == '\0') {
        return NODE_NO_INDEX;
    }
    node_device_t *gpu = find_gpu(sampler, &told);
    if (gpu == NULL && sampler->gpu_count < SAMPLE_GPUS_MAX) {
        gpu = add_gpu(sampler);
    }
    if (gpu == NULL) {
        return NODE_NO_INDEX;
    }
    fill_in(gpu, &told);
    return (uint32_t)(gpu - sampler->gpus);
}

/* Each program queried the driver at some time; which did so last is not known, so the least. */
static void take_device_free(node_device_t *device, uint64_t told)
{
    if (told != 0 && device->capacity_bytes != NODE_UNKNOWN &&
        told <= device->capacity_bytes && told < device->device_free_bytes) {
        device->device_free_bytes = told;
    }
}

/* Host memory, then the GPUs that are known by now. */
static bool add_devices(const sampler_t *sampler, node_t *node)
{
    static const node_device_t host = {
        .name = "host", .is_host = true, .capacity_bytes = NODE_UNKNOWN};
    for (uint32_t i = 0; i <= sampler->gpu_count; i++) {
        node_device_t *device = node_add_device(node);
        if (device == NULL) {
            return false;
        }
        *device = i == NODE_HOST ? host : sampler->gpus[i - 1];
        device->device_free_bytes = NODE_UNKNOWN;
        device->figures.peak_bytes = NODE_UNKNOWN; /* only a daemon knows it */
    }
    return true;
}

/* --- a program ---------------------------------------------------------------------------- */

typedef struct taking {
    sampler_t *sampler;
    node_t *node;
    open_segment_t *one;
    uint32_t process;
} taking_t;

/* NODE_NO_INDEX: not shown. */
static uint32_t
device_of(sampler_t *sampler, uint32_t index, const rmm_record_t *record)
{
    if (index == RMM_SEGMENT_HOST_LOCATION) {
        return NODE_HOST;
    }
    uint32_t gpu = number_gpu(sampler, rmm_record_location(record));
    return gpu != NODE_NO_INDEX ? gpu + 1 : NODE_NO_INDEX;
}

/* Which locations a program uses, and which devices these are; before the list of devices is
 * made. Looked for again when the program opens one. */
static void find_locations(sampler_t *sampler, open_segment_t *one)
{
    uint32_t count = rmm_segment_location_count(&one->segment), opened = 0;
    bool has_number = rmm_segment_locations_opened(&one->segment, &opened);
    if (one->has_locations && has_number && opened == one->locations_opened) {
        return;
    }
    one->has_locations = true;
    one->locations_opened = opened;
    one->location_count = 0;
    for (uint32_t i = 0; i < count && i < RMM_SEGMENT_LOCATIONS; i++) {
        rmm_record_t record;
        if (rmm_segment_read_location(&one->segment, i, &record)) {
            one->locations[one->location_count++] =
                (open_location_t){i, device_of(sampler, i, &record)};
        }
    }
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
    rmm_record_t record;
    uint32_t device = device_at(taking, location);
    if (device == NODE_NO_INDEX ||
        !rmm_segment_read_location(&taking->one->segment, location, &record)) {
        return true;
    }
    node_use_t *use = node_add_use(taking->node);
    if (use == NULL) {
        return false;
    }
    use->process = taking->process;
    use->device = device;
    use->location = location;
    take_location_figures(taking->one, &record, &use->figures);
    node_device_t *sum = &taking->node->devices[device];
    if (sum->use_count++ == 0) {
        sum->figures = use->figures;
    } else {
        node_figures_add(&sum->figures, &use->figures);
    }
    sum->figures.peak_bytes = NODE_UNKNOWN;
    take_device_free(sum, rmm_record_location(&record)->device_free_bytes);
    return true;
}

static bool take_slot(taking_t *taking, uint32_t index, uint32_t *tries_left)
{
    rmm_record_t record;
    if (!rmm_segment_read_slot_within(
            &taking->one->segment, index, &record, NULL, tries_left)) {
        return true;
    }
    const rmm_segment_slot_t *slot = rmm_record_slot(&record);
    uint32_t device = device_at(taking, slot->location);
    if (device == NODE_NO_INDEX) {
        return true;
    }
    node_resource_t *resource = node_add_resource(taking->node);
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
    take_slot_figures(taking->one, &record, resource);
    return true;
}

static bool take_resources(taking_t *taking)
{
    uint32_t count = rmm_segment_slot_count(&taking->one->segment);
    uint32_t tries_left = RETRIES;
    bool is_whole = true;
    for (uint32_t i = 0; is_whole && i < count && i < SAMPLE_RESOURCES_MAX; i++) {
        is_whole = take_slot(taking, i, &tries_left);
    }
    return is_whole;
}

static bool add_process(taking_t *taking)
{
    const open_segment_t *one = taking->one;
    taking->process = taking->node->process_count;
    node_process_t *process = node_add_process(taking->node);
    if (process == NULL) {
        return false;
    }
    process->id = one->id;
    process->pid = one->pid;
    process->uid = one->segment.uid;
    memcpy(process->user, one->user, sizeof(process->user));
    memcpy(process->comm, one->segment.header.comm, sizeof(process->comm));
    memcpy(process->command, one->segment.header.cmdline, sizeof(process->command));
    return true;
}

static bool take_process(taking_t *taking)
{
    bool is_whole = add_process(taking);
    taking->one->is_odd = false;
    for (uint32_t i = 0; is_whole && i < taking->one->location_count; i++) {
        is_whole = take_location(taking, taking->one->locations[i].index);
    }
    is_whole = is_whole && take_resources(taking);
    taking->node->refused += taking->one->is_odd;
    return is_whole;
}

/* --- the node ----------------------------------------------------------------------------- */

bool sampler_init(sampler_t *sampler, char *message, size_t message_bytes)
{
    memset(sampler, 0, sizeof(*sampler));
    list_gpus(sampler);
    return segments_init(&sampler->segments, message, message_bytes);
}

void sampler_fini(sampler_t *sampler)
{
    segments_fini(&sampler->segments);
}

bool sampler_take(sampler_t *sampler, node_t *node)
{
    segments_t *segments = &sampler->segments;
    node_clear(node);
    if (!segments_list(segments)) {
        return false;
    }
    node->time_ns = clock_ns();
    for (uint32_t i = 0; i < segments->count; i++) {
        find_locations(sampler, segments->list[i]);
    }
    bool is_whole = add_devices(sampler, node);
    for (uint32_t i = 0; is_whole && i < segments->count; i++) {
        taking_t taking = {sampler, node, segments->list[i], 0};
        is_whole = take_process(&taking);
    }
    node->forbidden = segments->forbidden;
    node->refused += segments->refused;
    node->left_out = segments->left_out;
    return is_whole;
}
