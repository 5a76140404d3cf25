/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: peer_facts
 *
 * What CUDA does with several GPUs, a line for each fact: what access for peers costs a mapping, a
 * memory pool and its allocations, whether it makes contexts on them, and what copies and kernels
 * answer where there is no access. Each fact is a process of its own, since some end their context.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rmm/rmm.h>

#include "driver/driver.h"
#include "gpu/peer_kernel.h"

#define MIB ((size_t)1 << 20)
#define SKIPPED 77

static int device_count;

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void must(int error, const char *what)
{
    if (error != 0) {
        printf("%s: %s\n", what, cudaGetErrorName((cudaError_t)error));
        exit(1);
    }
}

static const rmm_driver_t *driver(void)
{
    rmm_status_t status;
    const rmm_driver_t *table = rmm__driver(&status);

    if (table == NULL) {
        printf("%s\n", rmm_last_error_message());
        exit(1);
    }
    return table;
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* The first `devices` devices, those that device 0 has as peers and itself. */
static uint32_t set_of(int devices)
{
    return (RMM_DRIVER_DEVICE(devices - 1) << 1) - 1;
}

/* --- what it costs ------------------------------------------------------------------- */

/* A piece's calls with access for so many devices: in a pool that grows, and shrinks later. */
static void time_mapping(int devices, size_t bytes, bool one_by_one)
{
    enum { TURNS = 100 };
    static double access_us[TURNS], unmap_us[TURNS];
    static rmm_driver_physical_t physical[TURNS];
    const rmm_driver_t *table = driver();
    double first_us;
    char *at;
    void *range;

    must(table->address_reserve(&range, bytes * TURNS), "address_reserve");
    at = range;
    for (int i = 0; i < TURNS; i++, at += bytes) {
        double start;

        must(table->physical_create(bytes, 0, &physical[i]), "physical_create");
        must(table->address_map(at, bytes, physical[i]), "address_map");
        start = now_us();
        for (int device = 0; one_by_one && device < devices; device++) {
            must(
                table->address_access(at, bytes, RMM_DRIVER_DEVICE(device)),
                "address_access");
        }
        if (!one_by_one) {
            must(table->address_access(at, bytes, set_of(devices)), "address_access");
        }
        access_us[i] = now_us() - start;
    }
    first_us = access_us[0];
    for (int i = 0; i < TURNS; i++) {
        double start = now_us();

        at -= bytes;
        must(table->address_unmap(at, bytes), "address_unmap");
        unmap_us[i] = now_us() - start;
        must(table->physical_release(physical[TURNS - 1 - i]), "physical_release");
    }
    must(table->address_free(range, bytes * TURNS), "address_free");
    printf(
        "pieces of %zu MiB, access for %d device(s)%s: first %.0f us, then %.1f us "
        "each, "
        "unmap %.1f us, the last %.0f us\n",
        bytes / MIB, devices, one_by_one ? " in one call each" : "", first_us,
        median(access_us, TURNS), median(unmap_us, TURNS - 1), unmap_us[TURNS - 1]);
}

static void tell_mapping(void)
{
    must(cudaSetDevice(0), "cudaSetDevice");
    must((int)cudaFree(NULL), "cudaFree");
    for (size_t bytes = 2 * MIB; bytes <= 128 * MIB; bytes *= 8) {
        for (int devices = 1; devices <= device_count; devices *= 2) {
            time_mapping(devices, bytes, false);
        }
        time_mapping(device_count, bytes, true);
    }
}

/* The same where the peers have contexts. */
static void tell_mapping_of_busy_peers(void)
{
    for (int device = device_count - 1; device >= 0; device--) {
        must(cudaSetDevice(device), "cudaSetDevice");
        must((int)cudaFree(NULL), "cudaFree");
    }
    printf("with contexts on all devices: ");
    time_mapping(1, 2 * MIB, false);
    printf("with contexts on all devices: ");
    time_mapping(device_count, 2 * MIB, false);
}

static void time_pool(uint32_t devices)
{
    const rmm_driver_t *table = driver();
    rmm_driver_mempool_t pool;
    double create_us, access_us, first_us, free_us, grow_us;
    double start = now_us();
    void *blocks[17];

    must(table->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool), "mempool_create");
    must(table->mempool_set_threshold(pool, UINT64_MAX), "mempool_set_threshold");
    create_us = now_us() - start;
    start = now_us();
    if (devices != 0) {
        must(table->mempool_access(pool, devices), "mempool_access");
    }
    access_us = now_us() - start;
    start = now_us();
    must(table->mempool_alloc(pool, &blocks[0], 256 * MIB, NULL), "mempool_alloc");
    first_us = now_us() - start;
    start = now_us();
    for (int i = 1; i < 17; i++) { /* each makes the pool grow */
        must(table->mempool_alloc(pool, &blocks[i], 256 * MIB, NULL), "mempool_alloc");
    }
    grow_us = (now_us() - start) / 16;
    start = now_us();
    for (int i = 0; i < 17; i++) {
        must(table->mempool_free(blocks[i], NULL), "mempool_free");
    }
    must(table->mempool_destroy(pool), "mempool_destroy");
    must((int)cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    free_us = now_us() - start;
    printf(
        "a memory pool, %s: create %.0f us, access %.0f us, first 256 MiB %.0f us, "
        "each "
        "further %.0f us, end %.0f us\n",
        devices != 0 ? "access for all devices" : "no peers", create_us, access_us,
        first_us, grow_us, free_us);
}

static void tell_pool(void)
{
    must(cudaSetDevice(0), "cudaSetDevice");
    must((int)cudaFree(NULL), "cudaFree");
    time_pool(0); /* warms up */
    time_pool(0);
    time_pool(set_of(device_count) & ~UINT32_C(1));
}

/* A program's allocations on a pool that grows, with and without access for peers. */
static void time_resource(const char *name, rmm_resource_t *mr)
{
    enum { COUNT = 64 };
    void *blocks[COUNT];
    double start = now_us();

    for (int i = 0; i < COUNT; i++) {
        must(
            rmm_resource_alloc(mr, 32 * MIB, 0, NULL, &blocks[i]),
            "rmm_resource_alloc");
    }
    printf("%s: grows to 2 GiB in %.0f us\n", name, now_us() - start);
    for (int i = 0; i < COUNT; i++) {
        rmm_resource_dealloc(mr, blocks[i], 32 * MIB, 0, NULL);
    }
    rmm_resource_release(mr);
}

static rmm_resource_t *make_virtual(uint64_t flags)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    double start = now_us();

    options.flags = RMM_POOL_VIRTUAL | flags;
    must(rmm_pool_resource_create(NULL, &options, &mr), "rmm_pool_resource_create");
    printf("created in %.0f us; ", now_us() - start);
    return mr;
}

static rmm_resource_t *make_async(uint32_t flags)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    double start = now_us();

    options.flags = flags;
    must(rmm_async_resource_create(&options, &mr), "rmm_async_resource_create");
    printf("created in %.0f us; ", now_us() - start);
    return mr;
}

static void tell_resources(void)
{
    must(cudaSetDevice(0), "cudaSetDevice");
    must((int)cudaFree(NULL), "cudaFree");
    time_resource(
        "pool_virtual, no peers (warm-up)", make_virtual(RMM_POOL_NO_PEER_ACCESS));
    for (int i = 0; i < 2; i++) {
        time_resource("pool_virtual, no peers", make_virtual(RMM_POOL_NO_PEER_ACCESS));
        time_resource("pool_virtual", make_virtual(0));
        time_resource("async, no peers", make_async(RMM_ASYNC_NO_PEER_ACCESS));
        time_resource("async", make_async(0));
    }
}

/* --- contexts ------------------------------------------------------------------------ */

static void print_used(const char *when)
{
    char line[256];
    FILE *pipe = popen(
        "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | tr '\\n' ' "
        "'",
        "r");

    printf("%s: MiB used of the devices: ", when);
    if (pipe != NULL && fgets(line, sizeof(line), pipe) != NULL) {
        printf("%s", line);
    }
    if (pipe != NULL) {
        pclose(pipe);
    }
    printf("; contexts:");
    for (int device = 0; device < device_count; device++) {
        int active = -1;

        (void)driver()->device_active(device, &active);
        printf(" %d", active);
    }
    printf("\n");
    fflush(stdout);
}

static void tell_contexts_of(const char *name, bool is_virtual, bool with_peers)
{
    rmm_resource_t *mr;
    void *block;

    must(cudaSetDevice(0), "cudaSetDevice");
    must((int)cudaFree(NULL), "cudaFree");
    print_used("context of device 0");
    if (is_virtual) {
        mr = make_virtual(with_peers ? 0 : RMM_POOL_NO_PEER_ACCESS);
    } else {
        mr = make_async(with_peers ? 0 : RMM_ASYNC_NO_PEER_ACCESS);
    }
    must(rmm_resource_alloc(mr, 1024 * MIB, 0, NULL, &block), "rmm_resource_alloc");
    must((int)cudaMemset(block, 1, 1024 * MIB), "cudaMemset");
    must((int)cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    print_used(name);
}

static void tell_contexts_virtual(void)
{
    tell_contexts_of("1 GiB of pool_virtual", true, true);
}

static void tell_contexts_virtual_alone(void)
{
    tell_contexts_of("1 GiB of pool_virtual, no peers", true, false);
}

static void tell_contexts_async(void)
{
    tell_contexts_of("1 GiB of async", false, true);
}

/* --- without access ------------------------------------------------------------------ */

typedef enum use { COPY_DEFAULT, COPY_PEER, COPY_IN_KERNEL, USE_COUNT } use_t;

static const char *const use_names[USE_COUNT] = {
    "cudaMemcpyAsync", "cudaMemcpyPeerAsync", "a kernel there"};

static void try_use(rmm_resource_t *(*make)(void), const char *name, use_t use)
{
    rmm_resource_t *mr[2];
    void *blocks[2];
    int called = 0;
    int waited;
    int can;

    for (int device = 1; device >= 0; device--) {
        must(cudaSetDevice(device), "cudaSetDevice");
        must((int)cudaFree(NULL), "cudaFree");
        if (cudaDeviceCanAccessPeer(&can, device, 1 - device) == cudaSuccess && can) {
            must((int)cudaDeviceEnablePeerAccess(1 - device, 0), "enable");
        }
        mr[device] = make();
        must(
            rmm_resource_alloc(mr[device], 4 * MIB, 0, NULL, &blocks[device]),
            "rmm_resource_alloc");
        must((int)cudaMemset(blocks[device], device + 1, 4 * MIB), "cudaMemset");
        must((int)cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    switch (use) {
    case COPY_DEFAULT:
        called =
            cudaMemcpyAsync(blocks[1], blocks[0], 4 * MIB, cudaMemcpyDefault, NULL);
        break;
    case COPY_PEER:
        called = cudaMemcpyPeerAsync(blocks[1], 1, blocks[0], 0, 4 * MIB, NULL);
        break;
    default:
        called = peer_add_one(blocks[1], MIB, NULL);
    }
    (void)cudaGetLastError();
    waited = cudaDeviceSynchronize();
    printf(
        "%s without access, %s: the call says %s, the wait %s\n", name, use_names[use],
        cudaGetErrorName((cudaError_t)called), cudaGetErrorName((cudaError_t)waited));
    fflush(stdout);
    _exit(0); /* the context may be gone */
}

static rmm_resource_t *alone_virtual(void)
{
    return make_virtual(RMM_POOL_NO_PEER_ACCESS);
}

static rmm_resource_t *alone_async(void)
{
    return make_async(RMM_ASYNC_NO_PEER_ACCESS);
}

static void virtual_copy(void)
{
    try_use(alone_virtual, "pool_virtual", COPY_DEFAULT);
}

static void virtual_copy_peer(void)
{
    try_use(alone_virtual, "pool_virtual", COPY_PEER);
}

static void virtual_kernel(void)
{
    try_use(alone_virtual, "pool_virtual", COPY_IN_KERNEL);
}

static void async_copy(void)
{
    try_use(alone_async, "async", COPY_DEFAULT);
}

static void async_copy_peer(void)
{
    try_use(alone_async, "async", COPY_PEER);
}

static void async_kernel(void)
{
    try_use(alone_async, "async", COPY_IN_KERNEL);
}

/* --- other processes ----------------------------------------------------------------- */

static void tell_ipc(void)
{
    static const char *const specs[] = {"cuda",          "pool",         "pool_virtual",
                                        "async",         "arena:512MiB", "managed",
                                        "async_managed", "pinned"};

    must(cudaSetDevice(0), "cudaSetDevice");
    must((int)cudaFree(NULL), "cudaFree");
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        rmm_resource_t *mr = NULL;
        cudaIpcMemHandle_t handle;
        void *block = NULL;

        if (rmm_resource_create_from_spec(specs[i], &mr) != RMM_OK ||
            rmm_resource_alloc(mr, 4 * MIB, 0, NULL, &block) != RMM_OK) {
            printf("%s: %s\n", specs[i], rmm_last_error_message());
            continue;
        }
        printf(
            "cudaIpcGetMemHandle of %s: %s\n", specs[i],
            cudaGetErrorName(cudaIpcGetMemHandle(&handle, block)));
        (void)cudaGetLastError();
    }
}

/* --- all of them --------------------------------------------------------------------- */

static void apart(void (*fact)(void))
{
    pid_t child;
    int status;

    fflush(stdout);
    child = fork(); /* nothing of CUDA has begun here */
    if (child == 0) {
        if (cudaGetDeviceCount(&device_count) != cudaSuccess || device_count < 2) {
            _exit(SKIPPED);
        }
        fact();
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        printf("a process ended badly\n");
        exit(1);
    }
    if (WEXITSTATUS(status) == SKIPPED) {
        printf("skipped: fewer than two GPUs\n");
        exit(SKIPPED);
    }
}

int main(void)
{
    static void (*const facts[])(void) = {
        tell_mapping,
        tell_mapping_of_busy_peers,
        tell_pool,
        tell_resources,
        tell_contexts_virtual,
        tell_contexts_virtual_alone,
        tell_contexts_async,
        virtual_copy,
        virtual_copy_peer,
        virtual_kernel,
        async_copy,
        async_copy_peer,
        async_kernel,
        tell_ipc};

    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        apart(facts[i]);
    }
    return 0;
}
