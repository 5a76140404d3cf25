/* SPDX-License-Identifier: Apache-2.0 */
/* The log for forges; see sarif.h. */
#include "run/sarif.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "run/messages.h"
#include "run/sarif_place.h"

#define SARIF_SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"
#define FINGERPRINT "rmmFinding/v1"

/* --- small parts ------------------------------------------------------------------------- */

/* {"text": ...} */
static json_t *json_of_message(const char *text)
{
    json_t *object = json_object();
    return json_whole_or_null(object, json_put(object, "text", run_sarif_text(text)));
}

/* An array of one element, which is taken over; NULL: no memory. */
static json_t *json_of_one(json_t *element)
{
    json_t *array = json_array();
    return json_whole_or_null(array, json_array_append_new(array, element) == 0);
}

static bool add_notification(run_sarif_t *sarif, const char *level, const char *text)
{
    json_t *object = json_object();
    bool good = json_put(object, "level", json_string(level)) &&
                json_put(object, "message", json_of_message(text));
    return json_array_append_new(
               sarif->notifications, json_whole_or_null(object, good)) == 0;
}

/* --- fingerprints ------------------------------------------------------------------------ */

/* FNV-1a; the end of each text counts, so that "ab","c" is not "a","bc". */
static uint64_t mix(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    } while (*text++ != '\0');
    return hash;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Where there are lines of Python, the frames below them are those of the interpreter. */
static uint64_t mix_stack(uint64_t hash, const run_stack_t *stack)
{
    for (uint32_t i = 0; i < stack->python.line_count; i++) {
        hash = mix(hash, base_name(stack->python.lines[i].file));
        hash = mix(hash, stack->python.lines[i].function);
    }
    if (stack->python.line_count > 0) {
        return hash;
    }
    for (uint32_t i = run_stack_first(stack); i < stack->frame_count; i++) {
        const run_frame_t *frame = &stack->frames[i];
        char offset[32] = "";
        if (frame->function ==
            NULL) { /* the same in each run, though not in each build */
            (void)snprintf(offset, sizeof(offset), "%" PRIx64, frame->offset);
        }
        hash = mix(hash, base_name(frame->module.path));
        hash = mix(hash, frame->function != NULL ? frame->function : offset);
    }
    return hash;
}

/* With the lines: what has the same is the same place of the same program. */
static uint64_t mix_lines(uint64_t hash, const run_stack_t *stack)
{
    char place[64];
    for (uint32_t i = 0; i < stack->python.line_count; i++) {
        (void)snprintf(place, sizeof(place), "%" PRIu32, stack->python.lines[i].number);
        hash = mix(hash, place);
    }
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        (void)snprintf(
            place, sizeof(place), "%d %" PRIx64, stack->frames[i].line,
            stack->frames[i].offset);
        hash = mix(hash, place);
    }
    return hash;
}

static uint64_t start_hash(const char *rule)
{
    return mix(0xcbf29ce484222325u, rule);
}

static uint64_t
hash_of_finding(const rmm_diag_finding_info_t *finding, const char *rule)
{
    const char *access[] = {"", "r", "w", "u", "f"};
    uint64_t hash = mix(start_hash(rule), finding->function);
    hash = mix(hash, finding->other_function);
    return mix(hash, finding->access < 5 ? access[finding->access] : "");
}

/* --- results ----------------------------------------------------------------------------- */

/* What makes a result, of a finding or of a group of leaks. */
typedef struct found {
    uint32_t rule;
    const char *level;
    char *message; /* owned */
    uint64_t count;
    uint64_t hash;
    const run_stack_t *stack;   /* where it is */
    const run_stacks_t *stacks; /* NULL: that one is all */
} found_t;

static bool put_stack(
    json_t *array, const run_stack_t *stack, const char *message, const char *folder)
{
    return (stack->frame_count == 0 && stack->python.line_count == 0) ||
           json_array_append_new(array, run_sarif_stack(stack, message, folder)) == 0;
}

static json_t *json_of_stacks(const run_sarif_t *sarif, const found_t *found)
{
    const char *folder = sarif->folder;
    json_t *array = json_array();
    bool good = array != NULL;
    if (found->stacks == NULL) {
        good = good &&
               put_stack(array, found->stack, "the block was allocated from", folder);
    } else {
        const run_stacks_t *stacks = found->stacks;
        good =
            good && put_stack(array, &stacks->call, "called from", folder) &&
            put_stack(array, &stacks->origin, "the block was allocated from", folder) &&
            put_stack(array, &stacks->freed, "the block was freed from", folder);
    }
    return json_whole_or_null(array, good);
}

static json_t *json_of_process(const run_report_t *report)
{
    json_t *object = json_object();
    bool good = json_put(object, "program", run_sarif_text(report->program)) &&
                json_put(object, "pid", json_integer(report->pid)) &&
                json_put(object, "rank", json_text_or_null(report->rank)) &&
                json_put(object, "processes", json_integer(1));
    return json_whole_or_null(object, good);
}

static json_t *json_of_fingerprint(const char *fingerprint)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object, json_put(object, FINGERPRINT, json_string(fingerprint)));
}

static json_t *json_of_result(
    const run_sarif_t *sarif, const run_report_t *report, const found_t *found,
    const char *fingerprint)
{
    json_t *object = json_object();
    bool good =
        json_put(object, "ruleId", json_string(sarif->rules[found->rule].name)) &&
        json_put(object, "ruleIndex", json_integer(found->rule)) &&
        json_put(object, "level", json_string(found->level)) &&
        json_put(object, "message", json_of_message(found->message)) &&
        json_put(
            object, "locations",
            json_of_one(
                run_sarif_location(found->stack, report->program, sarif->folder))) &&
        json_put(object, "stacks", json_of_stacks(sarif, found)) &&
        json_put(object, "partialFingerprints", json_of_fingerprint(fingerprint)) &&
        json_put(object, "occurrenceCount", json_count(found->count)) &&
        json_put(object, "properties", json_of_process(report));
    return json_whole_or_null(object, good);
}

/* To the number that the object has under this key. */
static bool add_to(json_t *object, const char *key, uint64_t number)
{
    json_t *value = json_object_get(object, key);
    return json_integer_set(value, json_integer_value(value) + (json_int_t)number) == 0;
}

/* One that is there already, from another process, counts more. Takes over the message. */
static bool add_result(run_sarif_t *sarif, const run_report_t *report, found_t *found)
{
    char fingerprint[32], place[32];
    bool good = found->message != NULL;
    uint64_t hash = mix_stack(found->hash, found->stack);
    (void)snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, hash);
    (void)snprintf(place, sizeof(place), "%016" PRIx64, mix_lines(hash, found->stack));
    json_t *position = json_object_get(sarif->positions, place);
    if (position != NULL) {
        json_t *result =
            json_array_get(sarif->results, (size_t)json_integer_value(position));
        good = good && add_to(result, "occurrenceCount", found->count) &&
               add_to(json_object_get(result, "properties"), "processes", 1);
    } else if (json_array_size(sarif->results) >= RUN_SARIF_RESULTS_MAX) {
        sarif->left_out++;
    } else if (good) {
        json_int_t index = (json_int_t)json_array_size(sarif->results);
        good = json_array_append_new(
                   sarif->results, json_of_result(sarif, report, found, fingerprint)) ==
                   0 &&
               json_put(sarif->positions, place, json_integer(index));
    }
    free(found->message);
    return good;
}

static const char *level_of(uint32_t confidence)
{
    if (confidence == RMM_DIAG_CERTAIN) {
        return "error";
    }
    return confidence == RMM_DIAG_LIKELY ? "warning" : "note";
}

static bool add_finding(run_sarif_t *sarif, const run_report_t *report, uint32_t index)
{
    const rmm_diag_finding_info_t *finding = &report->findings[index];
    uint32_t rule = run_rule_of(finding->kind);
    found_t found = {
        .rule = rule,
        .level = level_of(finding->confidence),
        .message = run_message_of_finding(finding),
        .count = finding->count,
        .hash = hash_of_finding(finding, sarif->rules[rule].name),
        .stack = &report->stacks[index].call,
        .stacks = &report->stacks[index]};
    return add_result(sarif, report, &found);
}

/* A leak is certain, but it may be meant: a warning, unless the run is to fail by it. */
static found_t leak_begin(const run_sarif_t *sarif)
{
    return (found_t){
        .rule = sarif->rule_count - 1,
        .level = sarif->about->fails_on_leak ? "error" : "warning",
        .hash = start_hash(RUN_RULE_LEAKED)};
}

static bool add_leaks(run_sarif_t *sarif, const run_report_t *report)
{
    const run_usage_t *usage = &report->usage;
    uint64_t told = 0;
    bool good = true;
    for (uint32_t i = 0; good && i < usage->verdict_count; i++) {
        const run_verdict_t *verdict = &usage->verdicts[i];
        if (verdict->verdict == RMM_DIAG_LEAKED) {
            found_t found = leak_begin(sarif);
            found.message = run_message_of_leak(verdict);
            found.count = verdict->count;
            found.hash = mix(found.hash, verdict->first_user);
            found.stack = verdict->stack;
            good = add_result(sarif, report, &found);
            told += verdict->count;
        }
    }
    if (good && told < usage->leaked_count) { /* the table of verdicts was full */
        const run_stack_t none = {.frame_count = 0};
        found_t found = leak_begin(sarif);
        found.message = strdup("further blocks not freed");
        found.count = usage->leaked_count - told;
        found.stack = &none;
        good = add_result(sarif, report, &found);
    }
    return good;
}

/* What the results of a process do not show. */
static bool add_gaps(run_sarif_t *sarif, const run_report_t *report)
{
    char text[512];
    uint64_t dropped = report->findings_dropped + report->unreadable;
    if (dropped == 0) {
        return true;
    }
    (void)snprintf(
        text, sizeof(text),
        "%.100s (pid %d): %" PRIu64 " findings that the report has no room for",
        report->program, (int)report->pid, dropped);
    return add_notification(sarif, "warning", text);
}

bool run_sarif_add(run_sarif_t *sarif, const run_report_t *report)
{
    char text[512];
    bool good = add_gaps(sarif, report);
    if (!run_report_has_looked(report)) {
        if (report->pid == sarif->about->pid && report->missing[0] != '\0') {
            return good; /* a launcher; run_sarif_end() says it of a program */
        }
        (void)snprintf(
            text, sizeof(text), "%.100s (pid %d) was not diagnosed: %s",
            report->program, (int)report->pid,
            report->missing[0] != '\0' ? report->missing : report->source);
        return good && add_notification(sarif, "note", text);
    }
    for (uint32_t i = 0; good && i < report->finding_count; i++) {
        good = add_finding(sarif, report, i);
    }
    return good && add_leaks(sarif, report);
}

/* --- the whole --------------------------------------------------------------------------- */

static json_t *json_of_rule(const void *from, size_t i)
{
    const run_rule_t *rule = &((const run_rule_t *)from)[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "id", json_string(rule->name)) &&
            json_put(object, "shortDescription", json_of_message(rule->title)) &&
            json_put(object, "fullDescription", json_of_message(rule->why)) &&
            json_put(object, "help", json_of_message(rule->why)));
}

static json_t *json_of_tool(const run_sarif_t *sarif)
{
    json_t *driver = json_object(), *tool = json_object();
    bool good = json_put(driver, "name", json_string("rmm-run")) &&
                json_put(driver, "version", json_string(RMM_RUN_VERSION)) &&
                json_put(
                    driver, "rules",
                    json_array_of(sarif->rule_count, json_of_rule, sarif->rules));
    return json_whole_or_null(
        tool, json_put(tool, "driver", json_whole_or_null(driver, good)));
}

/* A folder ends with '/'. */
static json_t *json_of_folder(const char *folder)
{
    char uri[3 * 4096 + 16];
    char *encoded = run_sarif_encode(folder);
    json_t *object = json_object();
    bool good = encoded != NULL;
    (void)snprintf(uri, sizeof(uri), "file://%s/", good ? encoded : "");
    free(encoded);
    return json_whole_or_null(
        object, good && json_put(object, "uri", json_string(uri)));
}

static bool put_exit(json_t *invocation, const run_about_t *about, const run_end_t *end)
{
    int status = about->wait_status;
    if (end->status == 0 && WIFSIGNALED(status)) {
        return json_put(
                   invocation, "exitSignalNumber", json_integer(WTERMSIG(status))) &&
               json_put(
                   invocation, "exitSignalName",
                   json_string(strsignal(WTERMSIG(status))));
    }
    return json_put(
        invocation, "exitCode",
        json_integer(end->status != 0 ? end->status : WEXITSTATUS(status)));
}

static json_t *json_of_invocation(const run_sarif_t *sarif, const run_end_t *end)
{
    const run_about_t *about = sarif->about;
    char command[RUN_COMMAND_BYTES + 32];
    json_t *object = json_object();
    (void)snprintf(command, sizeof(command), "rmm-run -- %s", about->command);
    bool good =
        json_put(object, "executionSuccessful", json_boolean(end->why == NULL)) &&
        put_exit(object, about, end) &&
        json_put(object, "commandLine", run_sarif_text(command)) &&
        (sarif->folder[0] == '\0' ||
         json_put(object, "workingDirectory", json_of_folder(sarif->folder))) &&
        json_object_set(object, "toolExecutionNotifications", sarif->notifications) ==
            0;
    return json_whole_or_null(object, good);
}

static json_t *json_of_bases(const run_sarif_t *sarif)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object, sarif->folder[0] == '\0' ||
                    json_put(object, RUN_SARIF_BASE, json_of_folder(sarif->folder)));
}

/* Logs of one commit with different ids do not replace each other. */
static json_t *json_of_automation(const run_about_t *about)
{
    char id[RUN_COMMAND_BYTES + 16];
    json_t *object = json_object();
    (void)snprintf(id, sizeof(id), "rmm-run/%s/", about->command);
    return json_whole_or_null(object, json_put(object, "id", run_sarif_text(id)));
}

static json_t *json_of_run(const run_sarif_t *sarif, const run_end_t *end)
{
    json_t *object = json_object();
    bool good =
        json_put(object, "tool", json_of_tool(sarif)) &&
        json_put(object, "automationDetails", json_of_automation(sarif->about)) &&
        json_put(object, "invocations", json_of_one(json_of_invocation(sarif, end))) &&
        json_put(object, "originalUriBaseIds", json_of_bases(sarif)) &&
        json_put(object, "columnKind", json_string("utf16CodeUnits")) &&
        json_object_set(object, "results", sarif->results) == 0;
    return json_whole_or_null(object, good);
}

bool run_sarif_begin(run_sarif_t *sarif, const run_about_t *about)
{
    *sarif = (run_sarif_t){
        .about = about,
        .results = json_array(),
        .positions = json_object(),
        .notifications = json_array()};
    sarif->rule_count = run_rules(sarif->rules);
    if (getcwd(sarif->folder, sizeof(sarif->folder)) == NULL) {
        sarif->folder[0] = '\0';
    }
    return sarif->results != NULL && sarif->positions != NULL &&
           sarif->notifications != NULL;
}

static bool add_last_notifications(run_sarif_t *sarif, const run_end_t *end)
{
    char text[512];
    bool good = true;
    if (end->why != NULL) {
        (void)snprintf(text, sizeof(text), "nothing was diagnosed: %s", end->why);
        good = add_notification(sarif, "error", text);
    }
    if (end->left_out > 0) {
        (void)snprintf(
            text, sizeof(text), "%" PRIu32 " further processes: no descriptors left",
            end->left_out);
        good = good && add_notification(sarif, "warning", text);
    }
    if (sarif->left_out > 0) {
        (void)snprintf(
            text, sizeof(text), "%" PRIu64 " further results are left out",
            sarif->left_out);
        good = good && add_notification(sarif, "warning", text);
    }
    return good;
}

bool run_sarif_end(run_sarif_t *sarif, const run_end_t *end, FILE *out)
{
    json_t *log = json_object();
    bool good = add_last_notifications(sarif, end) &&
                json_put(log, "$schema", json_string(SARIF_SCHEMA)) &&
                json_put(log, "version", json_string("2.1.0")) &&
                json_put(log, "runs", json_of_one(json_of_run(sarif, end)));
    errno = good ? 0 : ENOMEM;
    good = good && json_dumpf(log, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(log);
    return good;
}

void run_sarif_free(run_sarif_t *sarif)
{
    json_decref(sarif->results);
    json_decref(sarif->positions);
    json_decref(sarif->notifications);
    sarif->results = sarif->positions = sarif->notifications = NULL;
}
