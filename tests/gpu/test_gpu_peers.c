/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of every resource, used by another device than its own: copies in both directions,
 * kernels that read and write it, also after the resource has grown, has been trimmed, and has
 * mapped its memory again.
 *
 * With fewer than two GPUs that are peers the program says so and exits 77.
 */
#include "gpu/gpu_harness.h"
#include "gpu/peer_kernel.h"

enum { WORDS = 1 << 20, BYTES = WORDS * 4 };

static uint32_t pattern[WORDS];
static uint32_t found[WORDS];
static const uint32_t zeros[WORDS];

typedef rmm_status_t (*make_over_fn)(rmm_resource_t *upstream, rmm_resource_t **out);

typedef struct subject {
    const char *spec;
    make_over_fn over; /* NULL: the spec alone */
    bool is_anywhere;  /* no memory of a device: copies name none */
} subject_t;

static rmm_status_t pool_over(rmm_resource_t *upstream, rmm_resource_t **out)
{
    return rmm_pool_resource_create(upstream, NULL, out);
}

static rmm_status_t arena_over(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;

    options.arena_bytes = 512 * MIB;
    return rmm_arena_resource_create(upstream, &options, out);
}

static rmm_status_t fixed_size_over(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;

    options.block_bytes = 32 * MIB;
    options.blocks_per_chunk = 4;
    return rmm_fixed_size_resource_create(upstream, &options, out);
}

static rmm_status_t binning_over(rmm_resource_t *upstream, rmm_resource_t **out)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;

    options.min_exponent = 18;
    options.max_exponent = 26;
    return rmm_binning_resource_create(upstream, &options, out);
}

static const subject_t subjects[] = {
    {"cuda", NULL, false},
    {"pool", NULL, false},
    {"pool_virtual", NULL, false},
    {"pool_virtual:64MiB", NULL, false},
    {"arena:512MiB", NULL, false},
    {"async", NULL, false},
    {"async:64MiB", NULL, false},
    {"binning", NULL, false},
    {"fixed_size:32MiB", NULL, false},
    {"managed", NULL, true},
    {"pool_managed", NULL, true},
    {"async_managed", NULL, true},
    {"pinned", NULL, true},
    {"pool_pinned", NULL, true},
    {"statistics+pool_virtual", NULL, false},
    {"async", pool_over, false},
    {"async", arena_over, false},
    {"async", fixed_size_over, false},
    {"async", binning_over, false},
    {"pool_virtual", pool_over, false},
    {"pool_virtual", arena_over, false},
    {"pool_virtual", fixed_size_over, false},
    {"pool_virtual", binning_over, false},
};

/* On the current device. NULL: the machine has no such memory. */
static rmm_resource_t *make(const subject_t *subject)
{
    rmm_resource_t *base = NULL;
    rmm_resource_t *mr = NULL;
    rmm_status_t status = rmm_resource_create_from_spec(subject->spec, &base);

    if (status == RMM_ERR_UNSUPPORTED) {
        print_message(
            "%s: not on this machine: %s\n", subject->spec, rmm_last_error_message());
        return NULL;
    }
    assert_ok(status);
    if (subject->over == NULL) {
        return base;
    }
    assert_ok(subject->over(base, &mr));
    rmm_resource_release(base);
    return mr;
}

static uint32_t *take(rmm_resource_t *mr, size_t bytes)
{
    void *block = NULL;

    assert_ok(rmm_resource_alloc(mr, bytes, 0, RMM_STREAM_LEGACY, &block));
    return block;
}

static void give(rmm_resource_t *mr, void *block, size_t bytes)
{
    rmm_resource_dealloc(mr, block, bytes, 0, RMM_STREAM_LEGACY);
}

static void fill(void *block)
{
    assert_cuda(cudaMemcpy(block, pattern, BYTES, cudaMemcpyDefault));
    assert_cuda(cudaDeviceSynchronize());
}

/* By a copy, because a fill is a kernel, of the current device. */
static void clear(void *block)
{
    assert_cuda(cudaMemcpy(block, zeros, BYTES, cudaMemcpyDefault));
    assert_cuda(cudaDeviceSynchronize());
}

/* Every word is the pattern's and `more`. */
static void assert_words(const void *block, uint32_t more)
{
    assert_cuda(cudaDeviceSynchronize());
    memset(found, 0, sizeof(found));
    assert_cuda(cudaMemcpy(found, block, BYTES, cudaMemcpyDefault));
    for (size_t i = 0; i < WORDS; i++) {
        if (found[i] != pattern[i] + more) {
            fail_msg("word %zu is %u, not %u", i, found[i], pattern[i] + more);
        }
    }
}

/* The other device's kernel reads and writes the block. */
static void use_from(int other, void *block)
{
    int owner;

    assert_cuda(cudaGetDevice(&owner));
    fill(block);
    assert_cuda(cudaSetDevice(other));
    assert_cuda(peer_add_one(block, WORDS, NULL));
    assert_cuda(cudaDeviceSynchronize());
    assert_words(block, 1);
    assert_cuda(cudaMemset(block, 0, 4)); /* also a kernel */
    assert_cuda(cudaMemcpy(block, pattern, 4, cudaMemcpyDefault));
    assert_cuda(peer_add_one(block, 1, NULL));
    assert_cuda(cudaDeviceSynchronize());
    assert_cuda(cudaSetDevice(owner));
    assert_words(block, 1);
}

typedef int (*copy_fn)(void *to, int to_device, const void *from, int from_device);

static int copy_async(void *to, int to_device, const void *from, int from_device)
{
    return cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, NULL);
}

static int copy_device(void *to, int to_device, const void *from, int from_device)
{
    return cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDeviceToDevice, NULL);
}

static int copy_peer_async(void *to, int to_device, const void *from, int from_device)
{
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, BYTES, NULL);
}

static int copy_peer(void *to, int to_device, const void *from, int from_device)
{
    return cudaMemcpyPeer(to, to_device, from, from_device, BYTES);
}

/* There and back by each function, on a stream of either device. */
static void
copy_between(const subject_t *subject, void *block, int owner, void *there, int other)
{
    static const copy_fn copies[] = {
        copy_async, copy_device, copy_peer_async, copy_peer};
    size_t count = subject->is_anywhere ? 1 : 4;

    for (size_t i = 0; i < 2 * count; i++) {
        copy_fn copy = copies[i / 2];

        assert_cuda(cudaSetDevice(i % 2 == 0 ? owner : other));
        fill(block);
        clear(there);
        assert_cuda(copy(there, other, block, owner));
        assert_words(there, 0);
        clear(block);
        assert_cuda(copy(block, owner, there, other));
        assert_words(block, 0);
    }
    assert_cuda(cudaSetDevice(owner));
}

/* What a resource's memory goes through in a long program. */
static void grow_and_trim(rmm_resource_t *mr, int other)
{
    enum { COUNT = 8 };
    const size_t most = 16 * MIB;
    void *blocks[COUNT];
    uint32_t *large;
    rmm_status_t status;

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = take(mr, most);
        use_from(other, blocks[i]);
    }
    for (int i = 0; i < COUNT; i += 2) {
        give(mr, blocks[i], most);
    }
    status = rmm_resource_trim(mr, 0); /* pieces between blocks go as well */
    assert_true(status == RMM_OK || status == RMM_ERR_UNSUPPORTED);
    for (int i = 0; i < COUNT; i += 2) {
        blocks[i] = take(mr, most);
        use_from(other, blocks[i]);
    }
    for (int i = 0; i < COUNT; i += 2) {
        give(mr, blocks[i], most);
    }
    large = take(mr, 2 * most); /* a virtual pool may map free pieces again for it */
    use_from(other, large);
    use_from(other, (char *)large + 2 * most - BYTES);
    give(mr, large, 2 * most);
    for (int i = 1; i < COUNT; i += 2) {
        use_from(other, blocks[i]);
        give(mr, blocks[i], most);
    }
}

static void try_subject(const subject_t *subject, int owner, int other)
{
    rmm_resource_t *here, *there;
    uint32_t *block, *copy;

    assert_cuda(cudaSetDevice(other));
    there = make(subject);
    assert_cuda(cudaSetDevice(owner));
    here = make(subject);
    if (here == NULL) {
        return;
    }
    print_message(
        "%s %s, device %d used by device %d\n", subject->spec,
        subject->over != NULL ? rmm_resource_type(here) : "", owner, other);
    block = take(here, BYTES);
    copy = take(there, BYTES);
    copy_between(subject, block, owner, copy, other);
    use_from(other, block);
    grow_and_trim(here, other);
    copy_between(subject, block, owner, copy, other);
    give(here, block, BYTES);
    give(there, copy, BYTES);
    rmm_resource_release(here);
    rmm_resource_release(there);
    assert_cuda(cudaGetLastError());
}

static void copies_go_through_before_access_is_enabled(void **state)
{
    rmm_resource_t *here, *there;
    void *block, *copy;

    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        assert_cuda(cudaSetDevice(1));
        there = make(&subjects[i]);
        assert_cuda(cudaSetDevice(0));
        here = make(&subjects[i]);
        if (here == NULL) {
            continue;
        }
        print_message("%s %zu\n", subjects[i].spec, i);
        block = take(here, BYTES);
        copy = take(there, BYTES);
        copy_between(&subjects[i], block, 0, copy, 1);
        give(here, block, BYTES);
        give(there, copy, BYTES);
        rmm_resource_release(here);
        rmm_resource_release(there);
    }
}

static void enable_access(int device, int peer)
{
    cudaError_t error;

    assert_cuda(cudaSetDevice(device));
    error = cudaDeviceEnablePeerAccess(peer, 0);
    (void)cudaGetLastError();
    assert_true(error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled);
}

static void kernels_of_each_use_memory_of_the_other(void **state)
{
    enable_access(0, 1);
    enable_access(1, 0);
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        try_subject(&subjects[i], 0, 1);
        try_subject(&subjects[i], 1, 0);
    }
    assert_cuda(cudaSetDevice(0));
}

/* The driver's copies between memory of two pools, many and of all sizes, each byte checked. */
static void many_copies_arrive(void **state)
{
    static const char *const specs[] = {"async", "pool_virtual"};
    static const size_t sizes[] = {1, 4, 256, 4096, 65536, MIB, BYTES};

    for (size_t i = 0; i < 2; i++) {
        const subject_t subject = {specs[i], NULL, false};
        rmm_resource_t *pools[2];
        char *blocks[2];

        for (int device = 0; device < 2; device++) {
            assert_cuda(cudaSetDevice(device));
            pools[device] = make(&subject);
            blocks[device] = (char *)take(pools[device], BYTES);
        }
        for (size_t turn = 0; turn < 20 * sizeof(sizes) / sizeof(sizes[0]); turn++) {
            size_t bytes = sizes[turn % (sizeof(sizes) / sizeof(sizes[0]))];
            int from = (int)(turn & 1);

            for (int device = 0; device < 2; device++) {
                assert_cuda(cudaSetDevice(device));
                assert_cuda(cudaMemset(
                    blocks[device], device == from ? (int)turn + 1 : 0, bytes));
                assert_cuda(cudaDeviceSynchronize());
            }
            assert_cuda(cudaSetDevice((int)(turn >> 1 & 1)));
            assert_cuda(
                turn % 3 == 0
                    ? cudaMemcpyAsync(
                          blocks[1 - from], blocks[from], bytes, cudaMemcpyDefault,
                          NULL)
                    : cudaMemcpyPeerAsync(
                          blocks[1 - from], 1 - from, blocks[from], from, bytes, NULL));
            assert_filled(blocks[1 - from], (int)((turn + 1) & 0xff), bytes);
        }
        for (int device = 0; device < 2; device++) {
            give(pools[device], blocks[device], BYTES);
            rmm_resource_release(pools[device]);
        }
    }
    assert_cuda(cudaSetDevice(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_through_before_access_is_enabled),
        cmocka_unit_test(many_copies_arrive),
        cmocka_unit_test(kernels_of_each_use_memory_of_the_other),
    };
    int count = 0, there = 0, back = 0;

    if (gpu_is_missing()) {
        return SKIPPED;
    }
    assert_real_gpu();
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2 ||
        cudaDeviceCanAccessPeer(&there, 0, 1) != cudaSuccess ||
        cudaDeviceCanAccessPeer(&back, 1, 0) != cudaSuccess || !there || !back) {
        printf("skipped: the cases need two GPUs that are peers, of %d here\n", count);
        return SKIPPED;
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        pattern[i] = i * 2654435761u;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
