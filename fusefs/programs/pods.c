/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the names of pods; see pods.h. */
#include "programs/pods.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define PODS_AT_ONCE 16u
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789-."

typedef struct wanted {
    uint64_t serial; /* of its job */
    char uid[JOB_NAME_BYTES], pod[JOB_POD_BYTES];
} wanted_t;

/* Neither a namespace nor a name of a pod has an underscore. */
bool pods_parse(const char *entry, const char *uid, char pod[JOB_POD_BYTES])
{
    size_t namespace_length = strspn(entry, NAME_CHARACTERS);
    const char *name = entry + namespace_length + 1;
    if (namespace_length == 0 || entry[namespace_length] != '_') {
        return false;
    }
    size_t length = strspn(name, NAME_CHARACTERS);
    if (length == 0 || name[length] != '_' || strcmp(name + length + 1, uid) != 0 ||
        namespace_length + 1 + length >= JOB_POD_BYTES) {
        return false;
    }
    (void)snprintf(
        pod, JOB_POD_BYTES, "%.*s/%.*s", (int)namespace_length, entry, (int)length,
        name);
    return true;
}

/* How many. */
static uint32_t take_wanted(model_t *model, wanted_t *wanted)
{
    uint32_t count = 0;
    pthread_rwlock_wrlock(&model->lock);
    for (uint32_t i = 0; i < model->jobs.count && count < PODS_AT_ONCE; i++) {
        job_t *job = model->jobs.items[i];
        if (job->kind == JOB_POD && !job->is_pod_asked) {
            job->is_pod_asked = true;
            wanted[count] = (wanted_t){.serial = job->serial};
            memcpy(wanted[count++].uid, job->name, sizeof(job->name));
        }
    }
    pthread_rwlock_unlock(&model->lock);
    return count;
}

static void look_for(wanted_t *wanted, uint32_t count)
{
    DIR *dir = opendir(PODS_PATH);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            (void)pods_parse(entry->d_name, wanted[i].uid, wanted[i].pod);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void give(model_t *model, const wanted_t *wanted, uint32_t count)
{
    pthread_rwlock_wrlock(&model->lock);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < model->jobs.count; j++) {
            job_t *job = model->jobs.items[j];
            if (job->serial == wanted[i].serial) {
                memcpy(job->pod, wanted[i].pod, sizeof(job->pod));
            }
        }
    }
    pthread_rwlock_unlock(&model->lock);
}

void pods_name(model_t *model)
{
    wanted_t wanted[PODS_AT_ONCE];
    uint32_t count = take_wanted(model, wanted);
    if (count > 0) {
        look_for(wanted, count);
        give(model, wanted, count);
    }
}
