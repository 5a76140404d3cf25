/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refused allocations on `index.html`, the last one first, as `oom` has them: refusals and holders
 * of users that are hidden from the reader are left out.
 */
#include <time.h>

#include "model/model.h"
#include "render/page.h"
#include "render/parts.h"

static const refusal_t *shown_refusal(const drawing_t *drawing, uint32_t index)
{
    const model_t *model = drawing->model;
    const refusal_t *refusal = model->refusals.items[index];
    return is_shown_to(&model->hiding, refusal->uid, drawing->text) ? refusal : NULL;
}

uint32_t page_count_refusals(const drawing_t *drawing)
{
    uint32_t count = 0;
    pthread_rwlock_rdlock(&drawing->model->lock);
    for (uint32_t i = 0; i < drawing->model->refusals.count; i++) {
        count += shown_refusal(drawing, i) != NULL;
    }
    pthread_rwlock_unlock(&drawing->model->lock);
    return count;
}

static void put_holders(drawing_t *drawing, const refusal_scene_t *scene)
{
    const hiding_t *hiding = &drawing->model->hiding;
    char number[PAGE_USER_BYTES];
    for (uint32_t i = 0; i < scene->count; i++) {
        const refusal_holder_t *holder = &scene->holders[i];
        const rmm_page_holder_t shown = {
            .process = holder->process,
            .user = page_user(drawing, holder->uid, number),
            .command = holder->comm,
            .held_bytes = holder->held_bytes,
            .current_bytes = holder->current_bytes};
        if (is_shown_to(hiding, holder->uid, drawing->text)) {
            rmm__page_holder(&drawing->page, &shown);
        }
    }
}

static void put_refusal(drawing_t *drawing, const refusal_t *refusal)
{
    char number[PAGE_USER_BYTES], gpu[16] = "", time[32] = "";
    time_t seconds = (time_t)(refusal->time_ns / 1000000000u);
    struct tm parts;
    if (refusal->device != DEVICE_NONE) {
        tree_device_name(refusal->device, gpu);
    }
    if (gmtime_r(&seconds, &parts) != NULL) {
        (void)strftime(time, sizeof(time), "%m-%d %H:%M:%S", &parts);
    }
    const rmm_page_refusal_t shown = {
        .number = refusal->serial,
        .time = time,
        .process = refusal->process,
        .user = page_user(drawing, refusal->uid, number),
        .command = refusal->comm,
        .job = refusal->job,
        .device = gpu,
        .resource = refusal->name,
        .bytes = refusal->bytes,
        .free_bytes = refusal->device_free_bytes != 0 ? refusal->device_free_bytes
                                                      : FIGURE_UNKNOWN,
        .current_bytes = refusal->current_bytes,
        .reserved_bytes = refusal->reserved_bytes};
    rmm__page_begin_refusal(&drawing->page, &shown);
    put_holders(drawing, &refusal->scene);
    refusal_rest_t rest =
        refusal_rest(&drawing->model->hiding, &refusal->scene, drawing->text);
    rmm__page_end_refusal(&drawing->page, rest.programs, rest.bytes);
}

void page_put_refusals(drawing_t *drawing)
{
    bool has_begun = false;
    pthread_rwlock_rdlock(&drawing->model->lock);
    for (uint32_t i = drawing->model->refusals.count; i > 0; i--) {
        const refusal_t *refusal = shown_refusal(drawing, i - 1);
        if (refusal == NULL) {
            continue;
        }
        if (!has_begun) {
            rmm__page_begin_refusals(&drawing->page);
            has_begun = true;
        }
        put_refusal(drawing, refusal);
    }
    pthread_rwlock_unlock(&drawing->model->lock);
    if (has_begun) {
        rmm__page_end_refusals(&drawing->page);
    }
}
