/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the measurements, as a table or as one JSON object. */
#ifndef RMM_TOOLS_BENCH_REPORT_H
#define RMM_TOOLS_BENCH_REPORT_H

#include <stdio.h>

#include "bench/bench.h"
#include "bench/machine.h"

typedef struct bench_report {
    const char *version;
    const machine_t *machine;
    const bench_t *bench;
    bool quick;
} bench_report_t;

void bench_print_table(const bench_report_t *report, FILE *out);

/* False: no host memory, or it cannot be written. */
bool bench_print_json(const bench_report_t *report, FILE *out);

#endif /* RMM_TOOLS_BENCH_REPORT_H */
