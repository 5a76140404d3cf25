/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of control groups on the memory of GPUs: the kernel's controller dmem, which Linux has
 * since 6.14 in version 2 of control groups (Documentation/admin-guide/cgroup-v2.rst, "DMEM"). The
 * drivers amdgpu and xe count for it; NVIDIA's (580) does not, and then nothing here finds a limit.
 *
 * A limit binds the group and all groups below it. Without cgroup2, without the controller, or if a
 * file cannot be read, there is no limit: the driver still refuses what the kernel forbids.
 *
 * Threads: any. Makes system calls, and none of CUDA or HIP.
 */
#ifndef RMM_CORE_DMEM_H
#define RMM_CORE_DMEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_DMEM_UNLIMITED UINT64_MAX

/* Of a group, on one GPU: the sums over its regions of video memory. */
typedef struct rmm_dmem {
    uint64_t current_bytes; /* in use by the group and those below it */
    uint64_t low_bytes; /* not evicted while others have more than theirs; 0: none */
    uint64_t max_bytes; /* RMM_DMEM_UNLIMITED: none */
} rmm_dmem_t;

/* The path of a process in cgroup2, "/" at least, from the text of /proc/<pid>/cgroup. False: it is
 * in none, or its group is outside of what this process can see ("/../"). */
bool rmm__dmem_group(const char *text, char path_out[PATH_MAX]);

/* Makes a group's path that of its parent. False: it was "/". */
bool rmm__dmem_parent(char path[PATH_MAX]);

/* The sum of one file, whose lines are "drm/0000:03:00.0/vram0 1048576" or "... max", over the
 * video memory of the GPU. False: the file does not name it. */
bool rmm__dmem_parse(const char *text, const char *pci_bus_id, uint64_t *bytes_out);

/* False: the group does not limit the GPU, protects nothing on it, or is unknown. */
bool rmm__dmem_read(const char *path, const char *pci_bus_id, rmm_dmem_t *out);

/* Whether the controller counts anything for this process; if not, none of its GPUs has a limit. */
bool rmm__dmem_is_on(void);

/* What this process' groups let it take from the GPU; RMM_DMEM_UNLIMITED: no limit. */
uint64_t rmm__dmem_room(const char *pci_bus_id);

#endif /* RMM_CORE_DMEM_H */
