/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the driver that CUPTI's header names is followed by librmm-inject, in all modes
 * together, or listed in driver_calls with the reason why it is not. A new CUDA brings new calls:
 * then this test names them, and somebody decides.
 */
#include "unit/inject_fixture.h"

#include <ctype.h>

#include "unit/fake/fake_library.h"

enum { CALLS_MAX = 2048, NAME_BYTES = 96, TEXT_BYTES = 1 << 18 };

#define PREFIX "CUPTI_DRIVER_TRACE_CBID_"

typedef struct named_call {
    char name[NAME_BYTES];
    CUpti_CallbackId id;
    bool is_listed;
} named_call_t;

static named_call_t calls[CALLS_MAX];
static size_t call_count;

static FILE *open_file(const char *variable)
{
    const char *path = getenv(variable);
    FILE *file = NULL;

    assert_non_null(path);
    file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s: cannot be read", path);
    }
    return file;
}

/* The header's lines are `PREFIX<name> = <number>,`. */
static void read_calls(void)
{
    FILE *header_file = open_file("RMM_TEST_CBIDS");
    char line[512];

    while (fgets(line, sizeof(line), header_file) != NULL) {
        named_call_t *call = &calls[call_count];

        assert_true(call_count < CALLS_MAX);
        if (sscanf(line, " " PREFIX "%95[A-Za-z0-9_] = %u", call->name, &call->id) ==
                2 &&
            strncmp(call->name, "cu", 2) == 0) {
            call_count++;
        }
    }
    fclose(header_file);
    assert_in_range(call_count, 600, CALLS_MAX); /* it was understood */
}

/* NULL: the header does not name it. */
static named_call_t *find_call(const char *name)
{
    for (size_t i = 0; i < call_count; i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return &calls[i];
        }
    }
    return NULL;
}

/* CUDA 13.0 has all names that are listed, an older one has not. */
static void list_call(const char *name, const char *reason)
{
    named_call_t *call = find_call(name);

    assert_true(reason[0] != '\0');
    if (call == NULL) {
        assert_true(CUDA_VERSION < 13000 || !"a call that is listed exists");
        return;
    }
    if (call->is_listed) {
        fail_msg("%s: listed twice", name);
    }
    call->is_listed = true;
}

/* A reason, at the begin of a line, then its calls, on lines that are indented. */
static void read_list(void (*on_reason)(const char *reason))
{
    FILE *list = open_file("RMM_TEST_DRIVER_CALLS");
    char line[512], reason[sizeof(line)] = "", *rest = NULL;

    while (fgets(line, sizeof(line), list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (line[0] != ' ') {
            snprintf(reason, sizeof(reason), "%s", line);
            on_reason(reason);
            continue;
        }
        for (char *name = strtok_r(line, " ", &rest); name != NULL;
             name = strtok_r(NULL, " ", &rest)) {
            list_call(name, reason);
        }
    }
    fclose(list);
}

static void ignore(const char *reason)
{
    (void)reason;
}

static void start_with_all_modes(void)
{
    fake_library_control_t *(*control)(void) = NULL;

    get(dlopen(getenv("RMM_TEST_FAKE_LIBRARY"), RTLD_NOW | RTLD_GLOBAL),
        "fake_library_control", &control);
    control()->hooks = &hooks;
    setenv(
        "RMM_DIAG", "usage,bounds,order,driver", 1); /* before the driver is opened */
    start("usage,bounds,order,driver");
    assert_string_equal(header()->source, "active");
    read_calls();
}

static bool is_followed(const named_call_t *call)
{
    return lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, call->id);
}

CASE(every_call_is_followed_or_has_a_reason_why_not)
{
    size_t followed = 0, wrong = 0;

    start_with_all_modes();
    read_list(ignore);
    for (size_t i = 0; i < call_count; i++) {
        followed += is_followed(&calls[i]) ? 1 : 0;
        if (is_followed(&calls[i]) == calls[i].is_listed) {
            fprintf(
                stderr, "%s: %s\n", calls[i].name,
                calls[i].is_listed ? "followed, and listed as if it were not"
                                   : "neither followed nor listed in driver_calls");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    assert_in_range(followed, 150, call_count);
}

/* They are the same calls, for the default stream of the thread. */
CASE(twins_are_followed_alike)
{
    size_t twins = 0;

    start_with_all_modes();
    for (size_t i = 0; i < call_count; i++) {
        char name[NAME_BYTES];
        char *end = NULL;
        const named_call_t *base = NULL;

        memcpy(name, calls[i].name, sizeof(name));
        end = name + strlen(name) - strlen("_ptsz");
        if (end < name || (strcmp(end, "_ptsz") != 0 && strcmp(end, "_ptds") != 0)) {
            continue;
        }
        *end = '\0';
        base = find_call(name);
        twins++;
        if (base == NULL || is_followed(base) != is_followed(&calls[i])) {
            fail_msg("%s: not as its twin", calls[i].name);
        }
    }
    assert_in_range(twins, 70, call_count);
}

/* --- what is missed is said ----------------------------------------------------------- */

static char docs[TEXT_BYTES];
static size_t missed;

/* In one line. */
static void read_docs(void)
{
    FILE *page = open_file("RMM_TEST_DOCS");
    size_t bytes = fread(docs, 1, sizeof(docs) - 1, page);

    assert_true(feof(page));
    fclose(page);
    for (size_t i = 0; i < bytes; i++) {
        docs[i] = isspace((unsigned char)docs[i]) ? ' ' : docs[i];
    }
}

static void look_up(const char *reason)
{
    const char *mark = "missed: ";

    if (strncmp(reason, mark, strlen(mark)) == 0) {
        missed++;
        if (strstr(docs, reason + strlen(mark)) == NULL) {
            fail_msg("not in the documentation: %s", reason + strlen(mark));
        }
    }
}

CASE(what_is_missed_is_in_the_documentation)
{
    start_with_all_modes();
    read_docs();
    read_list(look_up);
    assert_in_range(missed, 3, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_followed_or_has_a_reason_why_not),
        cmocka_unit_test(twins_are_followed_alike),
        cmocka_unit_test(what_is_missed_is_in_the_documentation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
