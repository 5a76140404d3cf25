/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of the table of modules, told of modules that are not there: as many as no test
 * could load, and where it wants them.
 */
#include "harness/harness.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "publish/leak_modules.h"

enum { PAGE = 4096, MORE = 100 };

typedef int (*iterate_fn)(
    int (*see)(struct dl_phdr_info *, size_t, void *), void *argument);
typedef int (*see_fn)(struct dl_phdr_info *info, size_t bytes, void *argument);

static struct {
    rmm_leaks_header_t header;
    rmm_leaks_module_t modules[RMM_LEAK_MODULES + 1];
} told;

static bool is_pretending;
static unsigned long long adds; /* of the pretended loader, in all */
static uintptr_t begins[RMM_LEAK_MODULES + MORE];
static unsigned module_count;
static char path[400];

static int see_one(see_fn see, void *argument, uintptr_t begin, const char *name)
{
    const ElfW(Phdr) part = {.p_type = PT_LOAD, .p_memsz = PAGE};
    struct dl_phdr_info info = {
        .dlpi_addr = begin,
        .dlpi_name = name,
        .dlpi_phdr = &part,
        .dlpi_phnum = 1,
        .dlpi_adds = adds};

    return see(&info, sizeof(info), argument);
}

/* In the place of the loader's, for this program: the sanitizers ask it as well. */
int dl_iterate_phdr(see_fn see, void *argument)
{
    int answer;

    if (!is_pretending) {
        void *symbol = dlsym(RTLD_NEXT, "dl_iterate_phdr");
        iterate_fn real;

        memcpy(&real, &symbol, sizeof(real));
        return real(see, argument);
    }
    answer = see_one(see, argument, UINTPTR_MAX - 16 * PAGE, "");
    for (unsigned i = 0; i < module_count && answer == 0; i++) {
        answer = see_one(see, argument, begins[i], path);
    }
    return answer;
}

static void load(uintptr_t begin)
{
    begins[module_count++] = begin;
    adds++;
}

static void return_to(uintptr_t address)
{
    void *frames[] = {(void *)address};

    is_pretending = true;
    rmm__leak_modules_learn(frames, 1);
    is_pretending = false;
}

static uint32_t count_told(void)
{
    return atomic_load_explicit(&told.header.modules_used, memory_order_relaxed);
}

/* --- in this order: the table is the process's -------------------------------------- */

TEST_CASE(a_call_at_a_modules_end_is_in_that_module)
{
    strcpy(path, "/lib/module.so");
    load(10 * PAGE);
    return_to(10 * PAGE + 8);
    assert_int_equal(count_told(), 2); /* and the program */
    load(9 * PAGE);
    return_to(10 * PAGE); /* behind the last byte of the new one */
    assert_int_equal(count_told(), 3);
    assert_int_equal(told.modules[2].begin, 9 * PAGE);
    assert_int_equal(told.modules[2].end, 10 * PAGE);
    assert_string_equal(told.modules[2].path, "/lib/module.so");
}

TEST_CASE(a_long_path_keeps_its_end)
{
    memset(path, 'x', sizeof(path) - 1);
    strcpy(path + sizeof(path) - 5, "/end");
    load(20 * PAGE);
    return_to(20 * PAGE + 8);
    assert_int_equal(told.modules[count_told() - 1].begin, 20 * PAGE);
    assert_int_equal(
        strlen(told.modules[count_told() - 1].path), RMM_LEAKS_PATH_BYTES - 1);
    assert_string_equal(
        told.modules[count_told() - 1].path,
        path + sizeof(path) - RMM_LEAKS_PATH_BYTES);
}

TEST_CASE(more_modules_than_there_is_room_for_are_left_out)
{
    strcpy(path, "/lib/many.so");
    while (module_count < RMM_LEAK_MODULES + MORE) {
        load((100 + module_count) * PAGE);
    }
    return_to(100 * PAGE);
    return_to((100 + module_count) * PAGE);
    assert_int_equal(count_told(), RMM_LEAK_MODULES);
    assert_int_equal(told.modules[RMM_LEAK_MODULES].end, 0);
}

int main(void)
{
    rmm__leak_modules_open(&told.header, told.modules);
    return harness_run_cases(NULL, NULL);
}
