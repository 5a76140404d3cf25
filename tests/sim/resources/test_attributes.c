/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources on a device that lacks what they need (RMM_SIM_ATTRIBUTES): refused at
 * creation, with the reason. Each case is a process of its own, because the simulated GPU
 * reads its abilities once.
 */
#include "sim/pool/pool_harness.h"

#include <stdlib.h>

#include "harness/runtime.h"

typedef rmm_status_t (*create_fn)(rmm_resource_t **out);

/* What is missing, who needs it, and what the message must name. */
typedef struct refusal {
    const char *attributes;
    create_fn create;
    const char *named;
} refusal_t;

static void be_refused(child_t *self, void *argument)
{
    const refusal_t *refusal = argument;
    rmm_resource_t *mr = NULL;

    CHECK(setenv("RMM_SIM_ATTRIBUTES", refusal->attributes, 1) == 0);
    CHECK(refusal->create(&mr) == RMM_ERR_UNSUPPORTED);
    if (strstr(rmm_last_error_message(), refusal->named) == NULL) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        CHECK(!"the message names what is missing");
    }
    CHECK(mr == NULL);
    CHECK(rmm_sim_allocated_bytes(0) == 0);
    CHECK(rmm_sim_violations() == 0);
}

static void refuses(const char *attributes, create_fn create, const char *named)
{
    refusal_t refusal = {attributes, create, named};

    child_run(be_refused, &refusal);
}

static rmm_status_t create_shareable(rmm_resource_t **out)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;

    options.handle_types = RMM_ASYNC_HANDLE_POSIX_FD;
    return rmm_async_resource_create(&options, out);
}

static rmm_status_t create_at(uint32_t location, rmm_resource_t **out)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;

    options.location = location;
    return rmm_async_resource_create(&options, out);
}

static rmm_status_t create_pinned(rmm_resource_t **out)
{
    return create_at(RMM_ASYNC_ON_HOST, out);
}

static rmm_status_t create_on_node(rmm_resource_t **out)
{
    return create_at(RMM_ASYNC_ON_NODE, out);
}

static rmm_status_t create_on_nearest(rmm_resource_t **out)
{
    return create_at(RMM_ASYNC_ON_NEAREST_NODE, out);
}

static rmm_status_t create_exportable(rmm_resource_t **out)
{
    return rmm_resource_create_from_spec("pool_virtual:exportable", out);
}

static rmm_status_t create_view(rmm_resource_t **out)
{
    static int pool;

    return rmm_async_view_resource_create(&pool, out);
}

static rmm_status_t create_headroom(rmm_resource_t **out)
{
    return rmm_sam_headroom_resource_create(NULL, out);
}

TEST_CASE(virtual_pools_are_refused_where_nothing_can_be_mapped)
{
    refuses(
        "virtual_memory=0", create_virtual_pool,
        "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0");
}

TEST_CASE(exportable_pools_are_refused_where_memory_has_no_descriptors)
{
    refuses(
        "posix_handles=0", create_exportable,
        "CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED is 0");
}

TEST_CASE(managed_memory_is_refused_where_there_is_none)
{
    refuses(
        "managed_memory=0", rmm_managed_resource_create,
        "cudaDevAttrManagedMemory is 0");
}

TEST_CASE(managed_memory_is_refused_on_a_vgpu_that_only_promises_it)
{
    refuses("managed_alloc=0", rmm_managed_resource_create, "vGPU");
    refuses(
        "managed_alloc=0", rmm_managed_resource_create,
        "cudaDevAttrManagedMemory is 1");
}

TEST_CASE(async_memory_is_refused_without_memory_pools)
{
    static const char *const named = "cudaDevAttrMemoryPoolsSupported is 0";

    refuses("memory_pools=0", create_async, named);
    refuses("memory_pools=0", create_view, named);
    refuses("memory_pools=0", rmm_async_managed_resource_create, named);
    refuses(
        "memory_pool_handle_types=0", create_shareable,
        "cudaDevAttrMemoryPoolSupportedHandleTypes is 0x0");
}

TEST_CASE(pools_of_the_host_are_refused_where_there_are_none)
{
    static const char *const on_host = "cudaDevAttrHostMemoryPoolsSupported is 0";
    static const char *const on_node = "cudaDevAttrHostNumaMemoryPoolsSupported is 0";

    refuses("memory_pools=0", create_pinned, "cudaDevAttrMemoryPoolsSupported is 0");
    refuses("host_memory_pools=0", create_pinned, on_host);
    refuses("host_numa_memory_pools=0", create_on_node, on_node);
    refuses("host_numa_memory_pools=0", create_on_nearest, on_node);
    if (strcmp(getenv("RMM_DRIVER"), "hip") != 0) { /* which has none at all */
        refuses("host_numa_id=0", create_on_nearest, "cudaDevAttrHostNumaId is -1");
    }
}

TEST_CASE(managed_pools_are_refused_where_the_host_must_not_touch)
{
    refuses(
        "concurrent_managed_access=0", rmm_async_managed_resource_create,
        "cudaDevAttrConcurrentManagedAccess is 0");
    refuses("managed_pools=0", rmm_async_managed_resource_create, "CUDA 13");
}

/* RMM's system case ThrowIfNotSupported. */
TEST_CASE(system_memory_is_refused_where_the_device_cannot_read_it)
{
    static const char *const named = "cudaDevAttrPageableMemoryAccess is 0";

    refuses("pageable_memory_access=0", rmm_system_resource_create, named);
    refuses("pageable_memory_access=0", create_headroom, named);
}

/* --- rmm_device_supports() ------------------------------------------------------------ */

static const struct {
    rmm_device_ability_t ability;
    create_fn create;
} abilities[] = {
    {RMM_ABILITY_MANAGED, rmm_managed_resource_create},
    {RMM_ABILITY_SYSTEM, rmm_system_resource_create},
    {RMM_ABILITY_ASYNC, create_async},
    {RMM_ABILITY_ASYNC_MANAGED, rmm_async_managed_resource_create},
    {RMM_ABILITY_POOL_VIRTUAL, create_virtual_pool},
    {RMM_ABILITY_ASYNC_PINNED, create_pinned},
    {RMM_ABILITY_ASYNC_ON_NODE, create_on_node},
};

/* What the call says is what the creator then does. */
static void compare_with_creators(child_t *self, void *argument)
{
    CHECK(setenv("RMM_SIM_ATTRIBUTES", argument, 1) == 0);
    for (size_t i = 0; i < sizeof(abilities) / sizeof(abilities[0]); i++) {
        rmm_resource_t *mr = NULL;
        rmm_status_t status = abilities[i].create(&mr);
        bool is = status != RMM_OK;

        CHECK(rmm_device_supports(0, abilities[i].ability, &is) == RMM_OK);
        CHECK(is == (status == RMM_OK));
        rmm_resource_release(mr);
    }
    CHECK(rmm_sim_violations() == 0);
}

TEST_CASE(a_device_reports_what_it_supports)
{
    char lacking[][40] = {
        "",
        "managed_memory=0",
        "pageable_memory_access=0",
        "memory_pools=0",
        "concurrent_managed_access=0",
        "managed_pools=0",
        "virtual_memory=0",
        "host_memory_pools=0",
        "host_numa_memory_pools=0"};

    for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
        child_run(compare_with_creators, lacking[i]);
    }
}

static void fill_the_device(child_t *self, void *argument)
{
    rmm_resource_t *cuda, *managed;
    void *all;

    CHECK(setenv("RMM_SIM_MEMORY", "1MiB", 1) == 0);
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_resource_alloc(cuda, MIB, 0, NULL, &all) == RMM_OK);
    CHECK(rmm_managed_resource_create(&managed) == RMM_OK);
    rmm_resource_release(managed);
    rmm_resource_dealloc(cuda, all, MIB, 0, NULL);
    rmm_resource_release(cuda);
}

TEST_CASE(a_full_device_has_managed_memory_all_the_same)
{
    child_run(fill_the_device, NULL);
}

static void refuse_the_call(child_t *self, void *argument)
{
    void *ptr = NULL;

    CHECK(setenv("RMM_SIM_ATTRIBUTES", argument, 1) == 0);
    CHECK(sim_driver()->managed_alloc(&ptr, 100) == RMM_DRIVER_NOT_SUPPORTED);
    CHECK(ptr == NULL);
}

TEST_CASE(cuda_malloc_managed_fails_without_managed_memory)
{
    char none[] = "managed_memory=0";
    char vgpu[] = "managed_alloc=0";

    child_run(refuse_the_call, none);
    child_run(refuse_the_call, vgpu);
}
