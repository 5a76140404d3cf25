/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options, and which of them exclude each other.
 */
#include "replay/options.h"

#include <stddef.h>
#include <string.h>

#include "common/numbers.h"
#include "common/output.h"

#define SECONDS_MAX 1e9

unsigned replay_resource_sizes(const char *resource)
{
    const char *innermost = strrchr(resource, '+');
    innermost = innermost != NULL ? innermost + 1 : resource;
    if (strchr(innermost, ':') != NULL) {
        return 0;
    }
    if (strncmp(innermost, "pool", strlen("pool")) == 0 ||
        strcmp(innermost, "auto") == 0 || strcmp(innermost, "binning") == 0) {
        return 2;
    }
    return strcmp(innermost, "arena") == 0 ? 1 : 0;
}

/* The library checks the words when it creates the resource. */
static const char *parse_resource(const char *text, void *field)
{
    const char **resource = field;
    if (*text == '\0' || strlen(text) > REPLAY_RESOURCE_MAX) {
        return "a resource, such as pool, cuda or limiting:1GiB+async";
    }
    *resource = text;
    return NULL;
}

static const char *parse_pool_bytes(const char *text, void *field)
{
    uint64_t *bytes = field;
    if (rmm__number_parse_bytes(text, strlen(text), bytes) != RMM_NUMBER_OK ||
        *bytes < 256) {
        return "a size of at least 256 bytes, such as 5648896016 or 80GiB (KiB, MiB, "
               "GiB, TiB)";
    }
    return NULL;
}

static const char *parse_speed(const char *text, void *field)
{
    double *speed = field;
    if (strcmp(text, "max") == 0) {
        *speed = 0;
        return NULL;
    }
    return number_parse_fraction(text, speed) && *speed > 0
               ? NULL
               : "max or a factor above 0, such as 1 or 10";
}

static const char *parse_repeat(const char *text, void *field)
{
    uint64_t *repeat = field;
    return rmm__number_parse(text, strlen(text), repeat) == RMM_NUMBER_OK && *repeat > 0
               ? NULL
               : "a number of times, 1 or more";
}

static const char *parse_hold(const char *text, void *field)
{
    double *seconds = field;
    return number_parse_fraction(text, seconds) && *seconds <= SECONDS_MAX
               ? NULL
               : "a number of seconds";
}

static const char *parse_path(const char *text, void *field)
{
    const char **path = field;
    *path = text;
    return *text != '\0' ? NULL : "the name of a file";
}

#define FIELD(name) offsetof(replay_options_t, name)

static const tool_option_t table[] = {
    {"resource", 0, "SPEC", parse_resource, FIELD(resource),
     "the resource that serves the allocations, written as in RMM_RESOURCE:\npool "
     "(default), auto, pool_virtual, arena, async, cuda, "
     "managed,\nstatistics+pool:50%, "
     "..."},
    {"pool-bytes", 0, "N", parse_pool_bytes, FIELD(pool_bytes),
     "size of the pool, initial and maximum, or of the arena,\n"
     "rounded down to 256 (KiB, MiB, GiB, TiB may follow the\n"
     "number); default: a pool grows from nothing, an arena has\n"
     "half of what the device has free"},
    {"speed", 0, "max|FACTOR", parse_speed, FIELD(speed),
     "max (default): without pauses; 1: at the recorded speed;\n"
     "10: ten times faster"},
    {"repeat", 0, "N", parse_repeat, FIELD(repeat),
     "replay N times; blocks left by one run are freed before the next"},
    {"verify", 0, NULL, NULL, FIELD(verify),
     "write a pattern into every block on its stream and check\n"
     "it before the free; a mismatch gives exit status 1"},
    {"strict", 0, NULL, NULL, FIELD(strict),
     "stop at the first row that cannot be replayed"},
    {"hold", 0, "SECONDS", parse_hold, FIELD(hold_seconds),
     "wait at the end while the log's remaining blocks stay\n"
     "allocated; SIGTERM and SIGINT end the wait early"},
    {"find-capacity", 0, NULL, NULL, FIELD(find_capacity),
     "find the smallest pool (or arena) that can replay the log, between\n"
     "its peak and four times the peak, to a thousandth of the peak\n"
     "(at least 256 bytes); each trial uses a new pool"},
    {"capacity-curve", 0, NULL, NULL, FIELD(capacity_curve),
     "try every capacity from 1.00 to 1.40 of the log's peak in steps\n"
     "of 0.01, with a new pool (or arena) each; print which succeed, the\n"
     "safe capacity (it and all larger ones succeed) and the holes (those\n"
     "that fail although a smaller one succeeds)"},
    {"advise", 0, NULL, NULL, FIELD(advise),
     "recommend a resource and its size for the program, with reasons:\n"
     "replays the log on pool, pool_virtual, arena and binning, always on\n"
     "the simulated GPU"},
    {"csv", 0, "FILE", parse_path, FIELD(csv_path),
     "write the live and reserved bytes after the operations to FILE\n"
     "as CSV; the run is not timed (rmm-timeline draws a page)"},
    {"json", 0, NULL, NULL, FIELD(json), "print one JSON object"},
    {"help", 'h', NULL, NULL, FIELD(help), "print this and exit"},
    {"version", 'V', NULL, NULL, FIELD(version), "print the version and exit"},
};

const tool_command_t replay_command = {
    .usage = "rmm-replay [OPTION]... LOG",
    .about =
        "Replay an allocation log (RMM's CSV: Thread,Time,Action,Pointer,Size,Stream), "
        "or\nPyTorch's memory snapshot as JSON (see the man page). Both may be "
        "compressed with"
        "\ngzip; - is standard input.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .notes =
        "Malformed or impossible rows (a free of an address that is not allocated) "
        "are\n"
        "reported with their line and skipped. \"allocate failure\" rows are counted, "
        "but\n"
        "not replayed: they held no memory.\n"
        "RMM_DRIVER=sim replays on the simulated GPU.\n"
        "Exit status: 0; 1 after an error, a failed allocation or a mismatch; 2 after\n"
        "wrong usage.",
};

/* Not auto: sizes are exact to 256 bytes, and figures of two machines are of the same resource. */
static const char default_resource[] = "pool";

static bool runs_otherwise(const replay_options_t *options)
{
    return options->resource != default_resource || options->pool_bytes > 0 ||
           options->speed > 0 || options->repeat > 1 || options->hold ||
           options->verify || options->find_capacity || options->capacity_curve ||
           options->csv_path != NULL;
}

static const char *find_conflict(const replay_options_t *options)
{
    if (options->advise && runs_otherwise(options)) {
        return "--advise chooses what it runs: only --json and --strict go with it";
    }
    bool is_sized = replay_resource_sizes(options->resource) > 0;
    if (!is_sized && options->pool_bytes > 0) {
        return "--pool-bytes needs a pool or an arena without a size as --resource";
    }
    if (options->find_capacity && !is_sized) {
        return "--find-capacity needs a pool or an arena without a size as --resource";
    }
    if (options->find_capacity && options->pool_bytes > 0) {
        return "--find-capacity finds the size of the pool: leave --pool-bytes out";
    }
    if (options->find_capacity && options->hold) {
        return "--find-capacity and --hold exclude each other";
    }
    if (options->capacity_curve && !is_sized) {
        return "--capacity-curve needs a pool or an arena without a size as --resource";
    }
    if (options->capacity_curve && options->pool_bytes > 0) {
        return "--capacity-curve tries sizes of the pool: leave --pool-bytes out";
    }
    if (options->capacity_curve && options->hold) {
        return "--capacity-curve and --hold exclude each other";
    }
    if (options->csv_path != NULL && options->repeat > 1) {
        return "--csv follows one run: leave --repeat out";
    }
    return NULL;
}

bool replay_options_parse(
    char **argv, replay_options_t *options, char message[TOOL_MESSAGE_MAX])
{
    *options = (replay_options_t){
        .resource = default_resource, .repeat = 1, .hold_seconds = -1};
    int operands = tool_options_parse(&replay_command, argv, options, message);
    if (operands < 0) {
        return false;
    }
    options->hold = options->hold_seconds >= 0;
    if (options->help || options->version) {
        return true;
    }
    const char *conflict = find_conflict(options);
    if (conflict != NULL) {
        snprintf(message, TOOL_MESSAGE_MAX, "%s", conflict);
        return false;
    }
    if (operands != 1) {
        snprintf(
            message, TOOL_MESSAGE_MAX, "%s; see --help",
            operands == 0 ? "which log? Name one file" : "more than one log is named");
        return false;
    }
    options->log_path = argv[1];
    if (output_is_same(options->csv_path, options->log_path)) {
        snprintf(message, TOOL_MESSAGE_MAX, "--csv names the log itself");
        return false;
    }
    return true;
}
