/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of each GPU: which one is gpuN. The daemon fixes the numbers when it
 * starts:
 *   1. GPUs that the driver lists, in PCI order (segment/driver_gpus.h)
 *   2. further GPUs of the state file, in its order
 *   3. further GPUs that programs report, in the order of the reports: MIG slices, simulated
 *      GPUs ("SIM-<n>"), GPUs of a machine without that folder
 * While the daemon runs, it neither reuses nor removes a number.
 *
 * A program cannot override what the driver lists about a GPU. It can only add what the
 * driver does not list: the first report counts, and for the capacity always a report by root
 * or the daemon's user. A GPU that only programs report is charged to the user of the first
 * report (budget.h).
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_GPUS_H
#define RMM_FUSEFS_GPUS_H

#include "model/model.h"

/* Step 1. A root that is not there is a machine without such GPUs. It is borrowed: the
 * driver is queried again for the uuid of a GPU that it did not report. */
void gpus_scan_driver(model_t *model, const char *root);

typedef struct gpu_identity {
    const char *uuid, *pci_bus_id, *name;
    uint64_t capacity_bytes; /* 0: unknown */
    uid_t uid;               /* whose program reports it */
} gpu_identity_t;

/*
 * The number of a GPU, appended if it is new; what was unknown of it is filled in.
 * DEVICE_NONE, logged at the first of each user: it has no uuid, or the user has reported
 * too many.
 */
uint32_t gpus_number(model_t *model, const gpu_identity_t *identity);

#endif /* RMM_FUSEFS_GPUS_H */
