/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler as NVTX_INJECTION64_PATH names one: it hands the ranges of every domain to the
 * program that loads it.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

/* of test_nvtx.c */
void test_saw_begin(const char *domain, const char *name, uint64_t payload);
void test_saw_end(const char *domain);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);

/* Handles are the strings themselves: literals of the library. */
static nvtxDomainHandle_t create_domain(const char *name)
{
    return (nvtxDomainHandle_t)(uintptr_t)name;
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    return (nvtxStringHandle_t)(uintptr_t)text;
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    test_saw_begin(
        (const char *)domain, (const char *)event->message.registered,
        event->payload.ullValue);
    return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
    test_saw_end((const char *)domain);
    return 0;
}

typedef void (*function_t)(void);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
    const NvtxExportTableCallbacks *callbacks = get_export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;

    if (callbacks == NULL ||
        callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
        size <= NVTX_CBID_CORE2_DomainCreateA) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainCreateA] = (function_t)create_domain;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (function_t)register_string;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (function_t)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (function_t)pop;
    return 1;
}
