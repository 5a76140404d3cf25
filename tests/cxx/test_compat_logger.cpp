/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that use RMM's logger: levels, patterns, sinks, threads. */
#define RMM_CXX_MAIN
#include "cxx/harness.hpp"

#include <atomic>
#include <regex.h>
#include <sstream>
#include <thread>
#include <type_traits>
#include <unistd.h>

#include <rmm/logger.hpp>

using rapids_logger::level_enum;
using rapids_logger::logger;

/* By regcomp(3): std::regex takes longer to compile than all the rest of this file. */
static bool matches(const std::string &text, const std::string &pattern)
{
    regex_t compiled;
    CHECK(
        regcomp(&compiled, ("^(" + pattern + ")$").c_str(), REG_EXTENDED | REG_NOSUB) ==
        0);
    const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

/* What a logger writes with this pattern. */
static std::string line_with(const std::string &pattern)
{
    std::ostringstream text;
    logger one("name", text);

    one.set_pattern(pattern);
    one.warn("seven");
    return text.str();
}

CASE(a_pattern_is_the_form_of_each_line)
{
    const std::string process = std::to_string(getpid());

    CHECK(line_with("%v") == "seven\n");
    CHECK(line_with("") == "\n");
    CHECK(line_with("%n|%l|%L|%%|%P") == "name|warning|W|%|" + process + "\n");
    CHECK(matches(
        line_with(rmm::default_pattern()),
        "\\[ *[0-9]+\\]\\[[0-9:]{8}:[0-9]{6}\\]\\[warning\\] seven\n"));
    CHECK(
        matches(line_with("%t,%H:%M:%S.%f,%v"), "[0-9]+,[0-9:]{8}\\.[0-9]{6},seven\n"));
    CHECK(matches(
        line_with("%Y-%m-%d %e %F %E"), "[0-9-]{10} [0-9]{3} [0-9]{9} [0-9]+\n"));
    CHECK(matches(line_with("%z"), "[+-][0-9]{2}:[0-9]{2}\n"));
}

CASE(a_flag_has_a_width)
{
    CHECK(line_with("[%8v]") == "[   seven]\n");
    CHECK(line_with("[%-8v]") == "[seven   ]\n");
    CHECK(line_with("[%=8v]") == "[ seven  ]\n");
    CHECK(line_with("[%3v][%3!v]") == "[seven][sev]\n");
    CHECK(line_with("%99999999999999999999v").size() == 64 + 1);
}

CASE(what_is_no_flag_stays)
{
    CHECK(line_with("%k 100%") == "%k 100%\n");
    CHECK(line_with("%-") == "%-\n");
    CHECK(line_with("%5") == "%5\n");
    CHECK(line_with("%^%v%$") == "seven\n"); /* colours */
}

CASE(arguments_may_be_strings)
{
    std::ostringstream text;
    logger one("name", text);
    const std::string word = "word";

    one.set_pattern("%v");
    one.info("%s %d %s", word, 3, "literal");
    one.info(word);
    one.info("100%");
    one.log(level_enum::error, std::string("%zu"), word.size());
    CHECK(text.str() == "word 3 literal\nword\n100%\n4\n");
    RMM_LOG_ERROR("%s", word);
}

CASE(a_pattern_is_for_the_sinks_that_are_there)
{
    std::ostringstream first, second;
    logger one("name", first);

    one.set_pattern("%v");
    one.sinks().push_back(std::make_shared<rapids_logger::ostream_sink_mt>(second));
    one.critical("both");
    CHECK(first.str() == "both\n");
    CHECK(matches(second.str(), "\\[[^]]+\\]\\[critical\\] both\n"));
    CHECK(one.sinks().end() - one.sinks().begin() == 2);
}

CASE(a_callback_gets_lines_and_levels)
{
    static std::string lines;
    static int flushes;
    const auto log = [](int level, const char *line) {
        lines += std::to_string(level) + line;
    };
    const auto flush = [] { flushes++; };
    const rapids_logger::log_callback_t log_function = log;
    logger one(
        "name",
        {std::make_shared<rapids_logger::callback_sink_mt>(log_function, flush)});

    one.set_pattern("%v");
    CHECK(one.flush_level() == level_enum::off);
    one.error("kept");
    CHECK(flushes == 0);
    one.flush_on(level_enum::error);
    CHECK(one.flush_level() == level_enum::error);
    one.warn("a");
    CHECK(flushes == 0);
    one.error("b");
    CHECK(flushes == 1);
    CHECK(lines == "4kept\n3a\n4b\n");
}

CASE(a_level_is_set_for_a_block)
{
    std::ostringstream text;
    logger one("name", text);

    one.set_pattern("%v");
    {
        const rapids_logger::log_level_setter scope(one, level_enum::off);
        one.critical("none");
    }
    one.info("again");
    CHECK(text.str() == "again\n");
}

CASE(a_logger_moves_with_its_sinks_and_levels)
{
    static_assert(!std::is_copy_constructible<logger>::value, "copies share nothing");
    std::ostringstream text;
    logger one("one", text);

    one.set_level(level_enum::error);
    one.flush_on(level_enum::warn);
    logger two = std::move(one);
    CHECK(two.level() == level_enum::error && two.flush_level() == level_enum::warn);
    logger three("three");
    three = std::move(two);
    three.set_pattern("%n %v");
    three.error("moved");
    CHECK(text.str() == "one moved\n");
}

/* The library's log keeps its form: other processes may write to its file. */
CASE(the_librarys_sink_keeps_its_lines)
{
    std::ostringstream text;

    rmm::default_logger().sinks().push_back(
        std::make_shared<rapids_logger::ostream_sink_mt>(text));
    rmm::default_logger().set_pattern("<%n> %v");
    rmm::default_logger().set_level(level_enum::error);
    RMM_LOG_ERROR("from the program");
    THROWS(
        rmmc::out_of_memory, rmmc::cuda_resource().allocate_sync(std::size_t(1) << 50));
    rmm::default_logger().set_level(level_enum::off);
    rmm::default_logger().sinks().pop_back();
    CHECK(text.str().rfind("<RMM> from the program\n<RMM> ", 0) == 0);
}

CASE(the_librarys_sink_can_be_taken_out_and_put_back)
{
    std::ostringstream text;
    const rapids_logger::sink_ptr first = rmm::default_sink();

    rmm::default_logger().sinks().clear();
    rmm::default_logger().sinks().push_back(
        std::make_shared<rapids_logger::ostream_sink_mt>(text));
    rmm::default_logger().set_pattern(rmm::default_pattern());
    rmm::default_logger().set_level(level_enum::error);
    CHECK(rmm::default_sink() == first);
    RMM_LOG_ERROR("in RMM's form");
    rmm::default_logger().set_level(level_enum::off);
    rmm::default_logger().sinks().clear();
    rmm::default_logger().sinks().push_back(first);
    CHECK(matches(text.str(), "\\[[^]]+\\]\\[[^]]+\\]\\[error \\] in RMM's form\n"));
}

/* Each call of a sink runs alone, and levels and patterns change meanwhile. */
CASE(threads_share_a_logger)
{
    static std::atomic<int> inside{0}, most{0}, count{0};
    const rapids_logger::log_callback_t log = [](int, const char *) {
        const int now = ++inside;
        if (now > most) {
            most = now;
        }
        std::this_thread::yield();
        count++;
        inside--;
    };
    logger one("name", {std::make_shared<rapids_logger::callback_sink_mt>(log)});
    std::vector<std::thread> threads;

    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&one] {
            for (int k = 0; k < 1000; k++) {
                one.set_level(k % 2 != 0 ? level_enum::info : level_enum::debug);
                one.flush_on(level_enum::off);
                one.set_pattern(k % 2 != 0 ? "%v" : "%l");
                one.info("%d", k);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(count == 4000);
    CHECK(most == 1);
}
