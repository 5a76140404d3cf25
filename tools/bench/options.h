/* SPDX-License-Identifier: Apache-2.0 */
/* The options of rmm-bench. */
#ifndef RMM_TOOLS_BENCH_OPTIONS_H
#define RMM_TOOLS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/subject.h"
#include "common/options.h"

/* Words of an option's value, parted by commas. */
typedef struct bench_words {
    char text[2048];
    const char *words[SUBJECTS_MAX + 1]; /* ends with NULL; points into text */
} bench_words_t;

typedef struct bench_options {
    bench_words_t filter;    /* parts of names of workloads; none: all */
    bench_words_t resources; /* none: the usual ones */
    uint64_t repetitions;    /* 0: as --quick has it */
    uint64_t seed;
    bool quick;
    bool list;
    bool json;
    bool quiet;
    bool help;
    bool version;
} bench_options_t;

extern const tool_command_t bench_command;

/* False: one line in message. */
bool bench_options_parse(
    char **argv, bench_options_t *options, char message[TOOL_MESSAGE_MAX]);

/* Does a word of the filter stand for this workload? */
bool bench_word_takes(const char *word, const char *workload);
/* Does the filter let this workload through? */
bool bench_options_take(const bench_options_t *options, const char *workload);

#endif /* RMM_TOOLS_BENCH_OPTIONS_H */
