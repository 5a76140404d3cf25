/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of GPUs, and whether two of them are of the same one. All who show the node
 * number GPUs by the same rules: first those that the driver lists, in PCI order
 * (segment/driver_gpus.h), then those that only programs report, in the order of their reports.
 *
 * The driver hides the uuid of a GPU that no process has used yet. A program that reports the
 * uuid of a whole GPU (not of a MIG slice, which shares its bus) names the GPU on that bus.
 *
 * Threads: any; there is no state.
 */
#ifndef RMM_NODE_GPUS_H
#define RMM_NODE_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/driver_gpus.h"
#include "segment/segment_format.h"

#define GPUS_MAX 128u /* a bound against a hostile program, not a request */

typedef struct gpu {
    char uuid[48];       /* "" while unknown */
    char pci_bus_id[24]; /* lower case; "" if unknown */
    char name[64];
    uint64_t capacity_bytes; /* 0: unknown */
    bool is_listed;          /* by the driver */
} gpu_t;

/* The GPU that a program or the state file describes; its texts are cleaned. */
void gpu_of_report(
    gpu_t *gpu, const char *uuid, const char *pci_bus_id, const char *name,
    uint64_t capacity_bytes);
void gpu_of_location(gpu_t *gpu, const rmm_segment_location_t *location);
/* The GPU that the driver lists. */
void gpu_of_driver(gpu_t *gpu, const rmm_driver_gpu_t *listed);

/* By its uuid; by its bus, while its uuid is not known. The first is asked of all GPUs before the
 * second. */
bool gpu_has_uuid_of(const gpu_t *gpu, const gpu_t *reported);
bool gpu_is_unnamed_at(const gpu_t *gpu, const gpu_t *reported);

/* Add to a GPU what was not known of it. */
void gpu_fill_in(gpu_t *gpu, const gpu_t *reported);

#endif /* RMM_NODE_GPUS_H */
