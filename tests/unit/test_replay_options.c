/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs accept on their command line, and which capacities they try.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "common/numbers.h"
#include "replay/capacity.h"
#include "replay/options.h"

#define ARGUMENTS_MAX 10

static replay_options_t options;
static char message[TOOL_MESSAGE_MAX];

/* Splits a command line at spaces and parses it. */
static bool parse(const char *line)
{
    static char text[256];
    static char *argv[ARGUMENTS_MAX + 1];
    size_t count = 0;
    strcpy(text, line);
    memset(argv, 0, sizeof argv);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(count < ARGUMENTS_MAX);
        argv[count++] = word;
    }
    message[0] = '\0';
    return replay_options_parse(argv, &options, message);
}

static void assert_refused(const char *line, const char *expected)
{
    assert_false(parse(line));
    assert_string_equal(message, expected);
}

TEST_CASE(has_defaults)
{
    assert_true(parse("rmm-replay log.csv"));
    assert_string_equal(options.log_path, "log.csv");
    assert_string_equal(options.resource, "pool");
    assert_int_equal(options.pool_bytes, 0);
    assert_true(options.speed == 0);
    assert_int_equal(options.repeat, 1);
    assert_false(options.hold);
}

TEST_CASE(takes_options_before_and_after_the_log)
{
    assert_true(
        parse("rmm-replay --pool-bytes=2GiB log.csv --speed 2.5 --json --hold 0"));
    assert_int_equal(options.pool_bytes, UINT64_C(2147483648));
    assert_true(options.speed == 2.5);
    assert_true(options.json);
    assert_true(options.hold);
    assert_string_equal(options.log_path, "log.csv");
    assert_true(parse("rmm-replay -h"));
    assert_true(options.help);
    assert_true(parse("rmm-replay -V"));
    assert_true(options.version);
    assert_true(parse("rmm-replay --repeat 3 -- --odd"));
    assert_string_equal(options.log_path, "--odd");
}

TEST_CASE(says_what_an_option_expects)
{
    assert_refused(
        "rmm-replay --resource= log",
        "--resource: \"\" is not a resource, such as pool, cuda or "
        "limiting:1GiB+async");
    assert_refused(
        "rmm-replay --pool-bytes 12M log",
        "--pool-bytes: \"12M\" is not a size of at least 256 bytes, such as "
        "5648896016 or 80GiB (KiB, MiB, GiB, TiB)");
    assert_refused(
        "rmm-replay --speed 0 log",
        "--speed: \"0\" is not max or a factor above 0, such as 1 or 10");
    assert_refused(
        "rmm-replay --repeat -1 log",
        "--repeat: \"-1\" is not a number of times, 1 or more");
    assert_refused(
        "rmm-replay --hold soon log", "--hold: \"soon\" is not a number of seconds");
    assert_refused("rmm-replay --frob log", "unknown option --frob; see --help");
    assert_refused("rmm-replay -j log", "unknown option -j; see --help");
    assert_refused("rmm-replay --json=1 log", "--json takes no value");
    assert_refused("rmm-replay log --repeat", "--repeat needs a value: N");
    assert_refused("rmm-replay --csv -- log", "--csv needs a value: FILE");
    assert_true(parse("rmm-replay --csv=-- log"));
    assert_string_equal(options.csv_path, "--");
    assert_refused("rmm-replay", "which log? Name one file; see --help");
    assert_refused("rmm-replay a b", "more than one log is named; see --help");
}

TEST_CASE(knows_which_resources_have_a_size)
{
    static const char *const none[] = {
        "cuda",      "async", "fixed_size", "pool:1GiB", "statistics+pool:1GiB:2GiB",
        "arena:1GiB"};

    assert_int_equal(replay_resource_sizes("pool"), 2);
    assert_int_equal(replay_resource_sizes("pool-virtual"), 2);
    assert_int_equal(replay_resource_sizes("auto"), 2);
    assert_int_equal(replay_resource_sizes("statistics+auto:1GiB"), 0);
    assert_int_equal(replay_resource_sizes("binning"), 2);
    assert_int_equal(replay_resource_sizes("limiting:1GiB+pool_managed"), 2);
    assert_int_equal(replay_resource_sizes("arena"), 1);
    assert_int_equal(replay_resource_sizes("tracking+arena"), 1);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(replay_resource_sizes(none[i]), 0);
    }
}

TEST_CASE(refuses_options_that_exclude_each_other)
{
    assert_refused(
        "rmm-replay --resource cuda --pool-bytes 1GiB log",
        "--pool-bytes needs a pool or an arena without a size as --resource");
    assert_refused(
        "rmm-replay --resource cuda --find-capacity log",
        "--find-capacity needs a pool or an arena without a size as --resource");
    assert_false(parse("rmm-replay --find-capacity --pool-bytes 1GiB log"));
    assert_false(parse("rmm-replay --find-capacity --hold 1 log"));
    const char *const without_size[] = {"cuda", "async", "fixed_size", "pool:1GiB"};
    for (size_t i = 0; i < sizeof without_size / sizeof *without_size; i++) {
        char line[128];
        snprintf(
            line, sizeof line, "rmm-replay --capacity-curve --resource %s log",
            without_size[i]);
        assert_refused(
            line,
            "--capacity-curve needs a pool or an arena without a size as --resource");
    }
    assert_refused(
        "rmm-replay --capacity-curve --pool-bytes 1GiB log",
        "--capacity-curve tries sizes of the pool: leave --pool-bytes out");
    assert_refused(
        "rmm-replay --capacity-curve --hold 1 log",
        "--capacity-curve and --hold exclude each other");
    static const char *const others[] = {
        "--resource pool", "--pool-bytes 1GiB", "--repeat 2",
        "--speed 1",       "--verify",          "--hold 0",
        "--find-capacity", "--capacity-curve",  "--csv f"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char line[128];
        snprintf(line, sizeof line, "rmm-replay --advise %s log", others[i]);
        assert_refused(
            line, "--advise chooses what it runs: only --json and --strict go with it");
    }
    assert_true(parse("rmm-replay --advise --json --strict log"));
    assert_refused(
        "rmm-replay --csv held.csv --repeat 2 log",
        "--csv follows one run: leave --repeat out");
    assert_refused("rmm-replay --csv= log", "--csv: \"\" is not the name of a file");
}

TEST_CASE(reads_sizes_with_suffixes)
{
    const struct {
        const char *text;
        rmm_number_result_t result;
        uint64_t bytes;
    } cases[] = {
        {"0", RMM_NUMBER_OK, 0},
        {"4096", RMM_NUMBER_OK, 4096},
        {"1KiB", RMM_NUMBER_OK, 1024},
        {"3MiB", RMM_NUMBER_OK, 3145728},
        {"80GiB", RMM_NUMBER_OK, UINT64_C(85899345920)},
        {"1TiB", RMM_NUMBER_OK, UINT64_C(1) << 40},
        {"16777216TiB", RMM_NUMBER_TOO_LARGE, 0},
        {"18446744073709551615", RMM_NUMBER_OK, UINT64_MAX},
        {"18446744073709551616", RMM_NUMBER_TOO_LARGE, 0},
        {"KiB", RMM_NUMBER_MALFORMED, 0},
        {"1kib", RMM_NUMBER_OK, 1024},
        {"1 KiB", RMM_NUMBER_MALFORMED, 0},
        {"+1", RMM_NUMBER_MALFORMED, 0},
        {"-1", RMM_NUMBER_MALFORMED, 0},
        {"0x10", RMM_NUMBER_MALFORMED, 0},
        {"", RMM_NUMBER_MALFORMED, 0},
        {"99999999999999999999x", RMM_NUMBER_MALFORMED, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bytes = 0;
        assert_int_equal(
            rmm__number_parse_bytes(cases[i].text, strlen(cases[i].text), &bytes),
            cases[i].result);
        assert_true(bytes == cases[i].bytes);
    }
}

TEST_CASE(reads_fractions)
{
    double value;
    assert_true(number_parse_fraction("0.25", &value) && value == 0.25);
    assert_true(number_parse_fraction("10", &value) && value == 10);
    assert_false(number_parse_fraction("", &value));
    assert_false(number_parse_fraction(".", &value));
    assert_false(number_parse_fraction("1e5", &value));
    assert_false(number_parse_fraction("-1", &value));
    assert_false(number_parse_fraction("nan", &value));
    assert_false(number_parse_fraction("1.2.3", &value));
}

/* A pool of at least `needed` bytes fits. */
typedef struct fake {
    uint64_t needed;
    uint64_t fail_at_trial; /* 0: never */
    uint64_t trials;
} fake_t;

static capacity_trial_t try_fake(void *context, uint64_t capacity_bytes)
{
    fake_t *fake = context;
    assert_int_equal(capacity_bytes % 256, 0);
    if (++fake->trials == fake->fail_at_trial) {
        return CAPACITY_TRIAL_FAILED;
    }
    return capacity_bytes >= fake->needed ? CAPACITY_FITS : CAPACITY_TOO_SMALL;
}

TEST_CASE(finds_the_smallest_capacity_within_a_granule)
{
    const uint64_t peaks[] = {1, 256, 100000, UINT64_C(5648896016), UINT64_C(1) << 60};
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
        uint64_t base = (peaks[i] + 255) / 256 * 256;
        uint64_t granule = capacity_granularity(peaks[i]);
        for (uint64_t percent = 100; percent <= 390; percent += 7) {
            fake_t fake = {.needed = base / 100 * percent};
            uint64_t found = 0;
            if (fake.needed > base * 4 - granule) {
                continue;
            }
            assert_int_equal(
                capacity_search(peaks[i], try_fake, &fake, &found), CAPACITY_FOUND);
            assert_true(found >= fake.needed);
            assert_true(found < fake.needed + granule || found == base);
            assert_true(fake.trials <= 26);
        }
    }
}

TEST_CASE(says_when_four_times_the_peak_is_too_small)
{
    fake_t fake = {.needed = UINT64_MAX};
    uint64_t found = 7;
    assert_int_equal(
        capacity_search(1000000, try_fake, &fake, &found), CAPACITY_NOT_FOUND);
    assert_int_equal(found, 7);
}

TEST_CASE(stops_the_search_when_a_trial_fails)
{
    for (uint64_t trial = 1; trial < 8; trial++) {
        fake_t fake = {.needed = 1500000, .fail_at_trial = trial};
        uint64_t found = 7;
        assert_int_equal(
            capacity_search(1000000, try_fake, &fake, &found), CAPACITY_STOPPED);
        assert_int_equal(fake.trials, trial);
    }
}

TEST_CASE(granularity_is_a_thousandth_of_the_peak)
{
    assert_int_equal(capacity_granularity(0), 256);
    assert_int_equal(capacity_granularity(511999), 256);
    assert_int_equal(capacity_granularity(512000), 512);
    assert_int_equal(capacity_granularity(UINT64_C(5648896016)), 5648896);
}

/* Capacities of this list, in hundredths of the peak, do not fit. */
typedef struct fake_curve {
    uint64_t peak_bytes;
    const unsigned *too_small; /* ends with 0 */
    unsigned trials;
} fake_curve_t;

static capacity_trial_t try_fake_curve(void *context, uint64_t capacity_bytes)
{
    fake_curve_t *fake = context;
    uint64_t bytes = fake->peak_bytes / 100 * (100 + fake->trials);
    assert_int_equal(capacity_bytes, (bytes + 255) / 256 * 256);
    fake->trials++;
    for (const unsigned *percent = fake->too_small; *percent != 0; percent++) {
        if (*percent == 99 + fake->trials) {
            return CAPACITY_TOO_SMALL;
        }
    }
    return CAPACITY_FITS;
}

TEST_CASE(tries_every_capacity_and_reports_the_safe_one_and_the_holes)
{
    const struct {
        unsigned too_small[8];
        unsigned safe;
        unsigned holes;
    } cases[] = {
        {{0}, 100, 0},         {{100, 101, 102, 0}, 103, 0},
        {{101, 0}, 102, 1},    {{100, 101, 104, 105, 120, 0}, 121, 3},
        {{100, 140, 0}, 0, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_curve_t fake = {.peak_bytes = 123400, .too_small = cases[i].too_small};
        capacity_curve_t curve;
        assert_true(
            capacity_curve_measure(fake.peak_bytes, try_fake_curve, &fake, &curve));
        assert_int_equal(fake.trials, 41);
        assert_int_equal(capacity_curve_safe(&curve), cases[i].safe);
        assert_int_equal(capacity_curve_holes(&curve), cases[i].holes);
    }
}

TEST_CASE(a_curve_that_no_capacity_fits_has_no_holes)
{
    fake_t fake = {.needed = UINT64_MAX};
    capacity_curve_t curve;
    assert_true(capacity_curve_measure(1000000, try_fake, &fake, &curve));
    assert_int_equal(capacity_curve_safe(&curve), 0);
    assert_int_equal(capacity_curve_holes(&curve), 0);
}

TEST_CASE(a_curve_covers_peaks_of_every_size)
{
    const uint64_t peaks[] = {0, 1, 255, 257, UINT64_C(1) << 62};
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
        fake_t fake = {.needed = 0};
        capacity_curve_t curve;
        assert_true(capacity_curve_measure(peaks[i], try_fake, &fake, &curve));
        assert_true(curve.bytes[0] >= 256);
        assert_true(curve.bytes[0] - peaks[i] <= 256);
        for (unsigned step = 1; step < CAPACITY_CURVE_COUNT; step++) {
            assert_true(curve.bytes[step] >= curve.bytes[step - 1]);
        }
        uint64_t above = curve.bytes[CAPACITY_CURVE_COUNT - 1] - peaks[i];
        assert_true(above >= peaks[i] / 10 * 4);
        assert_true(above <= peaks[i] / 10 * 4 + 512);
    }
}

TEST_CASE(a_curve_stops_when_a_trial_fails)
{
    fake_t fake = {.needed = 1500000, .fail_at_trial = 5};
    capacity_curve_t curve;
    assert_false(capacity_curve_measure(1000000, try_fake, &fake, &curve));
    assert_int_equal(fake.trials, 5);
}

TEST_CASE(limits_of_values_are_values)
{
    char line[200], long_spec[REPLAY_RESOURCE_MAX + 2];
    double fraction;
    memset(long_spec, 'x', sizeof long_spec);
    long_spec[REPLAY_RESOURCE_MAX] = '\0';
    snprintf(line, sizeof line, "rmm-replay --resource %s log", long_spec);
    assert_true(parse(line));
    long_spec[REPLAY_RESOURCE_MAX] = 'x';
    long_spec[REPLAY_RESOURCE_MAX + 1] = '\0';
    snprintf(line, sizeof line, "rmm-replay --resource %s log", long_spec);
    assert_false(parse(line));
    assert_true(parse("rmm-replay --pool-bytes 256 log"));
    assert_false(parse("rmm-replay --pool-bytes 255 log"));
    assert_true(parse("rmm-replay --hold 1000000000 log"));
    assert_false(parse("rmm-replay --hold 1000000001 log"));
    assert_refused("rmm-replay --csv log log", "--csv names the log itself");
    char digits[400];
    memset(digits, '9', sizeof digits);
    digits[sizeof digits - 1] = '\0';
    assert_false(
        number_parse_fraction(digits, &fraction)); /* no double is that large */
}
