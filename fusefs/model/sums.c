/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps sums that were costly; see sums.h.
 */
#include "model/sums.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct kept {
    device_sum_t sum;
    uint64_t taken_ns, took_ns; /* CLOCK_MONOTONIC; of CPU time */
    uint64_t changes;           /* of the model, when it was taken */
    bool present;
} kept_t;

struct sums {
    pthread_mutex_t lock;
    kept_t kept[GPUS_MAX + 1][FIGURES_ALL + 1]; /* the last device is the host */
};

sums_t *sums_open(void)
{
    sums_t *sums = calloc(1, sizeof(*sums));
    if (sums != NULL) {
        pthread_mutex_init(&sums->lock, NULL);
    }
    return sums;
}

void sums_close(sums_t *sums)
{
    if (sums != NULL) {
        pthread_mutex_destroy(&sums->lock);
        free(sums);
    }
}

static kept_t *kept_of(sums_t *sums, uint32_t device, unsigned want)
{
    uint32_t index = device == DEVICE_HOST ? GPUS_MAX : device;
    return &sums->kept[index][want];
}

static bool is_usable(const kept_t *kept, const model_t *model, uint64_t now)
{
    return kept->present && kept->changes == model->changes &&
           now - kept->taken_ns < SUMS_SHARE * kept->took_ns;
}

static bool find(
    const model_t *model, uint32_t device, unsigned want, uint64_t now,
    device_sum_t *out)
{
    const kept_t *kept = kept_of(model->sums, device, want);
    pthread_mutex_lock(&model->sums->lock);
    bool usable = is_usable(kept, model, now);
    if (usable) {
        *out = kept->sum;
    }
    pthread_mutex_unlock(&model->sums->lock);
    return usable;
}

static void
keep(const model_t *model, uint32_t device, unsigned want, const kept_t *taken)
{
    pthread_mutex_lock(&model->sums->lock);
    *kept_of(model->sums, device, want) = *taken;
    pthread_mutex_unlock(&model->sums->lock);
}

void sums_of_device(model_t *model, uint32_t device, unsigned want, device_sum_t *out)
{
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    if (model->sums != NULL && find(model, device, want, now, out)) {
        return;
    }
    uint64_t begin = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    figures_sum_device(model, device, want, out);
    uint64_t took = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    if (model->sums != NULL &&
        (out->member_count > SUMS_EXACT || took > SUMS_CHEAP_NS)) {
        const kept_t taken = {*out, now + took, took, model->changes, true};
        keep(model, device, want, &taken);
    }
}
