/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's list of GPUs; see driver_gpus.h. */
#include "segment/driver_gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names ---------------------------------------------------------------------------- */

void rmm__gpu_uuid_copy(char *to, size_t bytes, const char *from)
{
    size_t length = 0;
    for (; from[length] != '\0' && length + 1 < bytes; length++) {
        char c = from[length];
        bool good = isalnum((unsigned char)c) || c == '-' || c == '_' ||
                    (c == '.' && length > 0);
        to[length] = good ? c : '_';
    }
    to[length] = '\0';
    if (strcmp(to, "host") == 0) {
        to[0] = '\0';
    }
}

void rmm__gpu_pci_bus_id_copy(char *to, size_t bytes, const char *from)
{
    unsigned domain, bus, slot, function;
    if (sscanf(from, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4) {
        (void)snprintf(to, bytes, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    } else {
        to[0] = '\0';
    }
}

void rmm__gpu_name_copy(char *to, size_t bytes, const char *from)
{
    size_t length = 0;
    for (; from[length] != '\0' && length + 1 < bytes; length++) {
        to[length] = iscntrl((unsigned char)from[length]) ? '?' : from[length];
    }
    to[length] = '\0';
}

bool rmm__gpu_uuid_is_whole(const char *uuid)
{
    return strncmp(uuid, "GPU-", 4) == 0;
}

/* --- one GPU -------------------------------------------------------------------------- */

/* "Model: \t\t NVIDIA H200" into the field of that key. */
static void take_line(rmm_driver_gpu_t *gpu, char *line)
{
    char *colon = strchr(line, ':');
    char *value;
    if (colon == NULL) {
        return;
    }
    *colon = '\0';
    value = colon + 1;
    value += strspn(value, " \t");
    value[strcspn(value, "\n")] = '\0';
    if (strcmp(line, "Model") == 0) {
        rmm__gpu_name_copy(gpu->name, sizeof(gpu->name), value);
    } else if (strcmp(line, "GPU UUID") == 0 && strchr(value, '?') == NULL) {
        rmm__gpu_uuid_copy(gpu->uuid, sizeof(gpu->uuid), value);
    }
}

/* The folder is named after the bus id, in the driver's own spelling. False: it is none. */
static bool read_gpu(const char *root, const char *name, rmm_driver_gpu_t *gpu)
{
    char path[512], line[256];
    FILE *file;
    memset(gpu, 0, sizeof(*gpu));
    if (sscanf(
            name, "%x:%x:%x.%x", &gpu->domain, &gpu->bus, &gpu->slot, &gpu->function) !=
        4) {
        return false;
    }
    rmm__gpu_pci_bus_id_copy(gpu->pci_bus_id, sizeof(gpu->pci_bus_id), name);
    (void)snprintf(path, sizeof(path), "%s/%s/information", root, name);
    file = fopen(path, "re");
    if (file == NULL) {
        gpu->error = errno;
        return true;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        take_line(gpu, line);
    }
    (void)fclose(file);
    return true;
}

/* --- all -------------------------------------------------------------------------------- */

const char *rmm__driver_gpus_root(void)
{
    const char *root = getenv("RMM_NVIDIA_PROC");
    return root != NULL && root[0] != '\0' ? root : "/proc/driver/nvidia/gpus";
}

static int by_bus(const void *left, const void *right)
{
    const rmm_driver_gpu_t *a = left, *b = right;
    const unsigned keys[][2] = {
        {a->domain, b->domain},
        {a->bus, b->bus},
        {a->slot, b->slot},
        {a->function, b->function}};
    for (size_t i = 0; i < 4; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

size_t rmm__driver_gpus_list(const char *root, rmm_driver_gpu_t *gpus, size_t room)
{
    DIR *dir = opendir(root);
    struct dirent *entry;
    size_t count = 0;
    if (dir == NULL) {
        return 0;
    }
    while (count < room && (entry = readdir(dir)) != NULL) {
        count += read_gpu(root, entry->d_name, &gpus[count]);
    }
    (void)closedir(dir);
    qsort(gpus, count, sizeof(gpus[0]), by_bus);
    return count;
}

bool rmm__driver_gpus_find(
    const char *root, const char *pci_bus_id, rmm_driver_gpu_t *gpu_out)
{
    DIR *dir = opendir(root);
    struct dirent *entry;
    bool found = false;
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        char bus[sizeof(gpu_out->pci_bus_id)];
        rmm__gpu_pci_bus_id_copy(bus, sizeof(bus), entry->d_name);
        found = bus[0] != '\0' && strcmp(bus, pci_bus_id) == 0 &&
                read_gpu(root, entry->d_name, gpu_out);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return found;
}
