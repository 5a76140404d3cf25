/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of findings: the engine captures who made a call that was found, once, and the reader
 * takes from a file what can be true.
 */
#include "harness/harness.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/stacks_reader.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define BYTES 1000u

static diag_fixture_t diag;
static rmm_diag_file_t file = {.fd = -1};

static int set_up(void **state)
{
    rmm_diag_block_v1_t block = {.address = BASE, .bytes = BYTES};

    diag = diag_open(16, 4, NULL);
    rmm__diag_engine_publish(diag.engine, "active");
    rmm__diag_engine_on_alloc(diag.engine, &block);
    return 0;
}

static int tear_down(void **state)
{
    rmm__diag_close(&file);
    diag_close(&diag);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static void overrun(uint64_t bytes)
{
    const uint64_t word = BASE;
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_SET,
        .name = "call",
        .words = &word,
        .word_count = 1,
        .bytes = bytes,
        .before = 1};

    rmm__diag_engine_on_event(diag.engine, &event);
}

/* The file as it is now. */
static int attach(void)
{
    int fd = memfd_create("diag", MFD_CLOEXEC), error;

    assert_true(fd >= 0);
    assert_int_equal(
        write(fd, diag.header, diag.header->file_bytes), diag.header->file_bytes);
    rmm__diag_close(&file);
    error = rmm__diag_attach(&file, fd);
    if (error != 0) {
        close(fd);
    }
    return error;
}

static rmm_diag_stack_t *stack_at(uint32_t index)
{
    char *memory = (char *)diag.header;
    return (rmm_diag_stack_t *)(void *)(memory + diag.header->stacks.offset) + index;
}

static rmm_diag_module_t *module_at(uint32_t index)
{
    char *memory = (char *)diag.header;
    return (rmm_diag_module_t *)(void *)(memory + diag.header->modules.offset) + index;
}

CASE(a_new_finding_has_the_stack_of_its_caller)
{
    rmm_diag_stack_info_t stack;
    rmm_diag_module_info_t module;
    char program[4096] = "";
    bool found = false;

    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    overrun(BYTES + 1);
    assert_int_equal(attach(), 0);
    assert_true(rmm__diag_read_stack(&file, 0, &stack));
    assert_in_range(stack.frame_count, 2, RMM_DIAG_FRAMES_COUNT);
    for (uint32_t i = 0; i < stack.frame_count; i++) {
        assert_true(rmm__diag_read_module(&file, stack.modules[i], &module));
        assert_true(stack.offsets[i] < 1u << 30);
        found = found || strcmp(module.path, program) == 0;
    }
    assert_true(found);
    assert_false(rmm__diag_read_stack(&file, 1, &stack));
}

CASE(each_kind_is_captured_once)
{
    rmm_diag_stack_t first;
    rmm_diag_stack_info_t stack;

    overrun(BYTES + 1);
    memcpy(&first, stack_at(0), sizeof(first));
    overrun(BYTES + 1);
    assert_memory_equal(&first, stack_at(0), sizeof(first));
    for (uint32_t i = 2; i < 400; i++) { /* more than have room */
        overrun(BYTES + i);
    }
    assert_int_equal(attach(), 0);
    assert_true(rmm__diag_read_stack(&file, 255, &stack));
    assert_false(rmm__diag_read_stack(&file, 256, &stack));
    assert_in_range(diag.header->modules.used, 1, 16);
}

CASE(inconsistent_tables_are_refused)
{
    const rmm_diag_header_t good = *diag.header;
#define REFUSES(change)                                                                \
    do {                                                                               \
        *diag.header = good;                                                           \
        diag.header->change;                                                           \
        assert_int_equal(attach(), -EPROTO);                                           \
    } while (0)
    REFUSES(stacks.count = UINT32_MAX);
    REFUSES(stacks.count = good.stacks.count + 100000);
    REFUSES(stacks.offset = 0);
    REFUSES(stacks.offset++);
    REFUSES(stacks.stride = 192);
    REFUSES(modules.count = UINT32_MAX);
    REFUSES(modules.stride = 8);
    REFUSES(modules.offset = UINT32_MAX & ~7u);
    *diag.header = good;
    diag.header->stacks.count = diag.header->modules.count = 0; /* of an older writer */
    assert_int_equal(attach(), 0);
}

CASE(cuts_values_that_exceed_the_tables)
{
    rmm_diag_stack_info_t stack;
    rmm_diag_module_info_t module;

    overrun(BYTES + 1);
    stack_at(0)->frame_count = UINT32_MAX;
    stack_at(0)->modules[3] = 77777;
    memset(module_at(0)->path, '\n', sizeof(module_at(0)->path));
    module_at(0)->build_id_bytes = UINT32_MAX;
    diag.header->modules.used = UINT32_MAX;
    assert_int_equal(attach(), 0);
    assert_true(rmm__diag_read_stack(&file, 0, &stack));
    assert_int_equal(stack.frame_count, RMM_DIAG_FRAMES_COUNT);
    assert_false(rmm__diag_read_module(&file, 77777, &module));
    assert_false(rmm__diag_read_module(&file, UINT32_MAX, &module));
    assert_true(rmm__diag_read_module(&file, 0, &module));
    assert_int_equal(module.build_id_bytes, sizeof(module.build_id));
    assert_int_equal(strlen(module.path), sizeof(module.path) - 1);
    assert_null(strchr(module.path, '\n'));
    stack_at(0)->sequence |= 1; /* being written */
    assert_int_equal(attach(), 0);
    assert_false(rmm__diag_read_stack(&file, 0, &stack));
}
