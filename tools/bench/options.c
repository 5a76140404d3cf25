/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options. What the words of a resource mean the library knows. */
#include "bench/options.h"

#include <stddef.h>
#include <string.h>

#include "bench/bench.h"
#include "common/numbers.h"

#define SEED 1

/* False: too many, too long, or one is empty. */
static bool split(const char *text, bench_words_t *out)
{
    size_t count = 0, length = strlen(text);
    if (length >= sizeof out->text) {
        return false;
    }
    memcpy(out->text, text, length + 1);
    for (char *word = out->text; word != NULL; count++) {
        char *comma = strchr(word, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        if (count == SUBJECTS_MAX || *word == '\0' || strlen(word) > SUBJECT_SPEC_MAX) {
            return false;
        }
        out->words[count] = word;
        word = comma != NULL ? comma + 1 : NULL;
    }
    out->words[count] = NULL;
    return true;
}

static const char *parse_filter(const char *text, void *field)
{
    return split(text, field) ? NULL : "names of workloads, such as pair,churn-1000";
}

static const char *parse_resources(const char *text, void *field)
{
    return split(text, field) ? NULL : "resources, such as pool,cuda,statistics+arena";
}

static const char *parse_repetitions(const char *text, void *field)
{
    uint64_t *repetitions = field;
    return rmm__number_parse(text, strlen(text), repetitions) == RMM_NUMBER_OK &&
                   *repetitions >= 1 && *repetitions <= BENCH_REPETITIONS_MAX
               ? NULL
               : "a number of times, 1 to 1000";
}

static const char *parse_seed(const char *text, void *field)
{
    return rmm__number_parse(text, strlen(text), field) == RMM_NUMBER_OK ? NULL
                                                                         : "a number";
}

#define FIELD(name) offsetof(bench_options_t, name)

static const tool_option_t table[] = {
    {"list", 0, NULL, NULL, FIELD(list), "list the workloads and exit"},
    {"filter", 0, "NAME[,NAME]...", parse_filter, FIELD(filter),
     "run only workloads whose name contains one of these"},
    {"resource", 0, "SPEC[,SPEC]...", parse_resources, FIELD(resources),
     "measure these resources, written as in RMM_RESOURCE; "
     "default:\ncuda,async,pool,pool_virtual,arena,binning,fixed_size"},
    {"quick", 0, NULL, NULL, FIELD(quick),
     "short runs with 3 repetitions, to check that everything works"},
    {"repetitions", 0, "N", parse_repetitions, FIELD(repetitions),
     "measure each N times; default 9"},
    {"seed", 0, "N", parse_seed, FIELD(seed), "seed of all random choices; default 1"},
    {"json", 0, NULL, NULL, FIELD(json), "print one JSON object"},
    {"quiet", 0, NULL, NULL, FIELD(quiet), "do not show the progress on stderr"},
    {"help", 'h', NULL, NULL, FIELD(help), "print this and exit"},
    {"version", 'V', NULL, NULL, FIELD(version), "print the version and exit"},
};

const tool_command_t bench_command = {
    .usage = "rmm-bench [OPTION]...",
    .about = "Compare the speed of resources, cudaMalloc and cudaMallocAsync included.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .notes = "RMM_DRIVER=sim measures on the simulated GPU: all times are then CPU "
             "times.\nExit status: 0; 1 after an error or if something could not be "
             "measured; 2 after\nwrong usage.",
};

bool bench_options_parse(
    char **argv, bench_options_t *options, char message[TOOL_MESSAGE_MAX])
{
    *options = (bench_options_t){.seed = SEED};
    int operands = tool_options_parse(&bench_command, argv, options, message);
    if (operands > 0 && !options->help && !options->version) {
        snprintf(
            message, TOOL_MESSAGE_MAX, "unexpected argument \"%.100s\"; see --help",
            argv[1]);
        return false;
    }
    return operands >= 0;
}

bool bench_word_takes(const char *word, const char *workload)
{
    return strstr(workload, word) != NULL;
}

bool bench_options_take(const bench_options_t *options, const char *workload)
{
    const char *const *words = options->filter.words;
    bool taken = words[0] == NULL;
    for (size_t i = 0; words[i] != NULL; i++) {
        taken = taken || bench_word_takes(words[i], workload);
    }
    return taken;
}
