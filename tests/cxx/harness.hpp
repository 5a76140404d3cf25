/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A harness for test programs in C++: cmocka leaves a failed case by longjmp(), which may not
 * skip destructors. A case is a CASE(name_as_a_sentence) { ... }; CHECK and THROWS leave it by
 * an exception. One source file of each program defines RMM_CXX_MAIN before it includes
 * this file. Arguments of the program are names of cases or patterns; --list
 * prints the names.
 *
 * The variables of RMM_TEST_ENVIRONMENT are set before anything of the library runs, unless
 * they are set already. With RMM_DRIVER=cuda a program proves that it runs on a real GPU, and
 * exits with status 77 on a machine that has none.
 */
#ifndef RMM_TESTS_CXX_HARNESS_HPP
#define RMM_TESTS_CXX_HARNESS_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fnmatch.h>
#include <string>
#include <vector>

#include <rmm/rmm.hpp>
#include <rmm/sim.h>

namespace test
{

struct failure {
    std::string what;
};

struct one_case {
    const char *name;
    void (*run)();
};

inline std::vector<one_case> &cases()
{
    static std::vector<one_case> all;
    return all;
}

struct registered {
    registered(const char *name, void (*run)())
    {
        cases().push_back({name, run});
    }
};

[[noreturn]] inline void fail(const char *file, int line, const std::string &what)
{
    throw failure{std::string(file) + ":" + std::to_string(line) + ": " + what};
}

/* True if the case passed, left no exception behind and broke no rule of the GPU. */
inline bool passes(const one_case &one)
{
    std::string reason;
    std::uint64_t violations = rmm_sim_violations();

    (void)rmmc::take_unhandled_exception();
    try {
        one.run();
        if (rmm_sim_violations() != violations) {
            reason = "a violation of the simulated GPU, which has printed it";
        } else if (rmmc::take_unhandled_exception() != nullptr) {
            reason = "an exception was left unhandled";
        }
    } catch (const failure &failed) {
        reason = failed.what;
    } catch (const std::exception &error) {
        reason = std::string("an exception: ") + error.what();
    } catch (...) {
        reason = "an exception of an unknown class";
    }
    std::printf(
        "%s %s %s\n", reason.empty() ? "ok    " : "FAILED", one.name, reason.c_str());
    std::fflush(stdout);
    return reason.empty();
}

constexpr int exit_skip = 77;

/* 0, or the exit status of a program that is to run on a real GPU and cannot. */
inline int look_for_gpu()
{
    const char *driver = std::getenv("RMM_DRIVER");

    if (driver == nullptr || std::strcmp(driver, "cuda") != 0) {
        return 0;
    }
    try {
        (void)rmmc::device_count();
    } catch (const rmmc::cuda_error &error) {
        std::printf("no GPU: %s\n", error.what());
        return error.status() == RMM_ERR_NO_DEVICE ? exit_skip : 1;
    }
    return rmm_sim_active() ? 1 : 0;
}

inline int run_all(int argc, char **argv)
{
    int ran = 0, failed = 0, status = look_for_gpu();

    if (status != 0) {
        return status;
    }
    for (const one_case &one : cases()) {
        bool is_named = argc < 2;
        if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
            std::puts(one.name);
            continue;
        }
        for (int i = 1; i < argc; i++) {
            is_named = is_named || fnmatch(argv[i], one.name, 0) == 0;
        }
        if (is_named) {
            ran++;
            failed += passes(one) ? 0 : 1;
        }
    }
    if (ran == 0 && argc == 2 && std::strcmp(argv[1], "--list") == 0) {
        return 0;
    }
    std::printf("%d cases, %d failed\n", ran, failed);
    return ran == 0 || failed != 0 ? 1 : 0;
}

} /* namespace test */

#define CASE(name)                                                                     \
    static void name();                                                                \
    static const test::registered registered_##name(#name, name);                      \
    static void name()

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            test::fail(__FILE__, __LINE__, #condition);                                \
        }                                                                              \
    } while (0)

/* The expression throws exactly this class; `caught` is the exception in what follows. */
#define THROWS(exception, ...)                                                         \
    do {                                                                               \
        bool has_thrown = false;                                                       \
        try {                                                                          \
            (void)(__VA_ARGS__);                                                       \
        } catch (const exception &caught) {                                            \
            has_thrown = typeid(caught) == typeid(exception);                          \
        }                                                                              \
        if (!has_thrown) {                                                             \
            test::fail(__FILE__, __LINE__, "no " #exception " from: " #__VA_ARGS__);   \
        }                                                                              \
    } while (0)

#ifdef RMM_CXX_MAIN
namespace test
{
static const char *const environment[] = {RMM_TEST_ENVIRONMENT nullptr};

__attribute__((constructor(101))) static void set_environment()
{
    for (const char *const *at = environment; *at != nullptr; at++) {
        const char *value = std::strchr(*at, '=');
        setenv(std::string(*at, value).c_str(), value + 1, 0);
    }
}
} /* namespace test */

int main(int argc, char **argv)
{
    return test::run_all(argc, argv);
}
#endif

#endif /* RMM_TESTS_CXX_HARNESS_HPP */
