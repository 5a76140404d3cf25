/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcupti: see fake_cupti.h. Its functions behave as CUPTI 13.0 documents. */
#include "unit/fake/fake_cupti.h"

#include <assert.h>
#include <stdio.h>

#define ENABLED_MAX 1024u

static fake_cupti_control_t control;
static CUpti_CallbackFunc callback;
static void *callback_user;
static struct {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId call;
} enabled[ENABLED_MAX];
static uint32_t enabled_count;

fake_cupti_control_t *fake_cupti_control(void)
{
    return &control;
}

bool fake_cupti_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId call)
{
    for (uint32_t i = 0; i < enabled_count; i++) {
        if (enabled[i].domain == domain && enabled[i].call == call) {
            return true;
        }
    }
    return false;
}

static void disable(CUpti_CallbackDomain domain, CUpti_CallbackId call)
{
    for (uint32_t i = 0; i < enabled_count; i++) {
        if (enabled[i].domain == domain && enabled[i].call == call) {
            enabled[i] = enabled[--enabled_count];
        }
    }
}

void fake_cupti_call(
    CUpti_CallbackDomain domain, CUpti_CallbackId call, const void *data)
{
    if (callback != NULL && fake_cupti_enabled(domain, call)) {
        callback(callback_user, domain, call, data);
    }
}

CUptiResult cuptiSubscribe(
    CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user)
{
    if (control.subscribe_result == CUPTI_SUCCESS) {
        *subscriber = (CUpti_SubscriberHandle)(void *)&control;
        callback = function;
        callback_user = user;
        control.subscribed++;
    }
    return control.subscribe_result;
}

/* Of CUDA 13.2 and newer; the headers may be older. CUDA 13.0 has the members before the last. */
typedef struct params {
    size_t struct_size;
    const char *name;
    char *old_name;
    size_t old_name_bytes;
    uint8_t allow_multiple_subscribers;
} params_t;

/* Headers that have this function have it with their own parameters. */
CUptiResult subscribe_v2(
    CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *,
    params_t *) __asm__("cuptiSubscribe_v2");

CUptiResult subscribe_v2(
    CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user,
    params_t *params)
{
    size_t expected = control.knows_several
                          ? sizeof(*params)
                          : offsetof(params_t, allow_multiple_subscribers);

    control.attempts++;
    if (params->struct_size != expected) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    control.is_alone =
        !control.knows_several || params->allow_multiple_subscribers == 0;
    snprintf(control.name, sizeof(control.name), "%s", params->name);
    if (control.rival != NULL) {
        snprintf(params->old_name, params->old_name_bytes, "%s", control.rival);
    }
    if (control.must_be_alone && !control.is_alone) {
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    return cuptiSubscribe(subscriber, function, user);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    (void)subscriber;
    callback = NULL;
    control.unsubscribed++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(
    uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
    CUpti_CallbackId call)
{
    (void)subscriber;
    if (control.enable_result != CUPTI_SUCCESS) {
        return control.enable_result;
    }
    if ((domain == CUPTI_CB_DOMAIN_DRIVER_API && control.unknown_call != 0 &&
         call == control.unknown_call)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (enable == 0) {
        disable(domain, call);
        return CUPTI_SUCCESS;
    }
    if (fake_cupti_enabled(domain, call)) {
        return CUPTI_SUCCESS;
    }
    assert(enabled_count < ENABLED_MAX);
    enabled[enabled_count].domain = domain;
    enabled[enabled_count].call = call;
    enabled_count++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED"
                                                  : "CUPTI_ERROR_OTHER";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
    const CUpti_CallbackData *launch = control.meanwhile;

    control.meanwhile = NULL;
    if (launch != NULL) {
        fake_cupti_call(
            CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, launch);
    }
    *device = (uint32_t)(uintptr_t)context; /* the tests' contexts are numbers */
    return CUPTI_SUCCESS;
}
