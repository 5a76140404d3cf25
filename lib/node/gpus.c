/* SPDX-License-Identifier: Apache-2.0 */
/* Describes and compares GPUs; see gpus.h. */
#include "node/gpus.h"

#include <string.h>

#include "node/figures.h"

void gpu_of_report(
    gpu_t *gpu, const char *uuid, const char *pci_bus_id, const char *name,
    uint64_t capacity_bytes)
{
    memset(gpu, 0, sizeof(*gpu));
    rmm__gpu_uuid_copy(gpu->uuid, sizeof(gpu->uuid), uuid);
    rmm__gpu_pci_bus_id_copy(gpu->pci_bus_id, sizeof(gpu->pci_bus_id), pci_bus_id);
    rmm__gpu_name_copy(gpu->name, sizeof(gpu->name), name);
    gpu->capacity_bytes = capacity_bytes < FIGURE_GAUGE_MAX ? capacity_bytes : 0;
}

void gpu_of_location(gpu_t *gpu, const rmm_segment_location_t *location)
{
    gpu_of_report(
        gpu, location->uuid, location->pci_bus_id, location->name,
        location->capacity_bytes);
}

void gpu_of_driver(gpu_t *gpu, const rmm_driver_gpu_t *listed)
{
    memset(gpu, 0, sizeof(*gpu));
    strcpy(gpu->uuid, listed->uuid);
    strcpy(gpu->pci_bus_id, listed->pci_bus_id);
    strcpy(gpu->name, listed->name);
    gpu->is_listed = true;
}

bool gpu_has_uuid_of(const gpu_t *gpu, const gpu_t *reported)
{
    return strcmp(gpu->uuid, reported->uuid) == 0;
}

bool gpu_is_unnamed_at(const gpu_t *gpu, const gpu_t *reported)
{
    return gpu->uuid[0] == '\0' && gpu->pci_bus_id[0] != '\0' &&
           strcmp(gpu->pci_bus_id, reported->pci_bus_id) == 0 &&
           rmm__gpu_uuid_is_whole(reported->uuid);
}

void gpu_fill_in(gpu_t *gpu, const gpu_t *reported)
{
    if (gpu->uuid[0] == '\0') {
        strcpy(gpu->uuid, reported->uuid);
    }
    if (gpu->pci_bus_id[0] == '\0') {
        strcpy(gpu->pci_bus_id, reported->pci_bus_id);
    }
    if (gpu->name[0] == '\0') {
        strcpy(gpu->name, reported->name);
    }
    if (gpu->capacity_bytes == 0) {
        gpu->capacity_bytes = reported->capacity_bytes;
    }
}
