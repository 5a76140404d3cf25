/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels by handle and by name.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/kernel_table.h"

#define HANDLE(n) ((const void *)(uintptr_t)(0x5000 + 16 * (uintptr_t)(n)))

static rmm_diag_kernel_t entries[64];

/* "_Zname" is nice as "name()". "f" is the name of a type, as to the real one; anything else it
 * refuses. */
static char *demangle(const char *mangled, char *buffer, size_t *bytes, int *status)
{
    char *text = NULL;

    *status = -2;
    if (strcmp(mangled, "f") == 0) {
        text = strdup("float");
        *status = 0;
    } else if (strncmp(mangled, "_Z", 2) == 0) {
        text = calloc(1, strlen(mangled) + 3);
        assert_non_null(text);
        sprintf(text, "%s()", mangled + 2);
        *status = 0;
    }
    return text;
}

static void handles_of_one_name_share_an_entry(void **state)
{
    rmm_kernel_table_t table;

    assert_true(rmm__kernel_table_init(&table, entries, 64, NULL));
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(1), "a"), 0);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(2), "b"), 1);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(3), "a"), 0);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(3), "a"), 0);
    assert_int_equal(rmm__kernel_table_entry(&table, NULL, "b"), 1);
    assert_int_equal(table.count, 2);
    rmm__kernel_table_fini(&table);
}

static void a_handle_that_comes_back_for_another_kernel_is_that_kernel(void **state)
{
    rmm_kernel_table_t table;

    assert_true(rmm__kernel_table_init(&table, entries, 64, NULL));
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(1), "a"), 0);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(1), "b"), 1);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(1), "b"), 1);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(1), "a"), 0);
    assert_int_equal(table.count, 2);
    rmm__kernel_table_fini(&table);
}

static void shows_names_demangled_where_that_works(void **state)
{
    rmm_kernel_table_t table;

    assert_true(rmm__kernel_table_init(&table, entries, 64, demangle));
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(1), "_Zscale"), 0);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(2), "plain\tname\n"), 1);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(3), "f"), 2);
    assert_string_equal(entries[0].name, "scale()");
    assert_string_equal(entries[2].name, "f");
    assert_string_equal(entries[1].name, "plain?name?");
    rmm__kernel_table_fini(&table);
}

static void a_kernel_without_a_name_goes_by_its_handle(void **state)
{
    rmm_kernel_table_t table;

    assert_true(rmm__kernel_table_init(&table, entries, 64, NULL));
    assert_int_equal(rmm__kernel_table_entry(&table, (void *)0xabc0, NULL), 0);
    assert_int_equal(rmm__kernel_table_entry(&table, (void *)0xdef0, ""), 1);
    assert_int_equal(rmm__kernel_table_entry(&table, (void *)0xabc0, NULL), 0);
    assert_string_equal(entries[0].name, "kernel@0xabc0");
    assert_string_equal(entries[1].name, "kernel@0xdef0");
    rmm__kernel_table_fini(&table);
}

static void survives_more_handles_than_it_remembers(void **state)
{
    rmm_kernel_table_t table;
    char name[32];

    assert_true(rmm__kernel_table_init(&table, entries, 64, NULL));
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 5000; i++) {
            sprintf(name, "kernel %u", i % 50);
            assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(i), name), i % 50);
        }
    }
    assert_true(table.by_handle.count <= 4 * 64);
    rmm__kernel_table_fini(&table);
}

static void a_full_table_still_knows_those_it_has(void **state)
{
    rmm_kernel_table_t table;
    char name[32];

    assert_true(rmm__kernel_table_init(&table, entries, 64, NULL));
    for (unsigned i = 0; i < 64; i++) {
        sprintf(name, "kernel %u", i);
        assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(i), name), i);
    }
    assert_int_equal(
        rmm__kernel_table_entry(&table, HANDLE(64), "one more"), RMM_DIAG_NO_USER);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(64), "kernel 63"), 63);
    assert_int_equal(rmm__kernel_table_entry(&table, HANDLE(0), "kernel 0"), 0);
    rmm__kernel_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_one_name_share_an_entry),
        cmocka_unit_test(a_handle_that_comes_back_for_another_kernel_is_that_kernel),
        cmocka_unit_test(shows_names_demangled_where_that_works),
        cmocka_unit_test(a_kernel_without_a_name_goes_by_its_handle),
        cmocka_unit_test(survives_more_handles_than_it_remembers),
        cmocka_unit_test(a_full_table_still_knows_those_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
