/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the code that a module is loaded from. The code comes from the program's files or its
 * compiler: sizes and offsets in it are not trusted.
 */
#ifndef RMM_TOOLS_INJECT_CUBIN_H
#define RMM_TOOLS_INJECT_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

/* The module has variables, for which the driver takes memory; or it may: it cannot be read. */
bool inject_cubin_has_variables(const void *cubin, size_t bytes);

#endif /* RMM_TOOLS_INJECT_CUBIN_H */
