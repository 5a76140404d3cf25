/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's program in C++17: rmm/rmm.hpp, and the headers of C as they are, with typed
 * containers of a type of its own.
 */
#include <cstdio>
#include <stdexcept>

#include <rmm/rmm.h>
#include <rmm/rmm.hpp>
#include <rmm/sim.h>
#include <rmm/sys/diag.h>

namespace
{

void check(rmm_status_t status)
{
    if (status != RMM_OK) {
        throw std::runtime_error(rmm_last_error_message());
    }
}

rmmc::pool_resource make_pool()
{
    rmmc::pool_options options;
    options.initial_bytes = 4 << 20;
    return rmmc::pool_resource(rmmc::cuda_resource(), options);
}

struct point {
    double x, y;
};

RMM_DEVICE_ARRAY_DEFINE(point, point);
RMM_DEVICE_SCALAR_DEFINE(point, point);

/* Every typed function, on the host's memory, so that the pool's accounting stay at a peak. */
void use_containers()
{
    rmm_resource_t *host = nullptr;
    check(rmm_host_resource_create(&host));
    rmmc::resource owner = rmmc::resource::adopt(host);
    rmm_stream_t stream = RMM_STREAM_DEFAULT;
    RMM_DEVICE_ARRAY(point) points, copy = RMM_DEVICE_ARRAY_OF_INIT(point);
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    const point value = {1.0, -0.0};
    point found = {0, 0};

    check(rmm_device_array_point_init(&points, 3, stream, host));
    check(rmm_device_array_point_set_element(&points, 0, value, stream));
    check(rmm_device_array_point_set_element_async(&points, 1, &value, stream));
    check(rmm_device_array_point_set_element_to_zero_async(&points, 2, stream));
    check(rmm_device_array_point_reserve(&points, 10, stream));
    check(rmm_device_array_point_resize(&points, 2, stream));
    check(rmm_device_array_point_shrink_to_fit(&points, stream));
    check(rmm_device_array_point_copy(&copy, &points, stream, host));
    check(rmm_device_array_point_get_element(&copy, 0, &found, stream));
    check(rmm_device_array_point_back(&copy, &found, stream));
    if (found.x != 1.0 || rmm_device_array_point_size(&copy) != 2 ||
        rmm_device_array_point_capacity(&copy) != 2 ||
        rmm_device_array_point_is_empty(&copy) ||
        rmm_device_array_point_element(&copy, 1) !=
            rmm_device_array_point_data(&copy) + 1) {
        throw std::runtime_error("the array is not what was put into it");
    }
    check(rmm_device_array_point_front(&copy, &found, stream));
    check(rmm_device_array_point_get_element(&copy, 1, &found, stream));
    rmm_device_array_point_move(&copy, &points);
    rmm_device_array_point_release(&copy, &buffer);
    rmm_device_buffer_fini(&buffer);
    rmm_device_array_point_fini(&copy);
    rmm_device_array_point_fini(&points);

    RMM_DEVICE_SCALAR(point) scalar, other = RMM_DEVICE_SCALAR_OF_INIT(point);
    check(rmm_device_scalar_point_init(&scalar, stream, host));
    check(rmm_device_scalar_point_set_value_to_zero_async(&scalar, stream));
    check(rmm_device_scalar_point_set_value_async(&scalar, &value, stream));
    check(rmm_device_scalar_point_copy(&other, &scalar, stream, host));
    check(rmm_device_scalar_point_value(&other, &found, stream));
    rmm_device_scalar_point_move(&other, &scalar);
    if (found.x != 1.0 || rmm_device_scalar_point_data(&scalar) != nullptr) {
        throw std::runtime_error("the scalar is not what was put into it");
    }
    rmm_device_scalar_point_fini(&scalar);
    check(rmm_device_scalar_point_init_value(&scalar, &value, stream, host));
    rmm_device_scalar_point_fini(&scalar);
    rmm_device_scalar_point_fini(&other);
}

} // namespace

int main()
{
    constexpr std::size_t bytes = 1 << 20;
    try {
        use_containers();
        rmmc::pool_resource pool = make_pool();
        pool.deallocate_sync(pool.allocate_sync(bytes), bytes);
        rmmc::stats stats = pool.get_stats();
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
