/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/mr/logging_resource_adaptor.hpp
 *
 * Logs each allocation and free as a row (rmm/logging_adaptor.h).
 *
 * A file is appended to, and %d and %p in its path stand for the device and the process. Another
 * per cent sign stands for itself, as in RMM.
 */
#ifndef RMM_COMPAT_MR_LOGGING_RESOURCE_ADAPTOR_HPP
#define RMM_COMPAT_MR_LOGGING_RESOURCE_ADAPTOR_HPP

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <rmm/cxx/logging.hpp>
#include <rmm/detail/era.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/export.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/detail/library_resource.hpp>
#if RMM_COMPAT_CLASSIC
#include <rmm/detail/spdlog_sink.hpp>
#endif

namespace RMM_NAMESPACE
{
namespace mr
{

RMM_COMPAT_OVER_UPSTREAM
class logging_resource_adaptor : public detail::adaptor_over_upstream
{
  public:
    RMM_COMPAT_UPSTREAM_MEMBERS(logging_resource_adaptor)

    /** @throws logic_error without a name if RMM_LOG_FILE is not set */
    logging_resource_adaptor(
        detail::any_device_resource upstream,
        const std::string &filename = get_default_filename(), bool auto_flush = false)
        : adaptor_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              rmmc::logging_options options = with(auto_flush);
              const std::string path = with_signs(filename);
              make_folder_of(filename);
              options.path = path.c_str();
              return rmmc::logging_adaptor<>(mr, options);
          })
    {
    }
    /** @param stream outlives the adaptor */
    logging_resource_adaptor(
        detail::any_device_resource upstream, std::ostream &stream,
        bool auto_flush = false)
        : logging_resource_adaptor(
              std::move(upstream),
              {std::make_shared<rapids_logger::ostream_sink_mt>(stream, true)},
              auto_flush)
    {
    }
    logging_resource_adaptor(
        detail::any_device_resource upstream,
        std::initializer_list<rapids_logger::sink_ptr> sinks, bool auto_flush = false)
        : adaptor_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              return rmmc::logging_adaptor<>(
                  mr, to(std::vector<rapids_logger::sink_ptr>(sinks)),
                  with(auto_flush));
          })
    {
    }
#if RMM_COMPAT_CLASSIC && RMM_COMPAT_HAS_SPDLOG
    /** Until RMM 24.12. */
    logging_resource_adaptor(
        detail::any_device_resource upstream,
        std::initializer_list<spdlog::sink_ptr> sinks, bool auto_flush = false)
        : adaptor_over_upstream(std::move(upstream), [&](const rmmc::resource &mr) {
              std::vector<rapids_logger::sink_ptr> wrapped;
              for (const spdlog::sink_ptr &sink : sinks) {
                  wrapped.push_back(std::make_shared<rmm::detail::spdlog_sink>(sink));
                  wrapped.back()->set_pattern("%v");
              }
              return rmmc::logging_adaptor<>(
                  mr, to(std::move(wrapped)), with(auto_flush));
          })
    {
    }
#endif

    /** Write all rows. @throws cuda_error never; rmmc::io_error if rows were lost */
    void flush()
    {
        rmm::detail::check([&] { return rmm_logging_flush(mr_.get()); });
    }
    /** The first row. */
    [[nodiscard]] std::string header() const
    {
        return rmm_logging_header(RMM_LOGGING_FORMAT_RMM);
    }
    static std::string get_default_filename()
    {
        const char *name = std::getenv("RMM_LOG_FILE");

        RMM_EXPECTS(
            name != nullptr,
            "RMM logging without a file name, and RMM_LOG_FILE is not set");
        return name;
    }

  private:
    /* As RMM's logger; where it cannot be made, the file cannot either, which is the error. */
    static void make_folder_of(const std::string &filename)
    {
        const std::filesystem::path folder =
            std::filesystem::path(filename).parent_path();
        std::error_code ignored;

        if (!folder.empty() && folder.string().find('%') == std::string::npos) {
            (void)std::filesystem::create_directories(folder, ignored);
        }
    }
    /* A per cent sign that names nothing is two to the library. */
    static std::string with_signs(const std::string &name)
    {
        std::string path;

        for (std::size_t i = 0; i < name.size(); i++) {
            const char next = i + 1 < name.size() ? name[i + 1] : '\0';

            path += name[i];
            if (name[i] == '%' && (next == 'd' || next == 'p' || next == '%')) {
                path += name[++i];
            } else if (name[i] == '%') {
                path += '%';
            }
        }
        return path;
    }
    static rmmc::logging_options with(bool auto_flush)
    {
        rmmc::logging_options options;
        options.auto_flush = auto_flush;
        return options;
    }
    static rmmc::logging_adaptor<>::sink_type
    to(std::vector<rapids_logger::sink_ptr> sinks)
    {
        return [sinks = std::move(sinks)](std::string_view rows) {
            for (const rapids_logger::sink_ptr &sink : sinks) {
                sink->write(rows);
                sink->flush();
            }
        };
    }
};
RMM_COMPAT_DEDUCTION(logging_resource_adaptor)
RMM_COMPAT_MAKER(make_logging_adaptor, logging_resource_adaptor)

namespace detail
{
RMM_COMPAT_IS_KNOWN(logging_resource_adaptor)
} /* namespace detail */

} /* namespace mr */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_MR_LOGGING_RESOURCE_ADAPTOR_HPP */
