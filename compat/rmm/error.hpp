/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/error.hpp
 *
 * RMM's exceptions. The exceptions of allocations carry the library's status as well, so that
 * they keep their class on the way through resources of the library.
 */
#ifndef RMM_COMPAT_ERROR_HPP
#define RMM_COMPAT_ERROR_HPP

#include <new>
#include <stdexcept>
#include <string>

#include <rmm/cxx/error.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{

struct logic_error : std::logic_error {
    using std::logic_error::logic_error;
};

struct cuda_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class out_of_range : public std::out_of_range
{
    using std::out_of_range::out_of_range;
};

class invalid_argument : public std::invalid_argument
{
    using std::invalid_argument::invalid_argument;
};

/** An allocation failed. */
class bad_alloc : public std::bad_alloc, public rmmc::error
{
  public:
    bad_alloc(const char *text) : bad_alloc(std::string(text))
    {
    }
    bad_alloc(const std::string &text) : bad_alloc(RMM_ERR_BAD_ALLOC, text)
    {
    }
    [[nodiscard]] const char *what() const noexcept override
    {
        return message();
    }

  protected:
    bad_alloc(rmm_status_t status, const std::string &text)
        : rmmc::error(status, 0, ("std::bad_alloc: " + text).c_str())
    {
    }
};

/** The device, a pool or a limit is exhausted. */
class out_of_memory : public bad_alloc
{
  public:
    out_of_memory(const char *text) : out_of_memory(std::string(text))
    {
    }
    out_of_memory(const std::string &text)
        : bad_alloc(RMM_ERR_OUT_OF_MEMORY, "out_of_memory: " + text)
    {
    }
};

namespace detail
{

/* Classes of one name differ in the two interfaces (rmm/detail/era.hpp), so all files of a program
 * have the same. It has the definition of one of its files. Volatile: it is read, not deduced. */
RMM_EXPORT inline const volatile bool is_classic = RMM_COMPAT_CLASSIC != 0;

[[maybe_unused]] static const bool is_classic_everywhere = [] {
    if (is_classic != (RMM_COMPAT_CLASSIC != 0)) {
        throw logic_error("some files of this program were compiled with the headers "
                          "of compat-classic and "
                          "some without: name its folder for all or for none");
    }
    return true;
}();

} /* namespace detail */

} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_ERROR_HPP */
