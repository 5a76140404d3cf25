/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of findings; see stacks.h. */
#include "run/stacks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "run/names.h"

#define LINES_MAX 8u
#define SHORT_LINES_MAX 3u

/* False: no memory. */
static bool keep(const char *text, char **out)
{
    *out = text[0] != '\0' ? strdup(text) : NULL;
    return text[0] == '\0' || *out != NULL;
}

/* The same. A symbol has room for the longest names, which most are far from. */
static bool name_frame(run_frame_t *frame, run_symbols_t *symbols)
{
    run_symbol_t symbol;
    run_symbols_find(symbols, &frame->module, frame->offset, &symbol);
    frame->line = symbol.line;
    return keep(symbol.function, &frame->function) && keep(symbol.file, &frame->file) &&
           keep(symbol.folder, &frame->folder);
}

/* The same. */
static bool name_frames(
    run_stack_t *stack, const rmm_diag_file_t *file, const rmm_diag_stack_info_t *info,
    run_symbols_t *symbols)
{
    stack->frames = calloc(info->frame_count, sizeof(stack->frames[0]));
    if (stack->frames == NULL || !run_python_read(&stack->python, file, info)) {
        return false;
    }
    stack->frame_count = info->frame_count;
    for (uint32_t i = 0; i < info->frame_count; i++) {
        run_frame_t *frame = &stack->frames[i];
        frame->offset = info->offsets[i];
        if (rmm__diag_read_module(file, info->modules[i], &frame->module) &&
            !name_frame(frame, symbols)) {
            return false;
        }
    }
    return true;
}

bool run_stacks_read(
    run_stacks_t *stacks, const rmm_diag_file_t *file, uint32_t finding,
    run_symbols_t *symbols)
{
    rmm_diag_stack_info_t info;
    *stacks = (run_stacks_t){.call = {.frame_count = 0}};
    return (!rmm__diag_read_stack(file, finding, &info) ||
            name_frames(&stacks->call, file, &info, symbols)) &&
           (!rmm__diag_read_origin(file, finding, &info) ||
            name_frames(&stacks->origin, file, &info, symbols)) &&
           (!rmm__diag_read_free(file, finding, &info) ||
            name_frames(&stacks->freed, file, &info, symbols));
}

bool run_stack_read_site(
    run_stack_t *stack, const rmm_diag_file_t *file, uint32_t site,
    run_symbols_t *symbols)
{
    rmm_diag_stack_info_t info;
    *stack = (run_stack_t){.frame_count = 0};
    return !rmm__diag_read_site(file, site, &info) ||
           name_frames(stack, file, &info, symbols);
}

void run_stack_free(run_stack_t *stack)
{
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        free(stack->frames[i].function);
        free(stack->frames[i].file);
        free(stack->frames[i].folder);
    }
    free(stack->frames);
    run_python_free(&stack->python);
    *stack = (run_stack_t){.frame_count = 0};
}

void run_stacks_free(run_stacks_t *stacks)
{
    run_stack_free(&stacks->call);
    run_stack_free(&stacks->origin);
    run_stack_free(&stacks->freed);
}

/* --- for people ----------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_library_between(const run_frame_t *frame)
{
    static const char *const names[] = {
        "librmm-c.so", "librmm-sim.so", "libcuda.so", "libcudart.so", "libcupti.so"};
    const char *name = base_name(frame->module.path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_interpreter(const run_frame_t *frame)
{
    const char *name = base_name(frame->module.path);
    return strncmp(name, "libpython3", strlen("libpython3")) == 0 ||
           strncmp(name, "python3", strlen("python3")) == 0;
}

static void print_frame(const run_frame_t *frame, FILE *out)
{
    if (frame->function != NULL) {
        run_name_print(frame->function, "", out);
    } else if (frame->module.path[0] != '\0') {
        fprintf(out, "%s+0x%" PRIx64, base_name(frame->module.path), frame->offset);
    } else {
        fprintf(out, "0x%" PRIx64, frame->offset);
    }
    if (frame->file != NULL) {
        fprintf(out, " (%s:%d)\n", frame->file, frame->line);
    } else if (frame->function != NULL) {
        fprintf(
            out, " (%s+0x%" PRIx64 ")\n", base_name(frame->module.path), frame->offset);
    } else {
        fputc('\n', out);
    }
}

uint32_t run_stack_first(const run_stack_t *stack)
{
    uint32_t first = 0;
    while (first < stack->frame_count && is_library_between(&stack->frames[first])) {
        first++;
    }
    return first < stack->frame_count ? first : 0;
}

/* Where the lines of Python say what the interpreter does, its own frames say nothing. */
static uint32_t end_shown(const run_stack_t *stack, uint32_t first)
{
    uint32_t end = first;
    while (end < stack->frame_count && end < first + LINES_MAX &&
           (stack->python.line_count == 0 || !is_interpreter(&stack->frames[end]))) {
        end++;
    }
    return end;
}

static void print_stack(const run_stack_t *stack, const char *what, FILE *out)
{
    uint32_t first = run_stack_first(stack), end = end_shown(stack, first);
    if (stack->frame_count > 0) {
        fprintf(out, "    %s\n", what);
    }
    for (uint32_t i = 0; i < stack->python.line_count; i++) {
        fputs("      ", out);
        run_python_print_line(&stack->python.lines[i], out);
    }
    for (uint32_t i = first; i < end; i++) {
        fputs("      ", out);
        print_frame(&stack->frames[i], out);
    }
}

static void print_from(bool is_first, FILE *out)
{
    fputs(is_first ? "        from " : "             ", out);
}

static void print_python_short(const run_python_t *python, FILE *out)
{
    uint32_t first = run_python_first_own(python);
    for (uint32_t i = first; i < python->line_count && i < first + SHORT_LINES_MAX;
         i++) {
        print_from(i == first, out);
        run_python_print_line(&python->lines[i], out);
    }
}

static void print_frames_short(const run_stack_t *stack, FILE *out)
{
    uint32_t first = run_stack_first(stack);
    bool is_main = false; /* what is behind it is the same for all */
    for (uint32_t i = first;
         i < stack->frame_count && i < first + SHORT_LINES_MAX && !is_main; i++) {
        const char *function = stack->frames[i].function;
        print_from(i == first, out);
        print_frame(&stack->frames[i], out);
        is_main = function != NULL && strcmp(function, "main") == 0;
    }
}

void run_stack_print_short(const run_stack_t *stack, FILE *out)
{
    if (stack->python.line_count > 0) {
        print_python_short(&stack->python, out);
    } else {
        print_frames_short(stack, out);
    }
}

void run_stacks_print(const run_stacks_t *stacks, FILE *out)
{
    print_stack(&stacks->call, "called from", out);
    print_stack(&stacks->origin, "the block was allocated from", out);
    print_stack(&stacks->freed, "the block was freed from", out);
}

/* --- JSON ----------------------------------------------------------------------------- */

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static json_t *json_of_frame(const void *stack, size_t i)
{
    const run_frame_t *frame = &((const run_stack_t *)stack)->frames[i];
    char offset[32];
    json_t *object = json_object();
    snprintf(offset, sizeof(offset), "0x%" PRIx64, frame->offset);
    return json_whole_or_null(
        object,
        json_put(object, "module", json_text_or_null(frame->module.path)) &&
            json_put(object, "offset", json_string(offset)) &&
            run_name_put_json(object, "function", or_empty(frame->function)) &&
            json_put(object, "file", json_text_or_null(or_empty(frame->file))) &&
            json_put(
                object, "line",
                json_count_or_null(frame->line > 0, (uint64_t)frame->line)));
}

json_t *run_stack_json(const run_stack_t *stack)
{
    return json_array_of(stack->frame_count, json_of_frame, stack);
}
