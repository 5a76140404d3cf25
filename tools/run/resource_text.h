/* SPDX-License-Identifier: Apache-2.0 */
/* How a report calls a resource: by its number, which its files in /rmm have too, and its name. */
#ifndef RMM_TOOLS_RUN_RESOURCE_TEXT_H
#define RMM_TOOLS_RUN_RESOURCE_TEXT_H

#include "diag/diag_reader.h"

enum { RUN_RESOURCE_BYTES = 128 };

/* resource 2 (pool "activations"); without a name where it has none of its own, with the number
 * alone where neither is known. */
void run_resource_text(
    uint32_t id, const rmm_diag_resource_name_t *resource,
    char text[RUN_RESOURCE_BYTES]);

#endif /* RMM_TOOLS_RUN_RESOURCE_TEXT_H */
