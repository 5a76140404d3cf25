/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/detail/brace_format.hpp
 *
 * Text with values as fmt writes it, which formatted the messages of RMM's logger until 24.12: "{}",
 * "{1}", "{:>8}", "{:.2f}", "{:#x}", "{{". fmt itself would have to be linked. A value is whatever has
 * an operator<<. A message never fails: a field without a value stands in it as it was written.
 */
#ifndef RMM_COMPAT_DETAIL_BRACE_FORMAT_HPP
#define RMM_COMPAT_DETAIL_BRACE_FORMAT_HPP

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rapids_logger/logger.hpp>
#include <rmm/detail/export.hpp>

namespace RMM_NAMESPACE
{
namespace detail
{

using rapids_logger::detail::formatted;

/* A field's "[<>][+ #0][width][.precision][type]" as that of printf(). */
struct field_spec {
    std::string flags; /* with width and precision */
    char type = '\0';  /* none */

    explicit field_spec(std::string_view text = {})
    {
        if (!text.empty() && std::strchr("<>", text.front()) != nullptr) {
            flags = text.front() == '<' ? "-" : "";
            has_side = true;
            text.remove_prefix(1);
        }
        const std::size_t end = text.find_first_not_of("+ #.0123456789");
        const std::string_view numbers = text.substr(0, end);

        if (numbers.size() < most_characters) { /* a width of 1e9 is a mistake */
            flags += numbers;
        }
        if (end != std::string_view::npos) {
            type = text[end];
        }
    }
    std::string format(const char *size, const char *types, char otherwise) const
    {
        const bool is_known = type != '\0' && std::strchr(types, type) != nullptr;

        return '%' + flags + size + (is_known ? type : otherwise);
    }
    std::string text_format() const
    {
        return (has_side ? "%" : "%-") + flags + 's';
    }

  private:
    static constexpr std::size_t most_characters = 8;

    bool has_side = false;
};

/* The fewest digits that make this number. */
inline std::string shortest(double value)
{
    std::string text;

    for (int digits = 1; digits <= 17; digits++) {
        text = formatted("%.*g", digits, value);
        if (std::strtod(text.c_str(), nullptr) == value) {
            break;
        }
    }
    return text;
}

template <class T> std::string text_of_other(const T &value, const field_spec &spec)
{
    std::ostringstream out;

    if constexpr (std::is_same_v<T, bool>) {
        out << (value ? "true" : "false");
    } else if constexpr (std::is_convertible_v<T, const char *>) {
        const char *text = value;
        out << (text != nullptr ? text : "(null)");
    } else {
        out << value;
    }
    return formatted(spec.text_format().c_str(), out.str().c_str());
}

template <class T> std::string text_of_value(const void *at, const field_spec &spec)
{
    const T &value = *static_cast<const T *>(at);

    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, char>) {
        return text_of_other(value, spec);
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
        return formatted(
            spec.format("ll", "dxXo", 'd').c_str(), static_cast<long long>(value));
    } else if constexpr (std::is_integral_v<T>) {
        return formatted(
            spec.format("ll", "xXo", 'u').c_str(),
            static_cast<unsigned long long>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
        const auto number = static_cast<double>(value);

        return spec.flags.empty() && spec.type == '\0'
                   ? shortest(number)
                   : formatted(spec.format("", "aAeEfFgG", 'g').c_str(), number);
    } else {
        return text_of_other(value, spec);
    }
}

/* One of the values of a message. */
struct brace_value {
    const void *value;
    std::string (*text)(const void *, const field_spec &);
};

template <class T> brace_value brace_value_of(const T &value)
{
    return {&value, text_of_value<T>};
}

/* Appends what the field stands for; `next` counts those without a number. False: for nothing. */
inline bool append_field(
    std::string_view field, const std::vector<brace_value> &values, std::size_t *next,
    std::string *out)
{
    const std::size_t colon = field.find(':');
    const std::string name(field.substr(0, colon));
    const std::size_t index =
        name.empty() ? *next : std::strtoul(name.c_str(), nullptr, 10);

    if (name.find_first_not_of("0123456789") != std::string::npos ||
        index >= values.size()) {
        return false;
    }
    *next += name.empty() ? 1 : 0;
    *out += values[index].text(
        values[index].value,
        field_spec(colon == std::string_view::npos ? "" : field.substr(colon + 1)));
    return true;
}

inline std::string
brace_text(std::string_view format, const std::vector<brace_value> &values)
{
    std::string out;
    std::size_t next = 0;

    for (std::size_t at = 0; at < format.size(); at++) {
        const char sign = format[at];
        const bool is_brace = sign == '{' || sign == '}';
        const std::size_t close =
            sign == '{' ? format.find('}', at) : std::string_view::npos;

        if (is_brace && at + 1 < format.size() && format[at + 1] == sign) {
            out += sign;
            at++;
        } else if (
            close != std::string_view::npos &&
            append_field(format.substr(at + 1, close - at - 1), values, &next, &out)) {
            at = close;
        } else {
            out += sign;
        }
    }
    return out;
}

template <class... Values>
std::string brace_formatted(std::string_view format, const Values &...values)
{
    return brace_text(format, {brace_value_of<std::decay_t<const Values>>(values)...});
}

} /* namespace detail */
} /* namespace RMM_NAMESPACE */

#endif /* RMM_COMPAT_DETAIL_BRACE_FORMAT_HPP */
