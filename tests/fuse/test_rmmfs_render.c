/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of files: formats are an interface.
 */
#include "model_fixture.h"

#include <errno.h>
#include <inttypes.h>

#include "harness/runtime.h"
#include "model/newer_stats.h"
#include "model/tree.h"
#include "render/parts.h"
#include "render/printers.h"
#include "render/stream.h"
#include "render_any.h"
#include "segment/segment_leaks_reader.h"
#include "segments/dirs.h"

typedef struct texts {
    fixture_t fixture;
    text_t text;
    char string[16384];
} texts_t;

static texts_t *open_texts(void)
{
    texts_t *texts = calloc(1, sizeof(*texts));
    assert_non_null(texts);
    fixture_open(&texts->fixture);
    text_init(&texts->text);
    return texts;
}

static void end_texts(texts_t *texts)
{
    text_fini(&texts->text);
    fixture_close(&texts->fixture);
    free(texts);
}

static void render_path(texts_t *texts, const char *path)
{
    char copy[256], *rest = copy, *name;
    node_t node = tree_root;
    snprintf(copy, sizeof(copy), "%s", path);
    while ((name = strsep(&rest, "/")) != NULL) {
        if (!tree_lookup(&texts->fixture.model, node, 0, name, &node)) {
            fail_msg("no %s in %s", name, path);
        }
    }
    assert_int_equal(render_file(&texts->fixture.model, node, &texts->text), 0);
}

static const char *read_path(texts_t *texts, const char *path)
{
    render_path(texts, path);
    assert_true(texts->text.length < sizeof(texts->string));
    memcpy(texts->string, texts->text.data, texts->text.length);
    texts->string[texts->text.length] = '\0';
    return texts->string;
}

/* A text of any length; the caller frees it. */
static char *copy_path(texts_t *texts, const char *path)
{
    render_path(texts, path);
    size_t length = texts->text.length;
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, texts->text.data, length);
    copy[length] = '\0';
    return copy;
}

/* The value of a key in a flat-keyed file; NULL: no such line. */
static const char *value_of(texts_t *texts, const char *path, const char *key)
{
    char *rest = texts->string, *line;
    (void)read_path(texts, path);
    while ((line = strsep(&rest, "\n")) != NULL) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            return line + length + 1;
        }
    }
    return NULL;
}

typedef struct all {
    texts_t *texts;
    node_t dirs[200];
    size_t count, files;
} all_t;

static void render_one(const char *name, node_t node, void *arg)
{
    all_t *all = arg;
    text_t *text = &all->texts->text;
    if (node.file == FILE_SELF) {
        all->dirs[all->count++] = node;
        assert_int_equal(render_file(&all->texts->fixture.model, node, text), -EISDIR);
    } else if (tree_kind(node) == KIND_PIPE) {
        assert_int_equal(render_file(&all->texts->fixture.model, node, text), -ENOENT);
    } else if (node.file == FILE_process_log) { /* empty, if nothing was logged */
        assert_int_equal(render_file(&all->texts->fixture.model, node, text), 0);
    } else if (node.file != FILE_LINK && node.file != FILE_UPSTREAM) {
        if (render_file(&all->texts->fixture.model, node, text) != 0) {
            fail_msg("%s cannot be rendered", name);
        }
        assert_true(text->length > 0);
        assert_int_equal(text->data[text->length - 1], '\n');
        all->files++;
    }
}

TEST_CASE(every_file_has_a_text_that_ends_in_a_newline)
{
    texts_t *texts = open_texts();
    (void)fixture_process(&texts->fixture, 4711);
    all_t *all = calloc(1, sizeof(*all));
    all->texts = texts;
    all->dirs[all->count++] = tree_root;
    for (size_t i = 0; i < all->count; i++) {
        assert_true(tree_list(&texts->fixture.model, all->dirs[i], 0, render_one, all));
    }
    assert_true(all->files > 100);
    free(all);
    end_texts(texts);
}

TEST_CASE(refused_users_are_listed_in_a_table)
{
    texts_t *texts = open_texts();
    budget_t *budget = &texts->fixture.model.budget;
    assert_string_equal(
        read_path(texts, "daemon/over_budget"), "#uid kind used limit refused\n");
    assert_true(budget_take(budget, 4711, BUDGET_GPUS, 3));
    assert_false(budget_take(budget, 4711, BUDGET_GPUS, UINT64_MAX));
    assert_string_equal(
        read_path(texts, "daemon/over_budget"),
        "#uid kind used limit refused\n4711 gpus 3 16 1\n");
    end_texts(texts);
}

TEST_CASE(values_are_decimal_and_unknown_is_minus_one)
{
    texts_t *texts = open_texts();
    rmm_segment_location_t *location = fixture_location(&texts->fixture, 0);
    location->current_bytes = (UINT64_C(1) << 57) - 1;
    location->reserved_bytes = 12345;
    (void)fixture_process(&texts->fixture, 7);
    assert_string_equal(read_path(texts, "gpu0/current_bytes"), "144115188075855871\n");
    assert_string_equal(read_path(texts, "gpu0/reserved_bytes"), "12345\n");
    assert_string_equal(read_path(texts, "gpu0/padding_bytes"), "0\n");
    assert_string_equal(read_path(texts, "gpu0/device_free_bytes"), "-1\n");
    assert_string_equal(read_path(texts, "gpu0/fragmentation"), "0.000\n");
    assert_string_equal(read_path(texts, "version"), "1\n");
    assert_string_equal(read_path(texts, "proc/7/state"), "live\n");
    assert_string_equal(read_path(texts, "proc/7/comm"), "sample\n");
    assert_string_equal(read_path(texts, "proc/7/diag/cupti"), "off\n");
    (void)fixture_gpu(&texts->fixture, "GPU-1");
    texts->fixture.model.gpus[1].gpu.capacity_bytes = 0;
    texts->fixture.model.gpus[1].gpu.pci_bus_id[0] = '\0';
    texts->fixture.model.gpus[1].gpu.name[0] = '\0';
    assert_string_equal(read_path(texts, "gpu1/capacity_bytes"), "-1\n");
    assert_string_equal(read_path(texts, "gpu1/name"), "-1\n");
    assert_string_equal(
        read_path(texts, "devices"), "#gpu uuid pci_bus_id capacity_bytes name\n"
                                     "gpu0 GPU-00000000 0000:01:00.0 1048576 Sample\n"
                                     "gpu1 GPU-1 -1 -1 -1\n");
    end_texts(texts);
}

/* It stands in `stat` and in a file of its own, and both say the same. */
static void assert_shown(texts_t *texts, const char *dir, const char *name)
{
    char path[128], in_stat[32];
    const char *value;
    snprintf(path, sizeof(path), "%s/stat", dir);
    value = value_of(texts, path, name);
    assert_non_null(value);
    snprintf(in_stat, sizeof(in_stat), "%s\n", value);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_string_equal(read_path(texts, path), in_stat);
}

TEST_CASE(each_statistic_is_a_line_of_stat_and_a_file)
{
    texts_t *texts = open_texts();
    (void)fixture_process(&texts->fixture, 7);
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        const char *name = rmm__location_stats[i].name;
        assert_shown(texts, "gpu0", name);
        assert_shown(texts, "host", name);
        assert_shown(texts, "proc/7/gpu0", name);
    }
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        assert_shown(texts, "proc/7/gpu0/mr/1.a_pool", rmm__slot_stats[i].name);
    }
    assert_string_equal(value_of(texts, "proc/7/gpu0/mr/1.a_pool/stat", "torn"), "0");
    end_texts(texts);
}

/* A location adds up what is free in its resources; a process all that is no mark. */
TEST_CASE(sums_are_shown_where_they_have_a_meaning)
{
    texts_t *texts = open_texts();
    (void)fixture_process(&texts->fixture, 7);
    assert_shown(texts, "gpu0", "free_bytes");
    assert_shown(texts, "proc/7/gpu0", "largest_free_bytes");
#define X(field, kind, unit, help)                                                     \
    assert_int_equal(                                                                  \
        value_of(texts, "proc/7/stat", #field) != NULL,                                \
        RMM_KIND_##kind != RMM_KIND_MARK);
    RMM_COMMON_STATS(X)
#undef X
    assert_non_null(value_of(texts, "proc/7/stat", "host_peak_upper_bytes"));
    end_texts(texts);
}

/* Put a statistic that this version does not know behind the others. */
static void add_statistic(
    fixture_t *fixture, uint16_t scope, const char *name, uint16_t kind,
    uint32_t offset)
{
    rmm_segment_schema_t *entry =
        &fixture->layout.schema[fixture->layout.header.schema_count++];
    strcpy(entry->name, name);
    entry->scope = scope;
    entry->kind = kind;
    entry->unit = RMM_UNIT_COUNT;
    entry->offset = offset;
    entry->stripe_plus = entry->stripe_minus = RMM_STRIPE_NONE;
}

TEST_CASE(stat_shows_statistics_of_newer_programs)
{
    texts_t *texts = open_texts();
    fixture_t *fixture = &texts->fixture;
    enum { LAST = sizeof(fixture->layout.locations[0].figures) / 8 - 1 };
    uint32_t at = offsetof(rmm_segment_location_t, figures[LAST - 1]);
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "new_count", RMM_KIND_COUNTER, at);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "new_mark", RMM_KIND_MARK, at + 8);
    add_statistic(
        fixture, RMM_SCHEMA_SLOT, "new_gauge", RMM_KIND_GAUGE,
        offsetof(rmm_segment_slot_t, figures[LAST]));
    location->figures[LAST - 1] = 5;
    location->figures[LAST] = 70;
    fixture->layout.slots[0].figures[LAST] = 9;
    (void)fixture_process(fixture, 7);
    location->figures[LAST] = 60;
    (void)fixture_process(fixture, 8);
    assert_string_equal(value_of(texts, "proc/7/gpu0/stat", "new_count"), "5");
    assert_string_equal(value_of(texts, "gpu0/stat", "new_count"), "10");
    assert_string_equal(value_of(texts, "gpu0/stat", "new_mark"), "70");
    assert_string_equal(
        value_of(texts, "proc/7/gpu0/mr/1.a_pool/stat", "new_gauge"), "9");
    end_texts(texts);
}

static uint32_t count_of(const char *text, const char *string)
{
    uint32_t count = 0;
    while ((text = strstr(text, string)) != NULL) {
        count++;
        text++;
    }
    return count;
}

TEST_CASE(odd_statistics_of_newer_programs_are_left_out)
{
    texts_t *texts = open_texts();
    fixture_t *fixture = &texts->fixture;
    enum { LAST = sizeof(fixture->layout.locations[0].figures) / 8 - 1 };
    uint32_t at = offsetof(rmm_segment_location_t, figures[LAST - 1]);
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "free_bytes", RMM_KIND_GAUGE, at);
    add_statistic(
        fixture, RMM_SCHEMA_LOCATION, "largest_free_bytes", RMM_KIND_GAUGE, at);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "new_gauge", RMM_KIND_GAUGE, at);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "new_frames", RMM_KIND_COUNTER, at);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "too_large", RMM_KIND_GAUGE, at + 8);
    location->figures[LAST - 1] = 4711;
    location->figures[LAST] = UINT64_MAX - 1;
    member_t *member = fixture_process(fixture, 7);
    const char *path = "proc/7/gpu0/stat";
    assert_int_equal(count_of(read_path(texts, path), "\nfree_bytes "), 1);
    assert_int_equal(count_of(read_path(texts, path), "\nlargest_free_bytes "), 1);
    assert_string_equal(value_of(texts, path, "new_gauge"), "4711");
    assert_null(value_of(texts, path, "too_large"));
    member->state = MEMBER_EXITED; /* the process became another program: exec */
    location->figures[LAST - 1] = 1;
    (void)fixture_process(fixture, 7);
    assert_string_equal(value_of(texts, path, "new_gauge"), "1");
    assert_string_equal(value_of(texts, path, "new_frames"), "4712");
    end_texts(texts);
}

/* A process may have two segments: a mark of both is the higher one. */
TEST_CASE(metrics_add_up_counters_and_not_marks_of_newer_programs)
{
    texts_t *texts = open_texts();
    fixture_t *fixture = &texts->fixture;
    enum { LAST = sizeof(fixture->layout.locations[0].figures) / 8 - 1 };
    uint32_t at = offsetof(rmm_segment_location_t, figures[LAST - 1]);
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "new_frames", RMM_KIND_COUNTER, at);
    add_statistic(fixture, RMM_SCHEMA_LOCATION, "new_mark", RMM_KIND_MARK, at + 8);
    location->figures[LAST - 1] = 5;
    location->figures[LAST] = 70;
    (void)fixture_process(fixture, 7);
    location->figures[LAST] = 60;
    (void)fixture_process(fixture, 7);
    char *whole = copy_path(texts, "metrics");
    assert_non_null(strstr(
        whole, "\nrmm_device_new_frames_total{gpu=\"0\",UUID=\"GPU-00000000\"} 10\n"));
    assert_non_null(
        strstr(whole, "\nrmm_device_new_mark{gpu=\"0\",UUID=\"GPU-00000000\"} 70\n"));
    assert_non_null(strstr(
        whole, "\nrmm_process_new_mark{gpu=\"0\",UUID=\"GPU-00000000\",pid=\"7\",comm="
               "\"sample\"} 70\n"));
    free(whole);
    end_texts(texts);
}

TEST_CASE(strings_of_programs_cannot_break_a_line)
{
    texts_t *texts = open_texts();
    strcpy(texts->fixture.layout.header.comm, "a\nb\tc\x7f");
    strcpy(texts->fixture.layout.header.cmdline, "x --y\n0 0 0");
    (void)fixture_process(&texts->fixture, 7);
    assert_string_equal(read_path(texts, "proc/7/comm"), "a?b?c?\n");
    assert_string_equal(read_path(texts, "proc/7/cmdline"), "x --y?0 0 0\n");
    const char *table = read_path(texts, "gpu0/processes");
    assert_non_null(strstr(table, "\n7 "));
    assert_non_null(strstr(table, " a?b?c?\n"));
    end_texts(texts);
}

TEST_CASE(a_process_that_cannot_be_read_says_so_and_nothing_else)
{
    texts_t *texts = open_texts();
    member_t *member = fixture_process(&texts->fixture, 7);
    node_t node, dir;
    member->state = MEMBER_UNREADABLE;
    assert_string_equal(read_path(texts, "proc/7/state"), "unreadable\n");
    assert_true(tree_lookup(&texts->fixture.model, tree_root, 0, "proc", &dir));
    assert_true(tree_lookup(&texts->fixture.model, dir, 0, "7", &dir));
    assert_false(tree_lookup(&texts->fixture.model, dir, 0, "comm", &node));
    assert_false(tree_lookup(&texts->fixture.model, dir, 0, "gpu0", &node));
    assert_string_equal(read_path(texts, "gpu0/current_bytes"), "0\n");
    end_texts(texts);
}

/* --- leaks --------------------------------------------------------------------------- */

typedef struct leaks_sample {
    rmm_leaks_header_t header;
    rmm_leaks_module_t modules[3];
    rmm_leaks_row_t rows[3];
} leaks_sample_t;

#define LATER (UINT64_MAX - 100) /* than now: of no age */

static void make_leaks(leaks_sample_t *sample)
{
    *sample = (leaks_sample_t){
        .header = {
            .magic = RMM_LEAKS_MAGIC,
            .version_major = RMM_LEAKS_MAJOR,
            .header_bytes = sizeof(rmm_leaks_header_t),
            .file_bytes = sizeof(*sample),
            .rows_offset = offsetof(leaks_sample_t, rows),
            .rows_stride = sizeof(rmm_leaks_row_t),
            .rows_count = 3,
            .rows_used = 3,
            .unlisted = 7,
            .modules_offset = offsetof(leaks_sample_t, modules),
            .modules_stride = sizeof(rmm_leaks_module_t),
            .modules_count = 3,
            .modules_used = 3,
            .ready = 1}};
    sample->modules[0] =
        (rmm_leaks_module_t){0x1000, 0x2000, 0x800, "/lib/taken over.so"};
    sample->modules[1] =
        (rmm_leaks_module_t){0x3000, 0x4000, 0x3000, "/opt/a;b\nc/odd;na\nme.so"};
    sample->modules[2] = (rmm_leaks_module_t){0x1800, 0x2800, 0x1800, "/lib/new.so"};
    sample->rows[0] = (rmm_leaks_row_t){
        .resource_id = 5,
        .address = 0xa000,
        .bytes = 10,
        .allocated_ns = LATER + 1,
        .stream = 0x55,
        .thread = 77,
        .device = 3,
        .frame_count = 5,
        .frames = {0x3000, 0x3001, 0x4000, 0x1900, 0x1000}};
    sample->rows[1] = (rmm_leaks_row_t){.sequence = 1, .resource_id = 6};
    sample->rows[2] = (rmm_leaks_row_t){
        .resource_id = 6,
        .address = 0xb000,
        .bytes = 20,
        .allocated_ns = LATER,
        .device = -1};
}

static void put_beside(const runtime_t *runtime, const member_t *member)
{
    char name[RMM_SEGMENT_NAME_BYTES + sizeof(".leaks")];
    leaks_sample_t sample;
    int fd;
    make_leaks(&sample);
    snprintf(name, sizeof(name), "%s.leaks", member->segment.name);
    fd = openat(runtime->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &sample, sizeof(sample)), sizeof(sample));
    close(fd);
}

TEST_CASE(leaks_are_rows_by_age_and_then_their_files)
{
    runtime_t runtime;
    texts_t *texts = open_texts();
    member_t *member = fixture_process(&texts->fixture, 100);
    runtime_open(&runtime);
    segment_dir_t dir = {.fd = runtime.fd, .references = 1};
    member->dir = &dir;
    member->segment.uid = geteuid();
    assert_string_equal(
        read_path(texts, "proc/100/leaks"),
        "#addr\tsize\tstream\tresource\tdevice\tage_ns\tthread\tstack\n");
    put_beside(&runtime, member);
    text_clear(&texts->text);
    assert_string_equal(
        read_path(texts, "proc/100/leaks"),
        "#addr\tsize\tstream\tresource\tdevice\tage_ns\tthread\tstack\n"
        "0xb000\t20\t0x0\t6\t-1\t0\t0\t-\n"
        "0xa000\t10\t0x55\t5\t3\t0\t77\t"
        "0x3000;odd?na?me.so+0x1;odd?na?me.so+0x1000;new.so+0x100;0x1000\n"
        "# file\tnew.so\t/lib/new.so\n"
        "# file\todd?na?me.so\t/opt/a;b?c/odd;na?me.so\n"
        "# 1 more were being changed\n"
        "# 7 more have no room here\n");
    end_texts(texts);
    runtime_close(&runtime);
}

/* With more than fits into a text that is stored. */
#define PROCESSES 72

/* A figure with 1 to 18 digits. */
static uint64_t figure_of(int process)
{
    uint64_t value = 1;
    for (int i = process % 18; i > 0; i--) {
        value *= 10;
    }
    return process % 2 == 0 ? value : value - 1;
}

static void add_processes(fixture_t *fixture)
{
    for (int i = 0; i < PROCESSES; i++) {
        rmm_segment_location_t *location = fixture_location(fixture, 0);
        location->current_bytes = figure_of(i);
        location->total_bytes = figure_of(i) + 7;
        (void)fixture_process(fixture, 100 + i);
    }
}

TEST_CASE(metrics_show_each_figure_in_decimal)
{
    texts_t *texts = open_texts();
    add_processes(&texts->fixture);
    char *whole = copy_path(texts, "metrics");
    for (int i = 0; i < PROCESSES; i++) {
        char row[64];
        const char *found = whole;
        snprintf(row, sizeof(row), "pid=\"%d\"", 100 + i);
        while ((found = strstr(found, "\nrmm_process_current_bytes{")) != NULL &&
               strstr(found, row) > strchr(found + 1, '\n')) {
            found++;
        }
        assert_non_null(found);
        snprintf(row, sizeof(row), "} %" PRIu64 "\n", figure_of(i));
        assert_memory_equal(strchr(found, '}'), row, strlen(row));
    }
    free(whole);
    end_texts(texts);
}

TEST_CASE(metrics_are_charged_to_their_reader)
{
    texts_t *texts = open_texts();
    budget_t *budget = &texts->fixture.model.budget;
    const uint64_t most = budget_limit(budget, 1000, BUDGET_TEXT_BYTES);
    add_processes(&texts->fixture);
    text_charge(&texts->text, budget, 1000);
    render_path(texts, "metrics");
    const uint64_t length = texts->text.length;
    assert_true(budget_take(budget, 1000, BUDGET_TEXT_BYTES, most - length));
    assert_false(budget_take(budget, 1000, BUDGET_TEXT_BYTES, 1));
    budget_give(budget, 1000, BUDGET_TEXT_BYTES, most - length);
    text_fini(&texts->text);
    assert_true(budget_take(budget, 1000, BUDGET_TEXT_BYTES, most));
    end_texts(texts);
}

TEST_CASE(a_text_grows_as_it_is_written)
{
    text_t text;
    text_init(&text);
    for (int i = 0; i < 10000; i++) {
        text_printf(&text, "%d %s\n", i, "a line of some length");
    }
    assert_false(text.failed);
    assert_int_equal(text.length, 10000 * 23 + 10 + 180 + 2700 + 36000);
    assert_memory_equal(text.data, "0 a line", 8);
    assert_memory_equal(text.data + text.length - 28, "\n9999 a line", 12);
    text_clear(&text);
    assert_int_equal(text.length, 0);
    text_fini(&text);
}

TEST_CASE(a_row_that_passes_the_limit_is_taken_back)
{
    text_t text;
    text_init(&text);
    text.limit = 10;
    text_begin_row(&text);
    text_puts(&text, "0123456789");
    assert_true(text_end_row(&text));
    text_begin_row(&text);
    text_puts(&text, "x");
    assert_false(text_end_row(&text));
    assert_int_equal(text.length, 10);
    text_leave_out(&text, 2);
    text_end_rows(&text);
    text_end_rows(&text);
    text_append(&text, "", 1);
    assert_string_equal(
        text.data, "0123456789# 3 more rows are not shown: over budget\n");
    text_fini(&text);
}

TEST_CASE(a_text_says_why_it_failed_until_it_is_cleared)
{
    texts_t *texts = open_texts();
    budget_t *budget = &texts->fixture.model.budget;
    text_t text;
    text_init(&text);
    assert_int_equal(text_error(&text), 0);
    text.limit = 10;
    text_begin_row(&text);
    text_puts(&text, "more than there is room");
    assert_false(text_end_row(&text));
    assert_null(text_reserve(&text, 10 + TEXT_ROW_BYTES_MAX + 1));
    assert_int_equal(text_error(&text), -EFBIG);
    text_clear(&text);
    assert_int_equal(text_error(&text), 0);
    text_end_rows(&text);
    assert_int_equal(text.length, 0);
    text_charge(&text, budget, 4711);
    assert_false(text_take_scratch(&text, SIZE_MAX / 2));
    assert_int_equal(text_error(&text), -EDQUOT);
    text_clear(&text);
    text.failed = TEXT_NO_MEMORY;
    assert_int_equal(text_error(&text), -ENOMEM);
    text_fini(&text);
    end_texts(texts);
}

/* The small text moves with the structure; what a text needs no more is given back. */
TEST_CASE(a_text_is_charged_for_what_it_has)
{
    texts_t *texts = open_texts();
    budget_t *budget = &texts->fixture.model.budget;
    const uint64_t most = budget_limit(budget, 4711, BUDGET_TEXT_BYTES);
    text_t from, text;
    text_init(&from);
    text_init(&text);
    text_puts(&from, "small");
    text_move(&text, &from);
    memset(&from, 'x', sizeof(from));
    assert_ptr_equal(text.data, text.small);
    assert_memory_equal(text.data, "small", 5);
    text_charge(&text, budget, 4711);
    assert_non_null(text_reserve(&text, 5000));
    text.length = 5000;
    text_trim(&text);
    assert_true(budget_take(budget, 4711, BUDGET_TEXT_BYTES, most - 5000));
    assert_false(budget_take(budget, 4711, BUDGET_TEXT_BYTES, 1));
    text.length = TEXT_SMALL_BYTES;
    text_trim(&text);
    assert_ptr_equal(text.data, text.small);
    assert_true(budget_take(budget, 4711, BUDGET_TEXT_BYTES, 5000));
    text_fini(&text);
    end_texts(texts);
}

/* A control group of which nothing is left but the credit. */
static void fill_group(memory_t *memory, const runtime_t *runtime, uint64_t credit)
{
    const char *const names[] = {"memory.max", "memory.current"};
    for (int i = 0; i < 2; i++) {
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/%s", runtime->path, names[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs("4096\n", file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    memory_find_group(memory, runtime->path, "0::/\n");
    memory->credit = credit;
}

TEST_CASE(a_text_that_gets_no_memory_is_not_charged_for_it)
{
    texts_t *texts = open_texts();
    budget_t *budget = &texts->fixture.model.budget;
    const uint64_t most = budget_limit(budget, 4711, BUDGET_TEXT_BYTES);
    runtime_t runtime;
    text_t text;
    runtime_open(&runtime);
    fill_group(&budget->memory, &runtime, 1000);
    text_init(&text);
    text_charge(&text, budget, 4711);
    assert_true(text_take_scratch(&text, 1000));
    assert_false(text_take_scratch(&text, 1));
    assert_int_equal(text_error(&text), -ENOMEM);
    assert_true(budget_take(budget, 4711, BUDGET_TEXT_BYTES, most - 1000));
    assert_false(budget_take(budget, 4711, BUDGET_TEXT_BYTES, 1));
    text_fini(&text);
    end_texts(texts);
    runtime_close(&runtime);
}

TEST_CASE(events_are_counted_by_their_kind)
{
    texts_t *texts = open_texts();
    rmm_segment_location_t *location = fixture_location(&texts->fixture, 0);
    location->oom_count = 1;
    location->invalid_free_count = 2;
    location->limit_count = 3;
    (void)fixture_process(&texts->fixture, 7);
    assert_string_equal(
        read_path(texts, "gpu0/events"), "oom 1\ninvalid_free 2\nlimit 3\n");
    end_texts(texts);
}

TEST_CASE(a_statistic_of_another_kind_is_not_mixed_in)
{
    newer_list_t newer = {.count = 0};
    char name[16];
    newer_add(&newer, "odd", RMM_KIND_COUNTER, 5);
    newer_add(&newer, "odd", RMM_KIND_GAUGE, 100);
    newer_add(&newer, "odd", RMM_KIND_COUNTER, 2);
    assert_int_equal(newer.items[0].value, 7);
    for (unsigned i = 1; i <= NEWER_OF_LEVEL_MAX; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        newer_add(&newer, name, RMM_KIND_MARK, i);
    }
    assert_int_equal(newer.count, NEWER_OF_LEVEL_MAX);
    assert_string_equal(newer.items[newer.count - 1].name, "n31");
}

/* A process of a user with so many statistics of its own. */
static const member_t *add_newer(fixture_t *fixture, uid_t uid, unsigned count)
{
    char name[16];
    const uint32_t known = fixture->layout.header.schema_count;
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "of_%u_%u", (unsigned)uid, i);
        add_statistic(
            fixture, RMM_SCHEMA_LOCATION, name, RMM_KIND_GAUGE,
            offsetof(rmm_segment_location_t, figures));
    }
    const member_t *member = fixture_process(fixture, (pid_t)uid);
    member->process->uid = uid;
    fixture->layout.header.schema_count = known;
    return member;
}

static bool metrics_have(const char *metrics, unsigned uid, unsigned number)
{
    char start[64];
    snprintf(start, sizeof(start), "\nrmm_device_of_%u_%u{", uid, number);
    return strstr(metrics, start) != NULL;
}

TEST_CASE(metrics_have_a_bounded_number_of_statistics_of_newer_programs)
{
    enum { USERS = NEWER_STATS_MAX / NEWER_STATS_OF_USER };
    const member_t *members[USERS + 1];
    texts_t *texts = open_texts();
    for (unsigned i = 0; i <= USERS; i++) {
        unsigned count = i < USERS ? NEWER_STATS_OF_USER : 1;
        members[i] = add_newer(&texts->fixture, 1000 + i, count);
    }
    char *whole = copy_path(texts, "metrics");
    for (unsigned i = 0; i < NEWER_STATS_MAX; i++) {
        unsigned user = i / NEWER_STATS_OF_USER;
        assert_true(metrics_have(whole, 1000 + user, i % NEWER_STATS_OF_USER));
        assert_false(members[user]->has_odd_stats);
    }
    assert_false(metrics_have(whole, 1000 + USERS, 0));
    assert_true(members[USERS]->has_odd_stats);
    free(whole);
    end_texts(texts);
}

TEST_CASE(a_torn_record_and_an_unknown_fragmentation_say_so)
{
    texts_t *texts = open_texts();
    const member_t *member = fixture_process(&texts->fixture, 4711);
    const node_t node = {DIR_RESOURCE, FILE_resource_stat, (uint32_t)member->serial, 1};
    subject_t subject;
    assert_int_equal(
        subject_collect(&texts->fixture.model, node, COLLECT_RESOURCE, &subject), 0);
    subject.figures = (figures_t){.torn = true, .free_bytes = FIGURE_UNKNOWN};
    print_resource_stat(&subject, &texts->text);
    text_append(&texts->text, "", 1);
    assert_non_null(strstr(texts->text.data, "\ntorn 1\n"));
    assert_non_null(strstr(texts->text.data, "\nfragmentation -1\n"));
    end_texts(texts);
}
