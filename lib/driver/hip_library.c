/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds libamdhip64 and its functions at run time, so that one build serves CUDA, HIP and
 * the simulated GPU, and starts on machines with none of them.
 *
 * A program that uses HIP has the library loaded already, often a copy of its own
 * (PyTorch's wheel carries one). Two copies in a process would not know each other's streams
 * and memory, so a loaded one is taken first, whatever its version. It is never closed: HIP
 * may call back until the process ends.
 *
 * Locking: that of the first call of rmm__driver().
 */
#include "driver/hip_internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

/* ROCm's version is that of the file; the last name comes with the packages for developers
 * only. */
static const char *const files[] = {
    "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
#define FILE_NAMES "libamdhip64.so.7, .so.6, .so.5 and .so"

enum { FILE_COUNT = sizeof(files) / sizeof(files[0]) };

hip_library_t rmm__hip;
atomic_bool rmm__hip_exits;

/* The most telling reason in `why`: a library that is there but lacks another one, before one
 * that is not there, which the message of dlopen() begins with. */
static void *open_first(int flags, char *why, size_t why_bytes)
{
    bool is_telling = false;

    for (int i = 0; i < FILE_COUNT; i++) {
        void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | flags);
        const char *reason = library == NULL ? dlerror() : NULL;

        if (library != NULL) {
            rmm__hip.file = files[i];
            return library;
        }
        if (reason != NULL && !is_telling) {
            is_telling = strncmp(reason, files[i], strlen(files[i])) != 0;
            if (is_telling || i == 0) {
                snprintf(why, why_bytes, "%s", reason);
            }
        }
    }
    return NULL;
}

/* The name of a missing function that the driver cannot do without, or NULL. */
static const char *find_functions(void *library)
{
    const char *missing = NULL;
    void *found;

    for (int i = 0; i < HIP_GROUP_COUNT; i++) {
        rmm__hip.has[i] = true;
    }
#define HIP(need, result, name, parameters)                                            \
    found = dlsym(library, #name);                                                     \
    memcpy(&rmm__hip.name, &found, sizeof(found));                                     \
    if (found == NULL) {                                                               \
        rmm__hip.has[HIP_GROUP_##need] = false;                                        \
        missing = HIP_GROUP_##need == HIP_GROUP_MUST ? #name : missing;                \
    }
#include "driver/hip_functions.def"
#undef HIP
    return missing;
}

/* Builds of HIP before 5.0 returned a number of another kind. */
void rmm__hip_format_version(char text[HIP_VERSION_BYTES])
{
    int version = rmm__hip.version;

    if (version < 10000000) {
        snprintf(text, HIP_VERSION_BYTES, "of unknown version");
        return;
    }
    snprintf(
        text, HIP_VERSION_BYTES, "%d.%d.%d", version / 10000000, version / 100000 % 100,
        version % 100000);
}

rmm_status_t rmm__hip_load(void)
{
    char why[256] = "no reason given";
    void *library = open_first(RTLD_NOLOAD, why, sizeof(why));
    const char *missing;
    char version[HIP_VERSION_BYTES];

    if (library == NULL) {
        library = open_first(0, why, sizeof(why));
    }
    if (library == NULL) {
        return rmm__error(
            RMM_ERR_NO_DEVICE,
            "no usable AMD GPU: none of " FILE_NAMES " can be loaded (%s); install "
            "ROCm 5.2 or newer, or name the folder of its libraries in LD_LIBRARY_PATH",
            why);
    }
    missing = find_functions(library);
    if (rmm__hip.hipRuntimeGetVersion == NULL ||
        rmm__hip.hipRuntimeGetVersion(&rmm__hip.version) != RMM_DRIVER_OK) {
        rmm__hip.version = 0;
    }
    if (missing != NULL) {
        rmm__hip_format_version(version);
        return rmm__error(
            RMM_ERR_NO_DEVICE,
            "no usable AMD GPU: %s (HIP %s) has no function %s; HIP 5.2 or newer is "
            "needed",
            rmm__hip.file, version, missing);
    }
    return RMM_OK;
}
