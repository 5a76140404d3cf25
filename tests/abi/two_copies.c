/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: two_copies LIBRARY [linked|loaded]...
 * A program linked with the archive loads the shared library too, as a plugin does, and makes
 * resources with the copies that are named, in that order. What they log is on stderr.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <rmm/rmm.h>

typedef rmm_status_t create_fn(rmm_resource_t **out);
typedef void release_fn(rmm_resource_t *mr);

static void *copied_library;

static int use(create_fn *create, release_fn *release)
{
    rmm_resource_t *mr = NULL;

    if (create(&mr) != RMM_OK) {
        fprintf(stderr, "a copy could not make a resource\n");
        return 1;
    }
    release(mr);
    return 0;
}

static int use_loaded(void)
{
    create_fn *create;
    release_fn *release;

    *(void **)&create = dlsym(copied_library, "rmm_host_resource_create");
    *(void **)&release = dlsym(copied_library, "rmm_resource_release");
    return create == NULL || release == NULL ? 1 : use(create, release);
}

int main(int argc, char **argv)
{
    int failures = 0;

    copied_library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (copied_library == NULL) {
        fprintf(stderr, "cannot load the library: %s\n", dlerror());
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        failures += strcmp(argv[i], "linked") == 0
                        ? use(rmm_host_resource_create, rmm_resource_release)
                        : use_loaded();
    }
    return failures;
}
