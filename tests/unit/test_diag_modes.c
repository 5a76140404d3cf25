/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes of the diagnosis as users write them.
 */
#include "harness/harness.h"

#include <string.h>

#include "diag/modes.h"

TEST_CASE(reads_words_in_any_order)
{
    static const struct {
        const char *text;
        uint32_t modes;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {"off", 0},
        {"usage", RMM_DIAG_MODE_USAGE},
        {"bounds", RMM_DIAG_MODE_BOUNDS},
        {"bounds,usage", RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS},
        {"order", RMM_DIAG_MODE_ORDER},
        {"usage,bounds,order",
         RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_ORDER},
        {"usage,usage", RMM_DIAG_MODE_USAGE}};
    char word[RMM_DIAG_MODE_WORD_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t modes = 99;

        assert_true(rmm__diag_modes_parse(cases[i].text, &modes, word));
        assert_int_equal(modes, cases[i].modes);
    }
}

TEST_CASE(names_the_word_that_is_unknown)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"Usage", "Usage"},
        {"usage,orders", "orders"},
        {"usag", "usag"},
        {"usage,off", "off"},
        {"usage,", ""},
        {",usage", ""},
        {"usage bounds", "usage bounds"},
        {"0123456789012345678901234567890123456789,usage",
         "012345678901234567890123456789012345678"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char word[RMM_DIAG_MODE_WORD_BYTES] = "?";
        uint32_t modes;

        assert_false(rmm__diag_modes_parse(cases[i].text, &modes, word));
        assert_string_equal(word, cases[i].word);
    }
}

TEST_CASE(prints_what_it_reads)
{
    for (uint32_t modes = 0; modes < 8; modes++) {
        char text[RMM_DIAG_MODES_TEXT], word[RMM_DIAG_MODE_WORD_BYTES];
        uint32_t read = 99;

        rmm__diag_modes_print(modes, text);
        assert_true(rmm__diag_modes_parse(text, &read, word));
        assert_int_equal(read, modes);
    }
}
