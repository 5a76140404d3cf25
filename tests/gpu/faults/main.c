/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted fault as a program; see faults.h.
 *
 *   faults --list                    a line for each: NAME MODES
 *   faults NAME faulty|correct       runs it under rmm-run; on stdout, as JSON, what must be found
 *
 * Exit 77 where there is no GPU, or only one for a fault that needs two.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/faults/faults.h"

#define EXIT_SKIP 77
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const fault_table_t *const tables[] = {
#define X(name) &faults_##name,
    FAULT_FILES(X)
#undef X
};

static void must(rmm_status_t status, const char *what)
{
    if (status != RMM_OK) {
        fprintf(stderr, "%s: %s\n", what, rmm_last_error_message());
        exit(EXIT_FAILURE);
    }
}

void *scene_take(const scene_t *scene, size_t bytes, rmm_stream_t stream)
{
    void *block = NULL;

    must(rmm_resource_alloc(scene->mr, bytes, 0, stream, &block), "a block");
    return block;
}

void scene_drop(const scene_t *scene, void *block, size_t bytes, rmm_stream_t stream)
{
    rmm_resource_dealloc(scene->mr, block, bytes, 0, stream);
}

/* --- the scene -------------------------------------------------------------------------- */

static void make_streams(scene_t *scene)
{
    must(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &scene->a), "a stream");
    must(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &scene->b), "a stream");
}

static void open_scene(scene_t *scene, rmm_resource_t *pinned, const char *resource)
{
    void *first = NULL;

    must(rmm_resource_create_from_spec(resource, &scene->mr), resource);
    must(rmm_resource_alloc_sync(pinned, FAULTS_HOST_BYTES, 0, &scene->host), "pinned");
    memset(scene->host, 1, FAULTS_HOST_BYTES);
    /* the diagnosis begins with the first resource or block */
    first = scene_take(scene, 1, RMM_STREAM_LEGACY);
    gpu_call(GPU_SET, first, NULL, 1, RMM_STREAM_LEGACY);
    scene_drop(scene, first, 1, RMM_STREAM_LEGACY);
    if (scene->a == NULL) {
        make_streams(scene);
    }
}

/* The resource lives as long as the process: with it a leaked block would end. */
static void close_scene(scene_t *scene, rmm_resource_t *pinned)
{
    gpu_synchronize();
    (void)rmm_stream_destroy(scene->a);
    (void)rmm_stream_destroy(scene->b);
    rmm_resource_dealloc_sync(pinned, scene->host, FAULTS_HOST_BYTES, 0);
}

/* --- what must be found ------------------------------------------------------------------- */

static void print_text(const char *key, const char *text)
{
    if (text != NULL) {
        printf("\"%s\": \"%s\", ", key, text);
    } else {
        printf("\"%s\": null, ", key);
    }
}

static const char *name_of(gpu_call_t call, const char *kernel)
{
    return call != GPU_NO_CALL ? gpu_call_name(call) : kernel;
}

static void print_expected(const fault_t *fault, const void *culprit)
{
    printf("{");
    print_text(fault->is_verdict ? "verdict" : "class", fault->kind);
    if (fault->is_verdict) {
        print_text("first_use", fault->kernel);
    } else {
        print_text("access", fault->access);
        print_text("call", name_of(fault->call, fault->kernel));
        print_text("other", name_of(fault->other_call, fault->other));
        printf("\"address\": \"0x%" PRIxPTR "\", ", (uintptr_t)culprit);
    }
    if (fault->length > 0) {
        printf(
            "\"offset_bytes\": %ld, \"length_bytes\": %zu, ", fault->offset,
            fault->length);
    }
    printf("\"size_bytes\": %zu}\n", fault->bytes);
}

/* --- the program -------------------------------------------------------------------------- */

static bool has_two_gpus(void)
{
    int count = 0;

    return rmm_device_count(&count) == RMM_OK && count > 1;
}

static bool can_run(const fault_t *fault)
{
    return (fault->call == GPU_NO_CALL || gpu_call_name(fault->call) != NULL) &&
           (fault->needs == GPU_NO_CALL || gpu_call_name(fault->needs) != NULL) &&
           (fault->wait == GPU_NO_WAIT || gpu_has_wait(fault->wait)) &&
           (fault->way == GPU_NO_WAY || gpu_has_way(fault->way)) &&
           (!fault->needs_cuda_13 || gpu_is_cuda_13());
}

static void list(const fault_t *fault)
{
    if (fault->needs_two_gpus && !has_two_gpus()) {
        fprintf(stderr, "%s: skipped, it needs two GPUs\n", fault->name);
    } else if (can_run(fault)) {
        printf("%s %s\n", fault->name, fault->modes);
    }
}

/* NULL, or the fault of that name; without a name all are listed. */
static const fault_t *find(const char *name)
{
    for (size_t i = 0; i < COUNT(tables); i++) {
        for (size_t j = 0; j < tables[i]->count; j++) {
            const fault_t *fault = &tables[i]->faults[j];

            if (name == NULL) {
                list(fault);
            } else if (strcmp(fault->name, name) == 0) {
                return fault;
            }
        }
    }
    return NULL;
}

static void run(const fault_t *fault, bool is_faulty)
{
    scene_t scene = {.mr = NULL};
    rmm_resource_t *pinned = NULL;

    if (fault->has_old_streams) {
        make_streams(&scene);
    }
    must(rmm_pinned_resource_create(&pinned), "pinned memory");
    open_scene(&scene, pinned, fault->resource);
    fault->plant(&scene, fault, is_faulty);
    close_scene(&scene, pinned);
    rmm_resource_release(pinned);
    if (is_faulty && fault->kind != NULL) {
        print_expected(fault, scene.culprit);
    } else {
        puts("{}");
    }
}

int main(int argc, char **argv)
{
    const fault_t *fault = NULL;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        (void)find(NULL);
        return EXIT_SUCCESS;
    }
    fault = argc == 3 ? find(argv[1]) : NULL;
    if (fault == NULL ||
        (strcmp(argv[2], "faulty") != 0 && strcmp(argv[2], "correct") != 0)) {
        fprintf(stderr, "usage: faults --list | NAME faulty|correct\n");
        return 2;
    }
    if (!gpu_is_there() || (fault->needs_two_gpus && !has_two_gpus())) {
        fprintf(stderr, "no GPU here, or no second one\n");
        return EXIT_SKIP;
    }
    run(fault, strcmp(argv[2], "faulty") == 0);
    return EXIT_SUCCESS;
}
