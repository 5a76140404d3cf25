// SPDX-License-Identifier: Apache-2.0
// usage: torch_raises LIBC10: what a failed allocation is without and with PyTorch's
// library in the process.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

#include <rmm/rmm.h>

static int fail(const char *what)
{
    std::fprintf(stderr, "torch_raises: %s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    const std::size_t too_much = std::size_t(1) << 60;

    if (argc != 2 || rmm_torch_malloc(too_much, 0, nullptr) != nullptr) {
        return fail("without PyTorch a failure is NULL");
    }
    if (dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == nullptr) {
        return fail(dlerror());
    }
    for (int i = 0; i < 100; i++) {
        try {
            (void)!rmm_torch_malloc(too_much, 0, nullptr);
            return fail("nothing was raised");
        } catch (const std::runtime_error &error) {
            if (std::strstr(error.what(), "out of memory") == nullptr ||
                std::strchr(error.what(), '\n') != nullptr) {
                return fail(error.what());
            }
        }
    }
    void *ptr = rmm_torch_malloc(1000, 0, nullptr);
    if (ptr == nullptr) {
        return fail("the allocator is of no use after a failure");
    }
    rmm_torch_free(ptr, 1000, 0, nullptr);
    std::puts("a failure is raised where PyTorch can catch it");
    return 0;
}
