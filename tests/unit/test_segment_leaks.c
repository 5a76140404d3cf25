/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of the list of leaks, on files made by hand: what holds together is read,
 * what does not is refused, and a row that moves is never shown half.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/runtime.h"
#include "segment/segment_leaks_reader.h"
#include "segment/segment_side.h"

#define ROWS 200

#define MODULES 5

typedef struct sample {
    rmm_leaks_header_t header;
    rmm_leaks_module_t modules[MODULES];
    rmm_leaks_row_t rows[ROWS];
} sample_t;

static sample_t sample;
static rmm_leaks_file_t file = {.fd = -1};

static void make(void)
{
    rmm_leaks_header_t *header = &sample.header;

    memset(&sample, 0, sizeof(sample));
    header->magic = RMM_LEAKS_MAGIC;
    header->version_major = RMM_LEAKS_MAJOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(sample);
    header->rows_offset = offsetof(sample_t, rows);
    header->rows_stride = sizeof(rmm_leaks_row_t);
    header->rows_count = ROWS;
    header->rows_used = ROWS - 10;
    header->modules_offset = offsetof(sample_t, modules);
    header->modules_stride = sizeof(rmm_leaks_module_t);
    header->modules_count = MODULES;
    header->modules_used = MODULES - 1;
    header->ready = 1;
    for (uint32_t i = 0; i < MODULES; i++) {
        sample.modules[i] = (rmm_leaks_module_t){
            .begin = 100 * i, .end = 100 * i + 50, .base = i, .path = "/lib/one.so"};
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        rmm_leaks_row_t *row = &sample.rows[i];

        row->sequence = 2 * i;
        row->resource_id = i % 2;
        row->address = 0x1000 * i;
        row->bytes = i;
        row->stream = 3 * i;
        row->thread = 5 * i;
        row->device = -(int32_t)i;
        row->frame_count = i % 3;
        row->frames[0] = i;
        row->frames[1] = i + 1;
    }
}

static int file_of(const void *bytes, size_t size)
{
    int fd = memfd_create("leaks", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
    return fd;
}

static int attach(void)
{
    int fd = file_of(&sample, sizeof(sample));
    int error = rmm__leaks_attach(&file, fd);

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
    rmm__leaks_close(&file);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, close_file)

typedef struct seen {
    uint32_t count, stop_after;
} seen_t;

static bool see(const rmm_leak_info_t *leak, void *arg)
{
    seen_t *seen = arg;

    assert_int_equal(leak->address, 0x1000 * leak->bytes);
    assert_int_equal(leak->stream, 3 * leak->bytes);
    assert_int_equal(leak->thread, 5 * leak->bytes);
    assert_int_equal(leak->device, -(int)leak->bytes);
    assert_int_equal(leak->frame_count, leak->bytes % 3);
    for (uint32_t i = 0; i < leak->frame_count; i++) {
        assert_int_equal(leak->frames[i], leak->bytes + i);
    }
    seen->count++;
    return seen->count != seen->stop_after;
}

CASE(what_holds_together_is_read)
{
    seen_t seen = {0, 0};

    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__leaks_each(&file, see, &seen), 0);
    assert_int_equal(seen.count, (ROWS - 10) / 2);
    seen = (seen_t){0, 70};
    assert_int_equal(rmm__leaks_each(&file, see, &seen), 0);
    assert_int_equal(seen.count, 70);
}

static bool see_many_frames(const rmm_leak_info_t *leak, void *arg)
{
    *(bool *)arg |= leak->frame_count == RMM_LEAKS_FRAMES;
    assert_true(leak->frame_count <= RMM_LEAKS_FRAMES);
    return true;
}

CASE(more_than_there_is_room_for_is_cut)
{
    bool saw = false;

    sample.header.rows_used = UINT32_MAX;
    sample.rows[1].frame_count = UINT32_MAX;
    sample.rows[3].frame_count = RMM_LEAKS_FRAMES + 1;
    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__leaks_each(&file, see_many_frames, &saw), 0);
    assert_true(saw);
}

CASE(a_row_that_changes_all_the_time_is_counted_but_not_shown)
{
    seen_t seen = {0, 0};

    sample.rows[1].sequence = 7;
    sample.rows[99].sequence = 9;
    sample.rows[98].sequence = 9; /* moving, and perhaps empty */
    assert_int_equal(attach(), 0);
    assert_int_equal(rmm__leaks_each(&file, see, &seen), 3);
    assert_int_equal(seen.count, (ROWS - 10) / 2 - 2);
}

CASE(what_does_not_hold_together_is_refused)
{
    int fd;

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
    REFUSES(sample.header.rows_offset = 0, -EPROTO);
    REFUSES(sample.header.rows_offset++, -EPROTO);
    REFUSES(sample.header.rows_offset = UINT32_MAX & ~7u, -EPROTO);
    REFUSES(sample.header.rows_stride = 184, -EPROTO);
    REFUSES(sample.header.rows_stride = 196, -EPROTO);
    REFUSES(sample.header.rows_stride = 64 * 1024, -EPROTO);
    REFUSES(sample.header.rows_count = 1; sample.header.rows_used = 1;
            sample.header.rows_stride = RMM_SIDE_STRIDE_MAX + 8, -EPROTO);
    REFUSES(sample.header.rows_count = 1;
            sample.header.rows_offset =
                (uint32_t)(sizeof(sample) - sizeof(sample.rows[0]) + 8),
            -EPROTO);
    REFUSES(sample.header.rows_count++, -EPROTO);
    REFUSES(sample.header.rows_count = UINT32_MAX, -EPROTO);
    REFUSES(sample.header.modules_offset = 0, -EPROTO);
    REFUSES(sample.header.modules_offset++, -EPROTO);
    REFUSES(sample.header.modules_stride = 248, -EPROTO);
    REFUSES(sample.header.modules_stride = UINT32_MAX & ~7u, -EPROTO);
    REFUSES(sample.header.modules_count = UINT32_MAX, -EPROTO);
    make();
    fd = file_of(&sample, 100);
    assert_int_equal(rmm__leaks_attach(&file, fd), -EPROTO);
    close(fd);
}

CASE(a_file_cut_while_it_is_read_ends_the_walk)
{
    seen_t seen = {0, 0};

    assert_int_equal(attach(), 0);
    assert_int_equal(ftruncate(file.fd, offsetof(sample_t, rows[70])), 0);
    assert_int_equal(rmm__leaks_each(&file, see, &seen), 0);
    assert_int_equal(seen.count, 32); /* of the first 64 rows */
}

typedef struct seen_modules {
    uint64_t begins[MODULES];
    char last_path[RMM_LEAKS_PATH_BYTES];
    uint32_t count, stop_after;
} seen_modules_t;

static bool see_module(const rmm_leaks_module_t *module, void *arg)
{
    seen_modules_t *seen = arg;

    assert_true(seen->count < MODULES);
    assert_non_null(memchr(module->path, '\0', sizeof(module->path)));
    seen->begins[seen->count++] = module->begin;
    memcpy(seen->last_path, module->path, sizeof(module->path));
    return seen->count != seen->stop_after;
}

CASE(complete_modules_are_returned_in_order)
{
    seen_modules_t seen = {0};
    const uint32_t all = MODULES;

    assert_int_equal(attach(), 0);
    rmm__leaks_each_module(&file, see_module, &seen);
    assert_int_equal(seen.count, MODULES - 1);
    for (uint32_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.begins[i], 100 * i);
    }
    assert_string_equal(seen.last_path, "/lib/one.so");
    /* one more is loaded while the file is open */
    assert_int_equal(
        pwrite(file.fd, &all, sizeof(all), offsetof(rmm_leaks_header_t, modules_used)),
        sizeof(all));
    seen = (seen_modules_t){0};
    rmm__leaks_each_module(&file, see_module, &seen);
    assert_int_equal(seen.count, MODULES);
    seen = (seen_modules_t){.stop_after = 2};
    rmm__leaks_each_module(&file, see_module, &seen);
    assert_int_equal(seen.count, 2);
}

CASE(modules_that_make_no_sense_are_left_out_and_paths_cleaned)
{
    seen_modules_t seen = {0};

    sample.header.modules_used = UINT32_MAX;
    sample.modules[0].end = 0;
    sample.modules[1].end = sample.modules[1].begin;
    memset(sample.modules[MODULES - 1].path, '\n', RMM_LEAKS_PATH_BYTES);
    assert_int_equal(attach(), 0);
    rmm__leaks_each_module(&file, see_module, &seen);
    assert_int_equal(seen.count, MODULES - 2);
    assert_int_equal(strlen(seen.last_path), RMM_LEAKS_PATH_BYTES - 1);
    assert_int_equal(strspn(seen.last_path, "?"), RMM_LEAKS_PATH_BYTES - 1);
    assert_int_equal(ftruncate(file.fd, offsetof(sample_t, modules[3])), 0);
    seen = (seen_modules_t){0};
    rmm__leaks_each_module(&file, see_module, &seen);
    assert_int_equal(seen.count, 1);
}

CASE(only_a_regular_file_of_its_owner_is_opened)
{
    static const char segment[] = "0.0123456789abcdef";
    static const char name[] = "0.0123456789abcdef.leaks";
    runtime_t runtime;
    int fd;

    runtime_open(&runtime);
    assert_int_equal(rmm__leaks_open(&file, runtime.fd, segment, geteuid()), -ENOENT);
    fd = openat(runtime.fd, name, O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(fd, &sample, sizeof(sample)), sizeof(sample));
    close(fd);
    assert_int_equal(rmm__leaks_open(&file, runtime.fd, segment, geteuid()), 0);
    rmm__leaks_close(&file);
    assert_int_equal(
        rmm__leaks_open(&file, runtime.fd, segment, geteuid() + 1), -EPROTO);
    assert_int_equal(linkat(runtime.fd, name, runtime.fd, "other", 0), 0);
    assert_int_equal(rmm__leaks_open(&file, runtime.fd, segment, geteuid()), -EPROTO);
    assert_int_equal(unlinkat(runtime.fd, name, 0), 0);
    assert_int_equal(symlinkat("other", runtime.fd, name), 0);
    assert_int_equal(rmm__leaks_open(&file, runtime.fd, segment, geteuid()), -ELOOP);
    assert_int_equal(unlinkat(runtime.fd, name, 0), 0);
    assert_int_equal(mkfifoat(runtime.fd, name, 0600), 0);
    assert_int_equal(rmm__leaks_open(&file, runtime.fd, segment, geteuid()), -EPROTO);
    runtime_close(&runtime);
}
