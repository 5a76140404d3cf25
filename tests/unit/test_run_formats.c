/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of rmm-run for CI servers and forges, of reports that are made here: whatever a program
 * is named and has on its stacks, they are well-formed. Real runs are in sim.run_forges.
 */
#include "harness/harness.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/error.h"
#include "diag/diag_names.h"
#include "run/files.h"
#include "run/sarif_place.h"
#include "run/text.h"
#include "run/xml.h"

const char *const tool_name = "test";

#define HOSTILE                                                                        \
    "a]]>b<&\"'\x01\x1b\xff\xc3(\xed\xa0\x80\xef\xbf\xbf\xf4\x90\x80\x80\x7f\xc0\x80"

/* --- texts ------------------------------------------------------------------------------- */

TEST_CASE(characters_that_files_may_have)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"a", 1},
        {"\t", 1},
        {"\n", 1},
        {"\r", 1},
        {"\x01", 0},
        {"\x1f", 0},
        {"\x7f", 0},
        {"\x80", 0},             /* no first byte */
        {"\xc3\xa4", 2},         /* a with dots */
        {"\xc3", 0},             /* cut */
        {"\xc3(", 0},            /* something else behind it */
        {"\xc0\xaf", 0},         /* two bytes for one */
        {"\xe2\x82\xac", 3},     /* the euro */
        {"\xe0\x80\xaf", 0},     /* three bytes for one */
        {"\xed\x9f\xbf", 3},     /* the last before the surrogates */
        {"\xed\xa0\x80", 0},     /* a surrogate */
        {"\xef\xbf\xbd", 3},     /* the replacement character */
        {"\xef\xbf\xbe", 0},     /* no character */
        {"\xf0\x9f\x98\x80", 4}, /* a face */
        {"\xf4\x8f\xbf\xbf", 4}, /* the last of all */
        {"\xf4\x90\x80\x80", 0}, /* behind it */
        {"\xf0\x9f\x98", 0},
        {"", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run_text_character(cases[i].text), cases[i].length);
    }
}

TEST_CASE(a_command_is_cut_between_characters)
{
    char arguments[4096], command[RUN_COMMAND_BYTES];
    char name[] = "/usr/bin/python3", broken[] = "a\nb", last[] = "b", empty[] = "";
    char *argv[] = {name, arguments, last, NULL};

    memset(arguments, 'x', sizeof(arguments) - 1);
    arguments[sizeof(arguments) - 1] = '\0';
    memcpy(arguments + 117, "\xe2\x82\xac", 3); /* where the end is */
    run_about_command(argv, command);
    assert_int_equal(strlen(command), 8 + 117);
    assert_memory_equal(command, "python3 xxx", 11);
    argv[1] = broken;
    run_about_command(argv, command);
    assert_string_equal(command, "python3 a?b b");
    argv[0] = empty;
    argv[1] = NULL;
    run_about_command(argv, command);
    assert_string_equal(command, "");
}

/* --- XML --------------------------------------------------------------------------------- */

TEST_CASE(xml_escapes_what_it_must)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    xml_t xml;

    assert_non_null(out);
    xml_begin(&xml, out);
    xml_open(&xml, "a");
    xml_attribute(&xml, "b", HOSTILE "\n\t\r");
    xml_open(&xml, "c");
    xml_text(&xml, HOSTILE "\n\t\r");
    xml_close(&xml, "c");
    xml_open(&xml, "d");
    xml_count(&xml, "e", UINT64_MAX);
    xml_close(&xml, "d");
    xml_close(&xml, "a");
    assert_int_equal(fclose(out), 0);
#define ESCAPED                                                                        \
    "a]]&gt;b&lt;&amp;&quot;'????"                                                     \
    "("                                                                                \
    "?????????????"
    assert_string_equal(
        text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<a b=\"" ESCAPED "&#10;&#9;&#13;\">\n"
              "  <c>" ESCAPED "\n\t&#13;</c>\n"
              "  <d e=\"18446744073709551615\"/>\n"
              "</a>\n");
    free(text);
}

/* --- places in SARIF --------------------------------------------------------------------- */

static void check_artifact(const char *path, const char *uri, bool is_relative)
{
    json_t *artifact = run_sarif_artifact(path, "/src/code");

    assert_non_null(artifact);
    assert_string_equal(json_string_value(json_object_get(artifact, "uri")), uri);
    assert_int_equal(json_object_get(artifact, "uriBaseId") != NULL, is_relative);
    json_decref(artifact);
}

TEST_CASE(files_below_the_working_directory_are_relative)
{
    check_artifact("/src/code/lib/a.c", "lib/a.c", true);
    check_artifact("/src/code/build/dev/../../lib//./a.c", "lib/a.c", true);
    check_artifact("lib/a.c", "lib/a.c", true);
    check_artifact("./a.c", "a.c", true);
    check_artifact("b/../a.c", "a.c", true);
    check_artifact("../a.c", "../a.c", false);
    check_artifact("b/../../../a.c", "../../a.c", false);
    check_artifact("/src/codes/a.c", "file:///src/codes/a.c", false);
    check_artifact("/src/code", "file:///src/code", false);
    check_artifact("/../../usr/a.h", "file:///usr/a.h", false);
    check_artifact("/", "file:///", false);
    check_artifact("", ".", true);
    check_artifact("/src/code/a b%\xff:?#.c", "a%20b%25%FF%3A%3F%23.c", true);
}

/* A copy that need not be freed; NULL of NULL. */
static char *keep(const char *text)
{
    static char kept[32][128];
    static uint32_t next;
    char *copy = kept[next++ % 32];

    snprintf(copy, sizeof(kept[0]), "%s", text != NULL ? text : "");
    return text != NULL ? copy : NULL;
}

static run_frame_t
frame_of(const char *module, const char *function, const char *file, int line)
{
    run_frame_t frame = {.function = keep(function), .file = keep(file), .line = line};

    snprintf(frame.module.path, sizeof(frame.module.path), "%s", module);
    return frame;
}

static void check_location(const run_stack_t *stack, const char *uri, int line)
{
    json_t *location = run_sarif_location(stack, "./program", "/src/code");
    const json_t *place = json_object_get(location, "physicalLocation");

    assert_string_equal(
        json_string_value(
            json_object_get(json_object_get(place, "artifactLocation"), "uri")),
        uri);
    assert_int_equal(
        json_integer_value(
            json_object_get(json_object_get(place, "region"), "startLine")),
        line);
    json_decref(location);
}

TEST_CASE(a_result_is_at_the_innermost_line_of_the_source)
{
    run_frame_t frames[] = {
        frame_of("/usr/lib/librmm-c.so.0.1", "rmm_resource_alloc", "/src/code/a.c", 1),
        frame_of("/src/bin/program", "std::copy", "/usr/include/c++/algorithm", 2),
        frame_of("/src/bin/program", "caller", "../caller.c", 3),
        frame_of("/src/bin/program", "main", "/src/code/main.c", 4)};
    run_stack_t stack = {.frames = frames, .frame_count = 4};

    frames[2].folder = keep("/src/code/build");
    check_location(&stack, "caller.c", 3);
    stack.frame_count = 2;
    check_location(&stack, "file:///usr/include/c%2B%2B/algorithm", 2);
    frames[1].file = NULL;
    check_location(&stack, "file:///src/bin/program", 1);
    stack.frame_count = 0;
    check_location(&stack, "program", 1);
}

TEST_CASE(a_result_is_at_the_innermost_line_of_python_before_others)
{
    rmm_diag_line_t lines[] = {
        {.file = "/src/code/.venv/lib/site-packages/torch/a.py", .number = 1},
        {.file = "/usr/lib/python3/b.py", .number = 2},
        {.file = "/src/code/train.py", .function = "Trainer.step", .number = 3},
        {.file = "/src/code/main.py", .number = 4}};
    run_frame_t frames[] = {
        frame_of("/src/code/extension.so", "call", "/src/code/extension.c", 5)};
    run_stack_t stack = {
        .frames = frames,
        .frame_count = 1,
        .python = {.lines = lines, .line_count = 4}};

    check_location(&stack, "train.py", 3);
    json_t *json = run_sarif_stack(&stack, "called from", "/src/code");
    assert_int_equal(json_array_size(json_object_get(json, "frames")), 5);
    json_decref(json);
    stack.python.line_count = 2;
    check_location(&stack, "file:///usr/lib/python3/b.py", 2);
    stack.python.line_count = 1;
    check_location(&stack, "extension.c", 5);
    lines[0] = (rmm_diag_line_t){.file = "<string>", .number = 1};
    check_location(&stack, "extension.c", 5);
}

/* --- reports ----------------------------------------------------------------------------- */

typedef struct sample {
    run_report_t report;
    rmm_diag_finding_info_t findings[64];
    run_stacks_t stacks[64];
    run_frame_t frames[2];
    char path[4096]; /* the program's */
} sample_t;

static sample_t sample;

static void make_sample(uint32_t findings)
{
    memset(&sample, 0, sizeof(sample));
    memset(sample.path, 'p', sizeof(sample.path) - 1);
    memcpy(sample.path, HOSTILE, strlen(HOSTILE));
    sample.frames[0] = frame_of("/bin/" HOSTILE, HOSTILE, HOSTILE "\n.c", 7);
    sample.frames[1] = frame_of("", NULL, NULL, 0);
    sample.report = (run_report_t){
        .pid = 100,
        .program = sample.path,
        .modes = "bounds",
        .source = "active",
        .findings = sample.findings,
        .stacks = sample.stacks,
        .finding_count = findings,
        .findings_total = findings};
    for (uint32_t i = 0; i < findings; i++) {
        rmm_diag_finding_info_t *finding = &sample.findings[i];
        *finding = (rmm_diag_finding_info_t){
            .index = i,
            .kind = RMM_DIAG_OUT_OF_BOUNDS,
            .call = 2,
            .access = RMM_DIAG_WRITES,
            .count = 1,
            .bytes = 2,
            .block_bytes = 1};
        snprintf(finding->function, sizeof(finding->function), HOSTILE "%u", i);
        snprintf(finding->resource.name, sizeof(finding->resource.name), HOSTILE);
        sample.stacks[i].call =
            (run_stack_t){.frames = sample.frames, .frame_count = 2};
        sample.stacks[i].freed =
            (run_stack_t){.frames = sample.frames, .frame_count = 1};
    }
}

/* The text of a file in one of the formats, of the sample in so many processes. */
static char *write_file(run_format_t format, uint32_t processes, const char *why)
{
    char path[] = "/tmp/rmm-test-XXXXXX", *text = calloc(1, 1 << 22);
    int fd = mkstemp(path);
    const char *paths[RUN_FORMATS] = {NULL};
    run_about_t about = {.program = sample.path, .pid = 1, .fails_on_leak = true};
    const run_end_t end = {.why = why, .status = 86};
    run_files_t files;

    assert_true(fd >= 0 && text != NULL);
    snprintf(about.command, sizeof(about.command), "%s", HOSTILE);
    paths[format] = path;
    assert_true(run_files_open(&files, paths));
    run_files_begin(&files, &about);
    for (uint32_t i = 0; i < processes; i++) {
        sample.report.pid = (pid_t)(1 + i);
        run_files_add(&files, &sample.report);
    }
    assert_true(run_files_end(&files, &end));
    close(fd);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 22) - 1, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

static size_t count_in(const char *text, const char *part)
{
    size_t count = 0;

    for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part)) {
        count++;
    }
    return count;
}

/* No byte that a parser would stop at. */
static void check_characters(const char *text)
{
    for (; *text != '\0'; text += run_text_character(text)) {
        assert_true(run_text_character(text) > 0);
    }
}

TEST_CASE(a_hostile_program_breaks_no_test_report)
{
    make_sample(2);
    char *text = write_file(RUN_JUNIT, 3, NULL);

    check_characters(text);
    assert_null(strstr(text, "]]>"));
    assert_int_equal(count_in(text, "<testsuite "), 3);
    assert_int_equal(count_in(text, "<failure type=\"out_of_bounds\""), 3);
    assert_int_equal(count_in(text, "message=\"2 occurrences of 2 kinds\""), 3);
    assert_int_equal(count_in(text, "name=\"out_of_bounds\""), 1);
    assert_int_equal(count_in(text, " (2): out_of_bounds\""), 1);
    free(text);
}

static json_t *read_log(uint32_t processes, const char *why)
{
    char *text = write_file(RUN_SARIF, processes, why);
    json_error_t error;
    json_t *log = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    check_characters(text);
    if (log == NULL) {
        fail_msg("%s\n%s", error.text, text);
    }
    free(text);
    return log;
}

static const json_t *results_of(const json_t *log)
{
    return json_object_get(json_array_get(json_object_get(log, "runs"), 0), "results");
}

TEST_CASE(a_hostile_program_breaks_no_log)
{
    make_sample(2);
    json_t *log = read_log(3, NULL);
    const json_t *results = results_of(log), *result;
    size_t i;

    assert_int_equal(json_array_size(results), 2); /* of three processes */
    json_array_foreach(results, i, result)
    {
        assert_int_equal(
            json_integer_value(json_object_get(result, "occurrenceCount")), 3);
        assert_int_equal(json_array_size(json_object_get(result, "stacks")), 2);
    }
    json_decref(log);
}

static void check_level(uint32_t kind, uint32_t confidence, const char *level)
{
    make_sample(1);
    sample.findings[0].kind = kind;
    sample.findings[0].confidence = confidence;
    json_t *log = read_log(1, NULL);
    const json_t *result = json_array_get(results_of(log), 0);

    assert_string_equal(json_string_value(json_object_get(result, "level")), level);
    assert_string_equal(
        json_string_value(json_object_get(result, "ruleId")),
        rmm__diag_finding_name(kind));
    json_decref(log);
}

TEST_CASE(each_class_has_a_rule_and_each_confidence_a_level)
{
    check_level(RMM_DIAG_OUT_OF_BOUNDS, RMM_DIAG_CERTAIN, "error");
    check_level(RMM_DIAG_USE_AFTER_FREE, RMM_DIAG_LIKELY, "warning");
    check_level(RMM_DIAG_FREE_UNDER_GRAPH, RMM_DIAG_HINT, "note");
    check_level(1000, RMM_DIAG_CERTAIN, "error"); /* of a newer writer */
    run_rule_t rules[RUN_RULES_MAX];
    uint32_t count = run_rules(rules);
    for (uint32_t i = 1; i < count; i++) {
        assert_string_not_equal(rules[i].name, rules[i].title); /* it has a text */
        assert_true(rules[i].modes != 0 || i == count - 1);
    }
}

TEST_CASE(findings_without_room_fail_too)
{
    make_sample(0);
    sample.report.findings_dropped = 5;
    char *text = write_file(RUN_JUNIT, 1, NULL);

    assert_non_null(strstr(
        text,
        "<failure type=\"other_findings\" message=\"5 findings that the report has "
        "no room for\"/>"));
    free(text);
    json_t *log = read_log(1, "no \xff reason");
    char *dumped = json_dumps(log, 0);
    assert_non_null(strstr(dumped, ": 5 findings that the report has no room for"));
    assert_non_null(strstr(dumped, "nothing was diagnosed: no ? reason"));
    free(dumped);
    json_decref(log);
}

TEST_CASE(a_log_has_as_many_results_as_forges_take)
{
    make_sample(64);
    sample.report.findings_total = 64;
    run_about_t about = {.program = "a", .pid = 1, .command = "a"};
    const run_end_t end = {.why = NULL};
    run_sarif_t sarif;
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_true(run_sarif_begin(&sarif, &about));
    for (uint32_t i = 0; i < RUN_SARIF_RESULTS_MAX / 64 + 1; i++) {
        for (uint32_t j = 0; j < 64; j++) {
            snprintf(
                sample.findings[j].function, sizeof(sample.findings[j].function),
                "call%u", i * 64 + j);
        }
        assert_true(run_sarif_add(&sarif, &sample.report));
    }
    assert_true(run_sarif_end(&sarif, &end, out));
    assert_int_equal(fclose(out), 0);
    run_sarif_free(&sarif);
    json_t *log = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(results_of(log)), RUN_SARIF_RESULTS_MAX);
    assert_non_null(strstr(text, "56 further results are left out"));
    json_decref(log);
    free(text);
}
