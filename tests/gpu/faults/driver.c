/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program takes from CUDA itself, and addresses that come back without a call
 * that names them: as variables of a module, mapped memory, memory of a graph or of the host. What
 * is known of the block that was there before must be neither lost nor blamed on them.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "gpu/faults/cuda_calls.h"
#include "gpu/faults/faults.h"

enum { BYTES = 4096, ROUNDS = 20, LARGE = 8 << 20 };

static void fill(void *block, size_t bytes, rmm_stream_t stream)
{
    gpu_call(GPU_SET, block, NULL, bytes, stream);
}

static void use(const void *block, rmm_stream_t stream)
{
    gpu_launch(GPU_KERNEL_reduce, block, NULL, stream);
}

/* --- pools of the driver ------------------------------------------------------------- */

static void *take_async(scene_t *scene)
{
    void *block = NULL;

    MUST_CUDA(cudaMallocAsync(&block, BYTES, scene->a));
    fill(block, BYTES, scene->a);
    scene->culprit = block;
    return block;
}

static void drop_async(const scene_t *scene, void *block)
{
    MUST_CUDA(cudaFreeAsync(block, scene->a));
}

static void use_unordered(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take_async(scene);

    (void)fault;
    if (!is_faulty) {
        gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    }
    use(block, scene->b);
    gpu_synchronize();
    drop_async(scene, block);
}

static cudaMemPool_t make_pool(void)
{
    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t pool = NULL;

    MUST_CUDA(cudaMemPoolCreate(&pool, &properties));
    return pool;
}

/* Blocks change streams, in order, and the pool is trimmed; the last free is not in order. */
static void free_on_other_stream(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    cudaMemPool_t pool = make_pool();

    (void)fault;
    for (int i = 0; i <= ROUNDS; i++) {
        MUST_CUDA(cudaMallocFromPoolAsync(&scene->culprit, BYTES, pool, scene->a));
        use(scene->culprit, scene->a);
        if (i < ROUNDS || !is_faulty) {
            gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
        }
        MUST_CUDA(cudaFreeAsync(scene->culprit, scene->b));
        if (i % 5 == 0) {
            MUST_CUDA(cudaMemPoolTrimTo(pool, 0));
        }
    }
    gpu_synchronize();
    MUST_CUDA(cudaMemPoolDestroy(pool));
}

/* The block is used in a branch of the graph, on a stream that joined the capture. */
static void launch_graph_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *mine = take_async(scene), *block = take_async(scene);
    gpu_graph_t graph = NULL;

    (void)fault;
    gpu_synchronize();
    gpu_capture_begin(scene->a);
    gpu_launch(GPU_KERNEL_sum, mine, NULL, scene->a);
    gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    use(block, scene->b);
    gpu_wait(GPU_WAIT_EVENT, scene->b, scene->a);
    graph = gpu_capture_keep(scene->a);
    gpu_graph_launch(graph, scene->a);
    if (is_faulty) {
        drop_async(scene, block);
    }
    gpu_graph_launch(graph, scene->a);
    if (!is_faulty) {
        drop_async(scene, block);
    }
    drop_async(scene, mine);
    gpu_synchronize();
    gpu_graph_destroy(graph);
}

/* --- memory of graphs ----------------------------------------------------------------- */

/* Ordinary blocks had these addresses before and have them again later. */
static void use_ordinary(const scene_t *scene)
{
    void *block = NULL;

    MUST_CUDA(cudaMallocAsync(&block, LARGE, scene->b));
    fill(block, LARGE, scene->b);
    MUST_CUDA(cudaFreeAsync(block, scene->b));
    MUST_CUDA(cudaMalloc(&block, LARGE));
    fill(block, LARGE, scene->b);
    gpu_synchronize();
    MUST_CUDA(cudaFree(block));
}

/* One block lives in the graph only, the other one is freed outside. */
static void memory_of_graph(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault, (void)is_faulty;
    for (int i = 0; i < ROUNDS; i++) {
        void *inside = NULL, *left = NULL;
        gpu_graph_t graph = NULL;

        use_ordinary(scene);
        gpu_capture_begin(scene->a);
        MUST_CUDA(cudaMallocAsync(&inside, LARGE, scene->a));
        MUST_CUDA(cudaMallocAsync(&left, BYTES, scene->a));
        fill(inside, LARGE, scene->a);
        use(inside, scene->a);
        gpu_call(GPU_COPY_FROM, inside, left, BYTES, scene->a);
        drop_async(scene, inside);
        graph = gpu_capture_keep(scene->a);
        gpu_graph_launch(graph, scene->a);
        use(left, scene->a);
        drop_async(scene, left);
        gpu_synchronize();
        gpu_graph_destroy(graph);
        MUST_CUDA(cudaDeviceGraphMemTrim(0));
    }
}

/* --- mapped memory, and the host's ---------------------------------------------------- */

static const CUmemAllocationProp on_gpu = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

/* Two pieces at `at`, which a fill crosses. */
static void use_mapped(const scene_t *scene, CUdeviceptr at)
{
    const size_t piece = LARGE / 2;
    const CUmemAccessDesc access = {
        .location = on_gpu.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle pieces[2];

    for (size_t i = 0; i < 2; i++) {
        MUST_DRIVER(cuMemCreate, &pieces[i], piece, &on_gpu, 0);
        MUST_DRIVER(cuMemMap, at + i * piece, piece, 0, pieces[i], 0);
    }
    MUST_DRIVER(cuMemSetAccess, at, LARGE, &access, 1);
    fill((char *)at + piece - 64, 128, scene->a); /* NOLINT: the address is a number */
    use((char *)at + piece, scene->a);            /* NOLINT */
    gpu_synchronize();
    MUST_DRIVER(cuMemUnmap, at, LARGE);
    MUST_DRIVER(cuMemRelease, pieces[0]);
    MUST_DRIVER(cuMemRelease, pieces[1]);
}

static void mapped_where_freed(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault, (void)is_faulty;
    for (int i = 0; i < ROUNDS; i++) {
        void *block = NULL;
        CUdeviceptr at = 0;

        MUST_CUDA(cudaMalloc(&block, LARGE));
        fill(block, LARGE, scene->a);
        gpu_synchronize();
        MUST_CUDA(cudaFree(block));
        MUST_DRIVER(
            cuMemAddressReserve, &at, LARGE, 0, (CUdeviceptr)(uintptr_t)block, 0);
        use_mapped(scene, at);
        MUST_DRIVER(cuMemAddressFree, at, LARGE);
    }
}

/* `at` if it is free, else elsewhere. */
static void *map_host(void *at)
{
    void *memory = mmap(
        at, LARGE, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (memory == MAP_FAILED) {
        memory = mmap(
            NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    must_cuda(memory == MAP_FAILED, "mmap");
    return memory;
}

static void host_where_pinned_was(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = NULL;

    (void)fault, (void)is_faulty;
    MUST_CUDA(cudaMalloc(&block, LARGE));
    for (int i = 0; i < ROUNDS; i++) {
        void *host = NULL;

        MUST_CUDA(cudaHostAlloc(
            &host, LARGE, i % 2 ? cudaHostAllocMapped : cudaHostAllocPortable));
        use(host, scene->a);
        gpu_call(GPU_COPY_TO, block, host, LARGE, scene->a);
        gpu_synchronize();
        MUST_CUDA(cudaFreeHost(host));
        host = map_host(host);
        MUST_CUDA(cudaHostRegister(host, LARGE, cudaHostRegisterMapped));
        use(host, scene->a);
        gpu_call(GPU_COPY_FROM, block, host, LARGE, scene->a);
        gpu_synchronize();
        MUST_CUDA(cudaHostUnregister(host));
        munmap(host, LARGE);
    }
    MUST_CUDA(cudaFree(block));
}

/* --- modules -------------------------------------------------------------------------- */

#define PTX_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define PTX_ROOM ".visible .global .align 16 .b8 room[8388608];\n" /* LARGE */

static CUlibrary load(const char *text)
{
    CUlibrary library = NULL;

    MUST_DRIVER(cuLibraryLoadData, &library, text, NULL, NULL, 0, NULL, NULL, 0);
    return library;
}

static void
launch_loaded(CUlibrary library, const char *name, void **values, rmm_stream_t stream)
{
    CUkernel kernel = NULL;

    MUST_DRIVER(cuLibraryGetKernel, &kernel, library, name);
    MUST_DRIVER(
        cuLaunchKernel, (CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, values, NULL);
}

/* Its variable may lie where a block was freed. Nobody asks the driver where it is: a kernel
 * says it. */
static void variables_where_freed(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    const char *text = PTX_HEAD PTX_ROOM
        ".visible .entry tell(.param .u64 to)\n{\n.reg .b64 %r<4>;\n"
        "ld.param.u64 %r1, [to];\ncvta.to.global.u64 %r2, %r1;\nmov.u64 %r3, room;\n"
        "st.global.u64 [%r2], %r3;\nret;\n}\n";
    void *values[] = {&scene->host};

    (void)fault, (void)is_faulty;
    for (int i = 0; i < ROUNDS; i++) {
        void *blocks[4], *room = NULL;
        CUlibrary library = NULL;

        for (int j = 0; j < 4; j++) {
            MUST_CUDA(cudaMalloc(&blocks[j], LARGE));
            fill(blocks[j], LARGE, scene->a);
        }
        gpu_synchronize();
        for (int j = 0; j < 4; j++) {
            MUST_CUDA(cudaFree(blocks[j]));
        }
        library = load(text);
        launch_loaded(library, "tell", values, scene->a);
        gpu_synchronize();
        memcpy(&room, scene->host, sizeof(room));
        use(room, scene->a);
        fill(room, LARGE, scene->a);
        gpu_synchronize();
        MUST_DRIVER(cuLibraryUnload, library);
    }
}

/* A module without variables takes no address that a program could have: what was freed before
 * is still known. */
static void fill_after_module(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    CUlibrary library = NULL;
    void *block = NULL;

    MUST_CUDA(cudaMalloc(&block, fault->bytes));
    scene->culprit = block;
    fill(block, fault->bytes, scene->a);
    gpu_synchronize();
    MUST_CUDA(cudaFree(block));
    library = load(PTX_HEAD ".visible .entry none()\n{\nret;\n}\n");
    launch_loaded(library, "none", NULL, scene->a);
    gpu_synchronize();
    if (is_faulty) {
        fill(block, fault->length, scene->a);
    }
    MUST_DRIVER(cuLibraryUnload, library);
}

/* Three kernels of one name, whose parameters differ; their handles come back for each other. */
static CUlibrary load_of_layout(int layout)
{
    enum { POINTERS = 40 };
    char text[4096] = PTX_HEAD ".visible .entry loaded(.param .u64 a0";
    size_t used = strlen(text);

    for (int i = 1; layout == 1 && i < POINTERS; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, ", .param .u64 a%d", i);
    }
    (void)snprintf(
        text + used, sizeof(text) - used, "%s)\n{\nret;\n}\n",
        layout == 2 ? ", .param .align 8 .b8 a1[3000]" : "");
    return load(text);
}

static void launch_of_layout(const scene_t *scene, int layout, void *block)
{
    enum { POINTERS = 40 };
    static void *large[400];
    CUlibrary library = load_of_layout(layout);
    void *values[POINTERS];

    for (int i = 0; i < POINTERS; i++) {
        values[i] = &block;
    }
    if (layout == 2) {
        values[1] = large;
    }
    launch_loaded(library, "loaded", values, scene->a);
    gpu_synchronize();
    MUST_DRIVER(cuLibraryUnload, library);
}

static void reloaded_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    enum { MINE = BYTES - 600 }; /* its end is not the block that is freed */
    void *mine = NULL, *block = NULL;

    MUST_CUDA(cudaMalloc(&mine, MINE));
    MUST_CUDA(cudaMalloc(&block, fault->bytes));
    scene->culprit = block;
    for (int i = 0; i < 3 * ROUNDS; i++) {
        launch_of_layout(scene, i % 3, mine);
        launch_of_layout(scene, i % 3, block);
    }
    MUST_CUDA(cudaFree(block));
    if (is_faulty) {
        launch_of_layout(scene, 0, block);
    }
    MUST_CUDA(cudaFree(mine));
}

/* --- the table ----------------------------------------------------------------------- */

#define ROW(row_name, row_modes, how)                                                  \
    .name = row_name, .modes = row_modes, .resource = "cuda", .plant = how,            \
    .bytes = BYTES
#define ALL "usage,bounds,order,driver"
#define ORDER "order,driver"
#define BOUNDS "usage,bounds,driver"

static const fault_t faults[] = {
    {ROW("taken_no_event", ORDER, use_unordered), .kind = "use_unordered",
     .access = "use", .kernel = "reduce", .other = ""},
    {ROW("taken_free_on_other_stream", ORDER, free_on_other_stream),
     .kind = "free_unordered", .access = "free", .other = "reduce"},
    {ROW("taken_graph_late", BOUNDS, launch_graph_late), .kind = "use_after_free",
     .access = "use", .kernel = "reduce"},
    {ROW("memory_of_graph", ALL, memory_of_graph)},
    {ROW("mapped_where_freed", ALL, mapped_where_freed)},
    {ROW("host_where_pinned_was", ALL, host_where_pinned_was)},
    {ROW("variables_where_freed", ALL, variables_where_freed)},
    {ROW("module_then_fill", BOUNDS, fill_after_module), .kind = "use_after_free",
     .access = "write", .call = GPU_SET, .length = 64},
    {ROW("reloaded_late", BOUNDS, reloaded_late), .kind = "use_after_free",
     .access = "use", .kernel = "loaded"},
};

const fault_table_t faults_driver = {faults, sizeof(faults) / sizeof(faults[0])};
