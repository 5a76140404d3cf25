/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See nvtx.h. NVTX is a set of headers: where no tool is attached each call is one load and
 * a branch. The domain and its strings live as long as the process, as a tool expects.
 */
#include "core/nvtx.h"

#include <pthread.h>

#include <nvtx3/nvToolsExt.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t alloc_name;
static nvtxStringHandle_t dealloc_name;

static void open_domain(void)
{
    domain = nvtxDomainCreateA("rmm-c");
    alloc_name = nvtxDomainRegisterStringA(domain, "allocate");
    dealloc_name = nvtxDomainRegisterStringA(domain, "deallocate");
}

static void begin(nvtxStringHandle_t name, size_t bytes)
{
    nvtxEventAttributes_t event = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
        .payload.ullValue = bytes,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = name,
    };

    nvtxDomainRangePushEx(domain, &event);
}

void rmm__nvtx_begin_alloc(size_t bytes)
{
    pthread_once(&once, open_domain);
    begin(alloc_name, bytes);
}

void rmm__nvtx_begin_dealloc(size_t bytes)
{
    pthread_once(&once, open_domain);
    begin(dealloc_name, bytes);
}

void rmm__nvtx_end(void)
{
    nvtxDomainRangePop(domain);
}
