/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis engine: from the blocks that users hold and the work that a GPU is given
 * it computes which call used which block, and which errors there are, and writes both into a
 * side file (diag_format.h). Pure: no CUDA, no files; its creator provides the memory.
 *
 * Usage: a launch uses a block if any aligned 8-byte word of its parameters points into it:
 * pointers inside structs are found, pointers stored in device memory are not.
 * Bounds: what a copy, fill or prefetch is given is checked before the call is made (bounds.h),
 * and what any of these and a launch is given against blocks that were freed (freed.h).
 *
 * Blocks are followed in every mode, also in none, so that a mode can be switched on later
 * (mode_switch.h): it then knows all blocks, but not what was done to them before.
 *
 * Threads: all functions but create, publish and destroy, any thread. One lock; nothing is called
 * under it but malloc and the demangler, for a kernel seen for the first time.
 */
#ifndef RMM_DIAG_ENGINE_H
#define RMM_DIAG_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/guards.h"
#include "diag/kernel_table.h"
#include "diag/mode_switch.h"
#include "diag/modes.h"
#include "diag/timeline_format.h"

typedef struct rmm_diag_engine rmm_diag_engine_t;

/* How memory that the driver hands out is reported: by on_alloc(), or by on_gone(). */
typedef enum rmm_driver_memory {
    RMM_DRIVER_MEMORY_UNSEEN = 0, /* not all of it */
    RMM_DRIVER_MEMORY_SEEN = 1, /* all; the host may get the same addresses by itself */
    RMM_DRIVER_MEMORY_APART =
        2 /* all; the host gets none of a GPU: the simulated GPU */
} rmm_driver_memory_t;

typedef struct rmm_diag_engine_desc {
    void *memory; /* zeroed, 8-byte aligned, rmm__diag_file_bytes() of it; borrowed */
    uint32_t row_count;        /* live blocks that can be followed, > 0 */
    uint32_t kernel_count;     /* kernels that can be named, > 0 */
    rmm_demangle_fn demangle;  /* may be NULL */
    uint32_t modes;            /* RMM_DIAG_MODE_... */
    rmm_mode_source_fn source; /* of the events; may be NULL (mode_switch.h) */
    void *timeline; /* as memory, rmm__timeline_file_bytes(); NULL: none is kept */
    uint32_t timeline_events; /* that it has room for */
    const char *run, *rank;   /* of the process; NULL: none; copied and cut */
    rmm_driver_memory_t driver_memory;
    rmm_guard_queue_fn queue; /* for guards (guards.h); NULL: that mode does nothing */
} rmm_diag_engine_desc_t;

/* Bytes of a side file with so many rows and kernels; of a timeline with so many events. */
size_t rmm__diag_file_bytes(uint32_t row_count, uint32_t kernel_count);
size_t rmm__timeline_file_bytes(uint32_t event_count);

/* NULL: no host memory, or too little for a count. Memory is laid out, not ready. */
rmm_diag_engine_t *rmm__diag_engine_create(const rmm_diag_engine_desc_t *desc);
void rmm__diag_engine_destroy(rmm_diag_engine_t *engine);

/* Say what feeds the engine ("active", "conflict:<who>", "error:<why>") and let readers
 * in. Once. The text is copied and cut. */
void rmm__diag_engine_publish(rmm_diag_engine_t *engine, const char *source);

/* The hooks of rmm/sys/diag.h; context is the engine. A free that matches no block, or
 * has another size, changes nothing: the library refuses it too. */
void rmm__diag_engine_on_alloc(void *engine, const rmm_diag_block_v1_t *block);
void rmm__diag_engine_on_free(void *engine, const rmm_diag_block_v1_t *block);
void rmm__diag_engine_on_gone(void *engine, uint64_t address, uint64_t bytes);
void rmm__diag_engine_on_pool(void *engine, uint64_t address, uint64_t bytes);
void rmm__diag_engine_on_refused(void *engine, const rmm_diag_block_v1_t *block);
void rmm__diag_engine_on_event(void *engine, const rmm_diag_event_v1_t *event);

/* As an operator does, through the side file: what is not among these modes is not looked for
 * from here on. */
void rmm__diag_engine_set_modes(rmm_diag_engine_t *engine, uint32_t modes);

/* The mode is in force. */
bool rmm__diag_engine_has_mode(const rmm_diag_engine_t *engine, uint32_t mode);

/* The program has reset this GPU: its memory is gone, and with it its blocks. */
void rmm__diag_engine_reset(rmm_diag_engine_t *engine, int32_t device);

/* Memory of the driver has come into use at an address that is not reported: this once, or from now
 * on at any time. So no freed block that went back to the driver is known any more. */
void rmm__diag_engine_driver_unseen(rmm_diag_engine_t *engine, bool from_now_on);

/* Findings of work on the GPU that has ended since the last call of the engine. For the end of the
 * process: they are lost if that is in a signal handler which has interrupted a call of the
 * engine, or if another thread keeps a lock of the engine for 0.2 s. */
void rmm__diag_engine_settle(rmm_diag_engine_t *engine);

/* A launch whose parameters the source could not read was reported without words. */
void rmm__diag_engine_parameters_unknown(rmm_diag_engine_t *engine);

/* Walks everything; for tests. */
bool rmm__diag_engine_check(rmm_diag_engine_t *engine);

#endif /* RMM_DIAG_ENGINE_H */
