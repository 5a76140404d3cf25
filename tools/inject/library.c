/* SPDX-License-Identifier: Apache-2.0 */
/* Finds librmm-c; see library.h. */
#include "inject/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* dladdr() finds this library by this address. */
static const char anchor;

/* "": unknown. */
static void own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    const char *slash = NULL;

    folder[0] = '\0';
    if (dladdr(&anchor, &info) != 0 && info.dli_fname != NULL) {
        slash = strrchr(info.dli_fname, '/');
    }
    if (slash != NULL && slash - info.dli_fname < PATH_MAX) {
        memcpy(folder, info.dli_fname, (size_t)(slash - info.dli_fname));
        folder[slash - info.dli_fname] = '\0';
    }
}

static void *load_beside(void)
{
    static const char *const places[] = {
        "", "/..", "/../../lib"}; /* copied; installed; built */
    char folder[PATH_MAX], path[PATH_MAX + 64];
    void *library = NULL;

    own_folder(folder);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && library == NULL; i++) {
        snprintf(path, sizeof(path), "%s%s/" RMM_LIBRARY_SONAME, folder, places[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static bool find_in(void *place, inject_library_t *library)
{
    void *alloc = dlsym(place, "rmm_diag_driver_alloc_v1");
    void *free_symbol = dlsym(place, "rmm_diag_driver_free_v1");
    void *forget = dlsym(place, "rmm_diag_driver_forget_v1");
    void *inside = dlsym(place, "rmm_diag_in_library_v1");

    memcpy(&library->driver_alloc, &alloc, sizeof(alloc));
    memcpy(&library->driver_free, &free_symbol, sizeof(free_symbol));
    memcpy(&library->driver_forget, &forget, sizeof(forget));
    memcpy(&library->in_library, &inside, sizeof(inside));
    return alloc != NULL && free_symbol != NULL && forget != NULL && inside != NULL;
}

inject_library_fn inject_library_copies(void)
{
    void *loaded = dlopen(RMM_LIBRARY_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = dlsym(loaded != NULL ? loaded : RTLD_DEFAULT, "rmm_diag_copies_v1");
    inject_library_fn found;

    if (loaded != NULL) {
        (void)dlclose(loaded); /* it stays: it has called this library */
    }
    (void)dlerror();
    memcpy(&found, &symbol, sizeof(found));
    return found;
}

bool inject_library_open(inject_library_t *library)
{
    bool found = find_in(RTLD_DEFAULT, library); /* linked, also statically */
    void *loaded = NULL;

    if (!found) {
        loaded = dlopen(RMM_LIBRARY_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        loaded = loaded != NULL ? loaded : load_beside();
        found = loaded != NULL && find_in(loaded, library);
    }
    (void)dlerror();
    return found;
}
