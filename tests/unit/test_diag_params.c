/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a launch's parameters, with a driver that the test plays.
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/params.h"

/* A function's parameters as the driver tells them: offset and size of each. */
typedef struct function {
    size_t count;
    bool is_kernel; /* answers 400 to the one query, and to the other only */
    int failure;    /* what the driver answers instead, 0: nothing */
    size_t offsets[8], sizes[8];
} function_t;

static atomic_int queries_made;

static int
answer(const function_t *function, size_t index, size_t *offset_out, size_t *bytes_out)
{
    atomic_fetch_add(&queries_made, 1);
    if (function->failure != 0) {
        return function->failure;
    }
    if (index >= function->count) {
        return 1;
    }
    *offset_out = function->offsets[index];
    *bytes_out = function->sizes[index];
    return 0;
}

static int
of_function(const void *handle, size_t index, size_t *offset_out, size_t *bytes_out)
{
    const function_t *function = handle;

    return function->is_kernel ? 400 : answer(function, index, offset_out, bytes_out);
}

static int
of_kernel(const void *handle, size_t index, size_t *offset_out, size_t *bytes_out)
{
    const function_t *function = handle;

    return function->is_kernel ? answer(function, index, offset_out, bytes_out) : 400;
}

static const inject_queries_t both = {of_function, of_kernel};

/* Of the case that runs. */
static inject_layouts_t layouts;
static inject_words_t words;

static int set_up(void **state)
{
    inject_layouts_init(&layouts, both);
    return 0;
}

static int tear_down(void **state)
{
    inject_layouts_fini(&layouts);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static bool collect(const function_t *function, void *const *addresses)
{
    inject_params_t params = {.function = function, .addresses = addresses};

    return inject_words_collect(&words, &layouts, &params);
}

CASE(finds_pointers_by_value_and_inside_structs)
{
    /* (int, void *, struct of 24 bytes, two of 1 byte, struct of 4-byte members at offset
     * 44). No word begins within the second byte, nor behind it. */
    const function_t function = {
        .count = 6, .offsets = {0, 8, 16, 40, 41, 44}, .sizes = {4, 8, 24, 1, 1, 20}};
    uint32_t number = 7;
    uint64_t pointer = 0x7f0000001000;
    uint64_t structure[3] = {0x11, 0x7f0000002000, 0x22};
    char letter = 'x';
    uint32_t tail[5] = {1, 2, 3, 4, 5}; /* offset 44: words at 48 and 56 */
    void *addresses[] = {&number, &pointer, structure, &letter, &letter, tail};

    assert_true(collect(&function, addresses));
    assert_int_equal(words.count, 6);
    assert_int_equal(words.words[0], 0x7f0000001000);
    assert_int_equal(words.words[1], 0x11);
    assert_int_equal(words.words[2], 0x7f0000002000);
    assert_int_equal(words.words[4], 0x0000000300000002);
    assert_int_equal(words.words[5], 0x0000000500000004);
    inject_words_fini(&words);
}

CASE(large_structs_come_last_and_are_told_apart)
{
    /* (struct of 136 bytes, void *, struct of 128 bytes, struct of 120 bytes, void *) */
    const function_t function = {
        .count = 5, .offsets = {0, 136, 144, 272, 392}, .sizes = {136, 8, 128, 120, 8}};
    uint64_t first[17] = {1}, pointer = 2, second[16] = {3}, third[15] = {4}, last = 5;
    void *addresses[] = {first, &pointer, second, third, &last};
    struct {
        uint64_t first[17], pointer, second[16], third[15], last;
    } packed = {{1}, 2, {3}, {4}, 5};
    size_t bytes = sizeof(packed);
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL};
    const inject_params_t in_buffer = {.function = &function, .extra = extra};

    for (int i = 0; i < 3; i++) { /* asked, kept, and from a buffer */
        assert_true(
            i < 2 ? collect(&function, addresses)
                  : inject_words_collect(&words, &layouts, &in_buffer));
        assert_int_equal(words.count, 50);
        assert_int_equal(words.stale_count, 33);
        assert_int_equal(words.words[0], 2);
        assert_int_equal(words.words[1], 4);
        assert_int_equal(words.words[16], 5);
        assert_int_equal(words.words[17], 1);
        assert_int_equal(words.words[34], 3);
        inject_words_fini(&words);
    }
}

CASE(asks_once_a_function_until_cleared)
{
    const function_t function = {.count = 1, .offsets = {0}, .sizes = {8}};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    int asked = 0;

    assert_true(collect(&function, addresses));
    asked = queries_made;
    for (int i = 0; i < 10; i++) {
        assert_true(collect(&function, addresses));
        assert_int_equal(words.count, 1);
        assert_int_equal(words.words[0], 42);
    }
    assert_int_equal(queries_made, asked);
    inject_layouts_clear(&layouts);
    assert_true(collect(&function, addresses));
    assert_true(queries_made > asked);
}

CASE(queries_the_kernel_when_the_handle_is_a_kernel)
{
    const function_t kernel = {.count = 1, .is_kernel = true, .sizes = {16}};
    uint64_t structure[2] = {1, 2};
    void *addresses[] = {structure};

    assert_true(collect(&kernel, addresses));
    assert_int_equal(words.count, 2);
}

CASE(a_function_that_the_driver_will_not_describe_is_asked_once)
{
    const function_t function = {.count = 1, .failure = 999};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    int asked = 0;

    assert_false(collect(&function, addresses));
    assert_int_equal(words.count, 0);
    asked = queries_made;
    assert_false(collect(&function, addresses));
    assert_int_equal(queries_made, asked);
}

CASE(a_driver_without_the_queries_leaves_the_parameters_unknown)
{
    const function_t function = {.count = 1, .sizes = {8}};
    const inject_queries_t none = {NULL, NULL};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};

    inject_layouts_fini(&layouts);
    inject_layouts_init(&layouts, none);
    assert_false(collect(&function, addresses));
}

CASE(takes_parameter_blocks_of_32_kib)
{
    const function_t function = {
        .count = 2, .offsets = {0, 8}, .sizes = {8, 32768 - 8}};
    uint64_t first = 1;
    uint64_t *rest = calloc(32768 / 8 - 1, 8);
    void *addresses[] = {&first, rest};

    assert_non_null(rest);
    rest[32768 / 8 - 2] = 0x7f0000001000;
    for (int i = 0; i < 2; i++) {
        assert_true(collect(&function, addresses));
        assert_int_equal(words.count, 4096);
        assert_int_equal(words.words[0], 1);
        assert_int_equal(words.words[4095], 0x7f0000001000);
        inject_words_fini(&words);
    }
    free(rest);
}

CASE(refuses_sizes_that_no_driver_gives)
{
    const function_t huge = {.count = 1, .sizes = {(size_t)1 << 40}};
    const function_t far = {.count = 1, .offsets = {SIZE_MAX - 4}, .sizes = {8}};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};

    assert_false(collect(&huge, addresses));
    assert_false(collect(&far, addresses));
}

static bool collect_packed(void *const *extra)
{
    static const function_t untold = {.failure = 999};
    inject_params_t params = {.function = &untold, .extra = extra};

    return inject_words_collect(&words, &layouts, &params);
}

CASE(refuses_packed_buffers_that_no_driver_takes)
{
    size_t bytes = INJECT_PARAM_BYTES_MAX + 8;
    uint64_t *buffer = calloc(1, bytes);
    void *extra[] = {(void *)1, buffer, (void *)2, &bytes, NULL};

    assert_non_null(buffer);
    assert_false(collect_packed(extra));
    bytes = INJECT_PARAM_BYTES_MAX;
    assert_true(collect_packed(extra));
    assert_int_equal(words.count, INJECT_PARAM_BYTES_MAX / 8);
    assert_int_equal(words.stale_count, words.count);
    inject_words_fini(&words);
    bytes = 256;
    assert_true(collect_packed(extra));
    assert_int_equal(words.stale_count, 0);
    free(buffer);
}

CASE(reads_packed_buffers_whose_layout_the_driver_does_not_tell)
{
    uint64_t buffer[3] = {1, 0x7f0000001000, 3};
    size_t bytes = 20; /* the last word is not whole */
    void *size_first[] = {(void *)2, &bytes, (void *)1, buffer, NULL};
    void *unknown_key[] = {(void *)9, &bytes, NULL};
    void *nothing[] = {NULL};

    assert_true(collect_packed(size_first));
    assert_int_equal(words.count, 2);
    assert_int_equal(words.words[1], 0x7f0000001000);
    assert_false(collect_packed(unknown_key));
    assert_true(collect_packed(nothing));
    assert_int_equal(words.count, 0);
    assert_true(collect_packed(NULL)); /* no parameters at all */
    assert_int_equal(words.count, 0);
}

/* (char, void *, int, void *) in a buffer that still has addresses of an earlier call. */
CASE(skips_padding_between_packed_parameters)
{
    static const function_t function = {
        .count = 4, .offsets = {0, 8, 16, 24}, .sizes = {1, 8, 4, 8}};
    uint64_t buffer[5] = {
        0x7f0000001141, 0x7f0000002000, 0x7f0000003007, 0x7f0000004000, 0x7f0000005000};
    size_t bytes = sizeof(buffer);
    void *extra[] = {(void *)1, buffer, (void *)2, &bytes, NULL};
    inject_params_t params = {.function = &function, .extra = extra};

    for (int i = 0; i < 2; i++) { /* the layout is asked for, and kept */
        assert_true(inject_words_collect(&words, &layouts, &params));
        assert_int_equal(words.count, 2);
        assert_int_equal(words.words[0], 0x7f0000002000);
        assert_int_equal(words.words[1], 0x7f0000004000);
    }
    bytes = 24; /* shorter than the kernel's parameters */
    assert_true(inject_words_collect(&words, &layouts, &params));
    assert_int_equal(words.count, 1);
}

#define FUNCTIONS 3000u

CASE(remembers_thousands_of_functions)
{
    function_t *functions = calloc(FUNCTIONS, sizeof(*functions));
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    int asked = 0;

    assert_non_null(functions);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        functions[i] = (function_t){.count = 1, .is_kernel = i % 2, .sizes = {8}};
        assert_true(collect(&functions[i], addresses));
    }
    asked = queries_made;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        assert_true(collect(&functions[i], addresses));
        assert_int_equal(words.count, 1);
    }
    assert_int_equal(queries_made, asked);
    free(functions);
}

/* --- threads ----------------------------------------------------------------------- */

static function_t shared_functions[32];

static void *launch_many(void *argument)
{
    uint64_t value = (uint64_t)(uintptr_t)argument;
    void *addresses[] = {&value};
    inject_words_t own;

    for (unsigned i = 0; i < 5000; i++) {
        inject_params_t params = {
            .function = &shared_functions[i % 32], .addresses = addresses};

        if (!inject_words_collect(&own, &layouts, &params) || own.count != 1 ||
            own.words[0] != value) {
            return (void *)1;
        }
        if (i % 500 == 0) {
            inject_layouts_clear(&layouts); /* modules come and go */
        }
    }
    return NULL;
}

CASE(threads_launch_while_modules_unload)
{
    pthread_t threads[4];
    void *failed = NULL;

    for (unsigned i = 0; i < 32; i++) {
        shared_functions[i] = (function_t){.count = 1, .sizes = {8}};
    }
    for (uintptr_t i = 0; i < 4; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, launch_many, (void *)(i + 1)), 0);
    }
    for (uintptr_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}
