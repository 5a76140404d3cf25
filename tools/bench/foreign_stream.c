/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made by the driver's own library: it is loaded already where a real GPU is used, and no
 * header of CUDA is needed. The context is the one that the library's first call made
 * current.
 */
#include "bench/foreign_stream.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <rmm/device.h>

#define NON_BLOCKING 1u /* CU_STREAM_NON_BLOCKING */

typedef int (*create_fn)(rmm_stream_t *stream, unsigned flags);
typedef int (*destroy_fn)(rmm_stream_t stream);

/* A function by name; *out stays NULL where there is none. */
static void find(void *driver, const char *name, void *out)
{
    void *address = dlsym(driver, name);
    memcpy(out, &address, sizeof address);
}

bool foreign_stream_open(foreign_stream_t *foreign, char problem[TRIAL_PROBLEM_MAX])
{
    create_fn create = NULL;
    int error = -1;
    *foreign = (foreign_stream_t){.driver = NULL};
    if (strcmp(rmm_driver_name(), "cuda") != 0) {
        snprintf(
            problem, TRIAL_PROBLEM_MAX,
            "needs a CUDA GPU, whose driver creates the stream");
        return false;
    }
    foreign->driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (foreign->driver != NULL) {
        find(foreign->driver, "cuStreamCreate", &create);
    }
    if (create != NULL) {
        error = create(&foreign->stream, NON_BLOCKING);
    }
    if (error == 0) {
        return true;
    }
    snprintf(
        problem, TRIAL_PROBLEM_MAX, "cuStreamCreate of libcuda.so.1: %s (%d)",
        create != NULL ? "failed" : "not there", error);
    if (foreign->driver != NULL) {
        dlclose(foreign->driver);
    }
    return false;
}

void foreign_stream_close(foreign_stream_t *foreign)
{
    destroy_fn destroy = NULL;
    find(foreign->driver, "cuStreamDestroy_v2", &destroy);
    if (destroy != NULL) {
        (void)destroy(foreign->stream);
    }
    dlclose(foreign->driver);
}
