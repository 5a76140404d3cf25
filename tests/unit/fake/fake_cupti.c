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

#ifdef CUpti_SubscriberParams_STRUCT_SIZE /* CUDA 13 */

CUptiResult cuptiSubscribe_v2(
    CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user,
    CUpti_SubscriberParams *params)
{
    if (params != NULL) {
        if (params->structSize != CUpti_SubscriberParams_STRUCT_SIZE) {
            return CUPTI_ERROR_INVALID_PARAMETER;
        }
        snprintf(control.name, sizeof(control.name), "%s", params->subscriberName);
        if (control.rival != NULL && params->oldSubscriberName != NULL) {
            snprintf(
                params->oldSubscriberName, params->oldSubscriberSize, "%s",
                control.rival);
        }
    }
    return cuptiSubscribe(subscriber, function, user);
}

#endif

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
