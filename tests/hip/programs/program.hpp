/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs in this folder share. They are written as hipMM's documents show, with HIP's
 * names; programs_build.sh compiles each with every compiler and runs it over the stand-in of
 * HIP's library.
 */
#ifndef RMM_TESTS_HIP_PROGRAM_HPP
#define RMM_TESTS_HIP_PROGRAM_HPP

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                                             \
    do {                                                                               \
        if (!(condition)) {                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            std::exit(1);                                                              \
        }                                                                              \
    } while (0)

#endif /* RMM_TESTS_HIP_PROGRAM_HPP */
