/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-run where a report is wanted: what it says of a program with an error and of one without,
 * and that the program runs and ends as it would by itself.
 */
#include "harness/program.h"
#include "harness/runtime.h"

#include <inttypes.h>
#include <jansson.h>

static runtime_t runtime;
static program_t program;
static char report_path[sizeof(runtime.path) + 8];
static char suppressions_path[sizeof(runtime.path) + 8];
static char starter_path[sizeof(runtime.path) + 8];

static int set_up(void **state)
{
    runtime_open(&runtime);
    snprintf(report_path, sizeof(report_path), "%s.json", runtime.path);
    snprintf(suppressions_path, sizeof(suppressions_path), "%s.supp", runtime.path);
    snprintf(starter_path, sizeof(starter_path), "%s.sh", runtime.path);
    return 0;
}

static int tear_down(void **state)
{
    (void)unlink(report_path);
    (void)unlink(suppressions_path);
    (void)unlink(starter_path);
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static void run(const char *arguments)
{
    char command[4096];

    snprintf(command, sizeof(command), RUN " %s", arguments);
    program_run(&program, command);
}

static void run_reported(const char *options, const char *arguments)
{
    char text[2048];

    snprintf(
        text, sizeof(text), "%s --report %s -- %s", options, report_path, arguments);
    run(text);
}

static json_t *read_report(void)
{
    json_error_t error;
    json_t *report = json_load_file(report_path, 0, &error);

    if (report == NULL) {
        fail_msg("%s: %s", report_path, error.text);
    }
    assert_int_equal(json_integer_value(json_object_get(report, "schema_version")), 1);
    return report;
}

static int64_t number_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "null";
}

/* --- findings ------------------------------------------------------------------------- */

/* Names and lines are there if the machine has libdw; the module always. */
static void check_stack(const json_t *object, const char *caller)
{
    const json_t *stack = json_object_get(object, "stack"), *frame;
    bool found = false;
    size_t i;

    json_array_foreach(stack, i, frame)
    {
        const char *function = text_in(frame, "function");

        if (strcmp(text_in(frame, "module"), PROGRAM) == 0 && !found) {
            found = true;
            assert_true(strcmp(function, caller) == 0 || strcmp(function, "null") == 0);
        }
    }
    assert_true(found);
}

static void check_finding(const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings");
    const json_t *finding = json_array_get(findings, 0);

    assert_int_equal(number_in(report, "findings_total"), 3);
    assert_int_equal(json_array_size(findings), 1);
    assert_string_equal(text_in(finding, "class"), "out_of_bounds");
    assert_string_equal(text_in(finding, "access"), "write");
    assert_string_equal(text_in(finding, "call"), "memset_async");
    assert_int_equal(number_in(finding, "count"), 3);
    assert_int_equal(number_in(finding, "offset_bytes"), 0);
    assert_int_equal(number_in(finding, "length_bytes"), 1001);
    assert_int_equal(number_in(finding, "beyond_bytes"), 1);
    assert_int_equal(number_in(json_object_get(finding, "block"), "size_bytes"), 1000);
    check_stack(finding, "overrun");
}

static void check_peak(const json_t *report)
{
    const json_t *peaks = json_object_get(report, "peaks");
    const json_t *peak = json_array_get(peaks, 0);
    const json_t *parts = json_object_get(peak, "parts");

    assert_int_equal(json_array_size(peaks), 1);
    assert_int_equal(number_in(peak, "device"), 0);
    assert_int_equal(number_in(peak, "size_bytes"), 71001);
    assert_int_equal(number_in(peak, "count"), 3);
    assert_int_equal(number_in(peak, "other_bytes"), 0);
    assert_int_equal(json_array_size(parts), 3);
    assert_int_equal(number_in(json_array_get(parts, 0), "size_bytes"), 70000);
    assert_int_equal(number_in(json_array_get(parts, 0), "count"), 1);
    assert_string_equal(text_in(json_array_get(parts, 0), "first_use"), "scale");
    assert_string_equal(text_in(json_array_get(parts, 1), "first_use"), "fill");
    assert_string_equal(text_in(json_array_get(parts, 2), "first_use"), "null");
    assert_int_equal(number_in(report, "sites_dropped"), 0);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        check_stack(json_array_get(parts, i), "main");
    }
}

static void check_verdicts(const json_t *report)
{
    const json_t *verdicts = json_object_get(report, "verdicts");
    const json_t *verdict = json_array_get(verdicts, 0);

    assert_int_equal(json_array_size(verdicts), 4); /* 3 left, 1 of them not used */
    assert_int_equal(number_in(report, "verdicts_dropped"), 0);
    assert_string_equal(text_in(verdict, "verdict"), "leaked");
    assert_string_equal(text_in(verdict, "confidence"), "certain");
    assert_string_equal(text_in(verdict, "first_use"), "scale");
    check_stack(verdict, "main");
    assert_int_equal(number_in(verdict, "size_bytes"), 70000);
    assert_int_equal(number_in(verdict, "largest_bytes"), 70000);
    assert_int_equal(number_in(verdict, "count"), 1);
    assert_int_equal(number_in(verdict, "device"), 0);
    assert_true(json_is_real(json_object_get(verdict, "byte_seconds")));
}

/* A line of the summary, and behind it where the block was allocated: the name and the line are
 * there if the machine has libdw, else the offset. */
static void check_line(const char *line)
{
    const char *at = strstr(program.err, line);

    if (at == NULL) {
        fail_msg("no \"%s\" in\n%s", line, program.err);
        return;
    }
    at = strstr(at, "        from ");
    assert_non_null(at);
    assert_true(
        (strncmp(at, "        from main (", 19) == 0 &&
         memmem(at, strcspn(at, "\n"), "diag_program.c:", 15) != NULL) ||
        strncmp(at, "        from rmm_diag_program+0x", 32) == 0);
}

CASE(tells_what_a_program_did_wrong)
{
    json_t *report = NULL;

    run_reported("--summary", PROGRAM " overrun");
    program_assert_status(&program, 0);
    report = read_report();
    assert_string_equal(text_in(report, "program"), PROGRAM);
    assert_string_equal(text_in(report, "modes"), "usage,bounds");
    assert_string_equal(text_in(report, "source"), "active");
    assert_string_equal(text_in(report, "missing"), "null");
    assert_int_equal(number_in(report, "launches"), 11);
    check_finding(report);
    check_peak(report);
    check_verdicts(report);
    json_decref(report);
    check_line("  peak of device 0: 69.3 KiB in 3 blocks\n"
               "     98.6 %     68.4 KiB in 1 block of resource 2 (pool "
               "\"activations\"), first used by scale\n"
               "        from ");
    check_line("\n      1.4 %   1000 bytes in 1 block of resource 2 (pool "
               "\"activations\"), first used by fill\n"
               "        from ");
    check_line("\n      0.0 %       1 byte in 1 block of resource 2 (pool "
               "\"activations\"), never used\n"
               "        from ");
    assert_non_null(strstr(
        program.err, "\n  wasted memory, bytes x time (uses through pointers in device "
                     "memory are not seen):\n    leaked"));
    check_line("68.4 KiB in 1 block of resource 2 (pool \"activations\"), first used "
               "by scale (certain)\n"
               "        free it, unless it is meant to live as long as the program\n"
               "        from ");
    assert_non_null(strstr(
        program.err, "3 findings (modes usage,bounds: active; 11 launches)\n"
                     "  out_of_bounds: memset_async writes 1001 bytes, 3 times\n"
                     "    in a block of 1000 bytes at 0x"));
    assert_non_null(strstr(
        program.err, "from byte 0 to 1 byte past its end\n"
                     "    allocate 1001 bytes, or pass at most 1000\n"));
}

/* Another one has its place in the segment by then. */
CASE(names_a_resource_that_has_ended)
{
    const json_t *block = NULL;
    json_t *report = NULL;

    run_reported("--summary", PROGRAM " ended");
    program_assert_status(&program, 0);
    assert_non_null(strstr(
        program.err,
        " of resource 2 (pool \"activations\") on device 0, from byte 0 "));
    assert_non_null(
        strstr(program.err, "1 block of resource 3 (pool \"later\"), never used"));
    report = read_report();
    block = json_object_get(
        json_array_get(json_object_get(report, "findings"), 0), "block");
    assert_int_equal(number_in(block, "resource"), 2);
    assert_string_equal(text_in(block, "resource_type"), "pool");
    assert_string_equal(text_in(block, "resource_name"), "activations");
    json_decref(report);
}

CASE(tells_what_was_not_in_order)
{
    json_t *report = NULL;
    const json_t *findings = NULL, *other = NULL;

    run_reported("--diag order --summary", PROGRAM " unordered");
    program_assert_status(&program, 0);
    report = read_report();
    findings = json_object_get(report, "findings");
    assert_int_equal(json_array_size(findings), 2);
    assert_string_equal(text_in(json_array_get(findings, 0), "class"), "use_unordered");
    assert_string_equal(text_in(json_array_get(findings, 0), "call"), "reduce");
    other = json_object_get(json_array_get(findings, 0), "other");
    assert_true(json_is_true(json_object_get(other, "is_allocation")));
    assert_string_equal(
        text_in(json_array_get(findings, 1), "class"), "free_unordered");
    other = json_object_get(json_array_get(findings, 1), "other");
    assert_string_equal(text_in(other, "call"), "reduce");
    assert_true(
        number_in(other, "stream") != number_in(json_array_get(findings, 1), "stream"));
    json_decref(report);
    assert_non_null(strstr(program.err, "  use_unordered: reduce on stream "));
    assert_non_null(
        strstr(program.err, " is not ordered after the allocation of its block on "));
    assert_non_null(strstr(program.err, "  free_unordered: a free on stream "));
    assert_non_null(strstr(
        program.err, " is not ordered after the use of its block by reduce on "));
    assert_non_null(strstr(program.err, ", 1 time (likely)\n"));
    run("--diag usage,bounds,order --fail-on-finding -- " PROGRAM " ordered");
    program_assert_status(&program, 0);
}

CASE(finds_nothing_in_a_correct_program)
{
    json_t *report = NULL;

    run_reported("--summary --fail-on-finding", PROGRAM);
    program_assert_status(&program, 0);
    report = read_report();
    assert_int_equal(number_in(report, "findings_total"), 0);
    assert_int_equal(json_array_size(json_object_get(report, "findings")), 0);
    json_decref(report);
    assert_non_null(strstr(program.err, ": 0 findings (modes usage,bounds: active"));
}

CASE(tells_also_of_a_program_that_was_killed)
{
    json_t *report = NULL;

    run_reported("--fail-on-finding", PROGRAM " overrun kill");
    program_assert_status(&program, -SIGKILL);
    report = read_report();
    check_finding(report);
    json_decref(report);
}

/* The segment of a process that the program started cannot be another user's. */
CASE(names_no_process_of_another_user)
{
    char text[256];
    FILE *file = NULL;

    if (geteuid() != 0) {
        print_message("only root can give a file away\n");
        skip();
    }
    file = fopen(starter_path, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\n" PROGRAM "\nchown 65534 \"$RMM_RUNTIME_DIR\"/*\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(starter_path, 0700), 0);
    snprintf(text, sizeof(text), "--summary -- %s", starter_path);
    run(text);
    program_assert_status(&program, 0);
    assert_non_null(
        strstr(program.err, "the program left no segment: it allocated no GPU memory"));
}

/* CUDA would have started it. */
CASE(says_that_the_diagnosis_was_not_started)
{
    run("--summary -- env -u CUDA_INJECTION64_PATH " PROGRAM);
    program_assert_status(&program, 0);
    assert_non_null(strstr(
        program.err, "the diagnosis was not started, or had no room for its file"));
}

CASE(tells_of_the_program_that_it_became)
{
    run("--fail-on-finding -- " PROGRAM " overrun become");
    program_assert_status(&program, 0);
}

CASE(tells_how_a_kernel_broke_a_guard)
{
    run("--diag guards --summary -- " PROGRAM " guard");
    program_assert_status(&program, 0);
    assert_non_null(strstr(
        program.err, "  out_of_bounds: scale wrote past the end of a block, 1 time\n"));
    assert_non_null(strstr(
        program.err, " of resource 2 (pool \"activations\") on device 0, first changed "
                     "byte: 0 past its end\n"));
    assert_non_null(
        strstr(program.err, "    check the index of the kernel's last threads; "));
}

/* With so many blocks, those that were not followed. */
static int64_t dropped_of(int64_t blocks)
{
    char command[512];
    snprintf(command, sizeof(command), PROGRAM " many %" PRId64, blocks);
    run_reported("--summary", command);
    program_assert_status(&program, 0);
    json_t *report = read_report();
    const json_t *not_seen = json_object_get(report, "not_seen");
    int64_t dropped = number_in(not_seen, "blocks_dropped");

    assert_int_equal(number_in(not_seen, "graphs_unseen"), 0);
    assert_null(strstr(program.err, "nodes that are not known"));
    assert_non_null(strstr(program.err, "  not seen, so findings may be missing:\n"));
    json_decref(report);
    return dropped;
}

/* More blocks than are followed: what was found is not all. */
CASE(tells_what_was_not_seen)
{
    const int64_t blocks = 33000;
    int64_t dropped = dropped_of(blocks);
    assert_true(dropped > 1);
    assert_non_null(strstr(program.err, " blocks were not followed: "));
    assert_int_equal(dropped_of(blocks - dropped + 1), 1);
    assert_non_null(strstr(program.err, " 1 block was not followed: "));
}

/* Blocks and verdicts of so many kinds are counted, but not all are listed. */
CASE(lists_the_largest_parts_of_a_peak_and_the_worst_verdicts)
{
    json_t *report = NULL;
    const json_t *peak = NULL, *parts = NULL;

    run_reported("--summary", PROGRAM " users 300");
    program_assert_status(&program, 0);
    report = read_report();
    peak = json_array_get(json_object_get(report, "peaks"), 0);
    parts = json_object_get(peak, "parts");
    assert_int_equal(number_in(peak, "size_bytes"), 71001 + 300 * 1024);
    assert_int_equal(json_array_size(parts), 64);
    assert_int_equal(number_in(json_array_get(parts, 0), "size_bytes"), 70000);
    assert_int_equal(number_in(json_array_get(parts, 63), "size_bytes"), 1024);
    assert_int_equal(number_in(peak, "other_bytes"), 1001 + 237 * 1024);
    /* all leaked, and three of them never used */
    assert_int_equal(json_array_size(json_object_get(report, "verdicts")), 256);
    assert_int_equal(number_in(report, "verdicts_dropped"), 303 + 3 - 256);
    json_decref(report);
}

/* --- names ------------------------------------------------------------------------------ */

#define MANGLED "_Z5applyILi4EN6nested7functorIJfdillijthEEEEvT0_PfPKd"
#define FUNCTOR                                                                        \
    "nested::functor<float, double, int, long, long, int, unsigned int, unsigned "     \
    "short, unsigned char>"
#define DEMANGLED "void apply<4, " FUNCTOR " >(" FUNCTOR ", float*, double const*)"

/* A program that has libstdc++ itself keeps no mangled names of kernels. */
#ifdef PROGRAM_HAS_LIBSTDCXX
static const bool keeps_mangled = false;
#else
static const bool keeps_mangled = true;
#endif

/* The symbols' names are there if the machine has libdw. */
static void check_cxx_stack(const json_t *finding)
{
    const json_t *frame;
    size_t i;
    bool has_lines = false;

    json_array_foreach(json_object_get(finding, "stack"), i, frame)
    {
        if (strstr(text_in(frame, "function"), "two_uses") != NULL) {
            assert_string_equal(
                text_in(frame, "function"), "void user::two_uses<float>(float*)");
            assert_string_equal(
                text_in(frame, "function_mangled"), "_ZN4user8two_usesIfEEvPT_");
            has_lines = json_is_integer(json_object_get(frame, "line"));
        }
        if (strcmp(text_in(frame, "function"), "start_thread") == 0) {
            assert_string_equal(text_in(frame, "module"), PROGRAM);
            assert_int_equal(
                json_is_integer(json_object_get(frame, "line")), has_lines);
        }
    }
}

CASE(shows_cxx_names_as_people_write_them)
{
    json_t *report = NULL;
    const json_t *findings = NULL, *other = NULL;

    run_reported("--diag order --summary", PROGRAM " unordered_cxx");
    program_assert_status(&program, 0);
    report = read_report();
    findings = json_object_get(report, "findings");
    assert_int_equal(json_array_size(findings), 2);
    assert_string_equal(text_in(json_array_get(findings, 0), "call"), DEMANGLED);
    assert_string_equal(
        text_in(json_array_get(findings, 0), "call_mangled"),
        keeps_mangled ? MANGLED : "null");
    check_cxx_stack(json_array_get(findings, 0));
    other = json_object_get(json_array_get(findings, 1), "other");
    assert_string_equal(text_in(other, "call"), DEMANGLED);
    assert_string_equal(
        text_in(other, "call_mangled"), keeps_mangled ? MANGLED : "null");
    json_decref(report);
    assert_non_null(strstr(
        program.err,
        "  use_unordered: void apply<4, nested::functor<float, double, int, "
        "long, l... on stream "));
    assert_non_null(
        strstr(program.err, "the use of its block by void apply<4, nested::"));
    assert_null(strstr(program.err, "_Z"));
}

#ifndef PROGRAM_HAS_LIBSTDCXX
/* A library without the function stands where the real one is looked for. */
CASE(leaves_cxx_names_where_nothing_demangles)
{
    char library[sizeof(runtime.path) + 32];
    json_t *report = NULL;
    const json_t *finding = NULL;
    FILE *file = NULL;

    snprintf(library, sizeof(library), "%s/libstdc++.so.6", runtime.path);
    file = fopen(library, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    setenv("LD_LIBRARY_PATH", runtime.path, 1);
    run_reported("--diag order --summary", PROGRAM " unordered_cxx");
    unsetenv("LD_LIBRARY_PATH");
    assert_int_equal(unlink(library), 0);
    program_assert_status(&program, 0);
    report = read_report();
    finding = json_array_get(json_object_get(report, "findings"), 0);
    assert_string_equal(text_in(finding, "call"), MANGLED);
    assert_null(json_object_get(finding, "call_mangled"));
    json_decref(report);
    assert_non_null(strstr(program.err, "  use_unordered: _Z5applyILi4EN6nested7"));
}
#endif

/* --- suppressions ---------------------------------------------------------------------- */

static void write_suppressions(const char *text)
{
    FILE *file = fopen(suppressions_path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void run_suppressed(const char *lines)
{
    char options[1024];

    write_suppressions(lines);
    snprintf(
        options, sizeof(options), "--summary --fail-on-finding --suppressions %s",
        suppressions_path);
    run_reported(options, PROGRAM " overrun 3");
}

CASE(suppressed_findings_are_counted_apart)
{
    static const char *const lines[] = {
        "# known\n\nout_of_bounds:memset_*\n", "*:memset_async", "*:rmm_diag_program\n",
        "out_of_bounds:*/rmm_diag_program  \n"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        json_t *report = NULL;

        run_suppressed(lines[i]);
        program_assert_status(&program, 3);
        report = read_report();
        assert_int_equal(number_in(report, "findings_total"), 0);
        assert_int_equal(number_in(report, "findings_suppressed"), 3);
        assert_int_equal(json_array_size(json_object_get(report, "findings")), 0);
        json_decref(report);
        assert_non_null(strstr(program.err, "rmm-run: suppressed: 3 findings by "));
    }
}

CASE(cxx_names_match_as_shown_and_as_they_are)
{
    static const char *const lines[] = {
        "use_unordered:" MANGLED "\n",
        "use_unordered:void apply<4, nested::functor<*\n",
        "use_unordered:" DEMANGLED "\n", "use_unordered:_Z5applyILi4E*\n"};
    size_t count = sizeof(lines) / sizeof(lines[0]) - (keeps_mangled ? 0 : 1);
    char options[1024];

    for (size_t i = 0; i < count; i++) {
        json_t *report = NULL;

        write_suppressions(lines[i]);
        snprintf(
            options, sizeof(options), "--diag order --suppressions %s",
            suppressions_path);
        run_reported(options, PROGRAM " unordered_cxx");
        program_assert_status(&program, 0);
        report = read_report();
        assert_int_equal(number_in(report, "findings_suppressed"), 1);
        json_decref(report);
        assert_non_null(strstr(program.err, "rmm-run: suppressed: 1 finding by "));
    }
}

CASE(reports_suppressions_that_match_nothing)
{
    run_suppressed("use_unordered:memset_async\nout_of_bounds:memset\n"
                   "out_of_bounds:_Z12memset_asyncv\n"); /* memset_async() */
    program_assert_status(&program, 86);
    assert_non_null(strstr(
        program.err, "rmm-run: suppressed nothing: use_unordered:memset_async ("));
    assert_non_null(strstr(program.err, "suppressed nothing: out_of_bounds:memset ("));
    assert_non_null(
        strstr(program.err, "suppressed nothing: out_of_bounds:_Z12memset"));
    run_suppressed("out_of_bounds:memset_async\n*:*\n"); /* the first one takes it */
    program_assert_status(&program, 3);
    assert_non_null(strstr(program.err, "rmm-run: suppressed nothing: *:* ("));
}

static void assert_bad(const char *lines, const char *why)
{
    char expected[1024];

    run_suppressed(lines);
    program_assert_status(&program, 2);
    snprintf(
        expected, sizeof(expected), "rmm-run: --suppressions: %s:%s\n",
        suppressions_path, why);
    assert_string_equal(program.err, expected);
    assert_string_equal(program.out, ""); /* the program did not run */
}

CASE(a_bad_line_is_reported_before_the_program_runs)
{
    char line[1500] = "";

    assert_bad(
        "# good\nmemset\n", "2: \"memset\": a line is CLASS:GLOB, for example "
                            "out_of_bounds:my_function");
    assert_bad(
        "out_of_bounds:\n", "1: \"out_of_bounds:\": a line is CLASS:GLOB, for example "
                            "out_of_bounds:my_function");
    assert_bad(
        "unknown:x\n",
        "1: \"unknown:x\": the class is neither * nor one that rmm-run reports");
    assert_bad(
        "*:f\033[31m\n", "1: \"*:f?[31m\": the line contains a control character");
    run("--summary --suppressions /dev/zero -- " PROGRAM); /* NUL bytes without an end */
    program_assert_status(&program, 2);
    assert_string_equal(program.out, "");
    memset(line, 'x', sizeof(line) - 1);
    assert_bad(
        line,
        "1: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": the line is longer than "
        "1022 characters");
    run("--summary --suppressions /proc/nowhere -- " PROGRAM);
    program_assert_status(&program, 125);
    assert_string_equal(
        program.err, "rmm-run: --suppressions: cannot read /proc/nowhere: No such file "
                     "or directory\n");
    run("--no-summary --suppressions /proc/nowhere -- " PROGRAM);
    program_assert_status(&program, 2);
}

/* --- how it ends ---------------------------------------------------------------------- */

CASE(findings_change_the_status_only_on_request)
{
    run("--summary -- " PROGRAM " overrun 3");
    program_assert_status(&program, 3);
    run("--fail-on-finding -- " PROGRAM " overrun 3");
    program_assert_status(&program, 86);
    run("--fail-on-finding -- " PROGRAM " correct 3");
    program_assert_status(&program, 3);
}

CASE(leaks_change_the_status_only_on_request)
{
    run("--fail-on-finding -- " PROGRAM " correct 3");
    program_assert_status(&program, 3);
    run("--fail-on-leak -- " PROGRAM " correct 3");
    program_assert_status(&program, 86);
    run("--diag off --fail-on-leak -- " PROGRAM " correct 3");
    program_assert_status(&program, 86);
    run("--fail-on-leak --fail-on-finding -- " PROGRAM " freed");
    program_assert_status(&program, 0);
    run("--fail-on-leak -- /bin/true");
    program_assert_status(&program, 125);
    assert_non_null(strstr(program.err, "rmm-run: --fail-on-leak: nothing was "));
}

CASE(a_leak_is_reported_also_if_its_pool_was_released)
{
    run_reported("--summary --fail-on-leak", PROGRAM " left");
    program_assert_status(&program, 86);
    json_t *report = read_report();
    json_t *verdict = json_array_get(json_object_get(report, "verdicts"), 0);
    assert_int_equal(number_in(report, "leaked_count"), 1);
    assert_int_equal(number_in(report, "leaked_bytes"), 1000);
    assert_string_equal(text_in(verdict, "verdict"), "leaked");
    assert_true(json_array_size(json_object_get(verdict, "stack")) > 0);
    assert_non_null(strstr(program.err, "\n  1 block of 1000 bytes not freed: "));
    json_decref(report);
}

CASE(a_known_leak_fails_nothing)
{
    char options[1024];

    write_suppressions("leaked:main\n");
    snprintf(
        options, sizeof(options), "--summary --fail-on-leak --suppressions %s",
        suppressions_path);
    run_reported(options, PROGRAM " left");
    program_assert_status(&program, 0);
    assert_non_null(strstr(program.err, "rmm-run: suppressed: 1 leaked block by "));
    assert_null(strstr(program.err, "not freed"));
}

CASE(a_free_that_is_refused_is_explained)
{
    run_reported("--summary --fail-on-finding", PROGRAM " twice");
    program_assert_status(&program, 86);
    json_t *report = read_report();
    json_t *finding = json_array_get(json_object_get(report, "findings"), 0);
    assert_string_equal(text_in(finding, "class"), "double_free");
    assert_string_equal(text_in(finding, "access"), "free");
    assert_string_equal(text_in(finding, "confidence"), "certain");
    json_t *freed = json_object_get(finding, "freed");
    assert_true(json_array_size(json_object_get(freed, "stack")) > 0);
    assert_true(json_array_size(json_object_get(finding, "stack")) > 0);
    assert_true(json_array_size(json_object_get(finding, "allocated_stack")) > 0);
    assert_non_null(strstr(program.err, "\n  double_free: a free on stream 0 of 0x"));
    assert_non_null(strstr(program.err, "the block was freed from\n"));
    json_decref(report);
}

CASE(hints_are_reported_but_fail_nothing)
{
    run_reported("--diag order --fail-on-finding", PROGRAM " under_graph");
    program_assert_status(&program, 0);
    json_t *report = read_report();
    json_t *finding = json_array_get(json_object_get(report, "findings"), 0);
    assert_int_equal(json_integer_value(json_object_get(report, "findings_total")), 1);
    assert_string_equal(text_in(finding, "confidence"), "hint");
    assert_string_equal(text_in(finding, "class"), "free_under_graph");
    json_decref(report);
}

CASE(fails_if_nothing_could_be_found)
{
    run("--fail-on-finding -- /bin/true");
    program_assert_status(&program, 125);
    assert_string_equal(
        program.err,
        "rmm-run: --fail-on-finding: nothing was diagnosed: the program left no "
        "segment: it allocated no GPU memory, does not publish its statistics, or "
        "does not use the library (which needs mode driver and CUPTI)\n");
    run("--summary -- /bin/true");
    program_assert_status(&program, 0);
    run_reported("", "/bin/true");
    program_assert_status(&program, 0);
    json_t *report = read_report();
    assert_true(json_is_null(json_object_get(report, "findings_total")));
    assert_non_null(strstr(text_in(report, "missing"), "left no segment"));
    json_decref(report);
}

CASE(says_what_it_cannot_write_before_the_program_runs)
{
    char command[512];

    snprintf(
        command, sizeof(command), "--report /proc/nowhere/report -- /usr/bin/touch %s",
        report_path);
    run(command);
    program_assert_status(&program, 125);
    assert_string_equal(
        program.err,
        "rmm-run: --report: cannot write /proc/nowhere/report: No such file "
        "or directory\n");
    assert_int_not_equal(access(report_path, F_OK), 0);
    run("--report /dev/full -- " PROGRAM);
    program_assert_status(&program, 125);
    assert_non_null(strstr(program.err, "--report: cannot write /dev/full: "));
}

CASE(reports_a_program_that_cannot_be_executed)
{
    run("--summary -- /proc/nowhere");
    program_assert_status(&program, 127);
    run("--summary -- /etc/passwd");
    program_assert_status(&program, 126);
    assert_string_equal(
        program.err, "rmm-run: cannot run /etc/passwd: Permission denied\n");
}

CASE(an_earlier_report_stays_until_there_is_another)
{
    json_t *report = NULL;

    run_reported("", "/proc/nowhere");
    program_assert_status(&program, 127);
    assert_int_not_equal(access(report_path, F_OK), 0);
    run_reported("", PROGRAM " overrun 3");
    run_reported("", "/proc/nowhere");
    program_assert_status(&program, 127);
    report = read_report();
    assert_int_equal(number_in(report, "findings_total"), 3);
    json_decref(report);
}
