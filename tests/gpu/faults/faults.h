/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted faults: a table of programs with one error each, which the diagnosis must find and
 * attribute exactly, and of their correct twins, in which it must find nothing. `run` runs all of
 * them, each in a process of its own.
 *
 * A new fault is a row in the table of the file that it fits best. A new file has a name in
 * FAULT_FILES and in CMakeLists.txt.
 */
#ifndef RMM_TESTS_GPU_FAULTS_FAULTS_H
#define RMM_TESTS_GPU_FAULTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/rmm.h>

#include "gpu/faults/gpu.h"

/* What a program works with. The streams do not wait for the default stream. */
typedef struct scene {
    rmm_resource_t *mr;
    rmm_stream_t a, b;
    void *host;    /* FAULTS_HOST_BYTES, pinned */
    void *culprit; /* set by plant(): the block that the finding must name */
} scene_t;

enum { FAULTS_HOST_BYTES = 1 << 16 };

typedef struct fault fault_t;

struct fault {
    const char *name;
    const char *modes;    /* of rmm-run --diag */
    const char *resource; /* a spec */
    /* Runs the program; with is_faulty its error in addition. All blocks are freed. */
    void (*plant)(scene_t *scene, const fault_t *fault, bool is_faulty);

    /* What is found in the faulty one, once. */
    const char *kind; /* of the finding or verdict; NULL: nothing, it is correct, too */
    bool is_verdict;  /* then of what follows only `bytes` and `kernel` */
    const char *access;
    gpu_call_t call;    /* that makes the error, */
    const char *kernel; /* or the kernel; neither: a free, or an allocation */
    const char
        *other; /* the kernel that it is not ordered after; "": the allocation, */
    gpu_call_t other_call; /* or the call; neither: it is not about order */
    size_t bytes;          /* of the block */
    long offset;           /* of the range, from the block's begin, */
    size_t length;         /* and its bytes; 0: not looked at */

    gpu_wait_t wait; /* for plant(); where the GPU has it not, the fault is left out, */
    gpu_call_t needs;     /* the same of a call that is not `call`, */
    gpu_way_t way;        /* of a way to launch, */
    bool needs_cuda_13;   /* of what gpu.h says that only CUDA 13 has, */
    bool needs_two_gpus;  /* and of a second GPU */
    bool has_old_streams; /* they are made before the first resource */
};

/* The table of a file. */
typedef struct fault_table {
    const fault_t *faults;
    size_t count;
} fault_table_t;

#define FAULT_FILES(X)                                                                 \
    X(bounds)                                                                          \
    X(devices)                                                                         \
    X(driver)                                                                          \
    X(freed)                                                                           \
    X(frees)                                                                           \
    X(graphs)                                                                          \
    X(launches)                                                                        \
    X(order)                                                                           \
    X(streams)                                                                         \
    X(verdicts)

#define X(name) extern const fault_table_t faults_##name;
FAULT_FILES(X)
#undef X

/* These end the process if they fail. */
void *scene_take(const scene_t *scene, size_t bytes, rmm_stream_t stream);
void scene_drop(const scene_t *scene, void *block, size_t bytes, rmm_stream_t stream);

#endif /* RMM_TESTS_GPU_FAULTS_FAULTS_H */
