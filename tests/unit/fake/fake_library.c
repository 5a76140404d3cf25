/* SPDX-License-Identifier: Apache-2.0 */
/* The fake librmm-c: see fake_library.h. */
#include "unit/fake/fake_library.h"

enum { BLOCKS = 64 };

static fake_library_control_t control;
static rmm_diag_block_v1_t blocks[BLOCKS]; /* address 0: none */

fake_library_control_t *fake_library_control(void)
{
    return &control;
}

static rmm_diag_block_v1_t *find(uint64_t address)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].address == address) {
            return &blocks[i];
        }
    }
    return NULL;
}

RMM_API rmm_status_t rmm_diag_driver_alloc_v1(const rmm_diag_block_v1_t *block)
{
    rmm_diag_block_v1_t *place = find(0);

    if ((block->flags & RMM_DIAG_BLOCK_PIECE) != 0 || place == NULL) {
        return RMM_OK;
    }
    *place = *block;
    place->resource_id = 1;
    place->flags |= RMM_DIAG_BLOCK_RETURNED;
    control.hooks->on_alloc(control.hooks->context, place);
    return RMM_OK;
}

RMM_API uint64_t rmm_diag_driver_free_v1(const rmm_diag_block_v1_t *block)
{
    rmm_diag_block_v1_t *place = find(block->address);
    rmm_diag_block_v1_t freed;

    if (block->address == 0 || place == NULL) {
        return 0;
    }
    freed = *place;
    place->address = 0;
    control.hooks->on_free(control.hooks->context, &freed);
    return freed.bytes;
}

RMM_API void rmm_diag_driver_forget_v1(void)
{
}

RMM_API bool rmm_diag_in_library_v1(void)
{
    return control.is_in_library;
}
