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

static bool collect(
    inject_words_t *words, inject_layouts_t *layouts, const function_t *function,
    void *const *addresses)
{
    inject_params_t params = {.function = function, .addresses = addresses};

    return inject_words_collect(words, layouts, &params);
}

static void finds_pointers_by_value_and_inside_structs(void **state)
{
    /* (int, void *, struct of 24 bytes, char, struct of 4-byte members at offset 44) */
    const function_t function = {
        .count = 5, .offsets = {0, 8, 16, 40, 44}, .sizes = {4, 8, 24, 1, 20}};
    uint32_t number = 7;
    uint64_t pointer = 0x7f0000001000;
    uint64_t structure[3] = {0x11, 0x7f0000002000, 0x22};
    char letter = 'x';
    uint32_t tail[5] = {1, 2, 3, 4, 5}; /* offset 44: words at 48 and 56 */
    void *addresses[] = {&number, &pointer, structure, &letter, tail};
    inject_layouts_t layouts;
    inject_words_t words;

    (void)state;
    assert_true(inject_layouts_init(&layouts, both));
    assert_true(collect(&words, &layouts, &function, addresses));
    assert_int_equal(words.count, 6);
    assert_int_equal(words.words[0], 0x7f0000001000);
    assert_int_equal(words.words[1], 0x11);
    assert_int_equal(words.words[2], 0x7f0000002000);
    assert_int_equal(words.words[4], 0x0000000300000002);
    assert_int_equal(words.words[5], 0x0000000500000004);
    inject_words_fini(&words);
    inject_layouts_fini(&layouts);
}

static void asks_once_a_function_until_cleared(void **state)
{
    const function_t function = {.count = 1, .offsets = {0}, .sizes = {8}};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    inject_layouts_t layouts;
    inject_words_t words;
    int asked = 0;

    (void)state;
    assert_true(inject_layouts_init(&layouts, both));
    assert_true(collect(&words, &layouts, &function, addresses));
    asked = queries_made;
    for (int i = 0; i < 10; i++) {
        assert_true(collect(&words, &layouts, &function, addresses));
        assert_int_equal(words.count, 1);
        assert_int_equal(words.words[0], 42);
    }
    assert_int_equal(queries_made, asked);
    inject_layouts_clear(&layouts);
    assert_true(collect(&words, &layouts, &function, addresses));
    assert_true(queries_made > asked);
    inject_layouts_fini(&layouts);
}

static void asks_for_the_kernel_where_the_handle_is_one(void **state)
{
    const function_t kernel = {.count = 1, .is_kernel = true, .sizes = {16}};
    uint64_t structure[2] = {1, 2};
    void *addresses[] = {structure};
    inject_layouts_t layouts;
    inject_words_t words;

    (void)state;
    assert_true(inject_layouts_init(&layouts, both));
    assert_true(collect(&words, &layouts, &kernel, addresses));
    assert_int_equal(words.count, 2);
    inject_layouts_fini(&layouts);
}

static void a_function_that_the_driver_will_not_describe_is_asked_once(void **state)
{
    const function_t function = {.count = 1, .failure = 999};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    inject_layouts_t layouts;
    inject_words_t words;
    int asked = 0;

    (void)state;
    assert_true(inject_layouts_init(&layouts, both));
    assert_false(collect(&words, &layouts, &function, addresses));
    assert_int_equal(words.count, 0);
    asked = queries_made;
    assert_false(collect(&words, &layouts, &function, addresses));
    assert_int_equal(queries_made, asked);
    inject_layouts_fini(&layouts);
}

static void a_driver_without_the_queries_leaves_the_parameters_unknown(void **state)
{
    const function_t function = {.count = 1, .sizes = {8}};
    const inject_queries_t none = {NULL, NULL};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    inject_layouts_t layouts;
    inject_words_t words;

    (void)state;
    assert_true(inject_layouts_init(&layouts, none));
    assert_false(collect(&words, &layouts, &function, addresses));
    inject_layouts_fini(&layouts);
}

static void takes_parameter_blocks_of_32_kib(void **state)
{
    const function_t function = {
        .count = 2, .offsets = {0, 8}, .sizes = {8, 32768 - 8}};
    uint64_t first = 1;
    uint64_t *rest = calloc(32768 / 8 - 1, 8);
    void *addresses[] = {&first, rest};
    inject_layouts_t layouts;
    inject_words_t words;

    (void)state;
    assert_non_null(rest);
    rest[32768 / 8 - 2] = 0x7f0000001000;
    assert_true(inject_layouts_init(&layouts, both));
    for (int i = 0; i < 2; i++) {
        assert_true(collect(&words, &layouts, &function, addresses));
        assert_int_equal(words.count, 4096);
        assert_int_equal(words.words[0], 1);
        assert_int_equal(words.words[4095], 0x7f0000001000);
        inject_words_fini(&words);
    }
    inject_layouts_fini(&layouts);
    free(rest);
}

static void refuses_sizes_that_no_driver_gives(void **state)
{
    const function_t huge = {.count = 1, .sizes = {(size_t)1 << 40}};
    const function_t far = {.count = 1, .offsets = {SIZE_MAX - 4}, .sizes = {8}};
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    inject_layouts_t layouts;
    inject_words_t words;

    (void)state;
    assert_true(inject_layouts_init(&layouts, both));
    assert_false(collect(&words, &layouts, &huge, addresses));
    assert_false(collect(&words, &layouts, &far, addresses));
    inject_layouts_fini(&layouts);
}

static bool
collect_packed(inject_words_t *words, inject_layouts_t *layouts, void *const *extra)
{
    inject_params_t params = {.function = "packed", .extra = extra};

    return inject_words_collect(words, layouts, &params);
}

static void reads_packed_buffers_without_asking(void **state)
{
    uint64_t buffer[3] = {1, 0x7f0000001000, 3};
    size_t bytes = 20; /* the last word is not whole */
    void *size_first[] = {(void *)2, &bytes, (void *)1, buffer, NULL};
    void *unknown_key[] = {(void *)9, &bytes, NULL};
    void *nothing[] = {NULL};
    inject_layouts_t layouts;
    inject_words_t words;
    int asked = queries_made;

    (void)state;
    assert_true(inject_layouts_init(&layouts, both));
    assert_true(collect_packed(&words, &layouts, size_first));
    assert_int_equal(words.count, 2);
    assert_int_equal(words.words[1], 0x7f0000001000);
    assert_false(collect_packed(&words, &layouts, unknown_key));
    assert_true(collect_packed(&words, &layouts, nothing));
    assert_int_equal(words.count, 0);
    assert_true(collect_packed(&words, &layouts, NULL)); /* no parameters at all */
    assert_int_equal(words.count, 0);
    assert_int_equal(queries_made, asked);
    inject_layouts_fini(&layouts);
}

#define FUNCTIONS 3000u

static void remembers_thousands_of_functions(void **state)
{
    function_t *functions = calloc(FUNCTIONS, sizeof(*functions));
    uint64_t pointer = 42;
    void *addresses[] = {&pointer};
    inject_layouts_t layouts;
    inject_words_t words;
    int asked = 0;

    (void)state;
    assert_non_null(functions);
    assert_true(inject_layouts_init(&layouts, both));
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        functions[i] = (function_t){.count = 1, .is_kernel = i % 2, .sizes = {8}};
        assert_true(collect(&words, &layouts, &functions[i], addresses));
    }
    asked = queries_made;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        assert_true(collect(&words, &layouts, &functions[i], addresses));
        assert_int_equal(words.count, 1);
    }
    assert_int_equal(queries_made, asked);
    inject_layouts_fini(&layouts);
    free(functions);
}

/* --- threads ----------------------------------------------------------------------- */

static inject_layouts_t shared_layouts;
static function_t shared_functions[32];

static void *launch_many(void *argument)
{
    uint64_t value = (uint64_t)(uintptr_t)argument;
    void *addresses[] = {&value};
    inject_words_t words;

    for (unsigned i = 0; i < 5000; i++) {
        if (!collect(&words, &shared_layouts, &shared_functions[i % 32], addresses) ||
            words.count != 1 || words.words[0] != value) {
            return (void *)1;
        }
        if (i % 500 == 0) {
            inject_layouts_clear(&shared_layouts); /* modules come and go */
        }
    }
    return NULL;
}

static void threads_launch_while_modules_unload(void **state)
{
    pthread_t threads[4];
    void *failed = NULL;

    (void)state;
    assert_true(inject_layouts_init(&shared_layouts, both));
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
    inject_layouts_fini(&shared_layouts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_pointers_by_value_and_inside_structs),
        cmocka_unit_test(asks_once_a_function_until_cleared),
        cmocka_unit_test(asks_for_the_kernel_where_the_handle_is_one),
        cmocka_unit_test(a_function_that_the_driver_will_not_describe_is_asked_once),
        cmocka_unit_test(a_driver_without_the_queries_leaves_the_parameters_unknown),
        cmocka_unit_test(takes_parameter_blocks_of_32_kib),
        cmocka_unit_test(refuses_sizes_that_no_driver_gives),
        cmocka_unit_test(reads_packed_buffers_without_asking),
        cmocka_unit_test(remembers_thousands_of_functions),
        cmocka_unit_test(threads_launch_while_modules_unload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
