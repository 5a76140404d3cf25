/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files in the runtime directory, and text of unknown origin. */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "segment/clean_text.h"
#include "segment/segment_name.h"
#include "segment/segment_reader.h"

typedef struct name_case {
    const char *name;
    rmm_file_kind_t kind;
    uid_t uid;
} name_case_t;

static const name_case_t names[] = {
    {"1000.0123456789abcdef", RMM_FILE_SEGMENT, 1000},
    {"0.ffffffffffffffff", RMM_FILE_SEGMENT, 0},
    {"4294967294.0123456789abcdef", RMM_FILE_SEGMENT, 4294967294u},
    {"1000.0123456789abcdef.control", RMM_FILE_SIDE, 1000},
    {"1000.0123456789abcdef.diag", RMM_FILE_SIDE, 1000},
    {"1000.0123456789abcdef.fifteen_letters", RMM_FILE_SIDE, 1000},
    {".1000.0123456789abcdef.tmp", RMM_FILE_TEMPORARY, 1000},
    {"", RMM_FILE_OTHER, 0},
    {".", RMM_FILE_OTHER, 0},
    {"..", RMM_FILE_OTHER, 0},
    {"rmmfs.state", RMM_FILE_OTHER, 0},
    {"4294967295.0123456789abcdef", RMM_FILE_OTHER, 0},  /* (uid_t)-1 */
    {"99999999999.0123456789abcdef", RMM_FILE_OTHER, 0}, /* no uid */
    {"01000.0123456789abcdef", RMM_FILE_OTHER, 0},       /* two names for one uid */
    {"-1.0123456789abcdef", RMM_FILE_OTHER, 0},
    {"1000.0123456789abcde", RMM_FILE_OTHER, 0},   /* 15 digits */
    {"1000.0123456789abcdef0", RMM_FILE_OTHER, 0}, /* 17 digits */
    {"1000.0123456789ABCDEF", RMM_FILE_OTHER, 0},
    {"1000-0123456789abcdef", RMM_FILE_OTHER, 0},
    {"1000.0123456789abcdef.", RMM_FILE_OTHER, 0},
    {"1000.0123456789abcdef.a/b", RMM_FILE_OTHER, 0},
    {"1000.0123456789abcdef.sixteen__letters", RMM_FILE_OTHER, 0},
    {".1000.0123456789abcdef", RMM_FILE_OTHER, 0},
    {".1000.0123456789abcdef.control", RMM_FILE_OTHER, 0},
    {"..1000.0123456789abcdef.tmp", RMM_FILE_OTHER, 0},
};

TEST_CASE(distinguishes_segments_side_files_and_temporaries)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rmm_file_name_t parsed = rmm__file_name_parse(names[i].name);
        uid_t uid = 7;

        if (parsed.kind != names[i].kind) {
            fail_msg("\"%s\" is of kind %d", names[i].name, (int)parsed.kind);
        }
        assert_int_equal(
            rmm__segment_name_parse(names[i].name, &uid),
            names[i].kind == RMM_FILE_SEGMENT);
        if (names[i].kind != RMM_FILE_OTHER) {
            assert_int_equal(parsed.uid, names[i].uid);
        }
        assert_int_equal(uid, names[i].kind == RMM_FILE_SEGMENT ? names[i].uid : 7);
    }
}

typedef struct text_case {
    const char *dirty, *clean;
} text_case_t;

static const text_case_t texts[] = {
    {"", ""},
    {"plain", "plain"},
    {"tab\tnewline\nescape\x1b", "tab?newline?escape?"},
    {"delete\x7f", "delete?"},
    {"caf\xc3\xa9", "caf\xc3\xa9"},
    {"\xe2\x82\xac", "\xe2\x82\xac"},
    {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    {"\xc3", "?"},                     /* cut */
    {"\xe2\x82", "??"},                /* cut */
    {"\x80", "?"},                     /* continuation alone */
    {"\xc0\xaf", "??"},                /* overlong slash */
    {"\xe0\x80\xaf", "???"},           /* overlong */
    {"\xed\xa0\x80", "???"},           /* surrogate */
    {"\xf4\x90\x80\x80", "????"},      /* beyond Unicode */
    {"\xf8\x88\x80\x80\x80", "?????"}, /* five bytes */
    {"\xc2\x9b"
     "2J",
     "??2J"}, /* C1 control sequence introducer */
    {"a\xff"
     "b",
     "a?b"},
};

TEST_CASE(text_becomes_printable_utf8)
{
    char buffer[32];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(buffer, 'x', sizeof(buffer));
        snprintf(buffer, sizeof(buffer), "%s", texts[i].dirty);
        rmm__text_clean(buffer, sizeof(buffer));
        assert_string_equal(buffer, texts[i].clean);
        rmm__text_copy(buffer, sizeof(buffer), texts[i].dirty);
        assert_string_equal(buffer, texts[i].clean);
    }
}

TEST_CASE(a_cut_drops_the_character_that_it_hits)
{
    char buffer[6];

    rmm__text_copy(buffer, sizeof(buffer), "abcd\xc3\xa9"); /* 6 bytes for 5 */
    assert_string_equal(buffer, "abcd");
    rmm__text_copy(buffer, sizeof(buffer), "abc\xc3\xa9z"); /* ends between letters */
    assert_string_equal(buffer, "abc\xc3\xa9");
    rmm__text_copy(buffer, sizeof(buffer), "a\xf0\x9f\x98\x80z");
    assert_string_equal(buffer, "a\xf0\x9f\x98\x80");
    rmm__text_copy(buffer, sizeof(buffer), "ab\xf0\x9f\x98\x80");
    assert_string_equal(buffer, "ab");
    rmm__text_copy(buffer, sizeof(buffer), "abcdefghij");
    assert_string_equal(buffer, "abcde");
    rmm__text_copy(buffer, sizeof(buffer), NULL);
    assert_memory_equal(buffer, "\0\0\0\0\0\0", 6);
    rmm__text_copy(buffer, 1, "a");
    assert_string_equal(buffer, "");
}

TEST_CASE(cleaning_reads_no_byte_beyond_its_field)
{
    char buffer[8] = "abcdefg";

    buffer[7] = '\xc3'; /* not in the field of 7 */
    rmm__text_clean(buffer, 7);
    assert_string_equal(buffer, "abcdef");
    assert_int_equal((unsigned char)buffer[7], 0xc3);
}
