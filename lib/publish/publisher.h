/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process publishes: shared by the files that open the segment, hand out its
 * records, and obey requests. One per process.
 */
#ifndef RMM_PUBLISH_PUBLISHER_H
#define RMM_PUBLISH_PUBLISHER_H

#include <stdbool.h>

#include "core/mutex.h"
#include "segment/runtime_dir.h"
#include "segment/segment_format.h"
#include "segment/segment_name.h"

#define RMM_MAPPINGS_MAX 8 /* segment, control page, side files */

typedef enum rmm_publish_state {
    RMM_PUBLISH_UNDECIDED = 0,
    RMM_PUBLISH_PRIVATE, /* same accounting, in this process's memory */
    RMM_PUBLISH_SHARED
} rmm_publish_state_t;

/* Memory that lives as long as the process. */
typedef struct rmm_mapping {
    void *memory;
    size_t bytes;
    bool shared; /* a file behind it: not inherited by a forked child */
    char suffix[RMM_SUFFIX_BYTES];
} rmm_mapping_t;

typedef struct rmm_publisher {
    rmm_mutex_t lock; /* protects all here, and records' identities; held over fork() */
    rmm_publish_state_t state;
    rmm_segment_layout_t *segment;     /* never NULL */
    const rmm_control_page_t *control; /* never NULL */
    char directory[RMM_RUNTIME_DIR_BYTES];
    char name[RMM_RUNTIME_DIR_BYTES];
    rmm_mapping_t mappings[RMM_MAPPINGS_MAX];
    uint32_t mapping_count;
    bool slot_is_taken[RMM_SEGMENT_SLOTS]; /* not trusted to the shared memory */
} rmm_publisher_t;

extern rmm_publisher_t rmm__publisher;

#endif /* RMM_PUBLISH_PUBLISHER_H */
