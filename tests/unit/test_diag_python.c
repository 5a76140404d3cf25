/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of Python, without Python: frames that the test lays out as each version does, the
 * interpreter's own table of offsets, and the lines that are kept once. With real interpreters:
 * tests/sim/programs/test_python_lines.py.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diag/python_layout.h"
#include "diag/python_lines.h"

enum { OBJECT = 512, FRAMES = 12, OWNED_BY_C = 3, TYPE_AT = 8, SIZE_AT = 16 };

static const char code_type, other_type;

/* A thread state, what stands between it and its frames, frames from the innermost on, and a code
 * object of 20 instructions. */
typedef struct forged {
    _Alignas(16) char state[OBJECT], holder[OBJECT], frames[FRAMES][OBJECT],
        code[OBJECT];
} forged_t;

static forged_t forged;
static rmm_python_layout_t layout;
static rmm_python_frame_t found[RMM_PYTHON_FRAMES];

static void set(char *object, uint32_t offset, const void *value)
{
    memcpy(object + offset, &value, sizeof(value));
}

static void set_position(uint32_t frame, int instruction)
{
    char *at = forged.frames[frame] + layout.frame_at;
    int32_t number = instruction * (layout.at_bytes == 2 ? 1 : 2);

    if (layout.code_begin < 0) {
        memcpy(at, &number, sizeof(number));
    } else {
        set(forged.frames[frame], layout.frame_at,
            forged.code + layout.code_begin + 2 * (ptrdiff_t)instruction);
    }
}

static void lay_out(void)
{
    const int64_t instructions = 20;

    memset(&forged, 0, sizeof(forged));
    set(forged.state, layout.state_frame,
        layout.holder_frame < 0 ? forged.frames[0] : forged.holder);
    if (layout.holder_frame >= 0) {
        set(forged.holder, (uint32_t)layout.holder_frame, forged.frames[0]);
    }
    set(forged.code, TYPE_AT, &code_type);
    memcpy(forged.code + SIZE_AT, &instructions, sizeof(instructions));
    for (uint32_t i = 0; i < FRAMES; i++) {
        set(forged.frames[i], layout.frame_code, forged.code);
        set(forged.frames[i], layout.frame_back,
            i + 1 < FRAMES ? forged.frames[i + 1] : NULL);
        set_position(i, (int)i);
    }
}

static uint32_t walk(const rmm_python_probe_t *probe)
{
    memset(found, 0, sizeof(found));
    return rmm__python_walk(&layout, forged.state, &code_type, probe, found);
}

/* Of 3.13 and 3.14: the numbers are those of a build for x86-64. */
static void describe(int minor, uint64_t table[64])
{
    static const uint64_t values[] = {72, 8, 0, 56, 70, 112, 128, 68, 200};
    static const uint32_t where[2][9] = {
        {184, 232, 240, 248, 264, 280, 296, 312, 344},
        {208, 256, 264, 272, 288, 320, 336, 352, 384}};

    memset(table, 0, 64 * sizeof(table[0]));
    memcpy(table, "xdebugpy", 8);
    for (uint32_t i = 0; i < 9; i++) {
        table[where[minor - 13][i] / 8] = values[i];
    }
}

static void use_layout(int minor)
{
    uint64_t table[64];

    describe(minor < 13 ? 13 : minor, table);
    assert_true(rmm__python_layout_of(3, minor, table, &layout));
    lay_out();
}

TEST_CASE(versions_are_known_or_refused)
{
    uint64_t table[64];

    describe(13, table);
    for (int minor = 0; minor < 20; minor++) {
        assert_int_equal(
            rmm__python_layout_of(3, minor, NULL, &layout), minor >= 9 && minor < 13);
        assert_false(rmm__python_layout_of(2, minor, table, &layout));
        assert_false(rmm__python_layout_of(4, minor, table, &layout));
    }
    assert_false(rmm__python_layout_of(3, -1, table, &layout));
    assert_false(rmm__python_layout_of(3, 8, table, &layout));
    assert_false(rmm__python_layout_of(3, 15, table, &layout));
    for (int minor = 13; minor < 15; minor++) {
        describe(minor, table);
        assert_true(rmm__python_layout_of(3, minor, table, &layout));
        assert_int_equal(layout.state_frame, 72);
        assert_int_equal(layout.code_begin, 200);
    }
}

TEST_CASE(a_table_of_offsets_that_cannot_be_right_is_refused)
{
    uint64_t table[64];

    describe(14, table);
    table[2] = 1; /* without the GIL */
    assert_false(rmm__python_layout_of(3, 14, table, &layout));
    describe(14, table);
    table[0] ^= 1;
    assert_false(rmm__python_layout_of(3, 14, table, &layout));
    for (uint32_t i = 26; i < 49; i++) { /* each of those that are used */
        describe(14, table);
        bool is_used = table[i] != 0 || i == 33;

        table[i] = 100000;
        assert_int_equal(rmm__python_layout_of(3, 14, table, &layout), !is_used);
    }
}

TEST_CASE(the_innermost_frames_are_found_in_each_version)
{
    for (int minor = 9; minor < 15; minor++) {
        use_layout(minor);
        assert_int_equal(walk(NULL), RMM_PYTHON_FRAMES);
        for (uint32_t i = 0; i < RMM_PYTHON_FRAMES; i++) {
            assert_ptr_equal(found[i].code, forged.code);
            assert_int_equal(found[i].at, 2 * i);
            assert_int_equal(found[i].content, found[0].content);
        }
        set(forged.frames[2], layout.frame_back, NULL);
        assert_int_equal(walk(NULL), 3);
        set_position(0, -1); /* it has not begun */
        assert_int_equal(walk(NULL), 3);
        assert_int_equal(found[0].at, -1);
    }
}

TEST_CASE(frames_of_the_interpreter_are_skipped)
{
    for (int minor = 11; minor < 15; minor++) {
        use_layout(minor);
        forged.frames[0][layout.frame_owner] = OWNED_BY_C;
        forged.frames[2][layout.frame_owner] = OWNED_BY_C + 1;
        set(forged.frames[2], layout.frame_code, NULL);
        assert_int_equal(walk(NULL), RMM_PYTHON_FRAMES);
        assert_int_equal(found[0].at, 2);
        assert_int_equal(found[1].at, 6);
    }
}

TEST_CASE(a_tag_in_a_reference_is_left_out)
{
    use_layout(14);
    set(forged.frames[0], layout.frame_code, forged.code + 1);
    assert_int_equal(walk(NULL), RMM_PYTHON_FRAMES);
    assert_ptr_equal(found[0].code, forged.code);
}

TEST_CASE(what_is_no_code_object_ends_the_walk)
{
    static _Alignas(16) char other[OBJECT];

    for (int minor = 9; minor < 15; minor++) {
        use_layout(minor);
        set(forged.frames[3], layout.frame_code, other);
        set(other, TYPE_AT, &other_type);
        assert_int_equal(walk(NULL), 3);
        set(forged.frames[3], layout.frame_code, NULL);
        assert_int_equal(walk(NULL), 3);
    }
    use_layout(12);
    set_position(3, 20); /* behind its last instruction */
    assert_int_equal(walk(NULL), 3);
    set_position(3, -2);
    assert_int_equal(walk(NULL), 3);
}

TEST_CASE(frames_in_a_circle_are_walked_for_a_while_only)
{
    for (int minor = 9; minor < 15; minor++) {
        use_layout(minor);
        set(forged.frames[1], layout.frame_back, forged.frames[0]);
        assert_int_equal(walk(NULL), RMM_PYTHON_FRAMES);
    }
    for (uint32_t i = 0; i < 2; i++) {
        forged.frames[i][layout.frame_owner] = OWNED_BY_C;
    }
    assert_int_equal(walk(NULL), 0);
}

/* Every offset of a layout wrong, by each distance, where memory is and where it is not. */
TEST_CASE(a_wrong_layout_does_no_harm_with_a_probe)
{
    int fds[2];
    rmm_python_probe_t probe;

    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    probe = (rmm_python_probe_t){.from = fds[0], .to = fds[1]};
    for (int minor = 9; minor < 15; minor++) {
        use_layout(minor);
        assert_int_equal(walk(&probe), RMM_PYTHON_FRAMES);
        for (size_t i = 0; i < sizeof(forged) / sizeof(void *); i++) {
            void **word = (void **)(void *)&forged + i;

            *word = *word == NULL ? (void *)(uintptr_t)(0x10 + i) : *word;
        }
        for (uint32_t wrong = 0; wrong < 480; wrong += 4) {
            rmm_python_layout_t right = layout;

            layout.state_frame = wrong;
            (void)walk(&probe);
            layout = right;
            layout.frame_back = wrong;
            (void)walk(&probe);
            layout = right;
            layout.frame_code = wrong;
            (void)walk(&probe);
            layout = right;
            layout.code_file = 1u << 30;
            assert_int_equal(walk(&probe), 0);
            layout = right;
        }
    }
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* --- lines --------------------------------------------------------------------------------- */

static rmm_diag_line_t line_of(uint32_t number)
{
    rmm_diag_line_t line = {.file = "file.py", .function = "f", .number = number};

    return line;
}

static void *put_lines(void *numbers)
{
    for (uint32_t i = 0; i < 500; i++) {
        rmm_diag_line_t line = line_of(i);

        ((uint32_t *)numbers)[i] = rmm__python_line_put(&line);
    }
    return NULL;
}

TEST_CASE(lines_that_threads_put_at_a_time_have_one_number_each)
{
    enum { THREADS = 4 };
    static uint32_t numbers[THREADS][500];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, put_lines, numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_memory_equal(numbers[i], numbers[0], sizeof(numbers[0]));
    }
    for (uint32_t i = 0; i < 500; i++) {
        const rmm_diag_line_t *line = rmm__python_line_get(numbers[0][i]);

        assert_non_null(line);
        assert_int_equal(line->number, i);
    }
}

TEST_CASE(a_full_table_goes_on_with_what_it_has)
{
    rmm_diag_line_t line = line_of(7);
    uint32_t number = rmm__python_line_put(&line), given = 0;

    assert_true(number > 0);
    for (uint32_t i = 0; i < 2 * RMM_DIAG_LINES_COUNT; i++) {
        line = line_of(i);
        (void)snprintf(line.function, sizeof(line.function), "other");
        given += rmm__python_line_put(&line) > 0 ? 1 : 0;
    }
    assert_in_range(given, 1, RMM_DIAG_LINES_COUNT);
    line = line_of(7);
    assert_int_equal(rmm__python_line_put(&line), number);
    assert_null(rmm__python_line_get(0));
    assert_null(rmm__python_line_get(RMM_DIAG_LINES_COUNT + 1));
}
