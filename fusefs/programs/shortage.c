/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and memory for members; see shortage.h.
 */
#include "programs/shortage.h"

#include "support/daemon_log.h"

#define DESCRIPTOR_RESERVE 64u
#define MEMBER_DESCRIPTORS 3u /* the segment, its control page, a pidfd */
#define MEMBER_BYTES 9216u    /* measured: 7 KiB of the daemon, 2 of the kernel */

/* A member takes up to three descriptors, one more if it is diagnosed. Readers, the state and
 * the end of the daemon need some that no segment may take. */
static bool is_of_the_reserve(const model_t *model, int fd)
{
    uint32_t half = model->descriptor_limit / 2;
    uint32_t reserve = half < DESCRIPTOR_RESERVE ? half : DESCRIPTOR_RESERVE;
    uint32_t left = model->descriptor_limit - reserve;
    return (uint32_t)fd >= left ||
           MEMBER_DESCRIPTORS * ((uint64_t)model->member_count + 1) +
                   model->found_open >
               left;
}

shortage_t shortage_find(model_t *model, const entry_t *entry, const member_t *member)
{
    if (is_of_the_reserve(model, member->segment.fd)) {
        return SHORT_OF_DESCRIPTORS;
    }
    bool has_room =
        entry->member != NULL || memory_take(&model->budget.memory, MEMBER_BYTES);
    return has_room ? SHORT_OF_NOTHING : SHORT_OF_MEMORY;
}

static void tell(const model_t *model, shortage_t shortage)
{
    log_warn(
        shortage == SHORT_OF_MEMORY
            ? "out of memory: segments are not shown, see daemon/unshown; raise "
              "MemoryMax, or the limit of the container"
            : "out of descriptors (limit %u): segments are not shown, see "
              "daemon/unshown; raise LimitNOFILE or `ulimit -n`",
        model->descriptor_limit);
}

void shortage_note(model_t *model, entry_t *entry, shortage_t shortage)
{
    if (shortage != SHORT_OF_NOTHING && !model->has_logged_short[shortage]) {
        model->has_logged_short[shortage] = true;
        tell(model, shortage);
    }
    if (entry->shortage != SHORT_OF_NOTHING) {
        model->unshown[entry->shortage]--;
    }
    if (shortage != SHORT_OF_NOTHING) {
        model->unshown[shortage]++;
    }
    entry->shortage = shortage;
}
