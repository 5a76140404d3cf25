/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch adds to a finding: the operator that made the call, and a remedy in its own words.
 * Both are told from the frames of its libraries, so programs without it have neither.
 */
#ifndef RMM_TOOLS_RUN_TORCH_H
#define RMM_TOOLS_RUN_TORCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "run/stacks.h"

#define RUN_OPERATOR_BYTES 80u

/* "aten::add_Tensor", as its C++ classes are called. False: there is none on the stack. */
bool run_torch_operator(const run_stack_t *stack, char out[RUN_OPERATOR_BYTES]);

/* Up to two lines behind a finding of that kind. */
void run_torch_print(uint32_t kind, const run_stack_t *stack, FILE *out);

#endif /* RMM_TOOLS_RUN_TORCH_H */
