/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs that the NVIDIA driver lists in /proc, in PCI order, without CUDA and NVML: so all who
 * show the node call the same GPU gpu0. And how a GPU's names are cleaned, which programs publish
 * and which become names of files and columns of tables.
 *
 * Threads: any.
 */
#ifndef RMM_SEGMENT_DRIVER_GPUS_H
#define RMM_SEGMENT_DRIVER_GPUS_H

#include <stdbool.h>
#include <stddef.h>

/* /proc/driver/nvidia/gpus; for tests RMM_NVIDIA_PROC names another folder. */
const char *rmm__driver_gpus_root(void);

typedef struct rmm_driver_gpu {
    unsigned domain, bus, slot, function;
    char pci_bus_id[24];
    char uuid[48]; /* "": the driver hides it until a process uses the GPU */
    char name[64]; /* the model */
    int error; /* errno: its file cannot be read, so uuid and name are not known; else 0 */
} rmm_driver_gpu_t;

/* Their number, `room` at most; 0 also where there is no such folder. */
size_t rmm__driver_gpus_list(const char *root, rmm_driver_gpu_t *gpus, size_t room);

/* The one on this bus, queried anew; pci_bus_id as cleaned below. False: none is listed there. */
bool rmm__driver_gpus_find(
    const char *root, const char *pci_bus_id, rmm_driver_gpu_t *gpu_out);

/* Letters, digits, '-', '_', '.': a uuid is the name of a link. "" instead of "host", which names
 * the memory of the host. */
void rmm__gpu_uuid_copy(char *to, size_t bytes, const char *from);
/* "0000:3B:00.0" and "00000000:3b:00.0" are the same bus; "" if it is none. */
void rmm__gpu_pci_bus_id_copy(char *to, size_t bytes, const char *from);
/* '?' for control characters. */
void rmm__gpu_name_copy(char *to, size_t bytes, const char *from);

/* A uuid of a whole GPU, not of a MIG slice, which shares its bus. */
bool rmm__gpu_uuid_is_whole(const char *uuid);

#endif /* RMM_SEGMENT_DRIVER_GPUS_H */
