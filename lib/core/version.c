/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library that runs; RMM_VERSION_TEXT comes from CMake. */
#include <rmm/version.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

uint32_t rmm_version(void)
{
    return RMM_C_VERSION_MAJOR * 10000u + RMM_C_VERSION_MINOR * 100u +
           RMM_C_VERSION_PATCH;
}

const char *rmm_version_string(void)
{
    return TEXT(RMM_C_VERSION_MAJOR) "." TEXT(RMM_C_VERSION_MINOR) "." TEXT(
        RMM_C_VERSION_PATCH);
}
