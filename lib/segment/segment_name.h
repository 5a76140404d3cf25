/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files in the runtime directory, for both sides:
 *   <uid>.<16 hex digits>            segment
 *   <uid>.<16 hex digits>.<suffix>   its side file: [a-z0-9_], at most 15 letters
 *   .<uid>.<16 hex digits>.tmp       being made
 */
#ifndef RMM_SEGMENT_NAME_H
#define RMM_SEGMENT_NAME_H

#include <stddef.h>
#include <sys/types.h>

#define RMM_SUFFIX_BYTES 16 /* with its NUL */

typedef enum rmm_file_kind {
    RMM_FILE_OTHER = 0, /* not ours: never touched */
    RMM_FILE_SEGMENT,
    RMM_FILE_SIDE,
    RMM_FILE_TEMPORARY
} rmm_file_kind_t;

typedef struct rmm_file_name {
    rmm_file_kind_t kind;
    uid_t uid;
    size_t stem_bytes; /* of a segment or side file: length of the segment's name */
} rmm_file_name_t;

rmm_file_name_t rmm__file_name_parse(const char *name);

#endif /* RMM_SEGMENT_NAME_H */
