/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls by which a program gets addresses of memory that is none of its blocks: variables of
 * modules, memory of graphs, of other processes and of other interfaces. Only what is known of
 * blocks that were freed depends on them: they may have been given the same addresses.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_FOREIGN_H
#define RMM_TOOLS_INJECT_CUPTI_FOREIGN_H

#include "inject/cupti_params.h"

/* The i-th callback to be enabled; false behind the last. */
bool cupti_foreign_call(size_t i, cupti_call_t *call_out);

bool cupti_foreign_is_call(CUpti_CallbackId call);

typedef struct cupti_foreign {
    bool is_whole; /* all that follows is known */
    uint64_t address, bytes;
} cupti_foreign_t;

/* After a call that has succeeded: what it gave. False: it is none of these. */
bool cupti_foreign_after(
    CUpti_CallbackId call, const void *params, cupti_foreign_t *given_out);

#endif /* RMM_TOOLS_INJECT_CUPTI_FOREIGN_H */
