/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All host memory that the library takes goes through here, so that tests can fail the
 * N-th request and see that every caller copes.
 */
#ifndef RMM_CORE_HOST_MEMORY_H
#define RMM_CORE_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, or NULL with the last error set. */
void *rmm__calloc(size_t count, size_t bytes);
/* As realloc, new bytes zeroed; NULL with the last error set, old memory kept. */
void *rmm__resize(void *old, size_t old_bytes, size_t new_bytes);
char *rmm__strdup(const char *text);
void rmm__free(void *memory);

/* For tests: the nth request from now fails, once; 0 switches off. */
void rmm__host_memory_fail(uint64_t nth);
/* True if that request has come. */
bool rmm__host_memory_fail_struck(void);

/* For other host resources of the kind that can run out (mmap, open): counts as a
 * request of the same plan; true: pretend that it failed. */
bool rmm__host_memory_should_fail(void);

#endif /* RMM_CORE_HOST_MEMORY_H */
