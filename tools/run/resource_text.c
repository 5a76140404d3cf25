/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a resource in reports; see resource_text.h. */
#include "run/resource_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void run_resource_text(
    uint32_t id, const rmm_diag_resource_name_t *resource,
    char text[RUN_RESOURCE_BYTES])
{
    if (resource->type[0] == '\0') {
        (void)snprintf(text, RUN_RESOURCE_BYTES, "resource %" PRIu32, id);
    } else if (
        resource->name[0] == '\0' || strcmp(resource->name, resource->type) == 0) {
        (void)snprintf(
            text, RUN_RESOURCE_BYTES, "resource %" PRIu32 " (%s)", id, resource->type);
    } else {
        (void)snprintf(
            text, RUN_RESOURCE_BYTES, "resource %" PRIu32 " (%s \"%s\")", id,
            resource->type, resource->name);
    }
}
