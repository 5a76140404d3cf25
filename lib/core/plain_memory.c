/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/host_memory.h for the parts of core/ that other programs than the library compile: without
 * the library's last error, and without its plan of failures.
 */
#include "core/host_memory.h"

#include <stdlib.h>

void *rmm__calloc(size_t count, size_t bytes)
{
    return calloc(count, bytes);
}

void rmm__free(void *memory)
{
    free(memory);
}
