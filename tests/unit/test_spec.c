/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources said in words: what is read, and what is refused with which reason.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "core/numbers.h"
#include "device/spec.h"

static rmm_spec_t parsed(const char *text)
{
    char reason[RMM_SPEC_REASON_BYTES] = "";
    rmm_spec_t spec;

    if (!rmm__spec_parse(text, &spec, reason)) {
        fail_msg("'%s': %s", text, reason);
    }
    return spec;
}

/* The reason says what `part` says. */
static void expect_malformed(const char *text, const char *part)
{
    char reason[RMM_SPEC_REASON_BYTES] = "";
    rmm_spec_t spec;

    if (rmm__spec_parse(text, &spec, reason) && rmm__spec_check(&spec, reason)) {
        fail_msg("'%s' was taken", text);
    }
    if (strstr(reason, part) == NULL) {
        fail_msg("'%s': the reason is \"%s\", not \"...%s...\"", text, reason, part);
    }
    assert_null(strchr(reason, '\n'));
}

static void expect_size(const char *size, uint64_t value, bool is_percent)
{
    char text[64];
    rmm_spec_t spec;

    snprintf(text, sizeof(text), "pool:%s", size);
    spec = parsed(text);
    assert_int_equal(spec.parts[0].size_count, 1);
    assert_int_equal(spec.parts[0].sizes[0].value, value);
    assert_int_equal(spec.parts[0].sizes[0].is_percent, is_percent);
}

TEST_CASE(reads_a_name_alone)
{
    rmm_spec_t spec = parsed("pool");

    assert_int_equal(spec.count, 1);
    assert_string_equal(spec.parts[0].name, "pool");
    assert_int_equal(spec.parts[0].size_count, 0);
}

TEST_CASE(takes_a_dash_for_an_underscore)
{
    assert_string_equal(parsed("pool-virtual").parts[0].name, "pool_virtual");
    assert_string_equal(parsed("thread-safe+cuda").parts[0].name, "thread_safe");
}

TEST_CASE(reads_sizes_in_every_unit)
{
    expect_size("0", 0, false);
    expect_size("1000", 1000, false);
    expect_size("2KiB", 2048, false);
    expect_size("3MiB", UINT64_C(3) << 20, false);
    expect_size("8GiB", UINT64_C(8) << 30, false);
    expect_size("1TiB", UINT64_C(1) << 40, false);
    expect_size("18446744073709551615", UINT64_MAX, false);
    expect_size("16777215TiB", UINT64_C(16777215) << 40, false);
    expect_size("1%", 1, true);
    expect_size("50%", 50, true);
    expect_size("100%", 100, true);
}

static void expect_time(const char *text, uint64_t ms)
{
    rmm_spec_t spec = parsed(text);
    char reason[RMM_SPEC_REASON_BYTES] = "";

    assert_true(rmm__spec_check(&spec, reason));
    assert_true(spec.parts[0].sizes[0].is_ms);
    assert_int_equal(spec.parts[0].sizes[0].value, ms);
}

TEST_CASE(reads_times_where_there_is_one)
{
    expect_time("logging:500ms+pool", 500);
    expect_time("logging:0ms+pool", 0);
    expect_time("logging:4294967294ms+pool", 4294967294);
    expect_malformed("logging:4294967295ms+pool", "is not a size");
    expect_malformed("logging:ms+pool", "is not a size");
    expect_malformed("logging:-1ms+pool", "is not a size");
    expect_malformed("logging:1000+pool", "'logging' takes a time, such as 500ms");
    expect_malformed("pool:500ms", "'pool' takes no time");
}

TEST_CASE(reads_options_in_any_place)
{
    rmm_spec_t spec = parsed("logging:auto_flush:500ms:pool_size+async:wait:1GiB");

    assert_int_equal(spec.parts[0].options, RMM_SPEC_AUTO_FLUSH | RMM_SPEC_POOL_SIZE);
    assert_int_equal(spec.parts[0].size_count, 1);
    assert_int_equal(spec.parts[0].sizes[0].value, 500);
    assert_int_equal(spec.parts[1].options, RMM_SPEC_WAIT);
    assert_int_equal(spec.parts[1].size_count, 1);
    assert_int_equal(parsed("logging:auto_flush+pool").parts[0].size_count, 0);
    expect_malformed(
        "limiting:1GiB:auto_flush+pool",
        "'limiting' has no option 'auto_flush'; it is one of logging");
    expect_malformed(
        "pool:wait", "'pool' has no option 'wait'; it is one of async, async_managed");
    expect_malformed(
        "logging:no_peer_access+pool", "'logging' has no option 'no_peer_access'");
    expect_malformed("logging:auto_flus+pool", "'auto_flus' is not a size");
}

TEST_CASE(reads_the_number_of_a_node)
{
    assert_int_equal(parsed("async_pinned:1MiB").parts[0].node, 0);
    assert_int_equal(parsed("async_pinned:numa").parts[0].node, 0);
    assert_int_equal(parsed("async_pinned:numa").parts[0].options, RMM_SPEC_NUMA);
    assert_int_equal(parsed("async_pinned:numa=0:1MiB").parts[0].node, 1);
    assert_int_equal(parsed("async_pinned:numa=0").parts[0].options, RMM_SPEC_NUMA);
    assert_int_equal(
        parsed("async_pinned:numa=2147483647").parts[0].node, UINT32_C(1) << 31);
    assert_int_equal(parsed("async_pinned:numa=7:numa=7").parts[0].node, 8);
    expect_malformed("async_pinned:numa=7:numa=0", "'numa=0' is not a size");
    expect_malformed("async_pinned:numa=", "'numa=' is not a size");
    expect_malformed("async_pinned:numa=-1", "'numa=-1' is not a size");
    expect_malformed("async_pinned:numa=2147483648", "is not a size");
    expect_malformed("async_pinned:numa=1MiB", "is not a size");
    expect_malformed(
        "async:numa=1", "'async' has no option 'numa'; it is one of async_pinned");
    expect_malformed("async_pinned:50%", "'async_pinned' takes a number of bytes");
}

TEST_CASE(reads_parts_in_the_order_written)
{
    rmm_spec_t spec = parsed("limiting:4GiB+statistics+pool:50%:90%");

    assert_int_equal(spec.count, 3);
    assert_string_equal(spec.parts[0].name, "limiting");
    assert_int_equal(spec.parts[0].sizes[0].value, UINT64_C(4) << 30);
    assert_string_equal(spec.parts[1].name, "statistics");
    assert_int_equal(spec.parts[1].size_count, 0);
    assert_string_equal(spec.parts[2].name, "pool");
    assert_int_equal(spec.parts[2].size_count, 2);
    assert_int_equal(spec.parts[2].sizes[0].value, 50);
    assert_true(spec.parts[2].sizes[0].is_percent);
    assert_int_equal(spec.parts[2].sizes[1].value, 90);
}

TEST_CASE(refuses_an_invalid_size)
{
    static const char *const sizes[] = {
        "",
        "x",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.5",
        "1.GiB",
        ".5GiB",
        "1.5.5GiB",
        "1.1234567GiB",
        "1.-5GiB",
        "0x10",
        "%",
        "0%",
        "101%",
        "50%%",
        "5 %",
        "1GiBs",
        "Gi",
        "1G",
        "1e9",
        "1KiB%",
        "18446744073709551616",
        "16777216TiB",
        "16777215.999999TiBs",
        "18446745TB",
        "99999999999999999999"};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char text[64];

        snprintf(text, sizeof(text), "pool:%s", sizes[i]);
        if (strcmp(sizes[i], "+1") == 0) {
            expect_malformed(text, "'' is not a size");
        } else {
            expect_malformed(text, "is not a size");
        }
    }
    expect_malformed("pool:1MiB:", "'' is not a size");
    expect_malformed("pool::1MiB", "'' is not a size");
}

TEST_CASE(reads_a_size_with_any_unit)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"7", 7},
        {"7B", 7},
        {"1KiB", 1024},
        {"1kB", 1000},
        {"1GB", 1000000000},
        {"1gib", UINT64_C(1) << 30},
        {"1.5GiB", UINT64_C(3) << 29},
        {"0.25kB", 250},
        {"1.000001TB", UINT64_C(1000001000000)},
        {"16777215.5TiB", UINT64_MAX - (UINT64_C(1) << 39) + 1},
    };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t bytes = 0;

        assert_int_equal(
            rmm__number_parse_bytes(sizes[i].text, strlen(sizes[i].text), &bytes),
            RMM_NUMBER_OK);
        assert_int_equal(bytes, sizes[i].bytes);
    }
}

TEST_CASE(refuses_an_invalid_name)
{
    expect_malformed("", "a name is missing");
    expect_malformed("+", "a name is missing");
    expect_malformed("pool+", "a name is missing");
    expect_malformed("+pool", "a name is missing");
    expect_malformed(":1MiB", "a name is missing");
    expect_malformed(" pool", "' pool' is not the name of a resource");
    expect_malformed("pool ", "'pool ' is not the name of a resource");
    expect_malformed("1pool", "'1pool' is not the name");
    expect_malformed("-pool", "'-pool' is not the name");
    expect_malformed("po-ol", "no resource is named 'po_ol'");
    expect_malformed("pool,cuda", "'pool,cuda' is not the name");
    expect_malformed("pool\n", "is not the name");
    expect_malformed("a_name_that_is_longer_than_any", "is not the name");
    expect_malformed("a_name_of_24_characters_", "is not the name"); /* and a NUL */
}

TEST_CASE(refuses_more_than_it_has_room_for)
{
    expect_malformed("a+a+a+a+a+a+a+a+a", "more than 8 parts");
    expect_malformed("pool:1:2:3", "'pool' has more than 2 sizes");
}

TEST_CASE(refuses_words_that_stand_for_nothing)
{
    expect_malformed(
        "poool",
        "no resource is named 'poool'; the names are cuda auto pool pool_virtual ");
    expect_malformed("poool", " tracking"); /* the last one */
    expect_malformed("Pool", "no resource is named 'Pool'");
    expect_malformed(
        "host", "no resource is named 'host'"); /* no kernel could use it */
}

TEST_CASE(refuses_sizes_where_they_mean_nothing)
{
    expect_malformed("cuda:1MiB", "'cuda' takes no size");
    expect_malformed("managed:50%", "'managed' takes no size");
    expect_malformed("fixed_size:1MiB:2MiB", "'fixed_size' takes at most 1 size: ");
    expect_malformed("fixed_size:50%", "takes a number of bytes");
    expect_malformed("limiting+pool", "'limiting' takes 1 size: the limit");
    expect_malformed("aligned+pool", "'aligned' takes 1 or 2 sizes: ");
    expect_malformed("aligned:10%+pool", "'aligned' takes a number of bytes");
    expect_malformed("statistics:1+pool", "'statistics' takes no size");
}

TEST_CASE(refuses_an_order_that_cannot_be)
{
    expect_malformed("pool+cuda", "'pool' is not an adaptor");
    expect_malformed("cuda+cuda", "'cuda' is not an adaptor");
    expect_malformed("statistics", "'statistics' is an adaptor");
    expect_malformed("pool+statistics", "'pool' is not an adaptor");
}
