/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/base/nvtx_abi.h against NVIDIA's headers: layouts and numbers where they are compiled,
 * and the protocol by NVIDIA's own client, which the stand-in tool must understand as it
 * does ours.
 */
#include "sim/nvtx/nvtx_harness.h"

#include <assert.h>

#include <nvtx3/nvToolsExtMem.h>

#include "base/nvtx_abi.h"

#define SAME(ours, theirs) static_assert((size_t)(ours) == (size_t)(theirs), #ours)
#define SAME_FIELD(our_type, our_field, their_type, their_field)                       \
    SAME(offsetof(our_type, our_field), offsetof(their_type, their_field));            \
    SAME(sizeof(((our_type *)0)->our_field), sizeof(((their_type *)0)->their_field))

SAME(NVTX_ABI_VERSION, NVTX_VERSION);
SAME(NVTX_ABI_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(NVTX_ABI_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME(NVTX_ABI_MODULES, NVTX_CB_MODULE_SIZE);
SAME(NVTX_ABI_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(NVTX_ABI_DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME(NVTX_ABI_MODULE_SLOTS, NVTX_CBID_CORE_SIZE);
SAME(NVTX_ABI_MODULE_SLOTS, NVTX_CBID_CORE2_SIZE);
/* nvtx_memory.c's counts */
SAME(9, NVTX_CBID_CUDA_SIZE);
SAME(15, NVTX_CBID_OPENCL_SIZE);
SAME(7, NVTX_CBID_CUDART_SIZE);
SAME(7, NVTX_CBID_SYNC_SIZE);

SAME(sizeof(nvtx_abi_callbacks_t), sizeof(NvtxExportTableCallbacks));
SAME_FIELD(
    nvtx_abi_callbacks_t, module_table, NvtxExportTableCallbacks,
    GetModuleFunctionTable);
SAME(sizeof(nvtx_abi_version_t), sizeof(NvtxExportTableVersionInfo));
SAME_FIELD(nvtx_abi_version_t, version, NvtxExportTableVersionInfo, version);
SAME_FIELD(
    nvtx_abi_version_t, set_tool_version, NvtxExportTableVersionInfo,
    SetInjectionNvtxVersion);

SAME(sizeof(nvtx_abi_segment_t), sizeof(nvtxExtModuleSegment_t));
SAME_FIELD(nvtx_abi_segment_t, id, nvtxExtModuleSegment_t, segmentId);
SAME_FIELD(nvtx_abi_segment_t, slot_count, nvtxExtModuleSegment_t, slotCount);
SAME_FIELD(nvtx_abi_segment_t, slots, nvtxExtModuleSegment_t, functionSlots);
SAME(sizeof(nvtx_abi_module_t), sizeof(nvtxExtModuleInfo_t));
SAME_FIELD(nvtx_abi_module_t, nvtx_version, nvtxExtModuleInfo_t, nvtxVer);
SAME_FIELD(nvtx_abi_module_t, struct_size, nvtxExtModuleInfo_t, structSize);
SAME_FIELD(nvtx_abi_module_t, module_id, nvtxExtModuleInfo_t, moduleId);
SAME_FIELD(nvtx_abi_module_t, compat_id, nvtxExtModuleInfo_t, compatId);
SAME_FIELD(nvtx_abi_module_t, segment_count, nvtxExtModuleInfo_t, segmentsCount);
SAME_FIELD(nvtx_abi_module_t, segments, nvtxExtModuleInfo_t, segments);
SAME_FIELD(nvtx_abi_module_t, export_function, nvtxExtModuleInfo_t, getExportFunction);
SAME_FIELD(nvtx_abi_module_t, info, nvtxExtModuleInfo_t, extInfo);

SAME(NVTX_ABI_MEMORY_MODULE, NVTX_EXT_MODULEID_MEM);
SAME(NVTX_ABI_MEMORY_SLOTS, NVTX_EXT_MEM_SLOT_COUNT);
SAME(NVTX_ABI_SLOT_DISABLED, NVTX_EXTENSION_DISABLED);
SAME(NVTX_ABI_MEMORY_COMPAT, NVTX_EXT_COMPATID_MEM);
SAME(NVTX_ABI_HEAP_REGISTER, NVTX3EXT_CBID_nvtxMemHeapRegister);
SAME(NVTX_ABI_HEAP_UNREGISTER, NVTX3EXT_CBID_nvtxMemHeapUnregister);
SAME(NVTX_ABI_REGIONS_REGISTER, NVTX3EXT_CBID_nvtxMemRegionsRegister);
SAME(NVTX_ABI_REGIONS_UNREGISTER, NVTX3EXT_CBID_nvtxMemRegionsUnregister);
SAME(NVTX_ABI_HEAP_SUB_ALLOCATOR, NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR);
SAME(NVTX_ABI_VIRTUAL_ADDRESS, NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
SAME(NVTX_ABI_REF_POINTER, NVTX_MEM_REGION_REF_TYPE_POINTER);

SAME(sizeof(nvtx_abi_range_t), sizeof(nvtxMemVirtualRangeDesc_t));
SAME_FIELD(nvtx_abi_range_t, bytes, nvtxMemVirtualRangeDesc_t, size);
SAME_FIELD(nvtx_abi_range_t, ptr, nvtxMemVirtualRangeDesc_t, ptr);
SAME(sizeof(nvtx_abi_heap_t), sizeof(nvtxMemHeapDesc_t));
SAME_FIELD(nvtx_abi_heap_t, compat_id, nvtxMemHeapDesc_t, extCompatID);
SAME_FIELD(nvtx_abi_heap_t, struct_size, nvtxMemHeapDesc_t, structSize);
SAME_FIELD(nvtx_abi_heap_t, usage, nvtxMemHeapDesc_t, usage);
SAME_FIELD(nvtx_abi_heap_t, type, nvtxMemHeapDesc_t, type);
SAME_FIELD(nvtx_abi_heap_t, range_bytes, nvtxMemHeapDesc_t, typeSpecificDescSize);
SAME_FIELD(nvtx_abi_heap_t, range, nvtxMemHeapDesc_t, typeSpecificDesc);
SAME_FIELD(nvtx_abi_heap_t, category, nvtxMemHeapDesc_t, category);
SAME_FIELD(nvtx_abi_heap_t, message_type, nvtxMemHeapDesc_t, messageType);
SAME_FIELD(nvtx_abi_heap_t, message, nvtxMemHeapDesc_t, message);
SAME(sizeof(nvtx_abi_regions_t), sizeof(nvtxMemRegionsRegisterBatch_t));
SAME_FIELD(nvtx_abi_regions_t, compat_id, nvtxMemRegionsRegisterBatch_t, extCompatID);
SAME_FIELD(nvtx_abi_regions_t, struct_size, nvtxMemRegionsRegisterBatch_t, structSize);
SAME_FIELD(nvtx_abi_regions_t, type, nvtxMemRegionsRegisterBatch_t, regionType);
SAME_FIELD(nvtx_abi_regions_t, heap, nvtxMemRegionsRegisterBatch_t, heap);
SAME_FIELD(nvtx_abi_regions_t, count, nvtxMemRegionsRegisterBatch_t, regionCount);
SAME_FIELD(
    nvtx_abi_regions_t, element_bytes, nvtxMemRegionsRegisterBatch_t,
    regionDescElementSize);
SAME_FIELD(
    nvtx_abi_regions_t, elements, nvtxMemRegionsRegisterBatch_t, regionDescElements);
SAME_FIELD(
    nvtx_abi_regions_t, handles_out, nvtxMemRegionsRegisterBatch_t,
    regionHandleElementsOut);
SAME(sizeof(nvtx_abi_region_refs_t), sizeof(nvtxMemRegionsUnregisterBatch_t));
SAME_FIELD(
    nvtx_abi_region_refs_t, struct_size, nvtxMemRegionsUnregisterBatch_t, structSize);
SAME_FIELD(nvtx_abi_region_refs_t, type, nvtxMemRegionsUnregisterBatch_t, refType);
SAME_FIELD(nvtx_abi_region_refs_t, count, nvtxMemRegionsUnregisterBatch_t, refCount);
SAME_FIELD(
    nvtx_abi_region_refs_t, element_bytes, nvtxMemRegionsUnregisterBatch_t,
    refElementSize);
SAME_FIELD(
    nvtx_abi_region_refs_t, elements, nvtxMemRegionsUnregisterBatch_t, refElements);

TEST_CASE(the_tool_understands_nvidias_client)
{
    static char memory[4096];
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("rmm-c");
    const nvtxMemVirtualRangeDesc_t all = {sizeof(memory), memory};
    const nvtxMemVirtualRangeDesc_t part = {100, memory + 256};
    const nvtxMemRegionRef_t reference = {.pointer = part.ptr};
    const nvtxMemHeapDesc_t heap_desc = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof(heap_desc),
        .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
        .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
        .typeSpecificDescSize = sizeof(all),
        .typeSpecificDesc = &all,
    };
    const nvtxMemHeapHandle_t heap = nvtxMemHeapRegister(domain, &heap_desc);
    const nvtxMemRegionsRegisterBatch_t regions = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof(regions),
        .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
        .heap = heap,
        .regionCount = 1,
        .regionDescElementSize = sizeof(part),
        .regionDescElements = &part,
    };
    const nvtxMemRegionsUnregisterBatch_t references = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof(references),
        .refType = NVTX_MEM_REGION_REF_TYPE_POINTER,
        .refCount = 1,
        .refElementSize = sizeof(reference),
        .refElements = &reference,
    };

    assert_non_null(heap);
    nvtxMemRegionsRegister(domain, &regions);
    assert_true(tool_allows(memory + 256, 100));
    assert_false(tool_allows(memory + 256, 101));
    nvtxMemRegionsUnregister(domain, &references);
    nvtxMemHeapUnregister(domain, heap);
    assert_int_equal(tool_state().heaps_begun, 1);
    assert_int_equal(tool_state().regions_begun, 1);
    expect_clean_tool();
}
