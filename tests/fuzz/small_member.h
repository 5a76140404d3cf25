/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a model from small segments, one process each. */
#ifndef RMM_TESTS_FUZZ_SMALL_MEMBER_H
#define RMM_TESTS_FUZZ_SMALL_MEMBER_H

#include <stdio.h>
#include <unistd.h>

#include "fuzz/small_segment.h"
#include "model/model.h"

/* NULL: the reader refuses the segment. */
static inline member_t *
small_member(model_t *model, const image_t *image, pid_t pid, uid_t uid)
{
    char reason[RMM_SEGMENT_REASON_BYTES], name[16];
    member_t *member = calloc(1, sizeof(*member));
    int fd = sample_file(image->bytes, image->size);
    if (member == NULL) {
        abort();
    }
    if (rmm__segment_attach(&member->segment, fd, reason) != RMM_SEGMENT_GOOD) {
        (void)close(fd);
        free(member);
        return NULL;
    }
    (void)snprintf(name, sizeof(name), "%d", (int)pid);
    member->segment.uid = uid;
    member->pidfd = -1;
    if (!model_add_member(model, member, name, pid)) {
        abort();
    }
    return member;
}

#endif /* RMM_TESTS_FUZZ_SMALL_MEMBER_H */
