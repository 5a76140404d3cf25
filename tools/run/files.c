/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a run; see files.h. */
#include "run/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

static const char *const options[RUN_FORMATS] = {
    [RUN_JSON] = "--report", [RUN_JUNIT] = "--junit", [RUN_SARIF] = "--sarif"};

static void say_unwritten(const run_files_t *files, run_format_t format)
{
    tool_error(
        "%s: cannot write %s: %s", options[format], files->paths[format],
        strerror(errno));
}

static bool is_open(const run_files_t *files, run_format_t format)
{
    return files->outputs[format].file != NULL;
}

bool run_files_open(run_files_t *files, const char *const paths[RUN_FORMATS])
{
    *files = (run_files_t){.is_good = true};
    memcpy(files->paths, paths, sizeof(files->paths));
    for (run_format_t i = 0; i < RUN_FORMATS; i++) {
        if (paths[i] != NULL && !output_open(&files->outputs[i], paths[i])) {
            say_unwritten(files, i);
            run_files_discard(files);
            return false;
        }
    }
    return true;
}

void run_files_begin(run_files_t *files, const run_about_t *about)
{
    if (is_open(files, RUN_JSON)) {
        files->others = json_array();
        files->is_good = files->others != NULL;
    }
    if (is_open(files, RUN_JUNIT)) {
        files->xml = open_memstream(&files->xml_text, &files->xml_bytes);
        files->is_good = files->is_good && files->xml != NULL &&
                         run_junit_begin(&files->junit, files->xml, about);
    }
    if (is_open(files, RUN_SARIF) && !run_sarif_begin(&files->sarif, about)) {
        files->is_good = false;
    }
}

static bool add_json(run_files_t *files, const run_report_t *report)
{
    json_t *object = run_report_json(report);
    if (files->whole == NULL) {
        files->whole = object;
        return object != NULL;
    }
    return json_array_append_new(files->others, object) == 0;
}

void run_files_add(run_files_t *files, const run_report_t *report)
{
    files->is_good =
        files->is_good && (!is_open(files, RUN_JSON) || add_json(files, report)) &&
        (!is_open(files, RUN_JUNIT) || run_junit_add(&files->junit, report)) &&
        (!is_open(files, RUN_SARIF) || run_sarif_add(&files->sarif, report));
}

/* --- the end ----------------------------------------------------------------------------- */

static bool end_json(run_files_t *files, FILE *out)
{
    errno = ENOMEM; /* unless it is written */
    return json_object_set(files->whole, "processes", files->others) == 0 &&
           json_dumpf(files->whole, out, JSON_INDENT(2)) == 0 &&
           fputc('\n', out) != EOF;
}

static bool end_junit(run_files_t *files, const run_end_t *end, FILE *out)
{
    bool good = run_junit_end(&files->junit, end);
    good = fclose(files->xml) == 0 && good; /* then the text is whole */
    files->xml = NULL;
    errno = good ? 0 : ENOMEM;
    return good &&
           fwrite(files->xml_text, 1, files->xml_bytes, out) == files->xml_bytes;
}

static bool end_format(run_files_t *files, run_format_t format, const run_end_t *end)
{
    FILE *out = files->outputs[format].file;
    errno = ENOMEM;
    switch (format) {
    case RUN_JSON:
        return end_json(files, out);
    case RUN_JUNIT:
        return end_junit(files, end, out);
    default:
        return run_sarif_end(&files->sarif, end, out);
    }
}

bool run_files_end(run_files_t *files, const run_end_t *end)
{
    bool all = true;
    for (run_format_t i = 0; i < RUN_FORMATS; i++) {
        if (!is_open(files, i)) {
            continue;
        }
        errno = ENOMEM;
        bool written = files->is_good && end_format(files, i, end) &&
                       output_commit(&files->outputs[i]);
        if (!written) {
            say_unwritten(files, i);
        }
        all = all && written;
    }
    run_files_discard(files);
    return all;
}

void run_files_discard(run_files_t *files)
{
    for (run_format_t i = 0; i < RUN_FORMATS; i++) {
        output_discard(&files->outputs[i]);
    }
    json_decref(files->whole);
    json_decref(files->others);
    files->whole = files->others = NULL;
    if (files->xml != NULL) {
        (void)fclose(files->xml);
        files->xml = NULL;
    }
    free(files->xml_text);
    files->xml_text = NULL;
    run_junit_free(&files->junit);
    run_sarif_free(&files->sarif);
}
