/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid files, changed at random, then read: the reader may refuse or accept, but keeps
 * its promises (exercise_segment.h), and a sanitizer finds no fault. RMM_FUZZ_SEED and
 * RMM_FUZZ_ROUNDS repeat or prolong a run.
 */
#include "harness/harness.h"

#include "unit/segment_sample.h"

#include "fuzz/exercise_segment.h"

#define DEFAULT_ROUNDS 20000

typedef struct random_source {
    uint64_t state;
} random_source_t;

/* splitmix64 */
static uint64_t draw(random_source_t *source)
{
    uint64_t z = source->state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static uint64_t draw_below(random_source_t *source, uint64_t limit)
{
    return draw(source) % limit;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

/* Most bytes of a segment are figures, which may hold anything: aim at the rest. */
static size_t draw_position(random_source_t *source, size_t bytes)
{
    const size_t heads[] = {96, 448, 512, 4096, 4096 + 192, bytes};
    size_t limit = heads[draw_below(source, sizeof(heads) / sizeof(heads[0]))];

    return draw_below(source, limit < bytes ? limit : bytes);
}

static const uint64_t interesting[] = {0,          1,
                                       2,          7,
                                       8,          55,
                                       56,         64,
                                       127,        128,
                                       191,        192,
                                       384,        448,
                                       512,        1024,
                                       1025,       4032,
                                       16704,      0x7fffffff,
                                       0x80000000, 0xffffffff,
                                       0xfffffff8, 0xffffffc0,
                                       UINT64_MAX, UINT64_MAX - 7};

static void change_once(random_source_t *source, unsigned char *data, size_t bytes)
{
    size_t at = draw_position(source, bytes);
    size_t wide = (size_t)1 << draw_below(source, 4); /* 1, 2, 4, 8 bytes */
    size_t aligned = at & ~(wide - 1);
    uint64_t value;

    switch (draw_below(source, 4)) {
    case 0:
        data[at] = (unsigned char)draw(source);
        return;
    case 1:
        data[at] ^= (unsigned char)(1u << draw_below(source, 8));
        return;
    case 2:
        value = interesting[draw_below(
            source, sizeof(interesting) / sizeof(interesting[0]))];
        break;
    default: /* a neighbour's bytes: duplicate names, moved sections */
        memcpy(&value, data + draw_below(source, bytes - 8), sizeof(value));
        break;
    }
    if (aligned + wide <= bytes) {
        memcpy(data + aligned, &value, wide);
    }
}

static size_t change(random_source_t *source, unsigned char *data, size_t bytes)
{
    for (uint64_t changes = 1 + draw_below(source, 6); changes > 0; changes--) {
        change_once(source, data, bytes);
    }
    return draw_below(source, 16) == 0 ? draw_position(source, bytes) : bytes;
}

static void put(int fd, const unsigned char *data, size_t bytes)
{
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(pwrite(fd, data, bytes, 0), bytes);
}

static void a_segment_changed_at_random_breaks_no_promise(void **state)
{
    static rmm_segment_layout_t valid;
    static unsigned char data[sizeof(valid)];
    uint64_t seed = from_environment("RMM_FUZZ_SEED", 1);
    uint64_t rounds = from_environment("RMM_FUZZ_ROUNDS", DEFAULT_ROUNDS);
    uint64_t verdicts[4] = {0};
    random_source_t source = {seed};
    int fd;

    print_message("RMM_FUZZ_SEED=%llu\n", (unsigned long long)seed);
    sample_make(&valid);
    fd = sample_file(&valid, sizeof(valid));
    assert_int_equal(exercise_segment(fd), RMM_SEGMENT_GOOD);
    for (uint64_t round = 0; round < rounds; round++) {
        memcpy(data, &valid, sizeof(data));
        put(fd, data, change(&source, data, sizeof(data)));
        verdicts[exercise_segment(fd)]++;
    }
    print_message(
        "good %llu, not ready %llu, refused %llu\n",
        (unsigned long long)verdicts[RMM_SEGMENT_GOOD],
        (unsigned long long)verdicts[RMM_SEGMENT_NOT_READY],
        (unsigned long long)verdicts[RMM_SEGMENT_REFUSED]);
    /* both ways were walked, or the changes aim badly */
    assert_true(verdicts[RMM_SEGMENT_GOOD] > rounds / 20);
    assert_true(verdicts[RMM_SEGMENT_REFUSED] > rounds / 20);
    close(fd);
}

static void a_control_page_changed_at_random_breaks_no_promise(void **state)
{
    static rmm_control_page_t valid = {
        .magic = RMM_CONTROL_MAGIC,
        .version_major = RMM_SEGMENT_MAJOR,
        .locations_offset = offsetof(rmm_control_page_t, locations),
        .locations_stride = sizeof(rmm_control_location_t),
        .locations_count = RMM_SEGMENT_LOCATIONS,
        .slots_offset = offsetof(rmm_control_page_t, slots),
        .slots_stride = sizeof(rmm_control_slot_t),
        .slots_count = RMM_SEGMENT_SLOTS};
    static unsigned char data[sizeof(valid)];
    uint64_t rounds = from_environment("RMM_FUZZ_ROUNDS", DEFAULT_ROUNDS) / 10;
    random_source_t source = {from_environment("RMM_FUZZ_SEED", 1)};
    uint64_t good = 0;
    int fd = sample_file(&valid, sizeof(valid));

    assert_int_equal(exercise_control(fd), 0);
    for (uint64_t round = 0; round < rounds; round++) {
        memcpy(data, &valid, sizeof(data));
        put(fd, data, change(&source, data, sizeof(data)));
        good += exercise_control(fd) == 0;
    }
    assert_true(good > rounds / 20 && good < rounds);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_changed_at_random_breaks_no_promise),
        cmocka_unit_test(a_control_page_changed_at_random_breaks_no_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
