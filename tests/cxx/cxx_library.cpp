/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of its own, with hidden symbols, over rmm/rmm.hpp: what its callbacks throw has to
 * come out in the program, and what the program's callbacks throw has to come out in it.
 */
#include "cxx/cxx_library.hpp"

#if defined(__GNUC__)
#define EXPORTED __attribute__((visibility("default")))
#endif

EXPORTED rmmc::resource library_refusing()
{
    return rmmc::callback_resource(
        [](std::size_t bytes, rmmc::stream_view) -> void * {
            throw library_error(bytes);
        },
        [](void *, std::size_t, rmmc::stream_view) {});
}

EXPORTED bool library_catches(const rmmc::resource &mr)
{
    rmmc::pool_resource pool(mr);

    try {
        (void)pool.allocate({}, 1000);
    } catch (const library_error &) {
        return true;
    }
    return false;
}
