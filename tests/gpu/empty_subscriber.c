/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUPTI itself costs: a library for CUDA_INJECTION64_PATH that subscribes to the launches, as
 * librmm-inject does, with a callback that does nothing. No diagnosis by callbacks is cheaper. The
 * program fails if no callback came: then it has measured something else.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject/cupti_api.h"

int InitializeInjection(void);

static atomic_bool is_loaded, is_called;

static void CUPTIAPI on_callback(
    void *user, CUpti_CallbackDomain domain, CUpti_CallbackId call, const void *data)
{
    (void)user;
    (void)domain;
    (void)call;
    (void)data;
    atomic_store_explicit(&is_called, true, memory_order_relaxed);
}

static void subscribe(void)
{
    static const CUpti_CallbackId launches[] = {
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    };
    CUpti_SubscriberHandle subscriber;
    cupti_api_t api;
    char reason[256] = "";

    if (!cupti_api_open(&api, reason, sizeof(reason)) ||
        api.subscribe(&subscriber, on_callback, NULL) != CUPTI_SUCCESS) {
        fprintf(stderr, "empty_subscriber: not subscribed: %s\n", reason);
        return;
    }
    for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
        if (api.enable_callback(
                1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]) !=
            CUPTI_SUCCESS) {
            fputs("empty_subscriber: a callback cannot be enabled\n", stderr);
        }
    }
}

/* Called by the driver; 1 is success. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    atomic_store_explicit(&is_loaded, true, memory_order_relaxed);
    subscribe();
    return 1;
}

__attribute__((destructor)) static void say_at_exit(void)
{
    if (atomic_load_explicit(&is_loaded, memory_order_relaxed) &&
        !atomic_load_explicit(&is_called, memory_order_relaxed)) {
        fputs("empty_subscriber: no launch was seen\n", stderr);
        _Exit(EXIT_FAILURE);
    }
}
