/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of CUDA that end the program if they fail. Not for the simulated GPU. */
#ifndef RMM_TESTS_GPU_FAULTS_CUDA_CALLS_H
#define RMM_TESTS_GPU_FAULTS_CUDA_CALLS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

static inline void must_cuda(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s: error %d\n", what, error);
        exit(EXIT_FAILURE);
    }
}

#define MUST_CUDA(call) must_cuda((int)(call), #call)

/* The runtime is linked; the driver is there only on a machine with a GPU. */
static inline void find_in_driver(const char *name, void *function_out)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver != NULL ? dlsym(driver, name) : NULL;

    must_cuda(found == NULL, name);
    memcpy(function_out, &found, sizeof(found));
}

#define NAME_OF_MACRO(name) #name
/* The header makes macros of names, which add a version. */
#define NAME_OF(name) NAME_OF_MACRO(name)
#define MUST_DRIVER(name, ...)                                                         \
    do {                                                                               \
        __typeof__(&(name)) function_;                                                 \
        find_in_driver(NAME_OF(name), &function_);                                     \
        must_cuda((int)function_(__VA_ARGS__), #name);                                 \
    } while (0)

#endif /* RMM_TESTS_GPU_FAULTS_CUDA_CALLS_H */
