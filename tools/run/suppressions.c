/* SPDX-License-Identifier: Apache-2.0 */
/* Suppressions; see suppressions.h. */
#include "run/suppressions.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/input.h"
#include "diag/diag_names.h"
#include "run/names.h"

#define LINES_MAX 4096u
#define LINE_BYTES 1024u
#define KINDS_MAX 64u
#define STATUS_BAD_LINE 2
#define STATUS_UNREADABLE 125

/* --- reading -------------------------------------------------------------------------- */

/* False: there is no such class. */
static bool find_class(const char *word, uint32_t *kind_out)
{
    *kind_out = 0;
    if (strcmp(word, "*") == 0) {
        return true;
    }
    if (strcmp(word, rmm__diag_verdict_name(RMM_DIAG_LEAKED)) == 0) {
        *kind_out = RUN_SUPPRESSION_LEAKED;
        return true;
    }
    for (uint32_t kind = 1; kind < KINDS_MAX; kind++) {
        const char *name = rmm__diag_finding_name(kind);
        if (strcmp(name, word) == 0 && strcmp(name, rmm__diag_finding_name(0)) != 0) {
            *kind_out = kind;
            return true;
        }
    }
    return false;
}

/* NULL: it is good; else what is wrong and what would be right. */
static const char *parse_line(const char *line, run_suppression_t *item)
{
    const char *colon = strchr(line, ':');
    char class[40];
    if (colon == NULL || colon[1] == '\0') {
        return "a line is CLASS:GLOB, for example out_of_bounds:my_function";
    }
    (void)snprintf(class, sizeof(class), "%.*s", (int)(colon - line), line);
    if (!find_class(class, &item->kind)) {
        return "the class is neither * nor one that rmm-run reports";
    }
    item->text = strdup(line);
    if (item->text == NULL) {
        return "no memory";
    }
    item->glob = item->text + (colon - line) + 1;
    item->demangled = run_demangle(item->glob);
    return NULL;
}

static const char *
add_line(run_suppressions_t *suppressions, const char *line, uint32_t number)
{
    run_suppression_t item = {.line = number};
    if (line[0] == '\0' || line[0] == '#') {
        return NULL;
    }
    const char *wrong = suppressions->count < LINES_MAX
                            ? parse_line(line, &item)
                            : "there are more than 4096 lines";
    if (wrong == NULL) {
        suppressions->items[suppressions->count++] = item;
    }
    return wrong;
}

/* False: the file has ended. The bytes of a line that do not fit are left in the file. */
static bool next_line(FILE *file, char line[LINE_BYTES], size_t *length_out)
{
    size_t length = 0;
    int byte = getc(file);
    bool is_there = byte != EOF;
    while (byte != EOF && byte != '\n' && length + 1 < LINE_BYTES) {
        line[length++] = (char)byte;
        byte = getc(file);
    }
    line[length] = '\0';
    *length_out = length;
    return is_there;
}

/* NULL: it is one; without blanks at its end. What is not is made fit to be shown. Behind a NUL
 * byte a line would be cut, and so match more than it says. */
static const char *trim_line(char line[LINE_BYTES], size_t length)
{
    const char *wrong = NULL;
    bool is_long = length + 1 == LINE_BYTES;
    while (length > 0 && strchr("\r\t ", line[length - 1]) != NULL &&
           line[length - 1] != '\0') {
        line[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 127) {
            line[i] = '?';
            wrong = "the line contains a control character";
        }
    }
    if (is_long) {
        line[40] = '\0';
        wrong = "the line is longer than 1022 characters";
    }
    return wrong;
}

static int read_lines(run_suppressions_t *suppressions, FILE *file, char *message)
{
    char line[LINE_BYTES];
    size_t length;
    for (uint32_t number = 1; next_line(file, line, &length); number++) {
        const char *wrong = trim_line(line, length);
        wrong = wrong == NULL ? add_line(suppressions, line, number) : wrong;
        if (wrong != NULL) {
            (void)snprintf(
                message, RUN_SUPPRESSION_MESSAGE,
                "--suppressions: %s:%" PRIu32 ": \"%.80s\": %s", suppressions->path,
                number, line, wrong);
            return STATUS_BAD_LINE;
        }
    }
    if (ferror(file)) {
        (void)snprintf(
            message, RUN_SUPPRESSION_MESSAGE, "--suppressions: cannot read %s: %s",
            suppressions->path, strerror(errno));
        return STATUS_UNREADABLE;
    }
    return 0;
}

int run_suppressions_read(
    run_suppressions_t *suppressions, const char *path,
    char message[RUN_SUPPRESSION_MESSAGE])
{
    *suppressions = (run_suppressions_t){.path = path};
    if (path == NULL) {
        return 0;
    }
    FILE *file = input_open_stream(path);
    if (file == NULL) {
        (void)snprintf(
            message, RUN_SUPPRESSION_MESSAGE, "--suppressions: cannot read %s: %s",
            path, strerror(errno));
        return STATUS_UNREADABLE;
    }
    suppressions->items = calloc(LINES_MAX, sizeof(suppressions->items[0]));
    int status = STATUS_UNREADABLE;
    if (suppressions->items == NULL) {
        (void)snprintf(message, RUN_SUPPRESSION_MESSAGE, "--suppressions: no memory");
    } else {
        status = read_lines(suppressions, file, message);
    }
    (void)fclose(file);
    if (status != 0) {
        run_suppressions_free(suppressions);
    }
    return status;
}

void run_suppressions_free(run_suppressions_t *suppressions)
{
    for (uint32_t i = 0; i < suppressions->count; i++) {
        free(suppressions->items[i].text);
        free(suppressions->items[i].demangled);
    }
    free(suppressions->items);
    *suppressions = (run_suppressions_t){.path = NULL};
}

/* --- matching ------------------------------------------------------------------------- */

static bool matches(const char *glob, const char *name)
{
    return name[0] != '\0' && fnmatch(glob, name, 0) == 0;
}

/* A kernel's name may be demangled already, and is cut where it was long. */
static bool is_demangled(const run_suppression_t *item, const char *name)
{
    size_t length = strlen(name);
    return item->demangled != NULL && length > 0 &&
           strncmp(item->demangled, name, length) == 0 &&
           (item->demangled[length] == '\0' || length == RMM_DIAG_NAME_BYTES - 1);
}

static bool matches_name(const run_suppression_t *item, const char *name)
{
    char *demangled = run_demangle(name);
    bool is_match = matches(item->glob, name) || is_demangled(item, name) ||
                    (demangled != NULL && matches(item->glob, demangled));
    free(demangled);
    return is_match;
}

static bool matches_python(const run_suppression_t *item, const run_python_t *python)
{
    for (uint32_t i = 0; i < python->line_count; i++) {
        const rmm_diag_line_t *line = &python->lines[i];
        const char *slash = strrchr(line->file, '/');
        if (matches(item->glob, line->function) || matches(item->glob, line->file) ||
            (slash != NULL && matches(item->glob, slash + 1))) {
            return true;
        }
    }
    return false;
}

static bool matches_stack(const run_suppression_t *item, const run_stack_t *stack)
{
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const run_frame_t *frame = &stack->frames[i];
        const char *slash = strrchr(frame->module.path, '/');
        if ((frame->function != NULL && matches_name(item, frame->function)) ||
            matches(item->glob, frame->module.path) ||
            (slash != NULL && matches(item->glob, slash + 1))) {
            return true;
        }
    }
    return matches_python(item, &stack->python);
}

static bool is_for(const run_suppression_t *item, uint32_t kind)
{
    return item->kind == kind || (item->kind == 0 && kind != RUN_SUPPRESSION_LEAKED);
}

/* NULL: none. */
static run_suppression_t *find_match(
    const run_suppressions_t *suppressions, uint32_t kind, const char *function,
    const run_stack_t *stack)
{
    for (uint32_t i = 0; i < suppressions->count; i++) {
        run_suppression_t *item = &suppressions->items[i];
        if (is_for(item, kind) &&
            (matches_name(item, function) || matches_stack(item, stack))) {
            return item;
        }
    }
    return NULL;
}

/* By the kernel that used the blocks first, or the stack of their allocation. */
static void apply_to_leaks(run_suppressions_t *suppressions, run_usage_t *usage)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < usage->verdict_count; i++) {
        const run_verdict_t *verdict = &usage->verdicts[i];
        run_suppression_t *item = verdict->verdict == RMM_DIAG_LEAKED
                                      ? find_match(
                                            suppressions, RUN_SUPPRESSION_LEAKED,
                                            verdict->first_user, verdict->stack)
                                      : NULL;
        if (item == NULL) {
            usage->verdicts[kept++] = *verdict;
            continue;
        }
        item->suppressed += verdict->count;
        usage->leaked_count -=
            verdict->count < usage->leaked_count ? verdict->count : usage->leaked_count;
        usage->leaked_bytes -=
            verdict->bytes < usage->leaked_bytes ? verdict->bytes : usage->leaked_bytes;
    }
    usage->verdict_count = kept;
}

void run_suppressions_apply(run_suppressions_t *suppressions, run_report_t *report)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < report->finding_count; i++) {
        uint64_t count = report->findings[i].count;
        run_suppression_t *item = find_match(
            suppressions, report->findings[i].kind, report->findings[i].function,
            &report->stacks[i].call);
        if (item == NULL) {
            report->findings[kept] = report->findings[i];
            report->stacks[kept++] = report->stacks[i];
            continue;
        }
        /* The program's figures may not add up. */
        count = count < report->findings_total ? count : report->findings_total;
        report->findings_total -= count;
        item->suppressed += count;
        suppressions->suppressed += count;
        run_stacks_free(&report->stacks[i]);
    }
    report->finding_count = kept;
    report->suppressed = suppressions->suppressed;
    apply_to_leaks(suppressions, &report->usage);
}

static const char *noun_of(const run_suppression_t *item)
{
    if (item->kind == RUN_SUPPRESSION_LEAKED) {
        return item->suppressed == 1 ? "leaked block" : "leaked blocks";
    }
    return item->suppressed == 1 ? "finding" : "findings";
}

void run_suppressions_print(const run_suppressions_t *suppressions)
{
    for (uint32_t i = 0; i < suppressions->count; i++) {
        const run_suppression_t *item = &suppressions->items[i];
        if (item->suppressed > 0) {
            tool_error(
                "suppressed: %" PRIu64 " %s by %s (%s:%" PRIu32 ")", item->suppressed,
                noun_of(item), item->text, suppressions->path, item->line);
        } else {
            tool_error(
                "suppressed nothing: %s (%s:%" PRIu32 ")", item->text,
                suppressions->path, item->line);
        }
    }
}
