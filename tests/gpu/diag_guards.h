/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that write where they are told to, for diag_guards.c: each is launched once, and a
 * cudaError_t returned (0 is success). Those that may do wrong are named poke...
 */
#ifndef RMM_TESTS_GPU_DIAG_GUARDS_H
#define RMM_TESTS_GPU_DIAG_GUARDS_H

#include <stdint.h>

#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By value. */
typedef struct guards_pair {
    int32_t unused;
    char *first, *second;
    int64_t offset; /* in the second */
} guards_pair_t;

int guards_poke(char *block, int64_t offset, rmm_stream_t stream); /* one byte */
int guards_right(char *block, int64_t count, rmm_stream_t stream);
int guards_poke_range(char *block, int64_t count, rmm_stream_t stream);
int guards_poke_pair(const guards_pair_t *pair, rmm_stream_t stream);
/* By a pointer that lies in memory of the GPU. */
int guards_poke_table(char **table, int64_t offset, rmm_stream_t stream);
int guards_poke_extended(char *block, int64_t offset, rmm_stream_t stream);
int guards_poke_cooperative(char *block, int64_t offset, rmm_stream_t stream);
/* Follows no pointer. */
int guards_ignore(const char *block, const char *other, rmm_stream_t stream);
int guards_wait(int64_t cycles, rmm_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TESTS_GPU_DIAG_GUARDS_H */
