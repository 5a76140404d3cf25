/* SPDX-License-Identifier: Apache-2.0 */
/* A report for each process; see folder.h. */
#include "run/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"

#define HIDDEN ".rmm-run.XXXXXX"

enum { NAME_BYTES = 160, PROGRAM_CHARACTERS = 64 };

/* --- names ------------------------------------------------------------------------------- */

static bool join(char out[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(out, PATH_MAX, "%s%s", folder, name);
    errno = ENAMETOOLONG;
    return length >= 0 && length < PATH_MAX;
}

/* Letters, digits, '.', '_' and '-'; '_' stands for all else. */
static void make_plain(char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-";
    for (; *text != '\0'; text++) {
        *text = strchr(plain, *text) != NULL ? *text : '_';
    }
}

/* "rank3-python3.json" or "pid4711-python3.json", with a number behind it where another process
 * has that name. False: no memory. */
static bool
choose_name(run_folder_t *folder, const run_report_t *report, char name[NAME_BYTES])
{
    char stem[NAME_BYTES - 32];
    const char *slash = strrchr(report->program, '/');
    const char *program = slash != NULL ? slash + 1 : report->program;
    int length = report->rank[0] != '\0'
                     ? snprintf(stem, sizeof(stem), "rank%s-", report->rank)
                     : snprintf(stem, sizeof(stem), "pid%d-", (int)report->pid);
    (void)snprintf(
        stem + length, sizeof(stem) - (size_t)length, "%.*s", PROGRAM_CHARACTERS,
        program);
    make_plain(stem);
    (void)snprintf(name, NAME_BYTES, "%s.json", stem);
    for (uint32_t i = 2; json_object_get(folder->names, name) != NULL; i++) {
        (void)snprintf(name, NAME_BYTES, "%s-%" PRIu32 ".json", stem, i);
    }
    errno = ENOMEM;
    return json_put(folder->names, name, json_true());
}

/* --- the folder -------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool run_folder_is_meant(const char *path)
{
    size_t length = strlen(path);
    return (length > 0 && path[length - 1] == '/') || is_folder(path);
}

static bool make_folder(run_folder_t *folder)
{
    folder->is_made = mkdir(folder->path, 0777) == 0;
    if (folder->is_made || is_folder(folder->path)) {
        return true;
    }
    errno = errno == EEXIST ? ENOTDIR : errno;
    return false;
}

bool run_folder_open(run_folder_t *folder, const char *path)
{
    char summary[PATH_MAX];
    size_t length = strlen(path);
    bool has_slash = length > 0 && path[length - 1] == '/';
    *folder = (run_folder_t){.processes = json_array(), .names = json_object()};
    bool good = join(folder->path, path, has_slash ? "" : "/") &&
                join(summary, folder->path, RUN_FOLDER_SUMMARY) &&
                make_folder(folder) && output_open(&folder->summary, summary);
    if (!good) {
        run_folder_discard(folder);
    }
    return good;
}

static bool make_hidden(run_folder_t *folder)
{
    if (folder->hidden[0] != '\0') {
        return true;
    }
    if (!join(folder->hidden, folder->path, HIDDEN) ||
        mkdtemp(folder->hidden) == NULL) {
        folder->hidden[0] = '\0';
        return false;
    }
    size_t length = strlen(folder->hidden);
    errno = ENAMETOOLONG;
    if (length + 1 >= sizeof(folder->hidden)) {
        return false;
    }
    memcpy(folder->hidden + length, "/", 2);
    return true;
}

/* --- processes --------------------------------------------------------------------------- */

static bool write_json(const json_t *object, FILE *out)
{
    errno = ENOMEM; /* unless it is written */
    return object != NULL && json_dumpf(object, out, JSON_INDENT(2)) == 0 &&
           fputc('\n', out) != EOF;
}

static bool
write_process(run_folder_t *folder, const char *name, const run_report_t *report)
{
    char path[PATH_MAX];
    output_t output = {.file = NULL};
    json_t *object = run_report_json(report);
    bool good = make_hidden(folder) && join(path, folder->hidden, name) &&
                output_open(&output, path) && write_json(object, output.file) &&
                output_commit(&output);
    output_discard(&output);
    json_decref(object);
    return good;
}

static json_t *json_of_process(const run_report_t *report, const char *name)
{
    bool is_known = report->missing[0] == '\0';
    json_t *object = json_object();
    return json_whole_or_null(
        object, json_put(object, "file", json_text_or_null(name)) &&
                    json_put(object, "program", json_text_or_null(report->program)) &&
                    json_put(object, "pid", json_integer(report->pid)) &&
                    json_put(object, "rank", json_text_or_null(report->rank)) &&
                    json_put(object, "ended", json_boolean(!report->is_live)) &&
                    json_put(object, "missing", json_text_or_null(report->missing)) &&
                    json_put(object, "source", json_text_or_null(report->source)) &&
                    json_put(
                        object, "findings_total",
                        json_count_or_null(is_known, report->findings_total)) &&
                    json_put(
                        object, "leaked_count",
                        json_count_or_null(is_known, report->usage.leaked_count)) &&
                    json_put(
                        object, "leaked_bytes",
                        json_count_or_null(is_known, report->usage.leaked_bytes)));
}

bool run_folder_add(run_folder_t *folder, const run_report_t *report)
{
    char name[NAME_BYTES] = "";
    bool has_file = report->missing[0] == '\0';
    if (has_file &&
        (!choose_name(folder, report, name) || !write_process(folder, name, report))) {
        return false;
    }
    folder->diagnosed += run_report_has_looked(report) ? 1 : 0;
    folder->findings += report->findings_total;
    folder->leaks += report->usage.leaked_count;
    folder->leaked_bytes += report->usage.leaked_bytes;
    errno = ENOMEM;
    return json_array_append_new(folder->processes, json_of_process(report, name)) == 0;
}

/* --- the end ----------------------------------------------------------------------------- */

static json_t *json_of_summary(
    const run_folder_t *folder, const run_about_t *about, const run_end_t *end)
{
    int status = about->wait_status;
    bool is_killed = WIFSIGNALED(status);
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "schema_version", json_integer(RUN_REPORT_SCHEMA)) &&
            json_put(object, "program", json_text_or_null(about->program)) &&
            json_put(object, "command", json_text_or_null(about->command)) &&
            json_put(object, "pid", json_integer(about->pid)) &&
            json_put(object, "seconds", json_real(about->seconds)) &&
            json_put(
                object, "exit_status",
                json_count_or_null(!is_killed, (uint64_t)WEXITSTATUS(status))) &&
            json_put(
                object, "signal",
                json_count_or_null(is_killed, (uint64_t)WTERMSIG(status))) &&
            json_put(object, "processes_diagnosed", json_count(folder->diagnosed)) &&
            json_put(object, "processes_left_out", json_count(end->left_out)) &&
            json_put(object, "findings_total", json_count(folder->findings)) &&
            json_put(object, "leaked_count", json_count(folder->leaks)) &&
            json_put(object, "leaked_bytes", json_count(folder->leaked_bytes)) &&
            json_object_set(object, "processes", folder->processes) == 0);
}

static bool move_files(const run_folder_t *folder)
{
    const char *name;
    json_t *value;
    char from[PATH_MAX], to[PATH_MAX];
    json_object_foreach(folder->names, name, value)
    {
        if (!join(from, folder->hidden, name) || !join(to, folder->path, name) ||
            rename(from, to) != 0) {
            return false;
        }
    }
    return true;
}

bool run_folder_end(
    run_folder_t *folder, const run_about_t *about, const run_end_t *end)
{
    json_t *summary = json_of_summary(folder, about, end);
    bool good = write_json(summary, folder->summary.file) &&
                fflush(folder->summary.file) == 0 && move_files(folder) &&
                output_commit(&folder->summary);
    json_decref(summary);
    folder->is_made = folder->is_made && !good;
    return good;
}

static void remove_hidden(run_folder_t *folder)
{
    const char *name;
    json_t *value;
    char path[PATH_MAX];
    if (folder->hidden[0] == '\0') {
        return;
    }
    json_object_foreach(folder->names, name, value)
    {
        if (join(path, folder->hidden, name)) {
            (void)unlink(path);
        }
    }
    (void)rmdir(folder->hidden);
    folder->hidden[0] = '\0';
}

void run_folder_discard(run_folder_t *folder)
{
    int error = errno;
    output_discard(&folder->summary);
    remove_hidden(folder);
    if (folder->is_made) {
        (void)rmdir(folder->path);
        folder->is_made = false;
    }
    json_decref(folder->processes);
    json_decref(folder->names);
    folder->processes = folder->names = NULL;
    folder->path[0] = '\0';
    errno = error;
}
