/* SPDX-License-Identifier: Apache-2.0 */
/* Numbering of GPUs; see gpus.h. */
#include "gpus.h"

#include <string.h>

#include "log.h"
#include "segment/driver_gpus.h"

/* More than 57 bits of address space hold is a lie. */
#define CAPACITY_BYTES_MAX (UINT64_C(1) << 57)

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
           rmm__gpu_uuid_is_whole(wanted->uuid);
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
    rmm__gpu_uuid_copy(told->uuid, sizeof(told->uuid), identity->uuid);
    rmm__gpu_pci_bus_id_copy(
        told->pci_bus_id, sizeof(told->pci_bus_id), identity->pci_bus_id);
    rmm__gpu_name_copy(told->name, sizeof(told->name), identity->name);
    told->capacity_bytes =
        identity->capacity_bytes < CAPACITY_BYTES_MAX ? identity->capacity_bytes : 0;
    told->uid = identity->uid;
}

/* --- what the driver lists ------------------------------------------------------------ */

static void take_listed(device_t *told, const rmm_driver_gpu_t *listed)
{
    memset(told, 0, sizeof(*told));
    strcpy(told->uuid, listed->uuid);
    strcpy(told->name, listed->name);
    strcpy(told->pci_bus_id, listed->pci_bus_id);
    told->is_listed = true;
}

void gpus_scan_driver(model_t *model, const char *root)
{
    static rmm_driver_gpu_t listed[DEVICE_GPUS_MAX];
    size_t count = rmm__driver_gpus_list(root, listed, DEVICE_GPUS_MAX);
    model->driver_root = root;
    for (size_t i = 0; i < count; i++) {
        device_t told;
        if (listed[i].error != 0) {
            log_warn(
                "cannot read the driver's file about GPU %s in %s: %s; its name and "
                "UUID are unknown until a program uses it",
                listed[i].pci_bus_id, root, strerror(listed[i].error));
        }
        take_listed(&told, &listed[i]);
        (void)append(model, &told);
    }
}

/* --- what programs report ------------------------------------------------------------- */

/* The driver knows the uuid of a GPU that is in use, so it is queried before a program is
 * believed. */
static void ask_driver_again(const model_t *model, device_t *gpu)
{
    rmm_driver_gpu_t listed;
    device_t told;
    if (model->driver_root != NULL &&
        rmm__driver_gpus_find(model->driver_root, gpu->pci_bus_id, &listed)) {
        take_listed(&told, &listed);
        fill_in(gpu, &told);
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
