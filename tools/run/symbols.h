/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for places in files of a program that has ended: function, source file and line. libdw
 * (elfutils) knows them; it is loaded if the machine has it, so that rmm-run needs it neither to be
 * built nor to run. Without it, and for a file that is another one by now, places have no names.
 *
 * Threads: one at a time.
 */
#ifndef RMM_TOOLS_RUN_SYMBOLS_H
#define RMM_TOOLS_RUN_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/stacks_reader.h"

#define RUN_FUNCTION_BYTES 4096u /* of C++, templates have long ones */
#define RUN_FILE_BYTES 256u

typedef struct run_symbol {
    char
        function[RUN_FUNCTION_BYTES]; /* "": not known; as in the file, not demangled */
    char file[RUN_FILE_BYTES];        /* "": not known */
    char folder[RUN_FILE_BYTES];      /* that a relative file is in; "": not known */
    int line;
} run_symbol_t;

typedef struct run_symbols run_symbols_t;

/* NULL: there is no libdw, or no memory; both functions take it. */
run_symbols_t *run_symbols_open(void);
void run_symbols_close(run_symbols_t *symbols);

/* Find the function and line at this offset of a module. */
void run_symbols_find(
    run_symbols_t *symbols, const rmm_diag_module_info_t *module, uint64_t offset,
    run_symbol_t *symbol_out);

#endif /* RMM_TOOLS_RUN_SYMBOLS_H */
