/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segment that this process publishes: shared by the files that open the segment, hand out its
 * records, and obey requests. One per process.
 */
#ifndef RMM_PUBLISH_PUBLISHER_H
#define RMM_PUBLISH_PUBLISHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mutex.h"
#include "publish/shared_file.h"
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
    rmm_shared_pages_t pages;
    bool shared; /* a file behind it: not inherited by a forked child */
    char suffix[RMM_SUFFIX_BYTES];
} rmm_mapping_t;

/*
 * Which pages of the segment are not in its file, one bit each. Without a lock: a message of
 * the debug log may come at any moment. All 0 while the segment is private memory.
 */
#define RMM_PAGE_BYTES_MIN 4096u
#define RMM_PAGE_WORDS (RMM_SEGMENT_MAX_BYTES / RMM_PAGE_BYTES_MIN / 64u)

typedef struct rmm_segment_pages {
    _Atomic(uint64_t) wanting[RMM_PAGE_WORDS]; /* to be backed before their first use */
    _Atomic(uint64_t)
        refused[RMM_PAGE_WORDS]; /* there was no space: private for good */
} rmm_segment_pages_t;

typedef struct rmm_publisher {
    rmm_mutex_t lock; /* protects all here, and records' identities; held over fork() */
    rmm_publish_state_t state;
    rmm_segment_layout_t *segment;     /* never NULL */
    const rmm_control_page_t *control; /* never NULL */
    char directory[RMM_RUNTIME_DIR_BYTES];
    char name[RMM_RUNTIME_DIR_BYTES];
    rmm_mapping_t mappings[RMM_MAPPINGS_MAX];
    uint32_t mapping_count;
    char refused_suffix[RMM_SUFFIX_BYTES]; /* of the side file last warned about */
    rmm_segment_pages_t pages;
    bool slot_is_taken[RMM_SEGMENT_SLOTS]; /* not trusted to the shared memory */
} rmm_publisher_t;

extern rmm_publisher_t rmm__publisher;

/*
 * Before the first use of anything in the segment: its pages get space in the file. False:
 * there is none, now or at an earlier call. Then what is written there stays private,
 * and nothing else may point a reader at it. Any thread, with or without the lock.
 */
bool rmm__segment_back(const void *record, size_t bytes);

/* Notify the daemon, which is to look at the segment: one system call. Nothing if the segment is
 * private. Any thread. */
void rmm__segment_touch(void);

#endif /* RMM_PUBLISH_PUBLISHER_H */
