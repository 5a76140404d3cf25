/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python lines of a stack, as Python's programmers write them, and why there are none where a
 * program of Python has none.
 */
#ifndef RMM_TOOLS_RUN_PYTHON_H
#define RMM_TOOLS_RUN_PYTHON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "diag/stacks_reader.h"

typedef struct run_python {
    rmm_diag_line_t *lines; /* innermost first; texts are clean */
    uint32_t line_count;
} run_python_t;

/* False: no memory. run_python_free() it in any case. */
bool run_python_read(
    run_python_t *python, const rmm_diag_file_t *file,
    const rmm_diag_stack_info_t *info);
void run_python_free(run_python_t *python);

/* FILE:LINE in FUNCTION */
void run_python_print_line(const rmm_diag_line_t *line, FILE *out);
/* A line of a file that is in no installed package. */
bool run_python_is_own(const rmm_diag_line_t *line);
/* The first line that is in no installed package; 0: all are. */
uint32_t run_python_first_own(const run_python_t *python);
/* All of them; NULL: no memory. */
json_t *run_python_json(const run_python_t *python);

/* What the program says of its Python: version, and a rmm_diag_python_t. */
typedef struct run_python_state {
    char version[20];
    uint32_t state;
    bool is_full; /* more lines than there was room for */
} run_python_state_t;

run_python_state_t run_python_state(const rmm_diag_file_t *file);
/* A line if lines are missing, that says why. */
void run_python_print_missing(const run_python_state_t *state, FILE *out);

#endif /* RMM_TOOLS_RUN_PYTHON_H */
