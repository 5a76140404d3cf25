/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of findings and of allocations, from the side file, with names if they are
 * available (symbols.h).
 */
#ifndef RMM_TOOLS_RUN_STACKS_H
#define RMM_TOOLS_RUN_STACKS_H

#include <jansson.h>
#include <stdio.h>

#include "run/python.h"
#include "run/symbols.h"

typedef struct run_frame {
    rmm_diag_module_info_t module; /* path "": not known, offset is the address */
    uint64_t offset;
    char *function, *file; /* NULL: not known */
    char *folder;          /* that a relative file is in; the same */
    int line;
} run_frame_t;

typedef struct run_stack {
    run_frame_t *frames; /* innermost first */
    uint32_t frame_count;
    run_python_t python; /* the lines of Python, where the program has some */
} run_stack_t;

/* The stacks of a finding; one without frames was not captured. */
typedef struct run_stacks {
    run_stack_t call;
    run_stack_t origin, freed; /* of the block's allocation and free */
} run_stacks_t;

/* Fill in the stacks of the finding of that index. False: no memory. */
bool run_stacks_read(
    run_stacks_t *stacks, const rmm_diag_file_t *file, uint32_t finding,
    run_symbols_t *symbols);
void run_stacks_free(run_stacks_t *stacks);

/* The stack that blocks with this `site` were allocated from. False: no memory. run_stack_free() it
 * in any case. */
bool run_stack_read_site(
    run_stack_t *stack, const rmm_diag_file_t *file, uint32_t site,
    run_symbols_t *symbols);
void run_stack_free(run_stack_t *stack);

/* The lines of Python, and a line for each frame, without those of the libraries that made the call
 * for the program, and of Python's interpreter. */
void run_stacks_print(const run_stacks_t *stacks, FILE *out);
/* The first frame that is not of such a library; 0 if all are. */
uint32_t run_stack_first(const run_stack_t *stack);
/* The innermost few, behind a line of a table. */
void run_stack_print_short(const run_stack_t *stack, FILE *out);
/* All of them; NULL: no memory. */
json_t *run_stack_json(const run_stack_t *stack);

#endif /* RMM_TOOLS_RUN_STACKS_H */
