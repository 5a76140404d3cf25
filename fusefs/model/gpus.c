/* SPDX-License-Identifier: Apache-2.0 */
/* Numbering of GPUs; see gpus.h. */
#include "model/gpus.h"

#include <string.h>

#include "support/daemon_log.h"

/* --- numbers -------------------------------------------------------------------------- */

typedef bool (*is_same_fn)(const gpu_t *gpu, const gpu_t *reported);

static bool find_gpu(
    const model_t *model, const gpu_t *reported, is_same_fn is_same,
    uint32_t *index_out)
{
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        if (is_same(&model->gpus[i].gpu, reported)) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

static bool is_trusted(const model_t *model, uid_t uid)
{
    return uid == 0 || uid == model->uid;
}

static uint32_t append(model_t *model, const gpu_t *reported, uid_t uid)
{
    uint32_t index = model->gpu_count++;

    model->gpus[index].gpu = *reported;
    model->gpus[index].uid = uid;
    log_info(
        "gpu%u is %s %s", index,
        reported->uuid[0] != '\0' ? reported->uuid : "(no uuid yet)",
        reported->pci_bus_id);
    return index;
}

static uint32_t append_reported(model_t *model, const gpu_t *reported, uid_t uid)
{
    /* Without a number left it is refused, and counted, like one too many of this user. */
    uint64_t amount = model->gpu_count < GPUS_MAX ? 1 : UINT64_MAX;

    if (budget_take(&model->budget, uid, BUDGET_GPUS, amount)) {
        return append(model, reported, uid);
    }
    if (budget_refused(&model->budget, uid, BUDGET_GPUS) == 1) {
        log_warn(
            "GPU %s is not shown: programs of uid %u report too many GPUs",
            reported->uuid, (unsigned)uid);
    }
    return DEVICE_NONE;
}

/* --- what the driver lists ------------------------------------------------------------ */

void gpus_scan_driver(model_t *model, const char *root)
{
    static rmm_driver_gpu_t listed[GPUS_MAX];
    size_t count = rmm__driver_gpus_list(root, listed, GPUS_MAX);

    model->driver_root = root;
    for (size_t i = 0; i < count; i++) {
        gpu_t reported;

        if (listed[i].error != 0) {
            log_warn(
                "cannot read the driver's file about GPU %s in %s: %s; its name and "
                "UUID are unknown until a program uses it",
                listed[i].pci_bus_id, root, strerror(listed[i].error));
        }
        gpu_of_driver(&reported, &listed[i]);
        (void)append(model, &reported, 0);
    }
}

/* --- what programs report ------------------------------------------------------------- */

/* The driver knows the uuid of a GPU that is in use, so it is queried before a program is
 * believed. */
static void ask_driver_again(const model_t *model, gpu_t *gpu)
{
    rmm_driver_gpu_t listed;
    gpu_t reported;

    if (model->driver_root != NULL &&
        rmm__driver_gpus_find(model->driver_root, gpu->pci_bus_id, &listed)) {
        gpu_of_driver(&reported, &listed);
        gpu_fill_in(gpu, &reported);
    }
}

static bool find_reported(model_t *model, const gpu_t *reported, uint32_t *index_out)
{
    gpu_t *gpu;

    if (find_gpu(model, reported, gpu_has_uuid_of, index_out)) {
        return true;
    }
    if (!find_gpu(model, reported, gpu_is_unnamed_at, index_out)) {
        return false;
    }
    gpu = &model->gpus[*index_out].gpu;
    if (gpu->is_listed) {
        ask_driver_again(model, gpu);
    }
    return gpu->uuid[0] == '\0' || gpu_has_uuid_of(gpu, reported);
}

uint32_t gpus_number(model_t *model, const gpu_identity_t *identity)
{
    gpu_t reported, *gpu;
    uint32_t index;

    gpu_of_report(
        &reported, identity->uuid, identity->pci_bus_id, identity->name,
        identity->capacity_bytes);
    if (reported.uuid[0] == '\0') {
        return DEVICE_NONE;
    }
    if (!find_reported(model, &reported, &index)) {
        return append_reported(model, &reported, identity->uid);
    }
    gpu = &model->gpus[index].gpu;
    if (is_trusted(model, identity->uid) && reported.capacity_bytes != 0) {
        gpu->capacity_bytes = reported.capacity_bytes;
    }
    gpu_fill_in(gpu, &reported);
    return index;
}
