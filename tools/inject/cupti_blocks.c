/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations and frees in the parameters of the driver's calls; see cupti_blocks.h. A call is
 * described by where its parameters are. The _ptsz twins have the same parameters.
 */
#include "inject/cupti_blocks.h"

#include <string.h>

typedef enum block_kind {
    TAKES,          /* address_at: where the driver writes the address */
    TAKES_ROWS,     /* the same; bytes_at: where it writes the pitch, times rows_at */
    TAKES_ARRAY,    /* the same: a handle; bytes_at: where the description is */
    TAKES_ARRAY_3D, /* the same; rows_at: the number of levels, if it has any */
    MAPS,           /* address_at: the address, which the program chose */
    GIVES,
    UNMAPS /* all that is mapped in a range */
} block_kind_t;

typedef struct block_call {
    uint16_t id, twin; /* the twin: for the per-thread default stream; 0: none */
    uint8_t kind;      /* block_kind_t */
    uint8_t address_at, bytes_at, rows_at, stream_at;
    bool in_host_memory;
} block_call_t;

static const block_call_t calls[] = {
    {CBID(cuMemAlloc_v2), 0, TAKES, AT(cuMemAlloc_v2, dptr),
     AT(cuMemAlloc_v2, bytesize), ABSENT, ABSENT, false},
    {CBID(cuMemAllocManaged), 0, TAKES, AT(cuMemAllocManaged, dptr),
     AT(cuMemAllocManaged, bytesize), ABSENT, ABSENT, false},
    {CBID(cuMemAllocPitch_v2), 0, TAKES_ROWS, AT(cuMemAllocPitch_v2, dptr),
     AT(cuMemAllocPitch_v2, pPitch), AT(cuMemAllocPitch_v2, Height), ABSENT, false},
    {CBID(cuMemAllocAsync), CBID(cuMemAllocAsync_ptsz), TAKES,
     AT(cuMemAllocAsync, dptr), AT(cuMemAllocAsync, bytesize), ABSENT,
     AT(cuMemAllocAsync, hStream), false},
    {CBID(cuMemAllocFromPoolAsync), CBID(cuMemAllocFromPoolAsync_ptsz), TAKES,
     AT(cuMemAllocFromPoolAsync, dptr), AT(cuMemAllocFromPoolAsync, bytesize), ABSENT,
     AT(cuMemAllocFromPoolAsync, hStream), false},
    {CBID(cuMemAllocHost_v2), 0, TAKES, AT(cuMemAllocHost_v2, pp),
     AT(cuMemAllocHost_v2, bytesize), ABSENT, ABSENT, true},
    {CBID(cuMemHostAlloc), 0, TAKES, AT(cuMemHostAlloc, pp),
     AT(cuMemHostAlloc, bytesize), ABSENT, ABSENT, true},
    {CBID(cuMemMap), 0, MAPS, AT(cuMemMap, ptr), AT(cuMemMap, size), ABSENT, ABSENT,
     false},
    {CBID(cuArrayCreate_v2), 0, TAKES_ARRAY, AT(cuArrayCreate_v2, pHandle),
     AT(cuArrayCreate_v2, pAllocateArray), ABSENT, ABSENT, false},
    {CBID(cuArray3DCreate_v2), 0, TAKES_ARRAY_3D, AT(cuArray3DCreate_v2, pHandle),
     AT(cuArray3DCreate_v2, pAllocateArray), ABSENT, ABSENT, false},
    {CBID(cuMipmappedArrayCreate), 0, TAKES_ARRAY_3D,
     AT(cuMipmappedArrayCreate, pHandle),
     AT(cuMipmappedArrayCreate, pMipmappedArrayDesc),
     AT(cuMipmappedArrayCreate, numMipmapLevels), ABSENT, false},
    {CBID(cuArrayDestroy), 0, GIVES, AT(cuArrayDestroy, hArray), ABSENT, ABSENT, ABSENT,
     false},
    {CBID(cuMipmappedArrayDestroy), 0, GIVES,
     AT(cuMipmappedArrayDestroy, hMipmappedArray), ABSENT, ABSENT, ABSENT, false},
    {CBID(cuMemFree_v2), 0, GIVES, AT(cuMemFree_v2, dptr), ABSENT, ABSENT, ABSENT,
     false},
    {CBID(cuMemFreeAsync), CBID(cuMemFreeAsync_ptsz), GIVES, AT(cuMemFreeAsync, dptr),
     ABSENT, ABSENT, AT(cuMemFreeAsync, hStream), false},
    {CBID(cuMemFreeHost), 0, GIVES, AT(cuMemFreeHost, p), ABSENT, ABSENT, ABSENT, true},
    {CBID(cuMemUnmap), 0, UNMAPS, AT(cuMemUnmap, ptr), AT(cuMemUnmap, size), ABSENT,
     ABSENT, false},
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

SAME_OFFSET(cuMemAllocAsync, dptr);
SAME_OFFSET(cuMemAllocAsync, bytesize);
SAME_OFFSET(cuMemAllocAsync, hStream);
SAME_OFFSET(cuMemAllocFromPoolAsync, dptr);
SAME_OFFSET(cuMemAllocFromPoolAsync, bytesize);
SAME_OFFSET(cuMemAllocFromPoolAsync, hStream);
SAME_OFFSET(cuMemFreeAsync, dptr);
SAME_OFFSET(cuMemFreeAsync, hStream);

bool cupti_block_call(size_t i, cupti_call_t *call_out)
{
    const block_call_t *call = &calls[i % CALLS];

    if (i >= CALLS * 2) {
        return false;
    }
    call_out->id = i < CALLS || call->twin == 0 ? call->id : call->twin;
    call_out->is_recent = false;
    return true;
}

/* NULL: it is not in the list. */
static const block_call_t *find_call(CUpti_CallbackId id)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (calls[i].id == id || (calls[i].twin != 0 && calls[i].twin == id)) {
            return &calls[i];
        }
    }
    return NULL;
}

bool cupti_blocks_is_call(CUpti_CallbackId call)
{
    return find_call(call) != NULL;
}

static rmm_stream_t
stream_of(const block_call_t *call, CUpti_CallbackId id, const void *params)
{
    return cupti_stream(word_at(params, call->stream_at), id == call->twin);
}

/* The address of an array is a handle: no pointer leads into it. */
static uint32_t flags_of(const block_call_t *call)
{
    if (call->kind == MAPS || call->kind == TAKES_ARRAY ||
        call->kind == TAKES_ARRAY_3D) {
        return RMM_DIAG_BLOCK_PIECE;
    }
    return call->stream_at != ABSENT ? RMM_DIAG_BLOCK_IN_STREAM_ORDER : 0;
}

/* A call that is captured takes nothing now. */
static bool is_captured(
    const cupti_blocks_t *blocks, const block_call_t *call, CUpti_CallbackId id,
    const void *params)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUstream stream = (CUstream)stream_of(call, id, params);

    return call->stream_at != ABSENT && blocks->is_capturing != NULL &&
           blocks->is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* --- before a free --------------------------------------------------------------------- */

/* A range may be mapped from several allocations, one behind the other. */
static void unmap(const cupti_blocks_t *blocks, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    uint64_t piece = 1;

    while (piece != 0 && address < end) {
        const rmm_diag_block_v1_t begin = {.address = address};

        piece = blocks->library.driver_free(&begin);
        address += piece;
    }
}

static void give(
    const cupti_blocks_t *blocks, const block_call_t *call, CUpti_CallbackId id,
    const void *params)
{
    if (call->kind == UNMAPS) {
        unmap(
            blocks, word_at(params, call->address_at), word_at(params, call->bytes_at));
    } else if (call->kind == GIVES && !is_captured(blocks, call, id, params)) {
        const rmm_diag_block_v1_t block = {
            .address = word_at(params, call->address_at),
            .stream = stream_of(call, id, params),
            .flags = flags_of(call)};

        (void)blocks->library.driver_free(&block);
    }
}

bool cupti_blocks_before(
    const cupti_blocks_t *blocks, CUpti_CallbackId id, const void *params)
{
    const block_call_t *call = find_call(id);

    if (call != NULL && !blocks->library.in_library()) {
        give(blocks, call, id, params);
    }
    return call != NULL;
}

/* --- the size of an array ----------------------------------------------------------------- */

/* 0: a format in which several elements share bytes. */
static uint64_t bytes_of_format(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static uint64_t at_least_1(uint64_t count)
{
    return count > 0 ? count : 1;
}

/* The elements of all levels; what the driver adds to align them is not known. An array whose
 * memory is mapped later takes none. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, uint32_t levels)
{
    const unsigned later = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
    bool has_layers =
        (array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    uint64_t element = bytes_of_format(array->Format) * array->NumChannels, bytes = 0;

    if ((array->Flags & later) != 0) {
        return 0;
    }
    for (uint32_t level = 0; level < levels && level < 32; level++) {
        uint32_t depth_shift = has_layers ? 0 : level;

        bytes += element * at_least_1(array->Width >> level) *
                 at_least_1(array->Height >> level) *
                 at_least_1(array->Depth >> depth_shift);
    }
    return bytes;
}

static uint64_t described_bytes(const block_call_t *call, const void *params)
{
    const void *where = (const void *)(uintptr_t)word_at(params, call->bytes_at);
    CUDA_ARRAY3D_DESCRIPTOR array = {.Depth = 0};
    CUDA_ARRAY_DESCRIPTOR flat;

    if (where == NULL) {
        return 0;
    }
    if (call->kind == TAKES_ARRAY_3D) {
        memcpy(&array, where, sizeof(array));
        return array_bytes(
            &array,
            call->rows_at != ABSENT ? (uint32_t)word_at(params, call->rows_at) : 1);
    }
    memcpy(&flat, where, sizeof(flat));
    array.Width = flat.Width;
    array.Height = flat.Height;
    array.Format = flat.Format;
    array.NumChannels = flat.NumChannels;
    return array_bytes(&array, 1);
}

/* --- after an allocation ------------------------------------------------------------------ */

static bool
read_block(const block_call_t *call, const void *params, rmm_diag_block_v1_t *block)
{
    switch ((block_kind_t)call->kind) {
    case TAKES:
        block->address = result_at(params, call->address_at);
        block->bytes = word_at(params, call->bytes_at);
        return true;
    case TAKES_ROWS:
        block->address = result_at(params, call->address_at);
        block->bytes =
            result_at(params, call->bytes_at) * word_at(params, call->rows_at);
        return true;
    case TAKES_ARRAY:
    case TAKES_ARRAY_3D:
        block->address = result_at(params, call->address_at);
        block->bytes = described_bytes(call, params);
        return true;
    case MAPS:
        block->address = word_at(params, call->address_at);
        block->bytes = word_at(params, call->bytes_at);
        return true;
    case GIVES:
    case UNMAPS:
        break;
    }
    return false;
}

bool cupti_blocks_range(
    CUpti_CallbackId id, const void *params, uint64_t *address, uint64_t *bytes)
{
    const block_call_t *call = find_call(id);
    rmm_diag_block_v1_t block = {.address = 0};

    if (call == NULL || call->kind == TAKES_ARRAY || call->kind == TAKES_ARRAY_3D ||
        !read_block(call, params, &block)) {
        return false;
    }
    *address = block.address;
    *bytes = block.bytes;
    return true;
}

static void take(
    const cupti_blocks_t *blocks, const block_call_t *call, CUpti_CallbackId id,
    const void *params, int32_t device)
{
    rmm_diag_block_v1_t block = {
        .device = call->in_host_memory ? -1 : device,
        .stream = stream_of(call, id, params),
        .flags = flags_of(call)};

    if (!read_block(call, params, &block) || block.address == 0 || block.bytes == 0 ||
        is_captured(blocks, call, id, params)) {
        return;
    }
    if (block.device < 0 && !call->in_host_memory) {
        return; /* it would be counted as the host's */
    }
    /* what cannot be counted is missing in the figures; the program has its memory */
    (void)blocks->library.driver_alloc(&block);
}

bool cupti_blocks_after(
    const cupti_blocks_t *blocks, CUpti_CallbackId id, const void *params,
    int32_t device)
{
    const block_call_t *call = find_call(id);

    if (call != NULL && !blocks->library.in_library()) {
        take(blocks, call, id, params, device);
    }
    return call != NULL;
}
