/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the words of a spec are made: a creator for each word of spec_kinds.def, and the table.
 */
#include <stddef.h>
#include <string.h>

#include <rmm/rmm.h>

#include "device/spec.h"

/* The bins that RMM's benchmarks use: 256 KiB to 4 MiB. */
enum { BIN_MIN_EXPONENT = 18, BIN_MAX_EXPONENT = 22 };

/* The parameters of every creator; some have no use for some of them. */
#define UNUSED __attribute__((unused))
#define CREATOR(word)                                                                  \
    static rmm_status_t create_##word(                                                 \
        UNUSED rmm_resource_t *upstream, UNUSED const uint64_t sizes[RMM_SPEC_VALUES], \
        rmm_resource_t **out)

/* --- what takes nothing ---------------------------------------------------------------- */

#define PLAIN(word)                                                                    \
    CREATOR(word)                                                                      \
    {                                                                                  \
        return rmm_##word##_resource_create(out);                                      \
    }
#define PLAIN_ADAPTOR(word)                                                            \
    CREATOR(word)                                                                      \
    {                                                                                  \
        return rmm_##word##_adaptor_create(upstream, NULL, out);                       \
    }
#include "device/spec_kinds.def"

/* --- types with sizes ------------------------------------------------------------------ */

/* `flag` if the option is there. */
static uint32_t
flag_if(const uint64_t sizes[RMM_SPEC_VALUES], uint32_t option, uint32_t flag)
{
    return (sizes[RMM_SPEC_OPTIONS] & option) != 0 ? flag : 0;
}

static rmm_status_t
async_at(uint32_t location, const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;

    options.location = location;
    options.numa_node =
        location == RMM_ASYNC_ON_NODE ? (uint32_t)(sizes[RMM_SPEC_NODE] - 1) : 0;
    options.initial_pool_bytes = sizes[0];
    options.handle_types =
        flag_if(sizes, RMM_SPEC_EXPORTABLE, RMM_ASYNC_HANDLE_POSIX_FD);
    options.flags = flag_if(sizes, RMM_SPEC_NO_PEER_ACCESS, RMM_ASYNC_NO_PEER_ACCESS) |
                    flag_if(sizes, RMM_SPEC_WAIT, RMM_ASYNC_WAIT_BEFORE_REFUSAL);
    return rmm_async_resource_create(&options, out);
}

CREATOR(async)
{
    return async_at(RMM_ASYNC_ON_DEVICE, sizes, out);
}

CREATOR(async_pinned)
{
    bool on_node = flag_if(sizes, RMM_SPEC_NUMA, 1) != 0;

    return async_at(
        sizes[RMM_SPEC_NODE] != 0 ? RMM_ASYNC_ON_NODE
        : on_node                 ? RMM_ASYNC_ON_NEAREST_NODE
                                  : RMM_ASYNC_ON_HOST,
        sizes, out);
}

CREATOR(async_managed)
{
    return rmm_async_managed_resource_create_with_flags(
        flag_if(sizes, RMM_SPEC_WAIT, RMM_ASYNC_WAIT_BEFORE_REFUSAL), out);
}

CREATOR(sam_headroom)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;

    options.headroom_bytes = sizes[0];
    return rmm_sam_headroom_resource_create(&options, out);
}

static rmm_pool_options_t pool_options(const uint64_t sizes[RMM_SPEC_VALUES])
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    options.initial_bytes = sizes[0];
    options.maximum_bytes = sizes[1];
    options.flags = flag_if(sizes, RMM_SPEC_NO_PEER_ACCESS, RMM_POOL_NO_PEER_ACCESS) |
                    flag_if(sizes, RMM_SPEC_EXPORTABLE, RMM_POOL_EXPORTABLE);
    return options;
}

CREATOR(auto)
{
    const rmm_pool_options_t options = pool_options(sizes);

    return rmm_auto_resource_create(&options, out);
}

CREATOR(pool_virtual)
{
    rmm_pool_options_t options = pool_options(sizes);

    options.flags |= RMM_POOL_VIRTUAL;
    return rmm_pool_resource_create(NULL, &options, out);
}

/* --- types that stand on one of the plain ones ------------------------------------------- */

typedef rmm_status_t (*create_over_fn)(
    rmm_resource_t *base, const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out);

/* Puts the result of `create` on `base`, whose reference it takes over. */
static rmm_status_t over(
    rmm_status_t base_status, rmm_resource_t *base, create_over_fn create,
    const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out)
{
    rmm_status_t status = base_status;

    if (status == RMM_OK) {
        status = create(base, sizes, out);
        rmm_resource_release(base);
    }
    return status;
}

#define OVER(word, base, create)                                                       \
    CREATOR(word)                                                                      \
    {                                                                                  \
        rmm_resource_t *below = NULL;                                                  \
        rmm_status_t status = create_##base(NULL, sizes, &below);                      \
                                                                                       \
        return over(status, below, create, sizes, out);                                \
    }

static rmm_status_t pool_over(
    rmm_resource_t *base, const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out)
{
    const rmm_pool_options_t options = pool_options(sizes);

    return rmm_pool_resource_create(base, &options, out);
}

OVER(pool, cuda, pool_over)
OVER(pool_managed, managed, pool_over)
OVER(pool_pinned, pinned, pool_over)

static rmm_status_t arena_over(
    rmm_resource_t *base, const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;

    options.arena_bytes = sizes[0];
    return rmm_arena_resource_create(base, &options, out);
}

OVER(arena, cuda, arena_over)

static rmm_status_t fixed_size_over(
    rmm_resource_t *base, const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;

    options.block_bytes = sizes[0];
    return rmm_fixed_size_resource_create(base, &options, out);
}

OVER(fixed_size, cuda, fixed_size_over)

static rmm_status_t binning_over(
    rmm_resource_t *base, const uint64_t sizes[RMM_SPEC_VALUES], rmm_resource_t **out)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;

    (void)sizes; /* the pool's below */
    options.min_exponent = BIN_MIN_EXPONENT;
    options.max_exponent = BIN_MAX_EXPONENT;
    return rmm_binning_resource_create(base, &options, out);
}

OVER(binning, pool, binning_over)

/* --- adaptors with sizes --------------------------------------------------------------- */

CREATOR(aligned)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;

    options.alignment_bytes = sizes[0];
    options.threshold_bytes = sizes[1];
    return rmm_aligned_adaptor_create(upstream, &options, out);
}

CREATOR(limiting)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;

    options.limit_bytes = sizes[0];
    return rmm_limiting_adaptor_create(upstream, &options, out);
}

CREATOR(logging)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;

    if (sizes[0] != 0) {
        options.flush_interval_ms = (uint32_t)(sizes[0] - 1);
    }
    options.auto_flush =
        sizes[0] == 1 /* 0 ms */ || flag_if(sizes, RMM_SPEC_AUTO_FLUSH, 1) != 0;
    options.format = flag_if(sizes, RMM_SPEC_POOL_SIZE, RMM_LOGGING_FORMAT_POOL_SIZE);
    return rmm_logging_adaptor_create(upstream, &options, out);
}

/* The value is one more than the time. */
static uint32_t timeout_ms(const uint64_t sizes[RMM_SPEC_VALUES])
{
    return sizes[0] != 0 ? (uint32_t)(sizes[0] - 1) : 0;
}

CREATOR(retry)
{
    rmm_retry_options_t options = RMM_RETRY_OPTIONS_INIT;

    options.timeout_ms = timeout_ms(sizes);
    return rmm_retry_adaptor_create(upstream, &options, out);
}

CREATOR(wait)
{
    rmm_wait_options_t options = RMM_WAIT_OPTIONS_INIT;

    options.timeout_ms = timeout_ms(sizes);
    return rmm_wait_adaptor_create(upstream, &options, out);
}

/* --- the table ------------------------------------------------------------------------ */

static const rmm_spec_kind_t kinds[] = {
#define KIND(word, ...) {.name = #word, .create = create_##word, __VA_ARGS__},
#define SIZES(least, most, what)                                                       \
    .least_sizes = (least), .most_sizes = (most), .size_names = (what)
#define PLAIN(word) KIND(word, .is_adaptor = false)
#define TYPE(word, most, what) KIND(word, SIZES(0, most, what))
#define TYPE_IN_BYTES(word, most, what)                                                \
    KIND(word, SIZES(0, most, what), .no_percent = true)
#define PLAIN_ADAPTOR(word) KIND(word, .is_adaptor = true)
#define ADAPTOR(word, least, most, what)                                               \
    KIND(word, SIZES(least, most, what), .is_adaptor = true)
#define ADAPTOR_IN_BYTES(word, least, most, what)                                      \
    KIND(word, SIZES(least, most, what), .is_adaptor = true, .no_percent = true)
#define ADAPTOR_IN_MS(word, least, most, what)                                         \
    KIND(word, SIZES(least, most, what), .is_adaptor = true, .in_ms = true)
#define ADAPTOR_IN_SOME_MS(word, least, most, what)                                    \
    KIND(                                                                              \
        word, SIZES(least, most, what), .is_adaptor = true, .in_ms = true,             \
        .needs_time = true)
#include "device/spec_kinds.def"
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

const rmm_spec_kind_t *rmm__spec_kind_at(size_t index)
{
    return index < KIND_COUNT ? &kinds[index] : NULL;
}

const rmm_spec_kind_t *rmm__spec_kind(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

uint32_t rmm__spec_options_of(const rmm_spec_kind_t *kind)
{
    uint32_t options = 0;

#define OPTION(word, option)                                                           \
    options |= kind->create == create_##word ? RMM_SPEC_##option : 0;
#include "device/spec_kinds.def"
    return options;
}
