/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CUPTI: one that the process has loaded already (a framework brings its own, and
 * two in one process shut each other out), else by its name, else in the usual places
 * of a toolkit. Newest first.
 */
#include "inject/cupti_api.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cupti_names[] = {"libcupti.so.13", "libcupti.so.12"};
static const char *const cupti_folders[] = {
    "extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib"};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void *open_by_name(int flags)
{
    void *library = NULL;

    for (size_t i = 0; i < COUNT_OF(cupti_names) && library == NULL; i++) {
        library = dlopen(cupti_names[i], flags);
    }
    return library;
}

static void *open_below(const char *toolkit)
{
    char path[512];
    void *library = NULL;

    for (size_t i = 0; i < COUNT_OF(cupti_names) && library == NULL; i++) {
        for (size_t k = 0; k < COUNT_OF(cupti_folders) && library == NULL; k++) {
            snprintf(
                path, sizeof(path), "%s/%s/%s", toolkit, cupti_folders[k],
                cupti_names[i]);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return library;
}

static void *open_cupti(void)
{
    const char *home = secure_getenv("CUDA_HOME");
    const char *path = secure_getenv("CUDA_PATH");
    void *library = open_by_name(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

    if (library == NULL) {
        library = open_by_name(RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL && home != NULL) {
        library = open_below(home);
    }
    if (library == NULL && path != NULL) {
        library = open_below(path);
    }
    if (library == NULL) {
        library = open_below("/usr/local/cuda");
    }
    if (library == NULL) {
        library = open_below(RMM_TOOLKIT_DIR);
    }
    (void)dlerror();
    return library;
}

/* Store the address of a function, as dlsym(3) advises; NULL if it is not there. */
static bool find(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    memcpy(function_out, &symbol, sizeof(symbol));
    return symbol != NULL;
}

bool cupti_api_open(cupti_api_t *api, char *reason, size_t reason_bytes)
{
    void *cupti = open_cupti();

    if (cupti == NULL) {
        snprintf(reason, reason_bytes, "no libcupti: set CUDA_HOME or LD_LIBRARY_PATH");
        return false;
    }
    (void)find(cupti, "cuptiSubscribe_v2", &api->subscribe_v2);
    if (!find(cupti, "cuptiSubscribe", &api->subscribe) ||
        !find(cupti, "cuptiUnsubscribe", &api->unsubscribe) ||
        !find(cupti, "cuptiEnableCallback", &api->enable_callback) ||
        !find(cupti, "cuptiGetResultString", &api->result_string) ||
        !find(cupti, "cuptiGetDeviceId", &api->device_of_context)) {
        snprintf(reason, reason_bytes, "this libcupti lacks a function");
        return false;
    }
    return true;
}

/*
 * CUpti_SubscriberParams of CUDA 13.2, whatever the headers are that this is compiled with: which
 * CUPTI is there shows only when the program runs. CUDA 13.0 and 13.1 know it without the last
 * member, and refuse any other size.
 */
typedef struct subscriber_params {
    size_t struct_size;
    const char *name;
    char *old_name;
    size_t old_name_bytes;
    uint8_t allow_multiple_subscribers;
    uint8_t padding[7];
} subscriber_params_t;

#define EXCLUSIVE_PARAMS_BYTES offsetof(subscriber_params_t, allow_multiple_subscribers)

#ifdef CUpti_SubscriberParams_STRUCT_SIZE
_Static_assert(
    CUpti_SubscriberParams_STRUCT_SIZE == sizeof(subscriber_params_t) ||
        CUpti_SubscriberParams_STRUCT_SIZE == EXCLUSIVE_PARAMS_BYTES,
    "another CUpti_SubscriberParams");
#endif

/* A CUPTI that cannot serve several, as one that is linked statically, may still serve this one
 * alone: so a refusal is asked about once more. */
CUptiResult cupti_api_subscribe(
    const cupti_api_t *api, CUpti_SubscriberHandle *subscriber,
    CUpti_CallbackFunc callback, char rival[CUPTI_RIVAL_BYTES])
{
    subscriber_params_t params = {
        .struct_size = sizeof(params),
        .name = "rmm-c",
        .old_name = rival,
        .old_name_bytes = CUPTI_RIVAL_BYTES,
        .allow_multiple_subscribers = 1};
    CUptiResult result = CUPTI_ERROR_NOT_INITIALIZED;

    rival[0] = '\0';
    if (api->subscribe_v2 == NULL) {
        return api->subscribe(subscriber, callback, NULL);
    }
    result = api->subscribe_v2(subscriber, callback, NULL, &params);
    if (result == CUPTI_ERROR_INVALID_PARAMETER) {
        params.struct_size = EXCLUSIVE_PARAMS_BYTES;
    } else if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        params.allow_multiple_subscribers = 0;
    } else {
        return result;
    }
    rival[0] = '\0';
    result = api->subscribe_v2(subscriber, callback, NULL, &params);
    rival[CUPTI_RIVAL_BYTES - 1] = '\0';
    return result;
}

inject_queries_t cupti_api_queries(void)
{
    inject_queries_t queries = {NULL, NULL};
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (cuda != NULL) {
        (void)find(cuda, "cuFuncGetParamInfo", &queries.of_function);
        (void)find(cuda, "cuKernelGetParamInfo", &queries.of_kernel);
    }
    (void)dlerror();
    return queries;
}

cupti_is_capturing_fn cupti_api_is_capturing(void)
{
    cupti_is_capturing_fn is_capturing = NULL;
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (cuda != NULL) {
        (void)find(cuda, "cuStreamIsCapturing", &is_capturing);
    }
    (void)dlerror();
    return is_capturing;
}

bool cupti_api_stream_queries(cupti_stream_queries_t *queries_out)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    bool good = cuda != NULL && find(cuda, "cuStreamGetFlags", &queries_out->flags) &&
                find(cuda, "cuStreamGetId", &queries_out->id) &&
                find(cuda, "cuStreamIsCapturing", &queries_out->is_capturing);

    (void)dlerror();
    return good;
}
