/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python lines that were seen in stacks, each once for the whole process: a number stands for
 * a line, and stays its own when the code object is gone.
 *
 * Threads: any, without a lock: a line is written before its number is told, and never changes.
 * Memory: about 0.4 MB, touched where lines are.
 */
#ifndef RMM_DIAG_PYTHON_LINES_H
#define RMM_DIAG_PYTHON_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag_format.h"

/* The number of this line, from 1; 0: there is no room for another one. */
uint32_t rmm__python_line_put(const rmm_diag_line_t *line);

/* NULL: there is none of that number. */
const rmm_diag_line_t *rmm__python_line_get(uint32_t number);

#endif /* RMM_DIAG_PYTHON_LINES_H */
