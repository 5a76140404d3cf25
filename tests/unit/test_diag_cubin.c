/* SPDX-License-Identifier: Apache-2.0 */
/* The code of modules: what has variables, and files that are cut off or damaged. */
#include "harness/harness.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cubin.h"

typedef struct cubin {
    Elf64_Ehdr head;
    Elf64_Shdr sections[3]; /* that of names first */
    char names[40];
} cubin_t;

/* With a section of code, and one of this name and size. */
static cubin_t make_cubin(const char *name, uint64_t bytes)
{
    cubin_t cubin = {
        .head =
            {.e_shoff = offsetof(cubin_t, sections),
             .e_shentsize = sizeof(Elf64_Shdr),
             .e_shnum = 3},
        .sections = {
            {.sh_offset = offsetof(cubin_t, names), .sh_size = sizeof(cubin.names)},
            {.sh_name = 1, .sh_size = 100},
            {.sh_name = 8, .sh_size = bytes}}};

    memcpy(cubin.head.e_ident, ELFMAG, SELFMAG);
    cubin.head.e_ident[EI_CLASS] = ELFCLASS64;
    memcpy(&cubin.names[1], ".text", 6);
    memcpy(&cubin.names[8], name, strlen(name) + 1);
    return cubin;
}

static bool has_variables(const char *name, uint64_t bytes)
{
    cubin_t cubin = make_cubin(name, bytes);

    return inject_cubin_has_variables(&cubin, sizeof(cubin));
}

TEST_CASE(sections_of_variables_are_known_by_their_names)
{
    (void)state;
    assert_true(has_variables(".nv.global", 4));
    assert_true(has_variables(".nv.global.init", 1));
    assert_true(has_variables(".nv.constant3", 4));
    assert_false(has_variables(".nv.global", 0));
    assert_false(has_variables(".nv.constant0.kernel", 400));
    assert_false(has_variables(".nv.glob", 4));
    assert_false(has_variables("", 4));
}

TEST_CASE(what_cannot_be_read_may_have_variables)
{
    cubin_t cubin = make_cubin(".text", 4);

    (void)state;
    assert_true(inject_cubin_has_variables(NULL, 0));
    assert_false(inject_cubin_has_variables(&cubin, sizeof(cubin)));
    cubin.head.e_ident[EI_CLASS] = ELFCLASS32;
    assert_true(inject_cubin_has_variables(&cubin, sizeof(cubin)));
    cubin = make_cubin(".text", 4);
    cubin.sections[2].sh_name = sizeof(cubin.names) + 1;
    assert_true(inject_cubin_has_variables(&cubin, sizeof(cubin)));
}

/* Each copy ends where its memory ends, which the address sanitizer watches. */
TEST_CASE(a_file_that_is_cut_off_is_not_read_beyond_its_end)
{
    const cubin_t cubin = make_cubin(".text", 4);

    (void)state;
    for (size_t bytes = 1; bytes < sizeof(cubin); bytes++) {
        void *copy = malloc(bytes);

        assert_non_null(copy);
        memcpy(copy, &cubin, bytes);
        assert_true(inject_cubin_has_variables(copy, bytes));
        free(copy);
    }
}

TEST_CASE(a_damaged_file_is_not_read_beyond_its_end)
{
    const cubin_t cubin = make_cubin(".nv.global", 0);
    unsigned char *copy = malloc(sizeof(cubin));

    (void)state;
    assert_non_null(copy);
    for (size_t at = 0; at < sizeof(cubin); at++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, &cubin, sizeof(cubin));
            copy[at] ^= (unsigned char)(1 << bit);
            (void)inject_cubin_has_variables(copy, sizeof(cubin));
        }
    }
    free(copy);
}
