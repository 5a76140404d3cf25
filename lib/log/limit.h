/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For messages that a program may cause a million times a second: only some of each kind are logged
 * in a second, the others are counted.
 */
#ifndef RMM_LOG_LIMIT_H
#define RMM_LOG_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero at first; one for each kind of message. Any thread. */
typedef struct rmm_log_limit {
    _Atomic(uint64_t) window; /* the second << 16 | messages in it */
    _Atomic(uint64_t) left_out;
} rmm_log_limit_t;

/* True: log it, and say that *left_out_out were not since the last one. */
bool rmm__log_limit_allows(
    rmm_log_limit_t *limit, uint32_t most_per_second, uint64_t *left_out_out);

#endif /* RMM_LOG_LIMIT_H */
