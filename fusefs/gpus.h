/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU is which gpuN. Numbers are fixed when the daemon starts:
 *   1. what the driver lists in /proc/driver/nvidia/gpus (no CUDA, no NVML), in PCI order
 *   2. what the state file knows besides, in its order
 *   3. what programs bring that nobody knew, appended as it comes: MIG slices, simulated
 *      GPUs ("SIM-<n>"), GPUs of a machine without that folder
 * No number is given twice or taken away while the daemon runs.
 *
 * Threads: model lock held alone.
 */
#ifndef RMM_FUSEFS_GPUS_H
#define RMM_FUSEFS_GPUS_H

#include "model.h"

#define GPUS_DRIVER_ROOT "/proc/driver/nvidia/gpus"

/* Step 1. A root that is not there is a machine without such GPUs. */
void gpus_scan_driver(model_t *model, const char *root);

typedef struct gpu_identity {
    const char *uuid, *pci_bus_id, *name;
    uint64_t capacity_bytes; /* 0: unknown */
} gpu_identity_t;

/*
 * The number of a GPU, appended if it is new; what was unknown of it is filled in.
 * DEVICE_NONE: it has no uuid, or there are DEVICE_GPUS_MAX already.
 */
uint32_t gpus_number(model_t *model, const gpu_identity_t *identity);

#endif /* RMM_FUSEFS_GPUS_H */
