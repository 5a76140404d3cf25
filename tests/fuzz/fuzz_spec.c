/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spec of resources, as it stands in RMM_RESOURCE: whatever the text, it is refused with
 * one line that says why, or every part is a word of the table with as many sizes as that
 * takes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_reason(const char reason[RMM_SPEC_REASON_BYTES])
{
    if (memchr(reason, '\0', RMM_SPEC_REASON_BYTES) == NULL || reason[0] == '\0') {
        abort();
    }
    for (const char *at = reason; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            abort();
        }
    }
}

static void check_parts(const rmm_spec_t *spec)
{
    if (spec->count == 0 || spec->count > RMM_SPEC_PARTS) {
        abort();
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        const rmm_spec_part_t *part = &spec->parts[i];
        const rmm_spec_kind_t *kind = rmm__spec_kind(part->name);
        const bool is_over_next = !part->is_alternate && i + 1 < spec->count &&
                                  !spec->parts[i + 1].is_alternate;

        if (kind == NULL || part->size_count > kind->most_sizes ||
            kind->is_adaptor != is_over_next) {
            abort();
        }
        for (uint32_t j = 0; j < part->size_count; j++) {
            if (part->sizes[j].is_percent &&
                (part->sizes[j].value < 1 || part->sizes[j].value > 100)) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char reason[RMM_SPEC_REASON_BYTES];
    rmm_spec_t spec;
    char *text = malloc(bytes + 1);

    if (text == NULL) {
        return 0;
    }
    memset(reason, 'x', sizeof(reason));
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (rmm__spec_parse(text, &spec, reason) && rmm__spec_check(&spec, reason)) {
        check_parts(&spec);
    } else {
        check_reason(reason);
    }
    free(text);
    return 0;
}
