/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of the diagnosis side file, on files made by hand: what holds together is
 * read, what does not is refused, and a row that moves is never shown half.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rmm/sys/diag.h>

#include "diag/diag_names.h"
#include "diag/diag_reader.h"
#include "diag/peak_reader.h"
#include "diag/resource_reader.h"
#include "diag/stacks_reader.h"
#include "harness/runtime.h"
#include "unit/amid_pread.h"

#define KERNELS 3
#define FUNCTIONS 2
#define PEAKS 2
#define PARTS 6
#define VERDICTS 2
#define SITES 2
#define RESOURCES 4
#define ROWS 200

typedef struct sample {
    rmm_diag_header_t header;
    rmm_diag_kernel_t kernels[KERNELS];
    rmm_diag_row_t rows[ROWS];
    rmm_diag_function_t functions[FUNCTIONS];
    rmm_diag_peak_t peaks[PEAKS];
    rmm_diag_part_t parts[PARTS];
    rmm_diag_verdict_entry_t verdicts[VERDICTS];
    rmm_diag_stack_t sites[SITES];
    rmm_diag_resource_t resources[RESOURCES];
} sample_t;

static sample_t sample;
static rmm_diag_file_t file = {.fd = -1};

static void make(void)
{
    rmm_diag_header_t *header = &sample.header;

    memset(&sample, 0, sizeof(sample));
    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->version_minor = RMM_DIAG_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(sample);
    header->kernels.offset = offsetof(sample_t, kernels);
    header->kernels.stride = sizeof(rmm_diag_kernel_t);
    header->kernels.count = KERNELS;
    header->rows.offset = offsetof(sample_t, rows);
    header->rows.stride = sizeof(rmm_diag_row_t);
    header->rows.count = ROWS;
    header->functions.offset = offsetof(sample_t, functions);
    header->functions.stride = sizeof(rmm_diag_function_t);
    header->functions.count = FUNCTIONS;
    header->functions.used = 1;
    strcpy(sample.functions[0].name, "cuMemcpy\t");
    strcpy(sample.functions[1].name, "not complete");
    header->peaks.offset = offsetof(sample_t, peaks);
    header->peaks.stride = sizeof(rmm_diag_peak_t);
    header->peaks.count = PEAKS;
    header->peaks.used = PEAKS;
    header->parts.offset = offsetof(sample_t, parts);
    header->parts.stride = sizeof(rmm_diag_part_t);
    header->parts.count = PARTS;
    sample.peaks[1] = (rmm_diag_peak_t){.device = 1, .bytes = 100, .when_ns = 7};
    for (uint64_t i = 0; i < PARTS; i++) {
        sample.parts[i] = (rmm_diag_part_t){.when_ns = 7 + i / 5, .bytes = 10 + i};
    }
    header->verdicts.offset = offsetof(sample_t, verdicts);
    header->verdicts.stride = sizeof(rmm_diag_verdict_entry_t);
    header->verdicts.count = VERDICTS;
    header->sites.offset = offsetof(sample_t, sites);
    header->sites.stride = sizeof(rmm_diag_stack_t);
    header->sites.count = SITES;
    header->resources.offset = offsetof(sample_t, resources);
    header->resources.stride = sizeof(rmm_diag_resource_t);
    header->resources.count = RESOURCES;
    header->ready = 1;
    header->kernels.used = 2;
    header->rows.used = ROWS - 10;
    strcpy(header->mode, "usage");
    strcpy(header->source, "active");
    strcpy(sample.kernels[0].name, "fill");
    strcpy(sample.kernels[1].name, "a\nb");
    strcpy(sample.kernels[2].name, "not complete");
    sample.kernels[0].launches = 12;
    for (uint32_t i = 0; i < ROWS; i++) {
        sample.rows[i].live = i % 2;
        sample.rows[i].address = 0x1000 * i;
        sample.rows[i].bytes = i;
        sample.rows[i].copies = i + 1;
        sample.rows[i].sequence = 2 * i;
    }
}

static int file_of(const void *bytes, size_t size)
{
    int fd = memfd_create("diag", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
    return fd;
}

static int attach(void)
{
    int fd = file_of(&sample, sizeof(sample));
    int error = rmm__diag_attach(&file, fd);
    if (error != 0) {
        close(fd);
    }
    return error;
}

static int set_up(void **state)
{
    make();
    return 0;
}

static int close_file(void **state)
{
    rmm__diag_close(&file);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, close_file)

typedef struct seen {
    uint32_t count, last;
    uint64_t bytes;
    uint32_t stop_after;
} seen_t;

static bool see(const rmm_diag_row_info_t *row, void *arg)
{
    seen_t *seen = arg;
    assert_int_equal(row->address, 0x1000 * row->bytes);
    assert_int_equal(row->copies, row->bytes + 1);
    seen->count++;
    seen->bytes += row->bytes;
    return seen->count != seen->stop_after;
}

CASE(what_holds_together_is_read)
{
    rmm_diag_kernel_info_t kernel;
    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__diag_kernel_count(&file), 2);
    assert_int_equal(rmm__diag_row_count(&file), ROWS - 10);
    assert_string_equal(file.header.source, "active");
    assert_true(rmm__diag_read_kernel(&file, 0, &kernel));
    assert_string_equal(kernel.name, "fill");
    assert_int_equal(kernel.launches, 12);
    assert_true(rmm__diag_read_kernel(&file, 1, &kernel));
    assert_string_equal(kernel.name, "a?b");
    assert_false(rmm__diag_read_kernel(&file, 2, &kernel));
    assert_false(rmm__diag_read_kernel(&file, UINT32_MAX, &kernel));
    seen_t seen = {0};
    assert_int_equal(rmm__diag_each_row(&file, see, &seen), 0);
    assert_int_equal(seen.count, (ROWS - 10) / 2);
    seen = (seen_t){.stop_after = 70};
    assert_int_equal(rmm__diag_each_row(&file, see, &seen), 0);
    assert_int_equal(seen.count, 70);
}

CASE(users_are_kernels_and_functions)
{
    char name[RMM_DIAG_NAME_BYTES];
    assert_int_equal(attach(), 0);
    assert_true(rmm__diag_read_user(&file, 0, name));
    assert_string_equal(name, "fill");
    assert_true(rmm__diag_read_user(&file, RMM_DIAG_FUNCTION, name));
    assert_string_equal(name, "cuMemcpy?");
    assert_false(rmm__diag_read_user(&file, 2, name));
    assert_false(rmm__diag_read_user(&file, RMM_DIAG_FUNCTION | 1, name));
    assert_false(rmm__diag_read_user(&file, RMM_DIAG_NO_USER, name));
    assert_string_equal(name, "");
}

CASE(a_peak_has_its_own_parts_only)
{
    rmm_diag_groups_t *groups = rmm__diag_groups_create();
    rmm_diag_composition_t composition;
    sample.header.rows.used = 0;
    assert_non_null(groups);
    assert_int_equal(attach(), 0);
    assert_false(
        rmm__diag_read_composition(&file, 0, groups, &composition)); /* none yet */
    assert_false(rmm__diag_read_composition(&file, PEAKS, groups, &composition));
    assert_true(rmm__diag_read_composition(&file, 1, groups, &composition));
    assert_int_equal(groups->count, 1);
    assert_int_equal(groups->entries[0].bytes, 13 + 14); /* the last part is stale */
    assert_int_equal(composition.missing_bytes, 100 - 27);
    free(groups);
}

static bool count_part(const rmm_diag_part_info_t *part, void *arg)
{
    uint64_t *bytes = arg;

    *bytes += part->bytes;
    return true;
}

CASE(parts_of_a_peak_that_is_not_there_are_none)
{
    uint64_t bytes = 0;

    sample.header.peaks.used = 1;
    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__diag_each_part(&file, 0, 7, count_part, &bytes), 0);
    assert_int_equal(bytes, 10 + 11 + 12);
    assert_int_equal(rmm__diag_each_part(&file, 1, 7, count_part, &bytes), 0);
    assert_int_equal(rmm__diag_each_part(&file, PEAKS, 7, count_part, &bytes), 0);
    assert_int_equal(bytes, 10 + 11 + 12);
}

CASE(a_finding_reaches_beyond_its_block)
{
    static const struct {
        uint64_t address, bytes, beyond;
    } cases[] = {{100, 50, 0}, {100, 51, 1}, {149, 1, 0}, {150, 8, 8}, {40, 20, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const rmm_diag_finding_info_t finding = {
            .address = cases[i].address,
            .bytes = cases[i].bytes,
            .block_address = 100,
            .block_bytes = 50};

        assert_int_equal(rmm__diag_bytes_beyond(&finding), cases[i].beyond);
    }
}

CASE(a_resource_is_known_by_its_id)
{
    rmm_diag_resource_name_t name;

    sample.resources[2] =
        (rmm_diag_resource_t){.id = 6, .type = "pool", .name = "a\nb"};
    memset(sample.resources[3].type, 'x', sizeof(sample.resources[3].type));
    memset(sample.resources[3].name, 'y', sizeof(sample.resources[3].name));
    sample.resources[3].id = 3;
    assert_int_equal(attach(), 0);
    rmm__diag_read_resource(&file, 6, &name);
    assert_string_equal(name.type, "pool");
    assert_string_equal(name.name, "a?b");
    rmm__diag_read_resource(&file, 3, &name); /* no end of its strings */
    assert_int_equal(strlen(name.type), sizeof(name.type) - 1);
    assert_int_equal(strlen(name.name), sizeof(name.name) - 1);
    rmm__diag_read_resource(&file, 2, &name); /* another one has its entry */
    assert_string_equal(name.type, "");
    rmm__diag_read_resource(&file, 0, &name);
    assert_string_equal(name.type, "");
    rmm__diag_read_resource(&file, UINT32_MAX, &name);
    assert_string_equal(name.type, "");
}

CASE(a_site_is_looked_up_in_its_table_only)
{
    rmm_diag_stack_info_t stack;
    sample.sites[1].frame_count = UINT32_MAX;
    sample.sites[1].offsets[0] = 42;
    assert_int_equal(attach(), 0);
    assert_true(rmm__diag_read_site(&file, 2, &stack));
    assert_int_equal(stack.frame_count, RMM_DIAG_FRAMES_COUNT);
    assert_int_equal(stack.offsets[0], 42);
    assert_false(rmm__diag_read_site(&file, 0, &stack)); /* not known */
    assert_false(rmm__diag_read_site(&file, 1, &stack)); /* not written yet */
    assert_false(rmm__diag_read_site(&file, SITES + 1, &stack));
    assert_false(rmm__diag_read_site(&file, UINT32_MAX, &stack));
}

/* --- findings ------------------------------------------------------------------------ */

typedef struct findings_sample {
    rmm_diag_header_t header;
    rmm_diag_kernel_t kernels[1];
    rmm_diag_finding_t findings[2];
} findings_sample_t;

static bool keep_finding(const rmm_diag_finding_info_t *finding, void *arg)
{
    rmm_diag_finding_info_t *kept = arg;
    kept[finding->index] = *finding;
    return true;
}

static findings_sample_t sample_of_findings(void)
{
    findings_sample_t made = {.header = sample.header};
    made.header.file_bytes = sizeof(made);
    made.header.kernels.offset = offsetof(findings_sample_t, kernels);
    made.header.kernels.count = 1;
    made.header.kernels.used = 1;
    made.header.rows.offset = sizeof(rmm_diag_header_t);
    made.header.rows.count = 0;
    made.header.functions.count = 0;
    made.header.peaks.count = 0;
    made.header.parts.count = 0;
    made.header.verdicts.count = 0;
    made.header.sites.count = 0;
    made.header.resources.count = 0;
    made.header.findings.offset = offsetof(findings_sample_t, findings);
    made.header.findings.stride = sizeof(rmm_diag_finding_t);
    made.header.findings.count = 2;
    made.header.findings.used = 2;
    strcpy(made.kernels[0].name, "reduce");
    made.findings[0].kind = RMM_DIAG_FREE_UNORDERED;
    made.findings[0].access = RMM_DIAG_FREES;
    made.findings[0].user = RMM_DIAG_NO_USER;
    made.findings[0].other_user = 0;
    made.findings[0].other_call = RMM_DIAG_LAUNCH;
    made.findings[0].stream_id = 5;
    made.findings[0].other_stream_id = 6;
    made.findings[1].kind = RMM_DIAG_USE_UNORDERED;
    made.findings[1].user = 7; /* not complete, or scribbled */
    made.findings[1].other_user = RMM_DIAG_FUNCTION | 99;
    memcpy(made.findings[1].function, "call", 4);
    return made;
}

CASE(a_finding_of_order_names_who_was_before)
{
    findings_sample_t made = sample_of_findings();
    rmm_diag_finding_info_t kept[2];
    assert_int_equal(rmm__diag_attach(&file, file_of(&made, sizeof(made))), 0);
    assert_int_equal(rmm__diag_each_finding(&file, keep_finding, kept), 0);
    assert_string_equal(kept[0].other_function, "reduce");
    assert_string_equal(kept[0].function, "");
    assert_int_equal(kept[0].other_call, RMM_DIAG_LAUNCH);
    assert_int_equal(kept[0].stream_id, 5);
    assert_int_equal(kept[0].other_stream_id, 6);
    assert_string_equal(kept[1].function, "call");
    assert_string_equal(kept[1].other_function, "");
    assert_int_equal(kept[1].other_call, 0);
}

CASE(a_row_that_changes_all_the_time_is_counted_but_not_shown)
{
    sample.rows[1].sequence = 7;
    sample.rows[99].sequence = 9;
    sample.rows[98].sequence = 9; /* moving, and perhaps dead */
    assert_int_equal(attach(), 0);
    seen_t seen = {0};
    assert_int_equal(rmm__diag_each_row(&file, see, &seen), 3);
    assert_int_equal(seen.count, (ROWS - 10) / 2 - 2);
}

/* Row 1 gets another block, once. */
static void write_row(int fd, uint64_t offset)
{
    const rmm_diag_row_t row = {
        .live = 1,
        .sequence = 4,
        .address = 0x1000 * 5000,
        .bytes = 5000,
        .copies = 5001};
    if (offset == offsetof(sample_t, rows)) {
        off_t at = offsetof(sample_t, rows) + sizeof(row);
        assert_int_equal(pwrite(fd, &row, sizeof(row), at), sizeof(row));
        amid = NULL;
    }
}

CASE(a_row_that_is_written_meanwhile_is_read_again)
{
    seen_t before = {0}, after = {0};
    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__diag_each_row(&file, see, &before), 0);
    amid = write_row;
    assert_int_equal(rmm__diag_each_row(&file, see, &after), 0);
    assert_null(amid);
    assert_int_equal(after.count, before.count);
    assert_int_equal(after.bytes, before.bytes - 1 + 5000);
}

CASE(what_does_not_hold_together_is_refused)
{
#define REFUSES(change, error)                                                         \
    do {                                                                               \
        make();                                                                        \
        change;                                                                        \
        assert_int_equal(attach(), error);                                             \
    } while (0)
    REFUSES(sample.header.magic++, -EPROTO);
    REFUSES(sample.header.version_major++, -EPROTO);
    REFUSES(sample.header.ready = 0, -EAGAIN);
    REFUSES(sample.header.file_bytes++, -EPROTO);
    REFUSES(sample.header.header_bytes = 8, -EPROTO);
    REFUSES(sample.header.kernels.offset = 0, -EPROTO);
    REFUSES(sample.header.kernels.offset++, -EPROTO);
    REFUSES(sample.header.kernels.stride = 0, -EPROTO);
    REFUSES(sample.header.kernels.stride = 264 * 1024, -EPROTO);
    REFUSES(sample.header.kernels.count = UINT32_MAX, -EPROTO);
    REFUSES(sample.header.rows.offset = UINT32_MAX & ~7u, -EPROTO);
    REFUSES(sample.header.rows.stride = 88, -EPROTO);
    REFUSES(sample.header.rows.count = UINT32_MAX, -EPROTO);
    REFUSES(sample.header.functions.count = 100, -EPROTO);
    REFUSES(sample.header.functions.stride = 56, -EPROTO);
    REFUSES(sample.header.header_bytes -= 8, -EPROTO);
    REFUSES(sample.header.peaks.count = 100, -EPROTO);
    REFUSES(sample.header.parts.count = 100, -EPROTO);
    REFUSES(sample.header.parts.offset = 8, -EPROTO);
    REFUSES(sample.header.verdicts.count = 100, -EPROTO);
    REFUSES(sample.header.verdicts.stride = 48, -EPROTO);
    REFUSES(sample.header.sites.count = 100, -EPROTO);
    REFUSES(sample.header.resources.count++, -EPROTO);
    REFUSES(sample.header.resources.stride = 88, -EPROTO);
    REFUSES(sample.header.sites.stride = 192, -EPROTO);
    make();
    sample.header.kernels.used = UINT32_MAX; /* more than there is room for */
    sample.header.rows.used = UINT32_MAX;
    memset(sample.header.source, 'x', sizeof(sample.header.source));
    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__diag_kernel_count(&file), KERNELS);
    assert_int_equal(rmm__diag_row_count(&file), ROWS);
    assert_int_equal(strlen(file.header.source), sizeof(file.header.source) - 1);
    rmm__diag_close(&file);
    int fd = file_of(&sample, 100);
    assert_int_equal(rmm__diag_attach(&file, fd), -EPROTO);
    close(fd);
}

CASE(a_file_cut_while_it_is_read_ends_the_walk)
{
    rmm_diag_kernel_info_t kernel;
    assert_int_equal(attach(), 0);
    assert_int_equal(ftruncate(file.fd, offsetof(sample_t, rows[70])), 0);
    seen_t seen = {0};
    assert_int_equal(rmm__diag_each_row(&file, see, &seen), 0);
    assert_int_equal(seen.count, 32);
    assert_int_equal(ftruncate(file.fd, 300), 0);
    assert_false(rmm__diag_read_kernel(&file, 0, &kernel));
}

CASE(only_a_regular_file_of_its_owner_is_opened)
{
    const char *name = "0.0123456789abcdef";
    runtime_t runtime;
    runtime_open(&runtime);
    assert_int_equal(rmm__diag_open(&file, runtime.fd, name, geteuid()), -ENOENT);
    int fd = openat(runtime.fd, "0.0123456789abcdef.diag", O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(fd, &sample, sizeof(sample)), sizeof(sample));
    close(fd);
    assert_int_equal(rmm__diag_open(&file, runtime.fd, name, geteuid()), 0);
    rmm__diag_close(&file);
    assert_int_equal(rmm__diag_open(&file, runtime.fd, name, geteuid() + 1), -EPROTO);
    assert_int_equal(
        linkat(runtime.fd, "0.0123456789abcdef.diag", runtime.fd, "other", 0), 0);
    assert_int_equal(rmm__diag_open(&file, runtime.fd, name, geteuid()), -EPROTO);
    assert_int_equal(unlinkat(runtime.fd, "0.0123456789abcdef.diag", 0), 0);
    assert_int_equal(symlinkat("other", runtime.fd, "0.0123456789abcdef.diag"), 0);
    assert_int_equal(rmm__diag_open(&file, runtime.fd, name, geteuid()), -ELOOP);
    assert_int_equal(unlinkat(runtime.fd, "0.0123456789abcdef.diag", 0), 0);
    assert_int_equal(mkfifoat(runtime.fd, "0.0123456789abcdef.diag", 0600), 0);
    assert_int_equal(rmm__diag_open(&file, runtime.fd, name, geteuid()), -EPROTO);
    runtime_close(&runtime);
}

CASE(each_class_of_findings_is_explained)
{
    static char page[1 << 16];
    char path[4096], word[64];
    FILE *in = NULL;

    snprintf(path, sizeof(path), "%s/docs/diagnostics.md", getenv("RMM_SOURCE_DIR"));
    in = fopen(path, "r");
    assert_non_null(in);
    page[fread(page, 1, sizeof(page) - 1, in)] = '\0';
    fclose(in);
    for (uint32_t kind = 1; kind < 64; kind++) {
        const rmm_diag_finding_class_t *class = rmm__diag_finding_class(kind);

        snprintf(word, sizeof(word), "`%s`", class->name);
        if (class != rmm__diag_finding_class(0) && strstr(page, word) == NULL) {
            fail_msg("docs/diagnostics.md lacks the class %s", word);
        }
    }
}

CASE(what_a_newer_writer_knows_has_the_name_unknown)
{
    assert_string_equal(
        rmm__diag_finding_name(RMM_DIAG_OUT_OF_BOUNDS), "out_of_bounds");
    assert_string_equal(rmm__diag_finding_name(0), "unknown");
    assert_string_equal(rmm__diag_finding_name(UINT32_MAX), "unknown");
    assert_string_equal(rmm__diag_access_name(RMM_DIAG_READS), "read");
    assert_string_equal(rmm__diag_access_name(RMM_DIAG_WRITES), "write");
    assert_string_equal(rmm__diag_access_name(99), "unknown");
}
