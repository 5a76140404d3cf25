/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the planted faults make a GPU do, so that one source runs on the simulated GPU (gpu_sim.c)
 * and on a real one (gpu_cuda.cu). A call that fails ends the process; out of bounds it may fail.
 */
#ifndef RMM_TESTS_GPU_FAULTS_GPU_H
#define RMM_TESTS_GPU_FAULTS_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name): a kernel that is given up to two pointers, and is called that in a finding. */
#define GPU_KERNELS(X) X(fill) X(scale) X(reduce) X(sum)

/* X(name): a call on `bytes` bytes at `block`, whose other side is `other`. Those with a pitch have
 * GPU_ROWS rows of GPU_PITCH bytes, and `bytes` are from the first to the last. */
#define GPU_CALLS(X)                                                                   \
    X(SET)                                                                             \
    X(COPY_TO)   /* `block` from `other` */                                            \
    X(COPY_FROM) /* from `block` to `other` */                                         \
    X(PREFETCH)                                                                        \
    X(SET_BY_LIBRARY)                                                                  \
    X(SET_SYNC)                                                                        \
    X(SET_ROWS)                                                                        \
    X(SET_ROWS_ASYNC)                                                                  \
    X(DISCARD)                                                                         \
    X(PREFETCH_BATCH)                                                                  \
    X(COPY_SYNC_TO)                                                                    \
    X(COPY_SYNC_FROM)                                                                  \
    X(COPY_SYNC_ANY) /* from `block`, of no direction */                               \
    X(COPY_HOST_TO)  /* of the direction host to device, and the reverse */            \
    X(COPY_HOST_FROM)                                                                  \
    X(COPY_BETWEEN)                                                                    \
    X(COPY_PEER)                                                                       \
    X(COPY_PEER_SYNC)                                                                  \
    X(COPY_ROWS_TO)                                                                    \
    X(COPY_ROWS_FROM)                                                                  \
    X(COPY_BOX_FROM)                                                                   \
    X(COPY_BOX_TO)                                                                     \
    X(COPY_BOXES_FROM) /* a batch of two */                                            \
    X(COPY_ARRAY_FROM) /* to an array, not to `other` */                               \
    X(COPY_BATCH_FROM)                                                                 \
    X(COPY_BATCH_TO)                                                                   \
    X(SET_NODE)       /* as a node that is added to a graph, and never runs */         \
    X(COPY_NODE_FROM) /* the same */

/* X(name): what makes work behind it follow what is on a stream. */
#define GPU_WAITS(X)                                                                   \
    X(EVENT) /* of the other stream */                                                 \
    X(STREAM)                                                                          \
    X(DEVICE)                                                                          \
    X(EVENT_SYNC)                                                                      \
    X(EVENT_QUERY)                                                                     \
    X(STREAM_QUERY)                                                                    \
    X(HOST_FUNCTION)                                                                   \
    X(FREE)         /* of memory of the driver */                                      \
    X(VALUE)        /* in memory; the diagnosis does not follow it, */                 \
    X(LAUNCH_EVENT) /* nor this one, which a launch records as its attribute */

/* X(name): a way to launch the kernel "reduce". */
#define GPU_WAYS(X)                                                                    \
    X(COOPERATIVE)                                                                     \
    X(EXTENDED) /* with attributes */                                                  \
    X(CLUSTER)                                                                         \
    X(BUFFER) /* all parameters packed into one */

#define GPU_ENUM(name) GPU_##name,
typedef enum gpu_call { GPU_NO_CALL, GPU_CALLS(GPU_ENUM) } gpu_call_t;
#undef GPU_ENUM
#define GPU_ENUM(name) GPU_KERNEL_##name,
typedef enum gpu_kernel { GPU_NO_KERNEL, GPU_KERNELS(GPU_ENUM) } gpu_kernel_t;
#undef GPU_ENUM
#define GPU_ENUM(name) GPU_WAIT_##name,
typedef enum gpu_wait { GPU_NO_WAIT, GPU_WAITS(GPU_ENUM) } gpu_wait_t;
#undef GPU_ENUM
#define GPU_ENUM(name) GPU_BY_##name,
typedef enum gpu_way { GPU_NO_WAY, GPU_WAYS(GPU_ENUM) } gpu_way_t;
#undef GPU_ENUM

enum { GPU_PITCH = 256, GPU_ROWS = 4 };

typedef struct gpu_event *gpu_event_t;

/* Pointers amid others, as programs pass descriptors by value. */
typedef struct gpu_pair {
    int count;
    const void *first;
    short middle;
    const void *second;
} gpu_pair_t;

enum { GPU_PARTS = 7 }; /* 120 bytes: not yet a large struct (rmm/sys/diag.h) */

/* Many of them, nested. */
typedef struct gpu_parts {
    int count;
    struct {
        char kind;
        struct {
            const void *memory;
        } column;
    } parts[GPU_PARTS];
} gpu_parts_t;

bool gpu_is_there(void);

/* The name that a finding has for a call, a pattern of fnmatch(3); NULL: this GPU cannot make the
 * call. */
const char *gpu_call_name(gpu_call_t call);
void gpu_call(
    gpu_call_t call, void *block, void *other, size_t bytes, rmm_stream_t stream);

const char *gpu_kernel_name(gpu_kernel_t kernel);
void gpu_launch(
    gpu_kernel_t kernel, const void *first, const void *second, rmm_stream_t stream);
void gpu_launch_pair(const gpu_pair_t *pair, rmm_stream_t stream); /* kernel "mix" */
void gpu_launch_parts(
    const gpu_parts_t *parts, rmm_stream_t stream); /* kernel "gather" */
bool gpu_has_way(gpu_way_t way);
void gpu_launch_by(gpu_way_t way, const void *block, rmm_stream_t stream);
/* `bytes` bytes from `block` on are written by the kernel "poke". */
void gpu_poke(void *block, size_t bytes, rmm_stream_t stream);

bool gpu_has_wait(gpu_wait_t wait);
/* What `later` does from now on follows what `first` did. */
void gpu_wait(gpu_wait_t wait, rmm_stream_t first, rmm_stream_t later);

gpu_event_t gpu_event_create(void);
void gpu_event_destroy(gpu_event_t event);
void gpu_event_record(gpu_event_t event, rmm_stream_t stream);
void gpu_event_wait(rmm_stream_t stream, gpu_event_t event);
void gpu_synchronize(void);

/* Between the two the work on the stream is captured; it runs `launches` times on `on`. */
void gpu_capture_begin(rmm_stream_t stream);
void gpu_capture_end(rmm_stream_t stream, int launches, rmm_stream_t on);

typedef struct gpu_graph *gpu_graph_t;

/* The same, and the caller launches and destroys it. */
gpu_graph_t gpu_capture_keep(rmm_stream_t stream);
void gpu_graph_launch(gpu_graph_t graph, rmm_stream_t on);
void gpu_graph_destroy(gpu_graph_t graph);

/* What follows, only where this holds. */
bool gpu_is_cuda_13(void);

/* Of a part of the GPU's processors; it does not wait for the default stream. */
rmm_stream_t gpu_green_stream_create(void);

/* Instead of gpu_capture_keep(): the graph has what was captured as a part, or runs it on a
 * condition, which holds. */
gpu_graph_t gpu_capture_child(rmm_stream_t stream);
gpu_graph_t gpu_capture_condition(rmm_stream_t stream);
/* What was captured is one launch of "reduce"; from now on it is given `block`. */
gpu_graph_t gpu_capture_moved(rmm_stream_t stream, const void *block);
/* The graph gets the nodes of what was captured, which differs in addresses only. */
void gpu_capture_update(rmm_stream_t stream, gpu_graph_t graph);
/* A launch of "reduce" with `block` is captured into the body of a condition. */
gpu_graph_t gpu_capture_into_body(rmm_stream_t stream, const void *block);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TESTS_GPU_FAULTS_GPU_H */
