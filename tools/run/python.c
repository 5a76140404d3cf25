/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Python; see python.h. */
#include "run/python.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

bool run_python_read(
    run_python_t *python, const rmm_diag_file_t *file,
    const rmm_diag_stack_info_t *info)
{
    *python = (run_python_t){.line_count = 0};
    if (info->line_count == 0) {
        return true;
    }
    python->lines = calloc(info->line_count, sizeof(python->lines[0]));
    if (python->lines == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < info->line_count; i++) {
        rmm_diag_line_t *line = &python->lines[python->line_count];
        python->line_count += rmm__diag_read_line(file, info->lines[i], line) ? 1 : 0;
    }
    return true;
}

void run_python_free(run_python_t *python)
{
    free(python->lines);
    *python = (run_python_t){.line_count = 0};
}

static const char *or_unknown(const char *text)
{
    return text[0] != '\0' ? text : "?";
}

void run_python_print_line(const rmm_diag_line_t *line, FILE *out)
{
    fprintf(
        out, "%s:%" PRIu32 " in %s\n", or_unknown(line->file), line->number,
        or_unknown(line->function));
}

bool run_python_is_own(const rmm_diag_line_t *line)
{
    return strstr(line->file, "/site-packages/") == NULL &&
           strstr(line->file, "/dist-packages/") == NULL && line->file[0] != '<';
}

uint32_t run_python_first_own(const run_python_t *python)
{
    uint32_t first = 0;
    while (first < python->line_count && !run_python_is_own(&python->lines[first])) {
        first++;
    }
    return first < python->line_count ? first : 0;
}

static json_t *json_of_line(const void *python, size_t i)
{
    const rmm_diag_line_t *line = &((const run_python_t *)python)->lines[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "file", json_text_or_null(line->file)) &&
            json_put(
                object, "line", json_count_or_null(line->number > 0, line->number)) &&
            json_put(object, "function", json_text_or_null(line->function)));
}

json_t *run_python_json(const run_python_t *python)
{
    return json_array_of(python->line_count, json_of_line, python);
}

/* --- what is missing ------------------------------------------------------------------- */

run_python_state_t run_python_state(const rmm_diag_file_t *file)
{
    const rmm_diag_header_t *header = &file->header;
    run_python_state_t state = {
        .state = atomic_load_explicit(&header->python_lines, memory_order_relaxed),
        .is_full = header->lines.count > 0 &&
                   rmm__diag_used(&header->lines) >= header->lines.count};
    memcpy(state.version, header->python, sizeof(state.version));
    return state;
}

void run_python_print_missing(const run_python_state_t *state, FILE *out)
{
    static const char *const reasons[] = {
        [RMM_DIAG_PYTHON_UNPROVED] = "no thread made a call with the GIL",
        [RMM_DIAG_PYTHON_NO_GIL] = "it is built without the GIL",
        [RMM_DIAG_PYTHON_UNKNOWN] = "this version is not known",
        [RMM_DIAG_PYTHON_DIFFERS] = "its frames are not those of this version",
        [RMM_DIAG_PYTHON_REFUSES] = "its atexit refused a function"};
    const char *reason = state->state < sizeof(reasons) / sizeof(reasons[0])
                             ? reasons[state->state]
                             : "see docs/diagnostics.md";
    bool are_some = reason == NULL && state->is_full;
    if (reason != NULL || are_some) {
        fprintf(
            out, "  %slines of Python %s are missing: %s\n", are_some ? "some " : "",
            or_unknown(state->version), are_some ? "there are too many" : reason);
    }
}
