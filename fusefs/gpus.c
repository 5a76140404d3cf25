/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbering of GPUs; see gpus.h. Strings that programs publish about a GPU become names
 * of files and columns of tables, so they are cleaned before they are stored.
 */
#include "gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* More than 57 bits of address space hold is a lie. */
#define CAPACITY_BYTES_MAX (UINT64_C(1) << 57)

/* --- text from outside --------------------------------------------------------------- */

/* Letters, digits, '-', '_', '.': a uuid is the name of a link under by-uuid/. Nor may it be
 * that of host memory, which has the same records in the state file. */
static void copy_uuid(char *to, size_t bytes, const char *from)
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

/* "0000:3B:00.0" and "00000000:3b:00.0" are the same bus. */
static void copy_pci_bus_id(char *to, size_t bytes, const char *from)
{
    unsigned domain, bus, slot, function;
    if (sscanf(from, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4) {
        (void)snprintf(to, bytes, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    } else {
        to[0] = '\0';
    }
}

static void copy_name(char *to, size_t bytes, const char *from)
{
    size_t length = 0;
    for (; from[length] != '\0' && length + 1 < bytes; length++) {
        to[length] = iscntrl((unsigned char)from[length]) ? '?' : from[length];
    }
    to[length] = '\0';
}

/* --- numbers -------------------------------------------------------------------------- */

typedef bool (*is_same_fn)(const device_t *gpu, const device_t *wanted);

static bool has_uuid(const device_t *gpu, const device_t *wanted)
{
    return strcmp(gpu->uuid, wanted->uuid) == 0;
}

/* The driver hides the uuid of a GPU that no process has used yet; a whole GPU (not a MIG
 * slice, which shares its bus id) is the same one. */
static bool is_unnamed(const device_t *gpu, const device_t *wanted)
{
    return gpu->uuid[0] == '\0' && gpu->pci_bus_id[0] != '\0' &&
           strcmp(gpu->pci_bus_id, wanted->pci_bus_id) == 0 &&
           strncmp(wanted->uuid, "GPU-", 4) == 0;
}

static bool find_gpu(
    const model_t *model, const device_t *wanted, is_same_fn is_same,
    uint32_t *index_out)
{
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        if (is_same(&model->gpus[i], wanted)) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

/* What is not known yet. */
static void fill_in(device_t *gpu, const device_t *told)
{
    if (gpu->uuid[0] == '\0') {
        strcpy(gpu->uuid, told->uuid);
    }
    if (gpu->pci_bus_id[0] == '\0') {
        strcpy(gpu->pci_bus_id, told->pci_bus_id);
    }
    if (gpu->name[0] == '\0') {
        strcpy(gpu->name, told->name);
    }
    if (gpu->capacity_bytes == 0) {
        gpu->capacity_bytes = told->capacity_bytes;
    }
}

static bool is_trusted(const model_t *model, uid_t uid)
{
    return uid == 0 || uid == model->uid;
}

static uint32_t append(model_t *model, const device_t *told)
{
    uint32_t index = model->gpu_count++;
    model->gpus[index].is_listed = told->is_listed;
    model->gpus[index].uid = told->uid;
    fill_in(&model->gpus[index], told);
    log_info(
        "gpu%u is %s %s", index, told->uuid[0] != '\0' ? told->uuid : "(no uuid yet)",
        told->pci_bus_id);
    return index;
}

static uint32_t append_reported(model_t *model, const device_t *told)
{
    /* Without a number left it is refused, and counted, like one too many of this user. */
    uint64_t amount = model->gpu_count < DEVICE_GPUS_MAX ? 1 : UINT64_MAX;
    if (budget_take(&model->budget, told->uid, BUDGET_GPUS, amount)) {
        return append(model, told);
    }
    if (budget_refused(&model->budget, told->uid, BUDGET_GPUS) == 1) {
        log_warn(
            "GPU %s is not shown: programs of uid %u report too many GPUs", told->uuid,
            (unsigned)told->uid);
    }
    return DEVICE_NONE;
}

static void read_identity(device_t *told, const gpu_identity_t *identity)
{
    memset(told, 0, sizeof(*told));
    copy_uuid(told->uuid, sizeof(told->uuid), identity->uuid);
    copy_pci_bus_id(told->pci_bus_id, sizeof(told->pci_bus_id), identity->pci_bus_id);
    copy_name(told->name, sizeof(told->name), identity->name);
    told->capacity_bytes =
        identity->capacity_bytes < CAPACITY_BYTES_MAX ? identity->capacity_bytes : 0;
    told->uid = identity->uid;
}

/* --- what the driver lists ------------------------------------------------------------ */

typedef struct listed {
    unsigned domain, bus, slot, function;
    char uuid[48], name[64], pci_bus_id[24];
} listed_t;

/* "Model: \t\t NVIDIA H200" into the field of that key. */
static void take_line(listed_t *gpu, char *line)
{
    char *colon = strchr(line, ':');
    if (colon == NULL) {
        return;
    }
    *colon = '\0';
    char *value = colon + 1;
    value += strspn(value, " \t");
    value[strcspn(value, "\n")] = '\0';
    if (strcmp(line, "Model") == 0) {
        copy_name(gpu->name, sizeof(gpu->name), value);
    } else if (strcmp(line, "GPU UUID") == 0 && strchr(value, '?') == NULL) {
        copy_uuid(gpu->uuid, sizeof(gpu->uuid), value);
    }
}

static bool read_listed(const char *root, const char *name, listed_t *gpu)
{
    char path[512];
    memset(gpu, 0, sizeof(*gpu));
    if (sscanf(
            name, "%x:%x:%x.%x", &gpu->domain, &gpu->bus, &gpu->slot, &gpu->function) !=
        4) {
        return false;
    }
    copy_pci_bus_id(gpu->pci_bus_id, sizeof(gpu->pci_bus_id), name);
    (void)snprintf(path, sizeof(path), "%s/%s/information", root, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        log_warn(
            "cannot read %s: %s; the first program that uses the GPU tells its name "
            "and UUID",
            path, strerror(errno));
        return true;
    }
    char line[256];
    while (fgets(line, sizeof(line), file) != NULL) {
        take_line(gpu, line);
    }
    (void)fclose(file);
    return true;
}

static void take_listed(device_t *told, const listed_t *listed)
{
    memset(told, 0, sizeof(*told));
    strcpy(told->uuid, listed->uuid);
    strcpy(told->name, listed->name);
    strcpy(told->pci_bus_id, listed->pci_bus_id);
    told->is_listed = true;
}

static int by_bus(const void *left, const void *right)
{
    const listed_t *a = left, *b = right;
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

void gpus_scan_driver(model_t *model, const char *root)
{
    DIR *dir = opendir(root);
    if (dir == NULL) {
        return;
    }
    model->driver_root = root;
    static listed_t listed[DEVICE_GPUS_MAX];
    size_t count = 0;
    struct dirent *entry;
    while (count < DEVICE_GPUS_MAX && (entry = readdir(dir)) != NULL) {
        if (read_listed(root, entry->d_name, &listed[count])) {
            count++;
        }
    }
    (void)closedir(dir);
    qsort(listed, count, sizeof(listed[0]), by_bus);
    for (size_t i = 0; i < count; i++) {
        device_t told;
        take_listed(&told, &listed[i]);
        (void)append(model, &told);
    }
}

/* --- what programs report ------------------------------------------------------------- */

/* The driver knows the uuid of a GPU that is in use, so it is asked before a program is
 * believed. The folder is named after the bus id, in the driver's own spelling. */
static void ask_driver_again(model_t *model, device_t *gpu)
{
    DIR *dir = model->driver_root != NULL ? opendir(model->driver_root) : NULL;
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char bus[sizeof(gpu->pci_bus_id)];
        listed_t listed;
        device_t told;
        copy_pci_bus_id(bus, sizeof(bus), entry->d_name);
        if (strcmp(bus, gpu->pci_bus_id) == 0 &&
            read_listed(model->driver_root, entry->d_name, &listed)) {
            take_listed(&told, &listed);
            fill_in(gpu, &told);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static bool find_reported(model_t *model, const device_t *told, uint32_t *index_out)
{
    if (find_gpu(model, told, has_uuid, index_out)) {
        return true;
    }
    if (!find_gpu(model, told, is_unnamed, index_out)) {
        return false;
    }
    device_t *gpu = &model->gpus[*index_out];
    if (gpu->is_listed) {
        ask_driver_again(model, gpu);
    }
    return gpu->uuid[0] == '\0' || has_uuid(gpu, told);
}

uint32_t gpus_number(model_t *model, const gpu_identity_t *identity)
{
    device_t told;
    uint32_t index;
    read_identity(&told, identity);
    if (told.uuid[0] == '\0') {
        return DEVICE_NONE;
    }
    if (!find_reported(model, &told, &index)) {
        return append_reported(model, &told);
    }
    device_t *gpu = &model->gpus[index];
    if (is_trusted(model, told.uid) && told.capacity_bytes != 0) {
        gpu->capacity_bytes = told.capacity_bytes;
    }
    fill_in(gpu, &told);
    return index;
}
