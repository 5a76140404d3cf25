/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of the GPU is in the segment, so that no call of the driver is needed here; the
 * version of its driver is what the kernel module says of itself.
 */
#include "bench/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <rmm/device.h>
#include <rmm/resource_spec.h>

#include "bench/own_segment.h"
#include "common/clock.h"

#define CLOCK_READS 10000

/* The text after `label` and blanks or a colon, in the first line that begins with the label. */
static void
find_in_file(const char *path, const char *label, char text[MACHINE_TEXT_MAX])
{
    char line[512];
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, label, strlen(label)) == 0) {
            const char *value = line + strlen(label);
            value += strspn(value, " \t:");
            snprintf(text, MACHINE_TEXT_MAX, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release ..." */
static void find_driver(char text[MACHINE_TEXT_MAX])
{
    char line[MACHINE_TEXT_MAX] = "";
    find_in_file("/proc/driver/nvidia/version", "NVRM version:", line);
    const char *version = strstr(line, "  ");
    if (version != NULL) {
        version += strspn(version, " ");
        snprintf(text, MACHINE_TEXT_MAX, "%.*s", (int)strcspn(version, " "), version);
    }
}

/* The name of the current device; nothing if this process publishes nothing. */
static bool find_gpu(char text[MACHINE_TEXT_MAX])
{
    rmm_resource_t *first_use;
    rmm_segment_t segment;
    rmm_record_t record;
    if (rmm_resource_create_from_spec("cuda", &first_use) != RMM_OK) {
        return false;
    }
    if (own_segment_open(&segment)) {
        for (uint32_t i = 0; i < rmm__segment_location_count(&segment); i++) {
            if (rmm__segment_read_location(&segment, i, &record) &&
                strcmp(rmm__record_location(&record)->uuid, "host") != 0) {
                snprintf(
                    text, MACHINE_TEXT_MAX, "%s", rmm__record_location(&record)->name);
                break;
            }
        }
        rmm__segment_close(&segment);
    }
    rmm_resource_release(first_use);
    return true;
}

static double clock_cost(void)
{
    uint64_t begin = clock_ns(), end = begin;
    for (int i = 0; i < CLOCK_READS; i++) {
        end = clock_ns();
    }
    return (double)(end - begin) / CLOCK_READS;
}

bool machine_ask(machine_t *machine)
{
    size_t free_bytes;
    struct utsname name;
    cpu_set_t cpus;
    *machine = (machine_t){.clock_ns = clock_cost()};
    find_in_file("/proc/cpuinfo", "model name", machine->cpu);
    machine->cores =
        sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    if (uname(&name) == 0) {
        snprintf(
            machine->kernel, sizeof machine->kernel, "%.60s %.60s", name.sysname,
            name.release);
    }
    if (!find_gpu(machine->gpu) ||
        rmm_available_device_memory(&free_bytes, &machine->gpu_bytes) != RMM_OK) {
        return false;
    }
    machine->driver = rmm_driver_name();
    machine->is_simulated = strcmp(machine->driver, "sim") == 0;
    if (strcmp(machine->driver, "cuda") == 0) {
        find_driver(machine->gpu_driver);
    }
    return true;
}
