/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: two_copies LIBRARY [linked|loaded|apart]...
 * A program linked with the archive loads the shared library too, as a plugin does, and makes
 * resources with the copies that are named, in that order. What they log is on stderr. `apart`:
 * a default of the linked copy is not one of the loaded copy.
 */
#include <dlfcn.h>
#include <stdbool.h>
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

/* The loaded copy's functions call each other, although the program has functions of the same
 * names. */
static int stay_apart(void)
{
    rmm_resource_t *mr = NULL;
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_status_t (*init)(rmm_device_buffer_t *, size_t, rmm_stream_t, rmm_resource_t *);
    rmm_resource_t *(*resource_of)(const rmm_device_buffer_t *);
    const char *(*type_of)(const rmm_resource_t *);
    bool is_apart = false;

    *(void **)&init = dlsym(copied_library, "rmm_device_buffer_init");
    *(void **)&resource_of = dlsym(copied_library, "rmm_device_buffer_resource");
    *(void **)&type_of = dlsym(copied_library, "rmm_resource_type");
    if (rmm_host_resource_create(&mr) == RMM_OK &&
        rmm_set_current_device_resource(mr, NULL) == RMM_OK &&
        init(&buffer, 1000, RMM_STREAM_DEFAULT, NULL) == RMM_OK) {
        is_apart = strcmp(type_of(resource_of(&buffer)), "cuda") == 0;
    }
    if (!is_apart) {
        fprintf(stderr, "the loaded copy used the default of the linked one\n");
    }
    return !is_apart;
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
        if (strcmp(argv[i], "apart") == 0) {
            failures += stay_apart();
        } else if (strcmp(argv[i], "linked") == 0) {
            failures += use(rmm_host_resource_create, rmm_resource_release);
        } else {
            failures += use_loaded();
        }
    }
    return failures;
}
