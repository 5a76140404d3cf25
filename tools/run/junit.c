/* SPDX-License-Identifier: Apache-2.0 */
/* The report for CI servers; see junit.h. */
#include "run/junit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "diag/modes.h"
#include "run/finding_text.h"
#include "run/messages.h"
#include "run/rules.h"
#include "run/torch.h"
#include "segment/clean_text.h"

enum { LABEL_BYTES = 96, MESSAGE_BYTES = 256, CASES_MAX = RUN_RULES_MAX + 2 };

typedef enum outcome { PASSED, FAILED, SKIPPED, IN_ERROR, OUTCOMES } outcome_t;

typedef struct test_case {
    const char *name; /* static */
    outcome_t outcome;
    char message[MESSAGE_BYTES];
    char *text; /* NULL: none */
} test_case_t;

typedef struct suite {
    char label
        [LABEL_BYTES]; /* before the names of its cases; empty: the program's own */
    const run_report_t *report; /* NULL: nothing was diagnosed */
    test_case_t cases[CASES_MAX];
    uint32_t count;
    bool good; /* there was memory for all of it */
} suite_t;

/* --- cases ------------------------------------------------------------------------------- */

static test_case_t *add_case(suite_t *suite, const char *name)
{
    test_case_t *added = &suite->cases[suite->count++];
    *added = (test_case_t){.name = name, .outcome = PASSED};
    return added;
}

static void free_cases(suite_t *suite)
{
    for (uint32_t i = 0; i < suite->count; i++) {
        free(suite->cases[i].text);
    }
}

/* The stream of a case's text, and its end. NULL: no memory. */
static FILE *open_text(suite_t *suite, test_case_t *of, size_t *length)
{
    FILE *out = open_memstream(&of->text, length);
    suite->good = suite->good && out != NULL;
    return out;
}

static void close_text(suite_t *suite, FILE *out)
{
    suite->good = fclose(out) == 0 && suite->good;
}

/* What the findings of one class amount to. */
typedef struct class_sum {
    uint64_t errors, hints; /* occurrences */
    uint32_t kinds, first;  /* the index of the first finding */
} class_sum_t;

static class_sum_t sum_class(const run_report_t *report, uint32_t rule)
{
    class_sum_t sum = {.first = UINT32_MAX};
    for (uint32_t i = 0; i < report->finding_count; i++) {
        const rmm_diag_finding_info_t *finding = &report->findings[i];
        if (run_rule_of(finding->kind) == rule) {
            bool is_hint = finding->confidence == RMM_DIAG_HINT;
            sum.errors += is_hint ? 0 : finding->count;
            sum.hints += is_hint ? finding->count : 0;
            sum.first = sum.kinds == 0 ? i : sum.first;
            sum.kinds++;
        }
    }
    return sum;
}

/* One line: the finding's own if there is one, else how many there are. */
static void say_sum(suite_t *suite, test_case_t *said, const class_sum_t *sum)
{
    uint64_t count = sum->errors + sum->hints;
    if (sum->kinds > 1) {
        (void)snprintf(
            said->message, sizeof(said->message),
            "%" PRIu64 " occurrences of %" PRIu32 " kinds", count, sum->kinds);
        return;
    }
    char *line = run_message_of_finding(&suite->report->findings[sum->first]);
    suite->good = suite->good && line != NULL;
    (void)snprintf(
        said->message, sizeof(said->message), "%.*s",
        line != NULL ? (int)strcspn(line, "\n") : 0, line != NULL ? line : "");
    rmm__text_clean(
        said->message, sizeof(said->message)); /* perhaps cut in a character */
    free(line);
}

static void add_class(suite_t *suite, const run_rule_t *rule, uint32_t number)
{
    const run_report_t *report = suite->report;
    class_sum_t sum = sum_class(report, number);
    test_case_t *added = add_case(suite, rule->name);
    size_t length;
    if (sum.kinds == 0) {
        return;
    }
    added->outcome = sum.errors > 0 ? FAILED : SKIPPED; /* hints alone fail nothing */
    say_sum(suite, added, &sum);
    FILE *out = open_text(suite, added, &length);
    if (out == NULL) {
        return;
    }
    for (uint32_t i = 0; i < report->finding_count; i++) {
        if (run_rule_of(report->findings[i].kind) == number) {
            run_finding_print(&report->findings[i], out);
            run_torch_print(report->findings[i].kind, &report->stacks[i].call, out);
            run_stacks_print(&report->stacks[i], out);
        }
    }
    close_text(suite, out);
}

static void add_leaks(suite_t *suite, bool is_failure)
{
    const run_usage_t *usage = &suite->report->usage;
    test_case_t *added = add_case(suite, RUN_RULE_LEAKED);
    size_t length;
    if (usage->leaked_count == 0) {
        return;
    }
    added->outcome = is_failure ? FAILED : SKIPPED;
    (void)snprintf(
        added->message, sizeof(added->message),
        "%" PRIu64 " %s of %" PRIu64 " bytes not freed%s", usage->leaked_count,
        usage->leaked_count == 1 ? "block" : "blocks", usage->leaked_bytes,
        is_failure ? "" : ": no failure without --fail-on-leak");
    FILE *out = open_text(suite, added, &length);
    if (out != NULL) {
        run_usage_print_leaks(usage, out);
        close_text(suite, out);
    }
}

/* Findings that count although they cannot be shown. */
static void add_dropped(suite_t *suite)
{
    uint64_t count = suite->report->findings_dropped + suite->report->unreadable;
    if (count > 0) {
        test_case_t *added = add_case(suite, "other_findings");
        added->outcome = FAILED;
        (void)snprintf(
            added->message, sizeof(added->message),
            "%" PRIu64 " findings that the report has no room for", count);
    }
}

static bool is_looked_for(const run_report_t *report, const run_rule_t *rule)
{
    char unknown[RMM_DIAG_MODE_WORD_BYTES];
    uint32_t modes = 0;
    (void)rmm__diag_modes_parse(report->modes, &modes, unknown);
    return (modes & rule->modes) != 0;
}

static void add_cases(suite_t *suite, bool fails_on_leak)
{
    run_rule_t rules[RUN_RULES_MAX];
    uint32_t count = run_rules(rules);
    for (uint32_t i = 0; i + 1 < count; i++) { /* the last is that of leaks */
        if (is_looked_for(suite->report, &rules[i]) ||
            sum_class(suite->report, i).kinds > 0) {
            add_class(suite, &rules[i], i);
        }
    }
    add_leaks(suite, fails_on_leak);
    add_dropped(suite);
}

/* --- XML --------------------------------------------------------------------------------- */

static const char *const elements[OUTCOMES] = {
    [FAILED] = "failure", [SKIPPED] = "skipped", [IN_ERROR] = "error"};

static void write_seconds(xml_t *xml, double seconds)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.3f", seconds);
    xml_attribute(xml, "time", text);
}

static void write_case(
    run_junit_t *junit, const suite_t *suite, const test_case_t *written,
    double seconds)
{
    xml_t *xml = &junit->xml;
    char name[LABEL_BYTES + 64], class_name[RUN_COMMAND_BYTES + 16];
    (void)snprintf(
        name, sizeof(name), "%s%s%s", suite->label, suite->label[0] != '\0' ? ": " : "",
        written->name);
    (void)snprintf(class_name, sizeof(class_name), "rmm-run.%s", junit->about->command);
    for (char *dot = strchr(class_name, '.') + 1; *dot != '\0'; dot++) {
        *dot = *dot == '.' ? '_' : *dot; /* Jenkins takes it for the end of a package */
    }
    xml_open(xml, "testcase");
    xml_attribute(xml, "classname", class_name);
    xml_attribute(xml, "name", name);
    write_seconds(xml, seconds);
    if (written->outcome != PASSED) {
        const char *element = elements[written->outcome];
        xml_open(xml, element);
        if (written->outcome != SKIPPED) { /* Ant's schema has it of no other */
            xml_attribute(xml, "type", written->name);
        }
        xml_attribute(xml, "message", written->message);
        if (written->text != NULL) {
            xml_text(xml, written->text);
        }
        xml_close(xml, element);
    }
    xml_close(xml, "testcase");
}

static void write_property(xml_t *xml, const char *name, const char *value)
{
    xml_open(xml, "property");
    xml_attribute(xml, "name", name);
    xml_attribute(xml, "value", value);
    xml_close(xml, "property");
}

static void write_number(xml_t *xml, const char *name, uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    write_property(xml, name, text);
}

static void write_properties(xml_t *xml, const run_report_t *report)
{
    write_property(xml, "program", report->program);
    write_number(xml, "pid", (uint64_t)report->pid);
    write_property(xml, "rank", report->rank);
    write_property(xml, "modes", report->modes);
    write_property(xml, "source", report->source);
    write_property(xml, "ended", report->is_live ? "false" : "true");
    write_number(xml, "launches", report->launches);
    write_number(xml, "findings_total", report->findings_total);
    write_number(xml, "findings_suppressed", report->suppressed);
    write_number(xml, "leaked_count", report->usage.leaked_count);
    write_number(xml, "leaked_bytes", report->usage.leaked_bytes);
}

/* How the program ended, which the report of a process does not have. */
static void write_end(xml_t *xml, const run_about_t *about)
{
    int status = about->wait_status;
    write_property(xml, "command", about->command);
    if (WIFSIGNALED(status)) {
        write_number(xml, "signal", (uint64_t)WTERMSIG(status));
    } else {
        write_number(xml, "exit_status", (uint64_t)WEXITSTATUS(status));
    }
}

static void write_when(xml_t *xml, uint64_t since_ns)
{
    char text[64] = "", host[256] = "";
    time_t seconds = (time_t)(since_ns / 1000000000u);
    struct tm when;
    if (gmtime_r(&seconds, &when) != NULL) {
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &when);
    }
    xml_attribute(xml, "timestamp", text);
    (void)gethostname(host, sizeof(host) - 1);
    xml_attribute(xml, "hostname", host[0] != '\0' ? host : "localhost");
}

static void write_not_seen(run_junit_t *junit, const suite_t *suite, bool *good)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    *good = *good && out != NULL;
    if (out != NULL) {
        run_unseen_print(&suite->report->unseen, out);
        *good = fclose(out) == 0 && *good;
    }
    xml_open(&junit->xml, "system-out");
    xml_text(&junit->xml, text != NULL ? text : "");
    xml_close(&junit->xml, "system-out");
    free(text);
}

static void write_counts(xml_t *xml, const suite_t *suite)
{
    uint32_t counts[OUTCOMES] = {0};
    for (uint32_t i = 0; i < suite->count; i++) {
        counts[suite->cases[i].outcome]++;
    }
    xml_count(xml, "tests", suite->count);
    xml_count(xml, "failures", counts[FAILED]);
    xml_count(xml, "errors", counts[IN_ERROR]);
    xml_count(xml, "skipped", counts[SKIPPED]);
}

/* Its first case has the time: how long a class was looked for is not known. */
static bool write_suite(run_junit_t *junit, const suite_t *suite, bool is_program)
{
    xml_t *xml = &junit->xml;
    const run_about_t *about = junit->about;
    double seconds = is_program ? about->seconds : 0;
    bool good = suite->good;
    xml_open(xml, "testsuite");
    xml_attribute(xml, "name", suite->label[0] != '\0' ? suite->label : about->command);
    xml_attribute(xml, "package", "rmm-run");
    xml_count(xml, "id", junit->suites++);
    write_counts(xml, suite);
    write_seconds(xml, seconds);
    write_when(xml, about->since_ns);
    xml_open(xml, "properties");
    if (suite->report != NULL) {
        write_properties(xml, suite->report);
    }
    if (is_program) {
        write_end(xml, about);
    }
    xml_close(xml, "properties");
    for (uint32_t i = 0; i < suite->count; i++) {
        write_case(junit, suite, &suite->cases[i], i == 0 ? seconds : 0);
    }
    if (suite->report != NULL) {
        write_not_seen(junit, suite, &good);
    } else {
        xml_open(xml, "system-out");
        xml_close(xml, "system-out");
    }
    xml_open(xml, "system-err");
    xml_close(xml, "system-err");
    xml_close(xml, "testsuite");
    return good;
}

/* --- the whole --------------------------------------------------------------------------- */

/* "python3 rank 3"; "python3 rank 3 (2)" for the second such. False: no memory. */
static bool
choose_label(run_junit_t *junit, const run_report_t *report, char label[LABEL_BYTES])
{
    char text[LABEL_BYTES - 24], program[40];
    rmm__text_copy(program, sizeof(program), report->program);
    (void)snprintf(
        text, sizeof(text), "%s%s%s", program, report->rank[0] != '\0' ? " rank " : "",
        report->rank);
    rmm__text_clean(text, sizeof(text));
    json_int_t number = json_integer_value(json_object_get(junit->labels, text)) + 1;
    (void)snprintf(label, LABEL_BYTES, "%s", text);
    if (number > 1) {
        (void)snprintf(
            label, LABEL_BYTES, "%s (%" JSON_INTEGER_FORMAT ")", text, number);
    }
    return json_object_set_new(junit->labels, text, json_integer(number)) == 0;
}

bool run_junit_begin(run_junit_t *junit, FILE *out, const run_about_t *about)
{
    *junit = (run_junit_t){.about = about, .labels = json_object()};
    xml_begin(&junit->xml, out);
    xml_open(&junit->xml, "testsuites");
    return junit->labels != NULL;
}

bool run_junit_add(run_junit_t *junit, const run_report_t *report)
{
    suite_t suite = {.report = report, .good = true};
    bool is_program = report->pid == junit->about->pid;
    if (is_program && report->missing[0] != '\0') {
        return true;
    }
    if (!is_program && !choose_label(junit, report, suite.label)) {
        return false;
    }
    test_case_t *diagnosed = add_case(&suite, "diagnosed");
    if (!run_report_has_looked(report)) {
        diagnosed->outcome = SKIPPED;
        (void)snprintf(
            diagnosed->message, sizeof(diagnosed->message), "%s",
            report->missing[0] != '\0' ? report->missing : report->source);
    } else {
        add_cases(&suite, junit->about->fails_on_leak);
    }
    bool good = write_suite(junit, &suite, is_program);
    junit->has_program = junit->has_program || is_program;
    free_cases(&suite);
    return good;
}

bool run_junit_end(run_junit_t *junit, const run_end_t *end)
{
    suite_t suite = {.good = true};
    bool good = true;
    if (end->why != NULL) {
        const run_about_t *about = junit->about;
        test_case_t *added = add_case(&suite, "anything_diagnosed");
        added->outcome =
            about->fails_on_finding || about->fails_on_leak ? IN_ERROR : SKIPPED;
        (void)snprintf(
            added->message, sizeof(added->message), "nothing was diagnosed: %s",
            end->why);
        good = write_suite(junit, &suite, !junit->has_program);
    }
    xml_close(&junit->xml, "testsuites");
    return good;
}

void run_junit_free(run_junit_t *junit)
{
    json_decref(junit->labels);
    junit->labels = NULL;
}
