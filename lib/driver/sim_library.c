/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the simulated GPU, which is a library of its own (sim/): a program for GPUs carries no
 * test double. One that the program is linked with is taken first, then the file beside librmm-c,
 * then what the loader finds. It is never closed.
 *
 * Locking: that of the first call of rmm__driver().
 */
#include "driver/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <rmm/version.h>

#include "core/error.h"

/* The file that has the address has this folder, with its slash; "" if the loader knows none. */
static int folder_of(const void *address, const char **path_out)
{
    Dl_info info;
    const char *slash;

    if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        return 0;
    }
    slash = strrchr(info.dli_fname, '/');
    *path_out = info.dli_fname;
    return slash == NULL ? 0 : (int)(slash - info.dli_fname) + 1;
}

static void *load(char *why, size_t why_bytes)
{
    static const char here;
    char path[4096];
    const char *file = "";
    int folder = folder_of(&here, &file);
    void *library = NULL;

    if (folder > 0 && folder + sizeof(RMM_SIM_LIBRARY) <= sizeof(path)) {
        snprintf(path, sizeof(path), "%.*s%s", folder, file, RMM_SIM_LIBRARY);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        library = dlopen(RMM_SIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        snprintf(why, why_bytes, "%s", dlerror());
    }
    return library;
}

const rmm_driver_t *rmm__driver_sim_open(rmm_status_t *status_out)
{
    char why[RMM_ERROR_BYTES] = "it does not export " RMM_SIM_ENTRY;
    void *symbol = dlsym(RTLD_DEFAULT, RMM_SIM_ENTRY);
    rmm_sim_driver_fn entry;
    const rmm_driver_t *driver;

    if (symbol == NULL) {
        void *library = load(why, sizeof(why));

        symbol = library != NULL ? dlsym(library, RMM_SIM_ENTRY) : NULL;
    }
    if (symbol == NULL) {
        *status_out = rmm__error(
            RMM_ERR_NO_DEVICE,
            "RMM_DRIVER=sim needs the simulated GPU, a library of its own: %s; install "
            "librmm-c-dev (Debian, Ubuntu) or rmm-c-devel",
            why);
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof(entry));
    driver = entry(rmm_version_string(), status_out, why, sizeof(why));
    if (driver == NULL) {
        (void)rmm__error(*status_out, "%s", why);
    }
    return driver;
}
