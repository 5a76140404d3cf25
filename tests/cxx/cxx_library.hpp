/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cxx_library.cpp. */
#ifndef RMM_TESTS_CXX_LIBRARY_HPP
#define RMM_TESTS_CXX_LIBRARY_HPP

#include <cstddef>

#include <rmm/rmm.hpp>

class RMM_API library_error
{
  public:
    explicit library_error(std::size_t bytes) : bytes_(bytes)
    {
    }
    std::size_t bytes() const
    {
        return bytes_;
    }

  private:
    std::size_t bytes_;
};

/* Throws library_error at each allocation. */
rmmc::resource library_refusing();

/* Allocates through a pool over mr: true if that throws library_error. */
bool library_catches(const rmmc::resource &mr);

#endif /* RMM_TESTS_CXX_LIBRARY_HPP */
