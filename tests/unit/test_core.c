/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core by itself: statuses and the last error, options of other versions, the map of
 * pointers against a plain list, host memory, numbers, the build id of a module.
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/status.h>
#include <rmm/version.h>

#include "core/error.h"
#include "core/host_memory.h"
#include "core/loaded_module.h"
#include "core/numbers.h"
#include "core/options.h"
#include "core/pointer_map.h"

TEST_CASE(names_every_status)
{
#define X(name, value, text)                                                           \
    assert_string_equal(rmm_status_name(RMM_##name), "RMM_" #name);                    \
    assert_string_equal(rmm_status_text(RMM_##name), text);                            \
    assert_int_equal(RMM_##name, value);
    RMM_STATUS_MAP(X)
#undef X
    assert_string_equal(rmm_status_name((rmm_status_t)-99), "RMM_ERR_UNKNOWN");
    assert_true(rmm_status_is_alloc_failure(RMM_ERR_OUT_OF_MEMORY));
    assert_true(rmm_status_is_alloc_failure(RMM_ERR_BAD_ALLOC));
    assert_false(rmm_status_is_alloc_failure(RMM_ERR_OUT_OF_HOST_MEMORY));
    assert_false(rmm_status_is_alloc_failure(RMM_OK));
}

static void *sees_no_error_of_another_thread(void *argument)
{
    return rmm_last_error_message()[0] == '\0' && rmm_last_cuda_error() == 0 ? argument
                                                                             : NULL;
}

TEST_CASE(keeps_the_last_error_per_thread)
{
    pthread_t thread;
    void *result;
    int token;

    assert_int_equal(rmm__error_cuda(RMM_ERR_CUDA, 700, "call %d", 5), RMM_ERR_CUDA);
    assert_string_equal(rmm_last_error_message(), "call 5");
    assert_int_equal(rmm_last_cuda_error(), 700);
    assert_int_equal(
        pthread_create(&thread, NULL, sees_no_error_of_another_thread, &token), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &token);
    (void)rmm__error(RMM_ERR_IO, "%s again", rmm_last_error_message());
    assert_string_equal(rmm_last_error_message(), "call 5 again");
    assert_int_equal(rmm_last_cuda_error(), 0);
}

TEST_CASE(cuts_a_long_message)
{
    char text[2 * RMM_ERROR_BYTES];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    (void)rmm__error(RMM_ERR_IO, "%s", text);
    assert_int_equal(strlen(rmm_last_error_message()), RMM_ERROR_BYTES - 1);
}

/* The user knows a function of the public API; an internal one says nothing. */
TEST_CASE(names_the_public_function_that_refuses)
{
    static const char *const internals[] = {"rmm__pool_create", "create", "rm_pool"};

    assert_int_equal(
        rmm__error_check(RMM_ERR_INVALID_ARGUMENT, "rmm_pool_create", "no size"),
        RMM_ERR_INVALID_ARGUMENT);
    assert_string_equal(rmm_last_error_message(), "rmm_pool_create: no size");
    for (size_t i = 0; i < sizeof(internals) / sizeof(internals[0]); i++) {
        (void)rmm__error_check(RMM_ERR_INVALID_ARGUMENT, internals[i], "no size");
        assert_string_equal(rmm_last_error_message(), "no size");
    }
}

TEST_CASE(a_saved_error_is_restored)
{
    rmm_error_kept_t kept;

    (void)rmm__error_cuda(RMM_ERR_CUDA, 42, "the first");
    rmm__error_keep(&kept);
    (void)rmm__error(RMM_ERR_IO, "the second");
    rmm__error_restore(&kept);
    assert_string_equal(rmm_last_error_message(), "the first");
    assert_int_equal(rmm_last_cuda_error(), 42);
}

/* --- options ------------------------------------------------------------------------ */

typedef struct ours {
    size_t struct_size;
    uint64_t first, second;
} ours_t;

typedef struct newer {
    ours_t known;
    uint64_t third;
} newer_t;

TEST_CASE(reads_options_of_other_versions)
{
    ours_t ours = {sizeof(ours_t), 1, 2};
    ours_t older = {offsetof(ours_t, second), 1, 99};
    newer_t newer = {{sizeof(newer_t), 1, 2}, 0};
    ours_t got;

    assert_int_equal(rmm__options_copy(&got, sizeof(got), &ours, 16), RMM_OK);
    assert_int_equal(got.second, 2);
    assert_int_equal(rmm__options_copy(&got, sizeof(got), &older, 16), RMM_OK);
    assert_int_equal(got.first, 1);
    assert_int_equal(got.second, 0);
    assert_int_equal(rmm__options_copy(&got, sizeof(got), &newer, 16), RMM_OK);
    newer.third = 1;
    assert_int_equal(
        rmm__options_copy(&got, sizeof(got), &newer, 16), RMM_ERR_UNSUPPORTED);
    ours.struct_size = 15;
    assert_int_equal(
        rmm__options_copy(&got, sizeof(got), &ours, 16), RMM_ERR_INVALID_ARGUMENT);
    ours.struct_size = 0;
    assert_int_equal(
        rmm__options_copy(&got, sizeof(got), &ours, 16), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm__options_copy(&got, sizeof(got), NULL, 16), RMM_OK);
    assert_int_equal(got.first, 0);
}

/* --- the map ------------------------------------------------------------------------ */

enum { KEYS = 500, STEPS = 20000 };

TEST_CASE(agrees_with_a_plain_list)
{
    const char *request = getenv("RMM_TEST_SEED");
    unsigned seed = request != NULL ? (unsigned)strtoul(request, NULL, 10) : 20260101u;
    rmm_pointer_map_t map = {0};
    size_t shadow[KEYS] = {0};
    size_t count = 0;

    print_message("RMM_TEST_SEED=%u\n", seed);
    for (int i = 0; i < STEPS; i++) {
        size_t k = (size_t)rand_r(&seed) % KEYS;
        void *ptr = (void *)(k * 4096); /* close together: probes run into others */
        size_t bytes = 0;

        assert_int_equal(rmm__pointer_map_find(&map, ptr, &bytes), shadow[k] != 0);
        assert_int_equal(bytes, shadow[k]);
        if (shadow[k] != 0) {
            rmm_pointer_map_entry_t entry;

            assert_ptr_equal(
                rmm__pointer_map_take(&map, ptr, shadow[k] + 1, &entry), &entry);
            assert_int_equal(entry.bytes, shadow[k]); /* told, and left there */
            if (i % 2 == 0) {
                assert_true(rmm__pointer_map_erase(&map, ptr));
            } else {
                assert_non_null(rmm__pointer_map_take(&map, ptr, shadow[k], &entry));
            }
            assert_null(rmm__pointer_map_take(&map, ptr, shadow[k], &entry));
            shadow[k] = 0;
            count--;
        } else {
            assert_true(rmm__pointer_map_reserve(&map));
            shadow[k] = (size_t)i + 1;
            rmm__pointer_map_insert(&map, ptr, shadow[k]);
            count++;
        }
        assert_int_equal(map.count, count);
        assert_true(2 * map.count <= map.capacity);
    }
    rmm__pointer_map_fini(&map);
}

TEST_CASE(only_the_right_size_is_taken)
{
    rmm_pointer_map_t map = {0};
    rmm_pointer_map_entry_t entry;
    size_t bytes;
    int token;

    assert_true(rmm__pointer_map_reserve(&map));
    rmm__pointer_map_insert(&map, &token, 7);
    assert_non_null(rmm__pointer_map_take(&map, &token, 6, &entry));
    assert_non_null(rmm__pointer_map_take(&map, &token, 8, &entry));
    assert_int_equal(entry.bytes, 7);
    assert_true(rmm__pointer_map_find(&map, &token, &bytes));
    assert_non_null(rmm__pointer_map_take(&map, &token, 7, &entry));
    assert_null(rmm__pointer_map_take(&map, &token, 7, &entry));
    rmm__pointer_map_fini(&map);
}

TEST_CASE(survives_without_host_memory)
{
    rmm_pointer_map_t map = {0};
    int token;
    size_t bytes;

    rmm__host_memory_fail(1);
    assert_false(rmm__pointer_map_reserve(&map));
    assert_true(rmm__host_memory_fail_struck());
    assert_false(rmm__pointer_map_find(&map, &token, &bytes));
    assert_false(rmm__pointer_map_erase(&map, &token));
    assert_true(rmm__pointer_map_reserve(&map));
    rmm__pointer_map_insert(&map, &token, 7);
    assert_true(rmm__pointer_map_find(&map, &token, &bytes));
    assert_int_equal(bytes, 7);
    rmm__pointer_map_fini(&map);
}

/* A promise is kept after others have taken their room: an insertion cannot fail. */
TEST_CASE(room_that_is_promised_is_there)
{
    enum { PROMISES = 1000 };
    rmm_pointer_map_t map = {0};
    static char keys[PROMISES * 256];

    for (int i = 0; i < PROMISES; i++) {
        assert_true(rmm__pointer_map_reserve(&map));
    }
    assert_true(2 * PROMISES <= map.capacity);
    rmm__host_memory_fail(1);
    for (int i = 0; i < PROMISES; i++) {
        rmm__pointer_map_insert(&map, &keys[i * 256], 1);
    }
    assert_false(rmm__host_memory_fail_struck());
    rmm__host_memory_fail(0);
    assert_int_equal(map.count, PROMISES);
    rmm__pointer_map_fini(&map);
}

/* The search goes on where it ended, and misses none of the entries that move meanwhile. */
TEST_CASE(is_emptied_in_one_pass)
{
    enum { ENTRIES = 10000 };
    rmm_pointer_map_t map = {0};
    rmm_pointer_map_entry_t entry;
    unsigned seed = 1;
    size_t from;
    size_t before = 0;
    size_t found = 0;

    for (size_t i = 0; i < ENTRIES; i++) {
        void *ptr = (void *)((i * RAND_MAX + (size_t)rand_r(&seed) + 1) * 256);

        assert_true(rmm__pointer_map_reserve(&map));
        rmm__pointer_map_insert(&map, ptr, 1);
    }
    from = map.capacity;
    assert_false(rmm__pointer_map_any(&map, &from, &entry)); /* none is behind */
    for (from = 0; rmm__pointer_map_any(&map, &from, &entry); before = from, found++) {
        assert_true(from >= before);
        assert_true(rmm__pointer_map_erase(&map, entry.ptr));
    }
    assert_int_equal(found, ENTRIES);
    assert_int_equal(map.count, 0);
    rmm__pointer_map_fini(&map);
}

/* --- host memory -------------------------------------------------------------------- */

TEST_CASE(what_memory_grows_by_is_zero)
{
    enum { LEAST = 16, MOST = 4096 };
    unsigned char *memory = rmm__calloc(1, MOST);

    memset(memory, 0xff, MOST);
    memory = rmm__resize(memory, MOST, LEAST);
    memory = rmm__resize(memory, LEAST, MOST);
    for (int i = 0; i < MOST; i++) {
        assert_int_equal(memory[i], i < LEAST ? 0xff : 0);
    }
    rmm__free(memory);
}

/* --- numbers ------------------------------------------------------------------------ */

static rmm_number_result_t read_digits(const char *text, unsigned base, uint64_t *out)
{
    return rmm__number_parse_digits(text, strlen(text), base, out);
}

TEST_CASE(reads_digits_of_every_base)
{
    uint64_t value = 0;

    assert_int_equal(read_digits("0123456789abcdef", 16, &value), RMM_NUMBER_OK);
    assert_int_equal(value, 0x0123456789abcdef);
    assert_int_equal(read_digits("ABCDEF", 16, &value), RMM_NUMBER_OK);
    assert_int_equal(value, 0xabcdef);
    assert_int_equal(read_digits("01234567", 8, &value), RMM_NUMBER_OK);
    assert_int_equal(value, 01234567);
    assert_int_equal(read_digits("18446744073709551615", 10, &value), RMM_NUMBER_OK);
    assert_int_equal(value, UINT64_MAX);
    assert_int_equal(read_digits("ffffffffffffffff", 16, &value), RMM_NUMBER_OK);
    assert_int_equal(value, UINT64_MAX);
}

TEST_CASE(refuses_what_is_no_digit_and_leaves_the_output)
{
    static const char *const malformed[] = {"",  "g", "G",  "/", ":",
                                            "@", "`", "1g", "-1"};
    uint64_t value = 42;

    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(read_digits(malformed[i], 16, &value), RMM_NUMBER_MALFORMED);
    }
    assert_int_equal(read_digits("a", 10, &value), RMM_NUMBER_MALFORMED);
    assert_int_equal(read_digits("8", 8, &value), RMM_NUMBER_MALFORMED);
    assert_int_equal(
        read_digits("18446744073709551616", 10, &value), RMM_NUMBER_TOO_LARGE);
    assert_int_equal(
        read_digits("10000000000000000", 16, &value), RMM_NUMBER_TOO_LARGE);
    assert_int_equal(
        read_digits("18446744073709551616x", 10, &value), RMM_NUMBER_MALFORMED);
    assert_int_equal(value, 42);
}

TEST_CASE(prints_its_version)
{
    char text[32];

    assert_int_equal(
        rmm_version(),
        RMM_C_VERSION_MAJOR * 10000 + RMM_C_VERSION_MINOR * 100 + RMM_C_VERSION_PATCH);
    snprintf(
        text, sizeof(text), "%d.%d.%d", RMM_C_VERSION_MAJOR, RMM_C_VERSION_MINOR,
        RMM_C_VERSION_PATCH);
    assert_string_equal(rmm_version_string(), text);
}

/* --- the build id of a module --------------------------------------------------------- */

typedef struct note {
    ElfW(Nhdr) head;
    char owner[4];
    unsigned char text[8];
} note_t;

#define NOTE(type, name, ...)                                                          \
    {                                                                                  \
        {4, 8, type}, name,                                                            \
        {                                                                              \
            __VA_ARGS__                                                                \
        }                                                                              \
    }

/* The bytes of the build id that these notes have; 0: none. */
static size_t find_id(const note_t *notes, size_t bytes, unsigned char *id, size_t room)
{
    const ElfW(Phdr) part = {.p_type = PT_NOTE, .p_memsz = bytes, .p_align = 4};
    const struct dl_phdr_info info = {
        .dlpi_addr = (ElfW(Addr))(uintptr_t)notes, .dlpi_phdr = &part, .dlpi_phnum = 1};

    return rmm__module_build_id(&info, id, room);
}

TEST_CASE(finds_the_build_id_among_other_notes)
{
    static const note_t notes[] = {
        NOTE(NT_GNU_BUILD_ID, "Xen", 9, 9, 9, 9, 9, 9, 9, 9), /* of another owner */
        NOTE(NT_GNU_ABI_TAG, "GNU", 8, 8, 8, 8, 8, 8, 8, 8),
        NOTE(NT_GNU_BUILD_ID, "GNU", 1, 2, 3, 4, 5, 6, 7, 8)};
    unsigned char id[16] = {0};

    assert_int_equal(find_id(notes, sizeof(notes), id, sizeof(id)), 8);
    assert_memory_equal(id, notes[2].text, 8);
    memset(id, 0, sizeof(id));
    assert_int_equal(find_id(notes, sizeof(notes), id, 3), 3); /* no more than fits */
    assert_memory_equal(id, "\1\2\3\0", 4);
    assert_int_equal(find_id(notes, 2 * sizeof(notes[0]), id, sizeof(id)), 0);
    assert_int_equal(find_id(notes, sizeof(notes) - 1, id, sizeof(id)), 0); /* cut */
}
