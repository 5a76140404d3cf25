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

static bool has_folder(const run_files_t *files)
{
    return files->folder.path[0] != '\0';
}

static bool is_open(const run_files_t *files, run_format_t format)
{
    return files->outputs[format].file != NULL ||
           (format == RUN_JSON && has_folder(files));
}

static bool open_format(run_files_t *files, run_format_t format)
{
    const char *path = files->paths[format];
    if (format == RUN_JSON && run_folder_is_meant(path)) {
        return run_folder_open(&files->folder, path);
    }
    return output_open(&files->outputs[format], path);
}

bool run_files_open(run_files_t *files, const char *const paths[RUN_FORMATS])
{
    *files = (run_files_t){.whole = NULL};
    memcpy(files->paths, paths, sizeof(files->paths));
    for (run_format_t i = 0; i < RUN_FORMATS; i++) {
        if (paths[i] != NULL && !open_format(files, i)) {
            say_unwritten(files, i);
            run_files_discard(files);
            return false;
        }
    }
    return true;
}

/* --- processes --------------------------------------------------------------------------- */

static bool begin_format(run_files_t *files, run_format_t format)
{
    switch (format) {
    case RUN_JSON:
        files->others = json_array();
        return files->others != NULL;
    case RUN_JUNIT:
        files->xml = open_memstream(&files->xml_text, &files->xml_bytes);
        return files->xml != NULL &&
               run_junit_begin(&files->junit, files->xml, files->about);
    default:
        return run_sarif_begin(&files->sarif, files->about);
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

static bool
add_to_format(run_files_t *files, run_format_t format, const run_report_t *report)
{
    switch (format) {
    case RUN_JSON:
        return has_folder(files) ? run_folder_add(&files->folder, report)
                                 : add_json(files, report);
    case RUN_JUNIT:
        return run_junit_add(&files->junit, report);
    default:
        return run_sarif_add(&files->sarif, report);
    }
}

void run_files_begin(run_files_t *files, const run_about_t *about)
{
    files->about = about;
    for (run_format_t i = 0; i < RUN_FORMATS; i++) {
        if (is_open(files, i) && !begin_format(files, i)) {
            files->errors[i] = ENOMEM;
        }
    }
}

void run_files_add(run_files_t *files, const run_report_t *report)
{
    for (run_format_t i = 0; i < RUN_FORMATS; i++) {
        errno = ENOMEM;
        if (is_open(files, i) && files->errors[i] == 0 &&
            !add_to_format(files, i, report)) {
            files->errors[i] = errno;
        }
    }
}

/* --- the end ----------------------------------------------------------------------------- */

static bool end_json(run_files_t *files, const run_end_t *end, FILE *out)
{
    if (has_folder(files)) {
        return run_folder_end(&files->folder, files->about, end);
    }
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
    errno = files->errors[format];
    if (errno != 0) {
        return false;
    }
    errno = ENOMEM; /* unless it is another one */
    switch (format) {
    case RUN_JSON:
        return end_json(files, end, out);
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
        bool is_file = files->outputs[i].file != NULL;
        bool written = end_format(files, i, end) &&
                       (!is_file || output_commit(&files->outputs[i]));
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
    run_folder_discard(&files->folder);
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
