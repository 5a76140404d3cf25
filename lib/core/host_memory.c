/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory with a fault plan. The plan costs one relaxed load a request; no request
 * is made on the allocation fast path.
 */
#include "core/host_memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static _Atomic(uint64_t) fail_countdown; /* 0: no plan */
static atomic_bool fail_struck;

void rmm__host_memory_fail(uint64_t nth)
{
    atomic_store_explicit(&fail_struck, false, memory_order_relaxed);
    atomic_store_explicit(&fail_countdown, nth, memory_order_relaxed);
}

bool rmm__host_memory_fail_struck(void)
{
    return atomic_load_explicit(&fail_struck, memory_order_relaxed);
}

bool rmm__host_memory_should_fail(void)
{
    uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

    while (left != 0) {
        if (atomic_compare_exchange_weak_explicit(
                &fail_countdown, &left, left - 1, memory_order_relaxed,
                memory_order_relaxed)) {
            if (left == 1) {
                atomic_store_explicit(&fail_struck, true, memory_order_relaxed);
            }
            return left == 1;
        }
    }
    return false;
}

static void *refuse(size_t bytes)
{
    (void)rmm__error(RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory for %zu bytes", bytes);
    return NULL;
}

void *rmm__calloc(size_t count, size_t bytes)
{
    void *memory = rmm__host_memory_should_fail() ? NULL : calloc(count, bytes);
    size_t all;

    if (memory != NULL) {
        return memory;
    }
    return refuse(__builtin_mul_overflow(count, bytes, &all) ? SIZE_MAX : all);
}

void *rmm__resize(void *old, size_t old_bytes, size_t new_bytes)
{
    void *memory = rmm__host_memory_should_fail() ? NULL : realloc(old, new_bytes);

    if (memory == NULL) {
        return refuse(new_bytes);
    }
    if (new_bytes > old_bytes) {
        memset((char *)memory + old_bytes, 0, new_bytes - old_bytes);
    }
    return memory;
}

char *rmm__strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = rmm__calloc(1, bytes);

    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void rmm__free(void *memory)
{
    free(memory);
}
