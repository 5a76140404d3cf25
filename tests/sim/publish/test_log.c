/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log: which messages go where, at which level, chosen by the environment or the
 * program, and what a line looks like. test_log_ring.c: other processes read it.
 *
 * Each case is a process of its own: the environment is asked once in each.
 */
#include "sim/publish/log_case.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <rmm/cuda_resource.h>
#include <rmm/failure_callback_adaptor.h>
#include <rmm/host_resource.h>
#include <rmm/log.h>
#include <rmm/pool_resource.h>

#include "core/host_memory.h"
#include "log/limit.h"

/* --- levels ------------------------------------------------------------------------- */

static void shows_warnings_only(child_t *self, void *argument)
{
    const char *path = divert_stderr();
    const char *text;

    log_one_of_each();
    text = content_of(path);
    if (strstr(text, "an info") != NULL || strstr(text, "[warn] a warning\n") == NULL ||
        strstr(text, "[critical] a critical one\n") == NULL || lines_of(path) != 3) {
        _exit(1);
    }
    if (rmm_log_get_level() != RMM_LEVEL_INFO) { /* what the ring has */
        _exit(2);
    }
}

TEST_CASE(stderr_has_warnings_and_worse)
{
    child_run(shows_warnings_only, NULL);
}

static void shows_down_to(child_t *self, void *argument)
{
    const char *path;

    setenv("RMM_LOG_LEVEL", argument, 1);
    path = divert_stderr();
    log_one_of_each();
    _exit((int)lines_of(path));
}

static int lines_at(const char *level)
{
    child_t child;
    char argument[16];

    snprintf(argument, sizeof(argument), "%s", level);
    child_start(&child, shows_down_to, argument);
    return WEXITSTATUS(child_wait(&child));
}

TEST_CASE(the_environment_names_the_level)
{
    assert_int_equal(lines_at("trace"), 5); /* traces are compiled out by default */
    assert_int_equal(lines_at("debug"), 5);
    assert_int_equal(lines_at("info"), 4);
    assert_int_equal(lines_at("Error"), 2);
    assert_int_equal(lines_at("critical"), 1);
    assert_int_equal(lines_at("off"), 0);
    assert_int_equal(lines_at("loud"), 3 + 1); /* and one that says what is wrong */
}

static void sets_levels(child_t *self, void *argument)
{
    const char *path = divert_stderr();

    if (rmm_log_set_level((rmm_log_level_t)7) != RMM_ERR_INVALID_ARGUMENT ||
        rmm_log_set_level((rmm_log_level_t)-1) != RMM_ERR_INVALID_ARGUMENT ||
        rmm_log_set_level(RMM_LEVEL_TRACE) != RMM_ERR_UNSUPPORTED ||
        strstr(rmm_last_error_message(), "RMM_LOGGING_LEVEL") == NULL ||
        rmm_log_get_level() != RMM_LEVEL_INFO) {
        _exit(1);
    }
    if (rmm_log_set_level(RMM_LEVEL_DEBUG) != RMM_OK ||
        !rmm_log_should_log(RMM_LEVEL_DEBUG) || rmm_log_should_log(RMM_LEVEL_TRACE) ||
        rmm_log_should_log(RMM_LEVEL_OFF)) {
        _exit(2);
    }
    log_one_of_each();
    if (lines_of(path) != 5 || rmm_log_set_level(RMM_LEVEL_OFF) != RMM_OK ||
        rmm_log_should_log(RMM_LEVEL_CRITICAL)) {
        _exit(3);
    }
    log_one_of_each();
    _exit(lines_of(path) == 5 ? 0 : 4);
}

TEST_CASE(the_program_sets_the_level)
{
    child_run(sets_levels, NULL);
}

TEST_CASE(levels_have_names)
{
    assert_string_equal(rmm_log_level_name(RMM_LEVEL_TRACE), "trace");
    assert_string_equal(rmm_log_level_name(RMM_LEVEL_OFF), "off");
    assert_string_equal(rmm_log_level_name((rmm_log_level_t)99), "unknown");
}

/* --- sinks -------------------------------------------------------------------------- */

/* How many descriptors of this file exec() would leave open. */
static unsigned inherited_by_a_program(const char *path)
{
    struct stat file, other;
    unsigned count = 0;

    CHECK(stat(path, &file) == 0);
    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);

        count += flags >= 0 && (flags & FD_CLOEXEC) == 0 && fstat(fd, &other) == 0 &&
                 other.st_dev == file.st_dev && other.st_ino == file.st_ino;
    }
    return count;
}

static void writes_files(child_t *self, void *argument)
{
    char first[256], second[256];
    unsigned descriptors;

    close(STDIN_FILENO); /* no file of the log takes its place */
    snprintf(first, sizeof(first), "%s", path_of("first.log"));
    snprintf(second, sizeof(second), "%s", path_of("second.log"));
    setenv("RMM_DEBUG_LOG_FILE", first, 1);
    log_one_of_each();
    CHECK(lines_of(first) == 4); /* info and worse */
    CHECK(fcntl(STDIN_FILENO, F_GETFD) < 0);
    descriptors = count_descriptors();
    CHECK(rmm_log_to_file(second) == RMM_OK);
    rmm__log_warn("to the second");
    CHECK(lines_of(first) == 4 && lines_of(second) == 1);
    CHECK(rmm_log_to_file("/proc/nowhere/log") == RMM_ERR_IO);
    CHECK(strstr(rmm_last_error_message(), "/proc/nowhere/log") != NULL);
    CHECK(rmm_log_to_file("") == RMM_ERR_INVALID_ARGUMENT);
    CHECK(rmm_log_to_file(NULL) == RMM_ERR_INVALID_ARGUMENT);
    rmm__log_warn("still to the second");
    CHECK(lines_of(second) == 2);
    CHECK(rmm_log_to_file(first) == RMM_OK); /* appended to */
    rmm__log_warn("to the first again");
    CHECK(lines_of(first) == 5);
    CHECK(count_descriptors() == descriptors);
    CHECK(inherited_by_a_program(first) == 0);
}

TEST_CASE(files_are_appended_to_and_exchanged)
{
    child_run(writes_files, NULL);
}

static void names_a_bad_file(child_t *self, void *argument)
{
    const char *path = divert_stderr();

    setenv("RMM_DEBUG_LOG_FILE", "/proc/nowhere/log", 1);
    rmm__log_warn("a warning");
    _exit(
        lines_of(path) == 2 &&
                strstr(content_of(path), "/proc/nowhere/log cannot be opened") != NULL
            ? 0
            : 1);
}

TEST_CASE(a_bad_file_is_one_warning)
{
    child_run(names_a_bad_file, NULL);
}

/* Both name what others chose: a file of the environment, and what a caller passed. */
static void names_hostile_texts(child_t *self, void *argument)
{
    const char *path = divert_stderr();
    const char *said;

    setenv("RMM_DEBUG_LOG_FILE", "/no/\x1b[31m\n[1][forged]/log", 1);
    rmm__log_warn("a name \x1b]0;title\a\r\xff\xc3\xa9");
    said = content_of(path);
    _exit(
        lines_of(path) == 2 &&
                strstr(said, "/no/?[31m?[1][forged]/log cannot") != NULL &&
                strstr(said, "a name ?]0;title???\xc3\xa9\n") != NULL
            ? 0
            : 1);
}

TEST_CASE(no_control_character_reaches_a_terminal)
{
    child_run(names_hostile_texts, NULL);
}

typedef struct collected {
    _Atomic(unsigned) count;
    rmm_log_level_t level;
    char text[64];
} collected_t;

static void collect(rmm_log_level_t level, const char *message, void *arg)
{
    collected_t *collected = arg;

    errno = ERANGE; /* the program's stays */
    collected->level = level;
    snprintf(collected->text, sizeof(collected->text), "%s", message);
    rmm__log_error("from inside the sink"); /* must not come back here */
    atomic_fetch_add(&collected->count, 1);
}

static void calls_back(child_t *self, void *argument)
{
    collected_t collected = {0};
    const char *path = divert_stderr();

    if (rmm_log_to_callback(collect, &collected) != RMM_OK) {
        _exit(1);
    }
    errno = EXDEV;
    log_one_of_each();
    if (errno != EXDEV) {
        _exit(5);
    }
    if (collected.count != 4 || collected.level != RMM_LEVEL_CRITICAL ||
        strcmp(collected.text, "a critical one") != 0) {
        _exit(2);
    }
    if (rmm_log_to_callback(NULL, NULL) != RMM_OK) {
        _exit(3);
    }
    log_one_of_each();
    rmm_log_to_stderr();
    rmm__log_warn("back again");
    _exit(collected.count == 4 && lines_of(path) == 1 ? 0 : 4);
}

TEST_CASE(a_function_may_be_the_sink)
{
    child_run(calls_back, NULL);
}

/* A sink that passes each message on to the one before it. */
typedef struct link_up {
    unsigned count;
    rmm_log_fn previous_fn;
    void *previous_arg;
} link_up_t;

static void count_and_pass_on(rmm_log_level_t level, const char *message, void *arg)
{
    link_up_t *self = arg;

    self->count++;
    if (self->previous_fn != NULL) {
        self->previous_fn(level, message, self->previous_arg);
    }
}

static void chain(link_up_t *self)
{
    *self = (link_up_t){.count = 0};
    CHECK(
        rmm_log_exchange_callback(
            count_and_pass_on, self, &self->previous_fn, &self->previous_arg) ==
        RMM_OK);
}

static void restore(const link_up_t *self)
{
    rmm_log_fn fn;
    void *arg;

    CHECK(
        rmm_log_exchange_callback(self->previous_fn, self->previous_arg, &fn, &arg) ==
        RMM_OK);
    CHECK(fn == count_and_pass_on && arg == self);
}

/* stderr, then a chain of two over it, then each undone. */
static void chains_sinks(child_t *self, void *argument)
{
    const char *path = divert_stderr();
    link_up_t first, second;
    rmm_log_fn fn;
    void *arg;

    CHECK(
        rmm_log_exchange_callback(NULL, NULL, NULL, &arg) == RMM_ERR_INVALID_ARGUMENT);
    CHECK(rmm_log_exchange_callback(NULL, NULL, &fn, NULL) == RMM_ERR_INVALID_ARGUMENT);
    chain(&first);
    CHECK(first.previous_fn != NULL);
    chain(&second);
    CHECK(second.previous_fn == count_and_pass_on && second.previous_arg == &first);
    rmm__log_warn("through both");
    rmm__log_info("not for stderr");
    CHECK(first.count == 2 && second.count == 2);
    CHECK(lines_of(path) == 1 && strstr(content_of(path), "[warn] through both\n"));
    restore(&second);
    rmm__log_warn("through one");
    CHECK(first.count == 3 && second.count == 2 && lines_of(path) == 2);
    rmm__host_memory_fail(1); /* the library's own sinks need none */
    restore(&first);
    rmm__host_memory_fail(0);
    rmm__log_warn("directly");
    CHECK(first.count == 3 && lines_of(path) == 3);
}

static void chains_over_nothing_and_a_file(child_t *self, void *argument)
{
    char path[] = "/tmp/rmm-c-log-XXXXXX";
    link_up_t over;
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    CHECK(rmm_log_to_callback(NULL, NULL) == RMM_OK);
    chain(&over);
    CHECK(over.previous_fn == NULL);
    rmm__log_warn("for the function alone");
    CHECK(over.count == 1);
    CHECK(rmm_log_to_file(path) == RMM_OK);
    chain(&over);
    rmm__log_info("through it into the file");
    restore(&over);
    rmm__log_info("into the file");
    CHECK(over.count == 1 && lines_of(path) == 2);
    CHECK(
        rmm_log_exchange_callback(NULL, NULL, NULL, NULL) == RMM_ERR_INVALID_ARGUMENT);
    unlink(path);
}

TEST_CASE(sinks_can_be_chained_and_restored)
{
    child_run(chains_sinks, NULL);
    child_run(chains_over_nothing_and_a_file, NULL);
}

/* --- what the library says ----------------------------------------------------------- */

typedef struct said {
    unsigned growths, failures, left_out;
    char failure[1024];
} said_t;

static void note_what_is_said(rmm_log_level_t level, const char *message, void *arg)
{
    said_t *said = arg;
    const char *more = strstr(message, " (and ");
    unsigned count;

    /* fails, which its caller must not be told */
    CHECK(rmm_log_set_level((rmm_log_level_t)99) == RMM_ERR_INVALID_ARGUMENT);

    said->growths += level == RMM_LEVEL_INFO && strstr(message, "grew by") != NULL;
    if (level == RMM_LEVEL_ERROR && strstr(message, "failed: RMM_ERR_OUT_OF_MEMORY")) {
        said->failures++;
        snprintf(said->failure, sizeof(said->failure), "%s", message);
    }
    if (more != NULL && sscanf(more, " (and %u more since)", &count) == 1) {
        said->left_out += count;
    }
}

static const char *const figures[] = {"'mine'",       "107374182400", "largest free",
                                      "total free",   "reserved",     "device free",
                                      "fragmentation"};

static void fails_often(child_t *self, void *argument)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda, *pool;
    said_t said = {0};
    void *ptr;

    options.name = "mine";
    options.initial_bytes = 1 << 20;
    CHECK(rmm_log_to_callback(note_what_is_said, &said) == RMM_OK);
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, &options, &pool) == RMM_OK);
    CHECK(said.growths == 1);
    CHECK(rmm_resource_alloc(pool, (size_t)100 << 30, 0, NULL, &ptr) != RMM_OK);
    CHECK(said.failures == 1);
    CHECK(strstr(rmm_last_error_message(), "largest free") != NULL);
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        CHECK(strstr(said.failure, figures[i]) != NULL);
    }
    for (int i = 0; i < 500; i++) {
        CHECK(rmm_resource_alloc(pool, (size_t)100 << 30, 0, NULL, &ptr) != RMM_OK);
    }
    CHECK(said.failures < 200); /* 10 a second, however slow this machine is */
    usleep(1100 * 1000);
    CHECK(rmm_resource_alloc(pool, SIZE_MAX, 0, NULL, &ptr) != RMM_OK);
    CHECK(said.failures + said.left_out == 502);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}

TEST_CASE(pools_tell_of_growth_and_of_failures_with_all_figures)
{
    child_run(fails_often, NULL);
    runtime_empty(runtime);
}

static uint64_t second_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec;
}

/* Messages that are allowed of `tries` in one second, however slow this machine is. */
static unsigned allowed_in_a_second(rmm_log_limit_t *limit, unsigned tries)
{
    uint64_t left_out, began;
    unsigned allowed;

    do {
        began = second_now();
        *limit = (rmm_log_limit_t){0};
        allowed = 0;
        for (unsigned i = 0; i < tries; i++) {
            allowed += rmm__log_limit_allows(limit, 10, &left_out);
        }
    } while (second_now() != began);
    return allowed;
}

TEST_CASE(a_kind_of_message_is_limited)
{
    rmm_log_limit_t limit;
    uint64_t left_out = 0;

    assert_int_equal(allowed_in_a_second(&limit, 9), 9);
    assert_int_equal(allowed_in_a_second(&limit, 13), 10);
    limit.window -= (uint64_t)1 << 16; /* it was the second before */
    assert_true(rmm__log_limit_allows(&limit, 10, &left_out));
    assert_int_equal(left_out, 3);
    assert_true(rmm__log_limit_allows(&limit, 10, &left_out));
    assert_int_equal(left_out, 0); /* told once */
}

static bool has_room_now(size_t bytes, void *arg)
{
    rmm_resource_t **held = arg;

    if (*held == NULL) {
        return false;
    }
    rmm_resource_release(*held);
    *held = NULL;
    return true;
}

/* Half of the device is kept by a pool, until the callback lets go of it. */
static void recovers_then_fails(child_t *self, void *argument)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_pool_options_t pool_options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda, *pool, *mr;
    said_t said = {0};
    void *ptr;

    setenv("RMM_SIM_MEMORY", "64MiB", 1);
    CHECK(rmm_log_to_callback(note_what_is_said, &said) == RMM_OK);
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    pool_options.initial_bytes = 32 << 20;
    CHECK(rmm_pool_resource_create(cuda, &pool_options, &pool) == RMM_OK);
    options.callback = has_room_now;
    options.arg = &pool;
    CHECK(rmm_failure_callback_adaptor_create(cuda, &options, &mr) == RMM_OK);
    CHECK(rmm_resource_alloc(mr, 40 << 20, 0, NULL, &ptr) == RMM_OK);
    CHECK(pool == NULL && said.failures == 0);
    rmm_resource_dealloc(mr, ptr, 40 << 20, 0, NULL);
    CHECK(rmm_resource_alloc(mr, 80 << 20, 0, NULL, &ptr) == RMM_ERR_OUT_OF_MEMORY);
    CHECK(said.failures == 1);
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}

TEST_CASE(a_failure_that_the_library_handles_is_not_reported)
{
    child_run(recovers_then_fails, NULL);
    runtime_empty(runtime);
}

/* --- what a line begins with ---------------------------------------------------------- */

static void dates_lines(child_t *self, void *argument)
{
    const char *path = divert_stderr();
    char expected[64];
    time_t now = time(NULL);
    struct tm utc;
    char day[16];
    unsigned thread, micros;
    int end = 0;

    setenv("TZ", "IST-5:30", 1);
    rmm__log_error("an error");
    now += 5 * 3600 + 30 * 60;
    gmtime_r(&now, &utc);
    strftime(expected, sizeof(expected), "%Y-%m-%d", &utc);
    CHECK(
        sscanf(
            content_of(path), "[%u][%10[0-9-]T%*2d:%*2d:%*2d.%6u+05:30][error] %n",
            &thread, day, &micros, &end) == 3);
    CHECK(end > 0 && thread == (unsigned)gettid());
    CHECK(strcmp(day, expected) == 0 || utc.tm_hour == 0 || utc.tm_hour == 23);
}

TEST_CASE(lines_have_date_time_and_offset)
{
    child_run(dates_lines, NULL);
}

/* JOURNAL_STREAM names stderr; unless `argument` is NULL another file. */
static void writes_to_the_journal(child_t *self, void *argument)
{
    const char *path = divert_stderr();
    struct stat file;
    char stream[64], expected[128];

    CHECK(fstat(STDERR_FILENO, &file) == 0);
    snprintf(
        stream, sizeof(stream), "%ju:%ju", (uintmax_t)file.st_dev,
        (uintmax_t)file.st_ino + (argument != NULL));
    setenv("JOURNAL_STREAM", stream, 1);
    setenv("RMM_LOG_LEVEL", "debug", 1);
    log_one_of_each();
    snprintf(
        expected, sizeof(expected),
        "<7>[%u][debug] a debug message\n<6>[%u][info] an info\n", (unsigned)gettid(),
        (unsigned)gettid());
    if (argument != NULL) {
        CHECK(strstr(content_of(path), "<") == NULL && lines_of(path) == 5);
    } else {
        CHECK(strncmp(content_of(path), expected, strlen(expected)) == 0);
        CHECK(strstr(content_of(path), "\n<4>[") != NULL);
        CHECK(strstr(content_of(path), "\n<3>[") != NULL);
        CHECK(strstr(content_of(path), "\n<2>[") != NULL);
    }
}

TEST_CASE(the_journal_gets_priorities)
{
    child_run(writes_to_the_journal, NULL);
    child_run(writes_to_the_journal, (void *)1);
}

int main(void)
{
    return harness_run_cases(log_setup, runtime_teardown);
}
