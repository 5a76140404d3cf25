/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's program in C++17: the headers as they are, a resource behind unique_ptr.
 */
#include <cstdio>
#include <memory>
#include <stdexcept>

#include <rmm/rmm.h>
#include <rmm/sim.h>
#include <rmm/sys/diag.h>

namespace
{

struct release {
    void operator()(rmm_resource_t *mr) const noexcept
    {
        rmm_resource_release(mr);
    }
};
using resource = std::unique_ptr<rmm_resource_t, release>;

void check(rmm_status_t status)
{
    if (status != RMM_OK) {
        throw std::runtime_error(rmm_last_error_message());
    }
}

resource make_pool()
{
    rmm_resource_t *cuda = nullptr, *pool = nullptr;
    check(rmm_cuda_resource_create(&cuda));
    resource upstream(cuda);
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    options.initial_bytes = 4 << 20;
    check(rmm_pool_resource_create(upstream.get(), &options, &pool));
    return resource(pool);
}

} // namespace

int main()
{
    constexpr std::size_t bytes = 1 << 20;
    try {
        resource pool = make_pool();
        void *block = nullptr;
        check(rmm_resource_alloc_sync(pool.get(), bytes, 0, &block));
        rmm_resource_dealloc_sync(pool.get(), block, bytes, 0);
        rmm_stats_t stats = RMM_STATS_INIT;
        check(rmm_resource_get_stats(pool.get(), &stats));
        std::printf(
            "rmm-c %s: peak %llu bytes, current %llu bytes, driver %s\n",
            rmm_version_string(), static_cast<unsigned long long>(stats.peak_bytes),
            static_cast<unsigned long long>(stats.current_bytes),
            rmm_sim_active() ? "simulated" : "real");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
