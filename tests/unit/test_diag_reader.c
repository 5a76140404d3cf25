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

#include "diag/diag_reader.h"
#include "harness/runtime.h"

#define KERNELS 3
#define ROWS 200

typedef struct sample {
    rmm_diag_header_t header;
    rmm_diag_kernel_t kernels[KERNELS];
    rmm_diag_row_t rows[ROWS];
} sample_t;

static void make(sample_t *sample)
{
    rmm_diag_header_t *header = &sample->header;
    memset(sample, 0, sizeof(*sample));
    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(*sample);
    header->kernels_offset = offsetof(sample_t, kernels);
    header->kernels_stride = sizeof(rmm_diag_kernel_t);
    header->kernels_count = KERNELS;
    header->rows_offset = offsetof(sample_t, rows);
    header->rows_stride = sizeof(rmm_diag_row_t);
    header->rows_count = ROWS;
    header->ready = 1;
    header->kernels_used = 2;
    header->rows_used = ROWS - 10;
    strcpy(header->mode, "usage");
    strcpy(header->source, "active");
    strcpy(sample->kernels[0].name, "fill");
    strcpy(sample->kernels[1].name, "a\nb");
    strcpy(sample->kernels[2].name, "not complete");
    sample->kernels[0].launches = 12;
    for (uint32_t i = 0; i < ROWS; i++) {
        sample->rows[i].live = i % 2;
        sample->rows[i].address = 0x1000 * i;
        sample->rows[i].bytes = i;
        sample->rows[i].sequence = 2 * i;
    }
}

static int file_of(const void *bytes, size_t size)
{
    int fd = memfd_create("diag", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
    return fd;
}

static int attach(const sample_t *sample, rmm_diag_file_t *file)
{
    int fd = file_of(sample, sizeof(*sample));
    int error = rmm_diag_attach(file, fd);
    if (error != 0) {
        close(fd);
    }
    return error;
}

typedef struct seen {
    uint32_t count, last;
    uint64_t bytes;
    uint32_t stop_after;
} seen_t;

static bool see(const rmm_diag_row_info_t *row, void *arg)
{
    seen_t *seen = arg;
    assert_int_equal(row->address, 0x1000 * row->bytes);
    seen->count++;
    seen->bytes += row->bytes;
    return seen->count != seen->stop_after;
}

static void what_holds_together_is_read(void **state)
{
    (void)state;
    sample_t *sample = malloc(sizeof(*sample));
    rmm_diag_file_t file;
    rmm_diag_kernel_info_t kernel;
    make(sample);
    assert_int_equal(attach(sample, &file), 0);
    assert_int_equal(rmm_diag_kernel_count(&file), 2);
    assert_int_equal(rmm_diag_row_count(&file), ROWS - 10);
    assert_string_equal(file.header.source, "active");
    assert_true(rmm_diag_read_kernel(&file, 0, &kernel));
    assert_string_equal(kernel.name, "fill");
    assert_int_equal(kernel.launches, 12);
    assert_true(rmm_diag_read_kernel(&file, 1, &kernel));
    assert_string_equal(kernel.name, "a?b");
    assert_false(rmm_diag_read_kernel(&file, 2, &kernel));
    assert_false(rmm_diag_read_kernel(&file, UINT32_MAX, &kernel));
    seen_t seen = {0};
    assert_int_equal(rmm_diag_each_row(&file, see, &seen), 0);
    assert_int_equal(seen.count, (ROWS - 10) / 2);
    seen = (seen_t){.stop_after = 70};
    assert_int_equal(rmm_diag_each_row(&file, see, &seen), 0);
    assert_int_equal(seen.count, 70);
    rmm_diag_close(&file);
    free(sample);
}

static void a_row_that_moves_all_the_while_is_counted_not_shown(void **state)
{
    (void)state;
    sample_t *sample = malloc(sizeof(*sample));
    rmm_diag_file_t file;
    make(sample);
    sample->rows[1].sequence = 7;
    sample->rows[99].sequence = 9;
    sample->rows[98].sequence = 9; /* moving, and perhaps dead */
    assert_int_equal(attach(sample, &file), 0);
    seen_t seen = {0};
    assert_int_equal(rmm_diag_each_row(&file, see, &seen), 3);
    assert_int_equal(seen.count, (ROWS - 10) / 2 - 2);
    rmm_diag_close(&file);
    free(sample);
}

static void what_does_not_hold_together_is_refused(void **state)
{
    (void)state;
    sample_t *sample = malloc(sizeof(*sample));
    rmm_diag_file_t file;
#define REFUSES(change, error)                                                         \
    do {                                                                               \
        make(sample);                                                                  \
        change;                                                                        \
        assert_int_equal(attach(sample, &file), error);                                \
    } while (0)
    REFUSES(sample->header.magic++, -EPROTO);
    REFUSES(sample->header.version_major++, -EPROTO);
    REFUSES(sample->header.ready = 0, -EAGAIN);
    REFUSES(sample->header.file_bytes++, -EPROTO);
    REFUSES(sample->header.header_bytes = 8, -EPROTO);
    REFUSES(sample->header.kernels_offset = 0, -EPROTO);
    REFUSES(sample->header.kernels_offset++, -EPROTO);
    REFUSES(sample->header.kernels_stride = 0, -EPROTO);
    REFUSES(sample->header.kernels_stride = 264 * 1024, -EPROTO);
    REFUSES(sample->header.kernels_count = UINT32_MAX, -EPROTO);
    REFUSES(sample->header.rows_offset = UINT32_MAX & ~7u, -EPROTO);
    REFUSES(sample->header.rows_stride = 88, -EPROTO);
    REFUSES(sample->header.rows_count++, -EPROTO);
    make(sample);
    sample->header.kernels_used = UINT32_MAX; /* more than there is room for */
    sample->header.rows_used = UINT32_MAX;
    memset(sample->header.source, 'x', sizeof(sample->header.source));
    assert_int_equal(attach(sample, &file), 0);
    assert_int_equal(rmm_diag_kernel_count(&file), KERNELS);
    assert_int_equal(rmm_diag_row_count(&file), ROWS);
    assert_int_equal(strlen(file.header.source), sizeof(file.header.source) - 1);
    rmm_diag_close(&file);
    int fd = file_of(sample, 100);
    assert_int_equal(rmm_diag_attach(&file, fd), -EPROTO);
    close(fd);
    free(sample);
}

static void a_file_cut_while_it_is_read_ends_the_walk(void **state)
{
    (void)state;
    sample_t *sample = malloc(sizeof(*sample));
    rmm_diag_file_t file;
    rmm_diag_kernel_info_t kernel;
    make(sample);
    assert_int_equal(attach(sample, &file), 0);
    assert_int_equal(ftruncate(file.fd, offsetof(sample_t, rows[70])), 0);
    seen_t seen = {0};
    assert_int_equal(rmm_diag_each_row(&file, see, &seen), 0);
    assert_int_equal(seen.count, 32);
    assert_int_equal(ftruncate(file.fd, 300), 0);
    assert_false(rmm_diag_read_kernel(&file, 0, &kernel));
    rmm_diag_close(&file);
    free(sample);
}

static void only_a_regular_file_of_its_owner_is_opened(void **state)
{
    (void)state;
    const char *name = "0.0123456789abcdef";
    runtime_t runtime;
    rmm_diag_file_t file;
    sample_t *sample = malloc(sizeof(*sample));
    make(sample);
    runtime_open(&runtime);
    assert_int_equal(rmm_diag_open(&file, runtime.fd, name, geteuid()), -ENOENT);
    int fd = openat(runtime.fd, "0.0123456789abcdef.diag", O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(fd, sample, sizeof(*sample)), sizeof(*sample));
    close(fd);
    assert_int_equal(rmm_diag_open(&file, runtime.fd, name, geteuid()), 0);
    rmm_diag_close(&file);
    assert_int_equal(rmm_diag_open(&file, runtime.fd, name, geteuid() + 1), -EPROTO);
    assert_int_equal(
        linkat(runtime.fd, "0.0123456789abcdef.diag", runtime.fd, "other", 0), 0);
    assert_int_equal(rmm_diag_open(&file, runtime.fd, name, geteuid()), -EPROTO);
    assert_int_equal(unlinkat(runtime.fd, "0.0123456789abcdef.diag", 0), 0);
    assert_int_equal(symlinkat("other", runtime.fd, "0.0123456789abcdef.diag"), 0);
    assert_int_equal(rmm_diag_open(&file, runtime.fd, name, geteuid()), -ELOOP);
    assert_int_equal(unlinkat(runtime.fd, "0.0123456789abcdef.diag", 0), 0);
    assert_int_equal(mkfifoat(runtime.fd, "0.0123456789abcdef.diag", 0600), 0);
    assert_int_equal(rmm_diag_open(&file, runtime.fd, name, geteuid()), -EPROTO);
    runtime_close(&runtime);
    free(sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_together_is_read),
        cmocka_unit_test(a_row_that_moves_all_the_while_is_counted_not_shown),
        cmocka_unit_test(what_does_not_hold_together_is_refused),
        cmocka_unit_test(a_file_cut_while_it_is_read_ends_the_walk),
        cmocka_unit_test(only_a_regular_file_of_its_owner_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
