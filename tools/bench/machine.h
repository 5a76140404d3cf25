/* SPDX-License-Identifier: Apache-2.0 */
/* The machine on which figures were measured: what is needed to judge or repeat them. */
#ifndef RMM_TOOLS_BENCH_MACHINE_H
#define RMM_TOOLS_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#define MACHINE_TEXT_MAX 128

/* "" is unknown. */
typedef struct machine {
    char cpu[MACHINE_TEXT_MAX];
    long cores; /* that this process may use */
    char kernel[MACHINE_TEXT_MAX];
    char gpu[MACHINE_TEXT_MAX];
    char gpu_driver[MACHINE_TEXT_MAX]; /* version of the kernel module */
    size_t gpu_bytes;
    const char *driver; /* rmm_driver_name() */
    bool is_simulated;
    double clock_ns; /* what reading the clock adds to each single operation */
} machine_t;

/* After the first use of a device; false: see the last error. */
bool machine_ask(machine_t *machine);

#endif /* RMM_TOOLS_BENCH_MACHINE_H */
