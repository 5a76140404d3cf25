/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program takes from the driver directly, and that a diagnosis reports: see
 * program_memory.c. rmm/sys/diag.h has the calls of the diagnosis.
 */
#ifndef RMM_RESOURCES_PROGRAM_MEMORY_H
#define RMM_RESOURCES_PROGRAM_MEMORY_H

#include <stdbool.h>

/* The sums of the device (-1: the host) contain what the program takes from the driver: it has
 * taken some, and counting has not ended. Any thread. */
bool rmm__program_memory_is_counted(int device);

#endif /* RMM_RESOURCES_PROGRAM_MEMORY_H */
