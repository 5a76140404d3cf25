/* SPDX-License-Identifier: Apache-2.0 */
#include <cstdio>
#include <numeric>
#include <vector>

#include <rmm/rmm.hpp>

/* An array in a pool with a limit. It keeps both alive. */
static rmmc::device_array<float> make_array(rmmc::stream_view stream)
{
    rmmc::pool_options options;
    options.initial_bytes = 64 << 20;
    rmmc::pool_resource pool(rmmc::cuda_resource(), options);
    rmmc::limiting_adaptor limited(pool, 32 << 20);

    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 1.0f);
    return rmmc::device_array<float>(values, stream, limited);
}

int main()
{
    try {
        rmmc::stream stream;
        rmmc::device_array<float> xs = make_array(stream);
        std::printf(
            "the third of %zu elements is %g\n", xs.size(), xs.element(2, stream));
        xs.resize(100'000'000, stream); /* above the limit */
    } catch (const rmmc::out_of_memory &error) {
        std::printf("refused: %s\n", error.what());
    } catch (const std::exception &error) { /* no GPU, ... */
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
