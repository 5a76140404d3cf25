/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the simulated GPU.
 *
 * The layers, the lowest first. A file calls only files that come before it in this list.
 *
 *   extent.c, error.c            free ranges; names of errors
 *   state.c                      the lock, threads, settings, devices
 *   notes.c                      where managed memory was sent
 *   observe.c                    events for the diagnosis, the injected library
 *   violation.c                  what a correct program never does
 *   fault.c; env.c               the fault plan; RMM_SIM_* variables
 *   handles.c                    handles that may be used after their end without harm
 *   memory.c                     device memory, poison
 *   shared_file.c                memory that processes share
 *   work.c                       queues, and which runs when
 *   call.c                       how a call begins and ends
 *   stream_table.c               streams by their handles
 *   graph.c; capture.c           graphs; capturing streams, and what it forbids
 *   host.c, virtual.c            pinned memory; reserved addresses, physical memory, mapping
 *   mempool.c; async.c           memory pools; their memory in stream order
 *   mempool_share.c              the same between processes
 *   alloc.c; managed.c           allocations and frees; managed memory
 *   reach.c; launch.c            which device may use what; queueing kernels, copies and fills
 *   graph_launch.c, stream.c     launching graphs; streams and events: the calls
 *   sim.c                        the table, opening
 *   api.c, control.c             <rmm/sim.h>; what tests of this tree ask
 *
 * Locking: rmm__sim_lock protects everything but what is marked as atomic or as of one
 * thread. Functions that need it end in _locked or take an object that it protects.
 * Work runs with the lock held: kernels are short and call nothing of this library,
 * and one lock makes their order that of the seed. Observers are called without it.
 *
 * Host memory comes from malloc, not from core/host_memory.h: this stands for the GPU's
 * driver, and the fault plan of the library's memory must not count its requests.
 */
#ifndef RMM_DRIVER_SIM_INTERNAL_H
#define RMM_DRIVER_SIM_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rmm/sim.h>

#include "core/mutex.h"
#include "driver/sim/control.h"
#include "driver/table.h"

#define SIM_DEVICE_MAX 32
#define SIM_HOST SIM_DEVICE_MAX /* of a block: memory pools of the host */
#define SIM_NODES 2 /* NUMA nodes; device 0 is at the first, 1 at the second, ... */
#define SIM_PARAM_BYTES_MAX 4096 /* of a kernel, as CUDA before 12.1 */

/* More values of cudaError_t, that only the simulated GPU returns. */
enum {
    SIM_ERROR_CAPTURE_MERGE = 902,
    SIM_ERROR_CAPTURE_UNMATCHED = 903,
    SIM_ERROR_CAPTURE_UNJOINED = 904,
    SIM_ERROR_CAPTURE_ISOLATION = 905,
    SIM_ERROR_CAPTURE_IMPLICIT = RMM_DRIVER_CAPTURE_IMPLICIT,
    SIM_ERROR_CAPTURED_EVENT = 907,
    SIM_ERROR_CAPTURE_WRONG_THREAD = 908,
    SIM_ERROR_OPERATING_SYSTEM = 304,
    SIM_ERROR_NOT_PERMITTED = 800, /* a call from inside a kernel */
    SIM_ERROR_ILLEGAL_STATE = 401,
    SIM_ERROR_UNKNOWN = 999
};

extern rmm_mutex_t rmm__sim_lock;

/* The simulator is open in this process, or was before it was forked. */
bool rmm__sim_is_open(void);
/* Open it unless it is. NULL with a status, and the last error of librmm-sim's own copy of
 * core/error.h. */
const rmm_driver_t *rmm__sim_open(rmm_status_t *status_out);

/* ---- env.c ---- */

typedef enum sim_on_violation {
    SIM_VIOLATION_PRINT,
    SIM_VIOLATION_EXIT,
    SIM_VIOLATION_ABORT
} sim_on_violation_t;

typedef struct sim_config {
    int device_count;
    uint64_t memory_bytes; /* of each device */
    uint64_t seed;
    uint64_t attributes_off; /* a bit for each of SIM_ABILITY_MAP, in order */
    sim_on_violation_t on_violation;
} sim_config_t;

/* Abilities that RMM_SIM_ATTRIBUTES can switch off: attributes, and some that CUDA has none for. */
#define SIM_ABILITY_MAP(X)                                                             \
    RMM_DRIVER_ATTRIBUTE_MAP(X)                                                        \
    RMM_DRIVER_HOST_ATTRIBUTE_MAP(X)                                                   \
    X(managed_alloc, SIM_MANAGED_ALLOC, none, -1) /* 0: as a vGPU that promises it */  \
    X(managed_pools, SIM_MANAGED_POOLS, none, -2) /* 0: as CUDA before 13 */           \
    X(peers, SIM_PEERS, none, -3) /* 0: no device can access another's memory */

enum { SIM_MANAGED_ALLOC = -1, SIM_MANAGED_POOLS = -2, SIM_PEERS = -3 };

/* Read RMM_SIM_*, and set the fault plan. Sets the last error on failure. */
rmm_status_t rmm__sim_env_read(sim_config_t *config);

/* Decimal digits and nothing else. */
bool rmm__sim_parse_number(const char *text, uint64_t *number_out);

/* ---- fault.c ---- */

/* Members of rmm_driver_t that can fail. */
#define SIM_FUNCTION_MAP(X)                                                            \
    X(device_count)                                                                    \
    X(device_get)                                                                      \
    X(device_set)                                                                      \
    X(device_info)                                                                     \
    X(device_attribute)                                                                \
    X(device_active)                                                                   \
    X(device_synchronize)                                                              \
    X(memory_info)                                                                     \
    X(mem_alloc)                                                                       \
    X(mem_free)                                                                        \
    X(managed_alloc)                                                                   \
    X(host_alloc)                                                                      \
    X(host_free)                                                                       \
    X(memcpy_async)                                                                    \
    X(memset_async)                                                                    \
    X(mem_prefer)                                                                      \
    X(mem_prefetch)                                                                    \
    X(mempool_create)                                                                  \
    X(mempool_destroy)                                                                 \
    X(mempool_managed)                                                                 \
    X(mempool_get_threshold)                                                           \
    X(mempool_set_threshold)                                                           \
    X(mempool_figures)                                                                 \
    X(mempool_trim)                                                                    \
    X(mempool_alloc)                                                                   \
    X(mempool_free)                                                                    \
    X(mempool_access)                                                                  \
    X(mempool_export)                                                                  \
    X(mempool_export_pointer)                                                          \
    X(mempool_import)                                                                  \
    X(mempool_import_pointer)                                                          \
    X(virtual_granularity)                                                             \
    X(address_reserve)                                                                 \
    X(address_free)                                                                    \
    X(physical_create)                                                                 \
    X(physical_export)                                                                 \
    X(physical_import)                                                                 \
    X(physical_release)                                                                \
    X(address_map)                                                                     \
    X(address_unmap)                                                                   \
    X(address_access)                                                                  \
    X(peer_can_access)                                                                 \
    X(stream_create)                                                                   \
    X(stream_destroy)                                                                  \
    X(stream_flags)                                                                    \
    X(stream_synchronize)                                                              \
    X(stream_wait_event)                                                               \
    X(stream_key)                                                                      \
    X(legacy_is_open)                                                                  \
    X(event_create)                                                                    \
    X(event_destroy)                                                                   \
    X(event_record)                                                                    \
    X(event_query)                                                                     \
    X(event_synchronize)                                                               \
    X(capture_mode_exchange)                                                           \
    X(capture_watch)

typedef enum sim_function {
#define X(name) SIM_FN_##name,
    SIM_FUNCTION_MAP(X)
#undef X
        SIM_FN_COUNT
} sim_function_t;

extern _Atomic(bool) rmm__sim_fault_armed;

/* Replace the plan; false if it does not parse, then the old one stays, and *wrong_out is where
 * in `plan` the fault stands that is none. */
bool rmm__sim_fault_set(const char *plan, const char **wrong_out);
int rmm__sim_fault_slow(sim_function_t function);
void rmm__sim_fault_join_forks(void);

/* The error that the plan has for this call, mostly 0. */
static inline int rmm__sim_fault(sim_function_t function)
{
    if (!atomic_load_explicit(&rmm__sim_fault_armed, memory_order_relaxed)) {
        return RMM_DRIVER_OK;
    }
    return rmm__sim_fault_slow(function);
}

/* ---- handles.c ---- */

#define SIM_CHUNK_ENTRIES 256u
#define SIM_CHUNKS 1024u

/* Entries are never freed, so that a stale handle can be looked up at any time. */
typedef struct sim_entry {
    void *object; /* NULL: no live handle */
    struct sim_entry *next_free;
    uint32_t index;
    bool was_used; /* some handle had this value */
    /* Streams: read without the lock by stream_key. */
    _Atomic(uint64_t) id; /* 0: no live handle */
    _Atomic(uint64_t) capture_id;
} sim_entry_t;

typedef struct sim_table {
    const char *what; /* in messages: "stream" */
    uintptr_t tag;    /* upper half of every handle */
    uint32_t count;
    sim_entry_t *free_list; /* last destroyed first: recycled handles show ABA bugs */
    _Atomic(sim_entry_t *) chunks[SIM_CHUNKS];
} sim_table_t;

/* The entry of a handle, live or not; NULL if no such handle ever was. No lock. */
sim_entry_t *rmm__sim_entry(const sim_table_t *table, const void *handle);
/* NULL without host memory. */
sim_entry_t *rmm__sim_entry_take_locked(sim_table_t *table, void *object);
void rmm__sim_entry_give_locked(sim_table_t *table, sim_entry_t *entry);
/* The handle of an entry; handles name nothing that can be dereferenced. */
void *rmm__sim_entry_handle(const sim_table_t *table, const sim_entry_t *entry);
/* The live object of a handle; NULL with the error: the call is a violation. */
void *rmm__sim_find_locked(
    const sim_table_t *table, const void *handle, const char *call, int *error);
/* rmm__sim_enter(), then the object; NULL with the error, and not entered. */
void *rmm__sim_enter_object(
    const sim_table_t *table, const void *handle, const char *call, int *error);

/* ---- threads ---- */

typedef struct sim_thread {
    uint64_t id; /* 0 until queried */
    int device;
    int capture_mode;
    bool in_kernel;
    bool has_streams; /* to end at the thread's exit */
    sim_entry_t *streams[SIM_DEVICE_MAX];
} sim_thread_t;

extern _Thread_local sim_thread_t rmm__sim_thread;

uint64_t rmm__sim_thread_id_locked(void);

/* Take the lock for one driver call. Fails inside a kernel, where it is held. */
int rmm__sim_enter(const char *call);
/* Perhaps run some work, as the seed decides, and release the lock. */
void rmm__sim_leave(void);

int rmm__sim_device_count(void);
uint64_t rmm__sim_device_bytes(void);
int rmm__sim_device_choose(int device);
bool rmm__sim_device_is_active(int device);
void rmm__sim_configure(const sim_config_t *chosen);
/* One of SIM_ABILITY_MAP: 0 where RMM_SIM_ATTRIBUTES switched it off, else 1. */
int rmm__sim_attribute(int ability);

/* Every device of the set exists and can access the memory of `device`. */
bool rmm__sim_are_peers(uint32_t devices, int device);

/* ---- violation.c ---- */

void rmm__sim_violations_open(sim_on_violation_t action);
/* A forked child forgets the violations that its parent found. */
void rmm__sim_violations_in_child(void);

__attribute__((format(printf, 1, 2))) void
rmm__sim_violation_locked(const char *format, ...);
uint64_t rmm__sim_violation_count(void);

/* ---- work.c ---- */

typedef enum sim_task_kind {
    SIM_TASK_KERNEL,
    SIM_TASK_COPY,
    SIM_TASK_SET,
    SIM_TASK_CALL /* of the simulator itself */
} sim_task_kind_t;

/* An operation with its parameters; shared by a graph and its launches. */
typedef struct sim_task {
    uint32_t references;
    sim_task_kind_t kind;
    rmm_sim_kernel_fn kernel;
    const void **params; /* into the same allocation */
    void *dst;
    const void *src; /* a kernel's: its copied parameters */
    bool
        is_direct; /* a copy that the stream's device makes itself, not through the host */
    int value;
    size_t bytes;
    /* NULL: always. False, and a violation: a real GPU would refuse it */
    bool (*may_run)(const struct sim_task *task, int device);
    void (*run)(void *object);
    void (*drop)(void *object); /* the task is gone */
    void *object;
} sim_task_t;

typedef struct sim_stream sim_stream_t;
typedef struct sim_capture sim_capture_t;
typedef struct sim_graph sim_graph_t;

/* A set of nodes of one graph. */
typedef struct sim_nodes {
    uint32_t *ids;
    uint32_t count, capacity;
} sim_nodes_t;

/* One piece of queued work. It stays after it has run while an event or a wait refers
 * to it. */
typedef struct sim_item {
    struct sim_item *next;          /* in its stream */
    struct sim_item *older, *newer; /* of all queued work */
    sim_stream_t *stream;           /* NULL: has run */
    sim_task_t *task;               /* owned reference; NULL: a record or a wait */
    struct sim_item *awaits;        /* owned reference; a wait for this record */
    uint64_t sequence;
    uint32_t references;
} sim_item_t;

#define SIM_IDLE SIZE_MAX

struct sim_stream {
    uint64_t id;
    uint64_t place; /* of its handle: the same again when a program repeats itself */
    int device;
    bool is_legacy;
    bool blocking;  /* in order with the legacy stream */
    bool destroyed; /* no handle any more; goes when its work is done */
    sim_item_t *head, *tail;
    size_t active_index;    /* among those with work; SIM_IDLE */
    sim_entry_t *entry;     /* NULL: legacy or destroyed */
    sim_capture_t *capture; /* NULL: not capturing */
    sim_stream_t *next_in_capture;
    sim_nodes_t tails; /* what the next node of the capture comes after */
};

typedef struct sim_event {
    int device;
    sim_item_t *record;  /* the latest; owned reference, NULL: none outside a capture */
    uint64_t capture_id; /* 0: not last recorded in a capture */
    sim_nodes_t tails;   /* of the stream, then */
} sim_event_t;

sim_task_t *rmm__sim_task_kernel(
    rmm_sim_kernel_fn kernel, const void *const *params, const size_t *param_bytes,
    size_t param_count);
sim_task_t *rmm__sim_task_copy(void *dst, const void *src, size_t bytes);
sim_task_t *rmm__sim_task_set(void *dst, int value, size_t bytes);
/* Both are called with the lock held; drop() also if the task never runs. */
sim_task_t *
rmm__sim_task_call(void (*run)(void *object), void (*drop)(void *object), void *object);
void rmm__sim_task_release_locked(sim_task_t *task);

/* Queue work at the end of a stream. `task` and `awaits` are borrowed; both NULL: a
 * record. *item_out, if not NULL, is a reference of the caller's. */
int rmm__sim_queue_locked(
    sim_stream_t *stream, sim_task_t *task, sim_item_t *awaits, sim_item_t **item_out);
void rmm__sim_item_release_locked(sim_item_t *item);

/* A copy or fill that has not run touches the range. */
bool rmm__sim_queue_uses_locked(const void *begin, uint64_t bytes);

static inline bool rmm__sim_item_is_done(const sim_item_t *item)
{
    return item->stream == NULL;
}

/* Run what the item, the stream, the device needs, and what the seed adds. */
void rmm__sim_finish_item_locked(sim_item_t *item);
void rmm__sim_finish_stream_locked(sim_stream_t *stream);
void rmm__sim_finish_device_locked(int device);
/* One step towards it, or none, as the seed decides. */
void rmm__sim_nudge_locked(sim_item_t *item);
/* Perhaps run something, as the seed decides. */
void rmm__sim_pump_locked(void);
void rmm__sim_reseed_locked(uint64_t seed);
void rmm__sim_run_promptly_locked(void);
/* From 0 to below limit, of the seed's sequence. */
uint64_t rmm__sim_draw_locked(uint64_t limit);

/* The legacy default stream of a device. */
sim_stream_t *rmm__sim_legacy(int device);
void rmm__sim_legacy_open(void);
/* A destroyed stream whose work is done. */
void rmm__sim_stream_release_locked(sim_stream_t *stream);

/* ---- stream_table.c ---- */

/* A stream of the current device; NULL without host memory. */
sim_stream_t *rmm__sim_stream_create_locked(bool blocking, rmm_stream_t *stream_out);
/* Its handle is free at once, the stream goes when its work is done. */
void rmm__sim_stream_end_locked(sim_stream_t *stream);
int rmm__sim_stream_key(rmm_stream_t stream, rmm_stream_key_t *key);
/* 0, or an errno. */
int rmm__sim_stream_table_open(void (*at_thread_end)(void *thread));
/* The stream of a handle, NULL with *error set. */
sim_stream_t *
rmm__sim_stream_find_locked(rmm_stream_t handle, const char *call, int *error);
/* rmm__sim_enter(), then the stream; NULL with the error, and not entered. */
sim_stream_t *rmm__sim_enter_stream(rmm_stream_t handle, const char *call, int *error);

/* ---- stream.c ---- */

/* 0, or an errno. */
int rmm__sim_streams_open(void);

int rmm__sim_stream_create(uint32_t flags, rmm_stream_t *stream_out);
int rmm__sim_stream_destroy(rmm_stream_t stream);
int rmm__sim_stream_flags(rmm_stream_t stream, uint32_t *flags);
int rmm__sim_stream_wait_event(rmm_stream_t stream, rmm_driver_event_t event);
int rmm__sim_event_create(rmm_driver_event_t *event_out);
int rmm__sim_event_destroy(rmm_driver_event_t event);
int rmm__sim_event_record(rmm_driver_event_t event, rmm_stream_t stream);
int rmm__sim_event_query(rmm_driver_event_t event);
int rmm__sim_event_synchronize(rmm_driver_event_t event);
int rmm__sim_device_synchronize(void);

/* ---- graph.c ---- */

sim_graph_t *rmm__sim_graph_create(void);
void rmm__sim_graph_free_locked(sim_graph_t *graph);
/* Append a task behind `tails`, and make it the only one of them. */
int rmm__sim_graph_add_locked(sim_graph_t *graph, sim_task_t *task, sim_nodes_t *tails);
/* True if every node comes before one of these, or is one. */
bool rmm__sim_graph_ends_in(const sim_graph_t *graph, const sim_nodes_t *tails);
/* Give a graph its handle. */
int rmm__sim_graph_publish_locked(sim_graph_t *graph, rmm_sim_graph_t *graph_out);
/* Keep a task for as long as the graph and its launches are; it does nothing but end. */
bool rmm__sim_graph_keep_locked(sim_graph_t *graph, sim_task_t *task);

int rmm__sim_graph_launch(rmm_sim_graph_t graph, rmm_stream_t stream);
int rmm__sim_graph_destroy(rmm_sim_graph_t graph);

/* False without host memory. */
bool rmm__sim_nodes_copy(sim_nodes_t *into, const sim_nodes_t *from);
bool rmm__sim_nodes_merge(sim_nodes_t *into, const sim_nodes_t *from);
void rmm__sim_nodes_clear(sim_nodes_t *nodes);

/* ---- capture.c ---- */

int rmm__sim_begin_capture(rmm_stream_t stream, int mode);
int rmm__sim_end_capture(rmm_stream_t stream, rmm_sim_graph_t *graph_out);
int rmm__sim_capture_mode_exchange(int *mode);
int rmm__sim_legacy_is_open(int *is_open);
int rmm__sim_capture_watch(
    rmm_stream_t stream, void (*gone)(void *context), void *context);

/* The error of an unsafe call, which ruins the captures that forbid it; mostly 0. */
int rmm__sim_capture_forbids_locked(void);

/* rmm__sim_enter() of an unsafe call: not entered if that fails. */
int rmm__sim_enter_unsafe(const char *call);
/* The same for waiting on the host: for a stream, an event (or asking it), a device. */
int rmm__sim_capture_check_wait_locked(const sim_stream_t *stream);
int rmm__sim_capture_check_event_locked(const sim_event_t *event);
int rmm__sim_capture_check_device_locked(int device);
/* Some stream captures. */
bool rmm__sim_captures_locked(void);
/* 0: the stream does not capture. */
uint64_t rmm__sim_capture_id_locked(const sim_stream_t *stream);
/* The graph that the stream captures into; NULL: none. */
sim_graph_t *rmm__sim_capture_graph_locked(const sim_stream_t *stream);
/* The stream is being destroyed. */
void rmm__sim_capture_forget_locked(sim_stream_t *stream);

/* Queue a task, a record or a wait, or put it into the graph of a capture. */
int rmm__sim_submit_locked(sim_stream_t *stream, sim_task_t *task, bool *capturing_out);
int rmm__sim_record_locked(
    sim_stream_t *stream, sim_event_t *event, bool *capturing_out);
int rmm__sim_wait_locked(sim_stream_t *stream, sim_event_t *event, bool *capturing_out);

/* ---- launch.c ---- */

int rmm__sim_launch(
    const char *name, rmm_sim_kernel_fn fn, rmm_stream_t stream,
    const void *const *params, const size_t *param_bytes, size_t param_count);
int rmm__sim_memcpy_async(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream);
/* The same as a program's cudaMemcpyAsync(): INVALID_VALUE, and a violation, where the stream's
 * device has no access to mapped memory or that of a pool. */
int rmm__sim_memcpy_direct(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream);
int rmm__sim_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream);
/* As rmm_driver_t.queue(): without an event for the observer. */
int rmm__sim_queue_work(
    int device, rmm_stream_t stream, rmm_sim_kernel_fn fn, const void *parameter,
    size_t bytes);

/* ---- shared_file.c ---- */

/* All zero: none. */
typedef struct sim_file {
    int fd;
    dev_t device;
    ino_t inode;
    uint64_t bytes;
} sim_file_t;

/* Of zeros, for memory of this device; `what` tells two kinds apart. */
int rmm__sim_file_create(
    const char *what, int device, uint64_t bytes, sim_file_t *file_out);
void rmm__sim_file_close(sim_file_t *file);
bool rmm__sim_file_is_open(const sim_file_t *file);
/* A handle for another process; and the file of such a handle, with a descriptor of its own. */
int rmm__sim_file_give(const sim_file_t *file, uint32_t type, rmm_driver_handle_t *out);
int rmm__sim_file_take(
    const rmm_driver_handle_t *handle, const char *what, sim_file_t *file_out,
    int *device_out);
/* Map bytes of it at this address, in place of what is there. */
bool rmm__sim_file_map(const sim_file_t *file, char *at, uint64_t bytes, uint64_t from);
bool rmm__sim_file_fill(
    const sim_file_t *file, const char *from, uint64_t bytes, uint64_t to);

/* ---- memory.c ---- */

typedef enum sim_use {
    SIM_USE_PLAIN,
    SIM_USE_MANAGED,
    SIM_USE_POOL,         /* a segment of a memory pool */
    SIM_USE_MANAGED_POOL, /* of one of managed memory */
    SIM_USE_GRAPH         /* allocated in a capture */
} sim_use_t;

typedef struct sim_block {
    int device; /* or SIM_HOST */
    sim_use_t use;
    char *begin;
    uint64_t bytes;
} sim_block_t;

/* The allocation that holds this address of any device, or of a pool of the host's memory; false if
 * none does. */
bool rmm__sim_memory_find_locked(const void *ptr, sim_block_t *out);
/* An address of a device, allocated or not. */
bool rmm__sim_memory_is_device_locked(const void *ptr);
/* The device whose range has this address, or SIM_HOST; -1: none. */
int rmm__sim_memory_device_locked(const void *ptr);

uint64_t rmm__sim_memory_allocated_locked(int device);

/* device: or SIM_HOST, which has as much for pools as a device has. */
int rmm__sim_memory_take_locked(int device, uint64_t bytes, sim_use_t use, char **out);
/* Memory without an address; false if the device has not that much left. */
bool rmm__sim_memory_charge_locked(int device, uint64_t bytes);
void rmm__sim_memory_uncharge_locked(int device, uint64_t bytes);
/* False if no allocation begins there. */
bool rmm__sim_memory_end_locked(int device, char *ptr);
/* Give back what rmm__sim_memory_take_locked() took. */
void rmm__sim_memory_give_locked(char *begin);
/* The range lies in a file from now until it is given back; false: it could not be mapped. */
bool rmm__sim_memory_share_locked(const sim_file_t *file, char *begin, uint64_t bytes);
/* RMM_SIM_POISON_ALLOC or _FREE. */
void rmm__sim_poison_locked(char *begin, uint64_t bytes, int value);

/* ---- mempool.c ---- */

int rmm__sim_mempool_create(
    uint32_t handle_types, int node, rmm_driver_mempool_t *pool_out);
int rmm__sim_mempool_destroy(rmm_driver_mempool_t pool);
int rmm__sim_mempool_managed(rmm_driver_mempool_t *pool_out);
int rmm__sim_mempool_get_threshold(rmm_driver_mempool_t pool, uint64_t *bytes);
int rmm__sim_mempool_set_threshold(rmm_driver_mempool_t pool, uint64_t bytes);
int rmm__sim_mempool_figures(
    rmm_driver_mempool_t pool, rmm_driver_mempool_figures_t *figures);
int rmm__sim_mempool_trim(rmm_driver_mempool_t pool, size_t keep_bytes);
int rmm__sim_mempool_access(rmm_driver_mempool_t pool, uint32_t devices);
/* The devices that may use memory of a pool: a segment, by its beginning. */
uint32_t rmm__sim_mempool_access_locked(const char *begin);
/* Where the memory of that pool is: RMM_DRIVER_ON_DEVICE, ... */
int rmm__sim_mempool_node_locked(const char *begin);
/* The program has waited for work of the device: pools keep to their thresholds. */
void rmm__sim_mempool_settle_locked(int device);

/* ---- mempool_share.c ---- */

int rmm__sim_mempool_export(
    rmm_driver_mempool_t pool, uint32_t type, rmm_driver_handle_t *handle_out);
int rmm__sim_mempool_export_pointer(
    const void *ptr, unsigned char data_out[RMM_DRIVER_HANDLE_BYTES]);
int rmm__sim_mempool_import(
    const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool_out);
int rmm__sim_mempool_import_pointer(
    rmm_driver_mempool_t pool, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
    void **ptr_out);
/* A block of an imported pool goes; false: it is none. */
bool rmm__sim_mempool_end_import_locked(const void *ptr);

/* ---- async.c ---- */

int rmm__sim_mempool_alloc(
    rmm_driver_mempool_t pool, void **ptr_out, size_t bytes, rmm_stream_t stream);
int rmm__sim_mempool_free(void *ptr, rmm_stream_t stream);
/* Behind all work of the device, whose memory this is. */
int rmm__sim_async_free_now_locked(void *ptr, int device);
/* The devices that may use memory of a graph, by its beginning. */
uint32_t rmm__sim_async_access_locked(const char *begin);

/* ---- virtual.c ---- */

int rmm__sim_virtual_granularity(size_t *bytes);
int rmm__sim_address_reserve(void **ptr_out, size_t bytes);
int rmm__sim_address_free(void *ptr, size_t bytes);
int rmm__sim_physical_create(
    size_t bytes, uint32_t flags, rmm_driver_physical_t *physical_out);
int rmm__sim_physical_export(
    rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle_out);
int rmm__sim_physical_import(
    const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical_out);
int rmm__sim_physical_release(rmm_driver_physical_t physical);
int rmm__sim_address_map(void *ptr, size_t bytes, rmm_driver_physical_t physical);
int rmm__sim_address_unmap(void *ptr, size_t bytes);
int rmm__sim_address_access(void *ptr, size_t bytes, uint32_t devices);
uint64_t rmm__sim_address_bytes_locked(void);
/* The flags of the memory that is mapped there; 0: none is. */
uint32_t rmm__sim_physical_flags_locked(const void *ptr);
/* An address of a reservation. */
bool rmm__sim_virtual_holds_locked(const void *ptr);
/* May work of the device touch this? A violation if not; true outside reservations. */
bool rmm__sim_virtual_allows_locked(const void *ptr, size_t bytes, int device);
/* As rmm__sim_reaches_locked(), for what is mapped. */
bool rmm__sim_virtual_reaches_locked(const char *what, const void *ptr, int device);

/* ---- reach.c ---- */

#define SIM_ANY_DEVICE (-1) /* who makes a copy is no matter */

/* May `what` of this device, "a kernel", be given the address? A violation if it is in memory that
 * only other devices may use; true for any other address. */
bool rmm__sim_reaches_locked(const char *what, const void *ptr, int device);
/* sim_task_t.may_run of all that a program queues. */
bool rmm__sim_task_may_run(const sim_task_t *task, int device);

/* ---- alloc.c ---- */

int rmm__sim_mem_alloc(void **ptr_out, size_t bytes);
int rmm__sim_mem_free(void *ptr);
int rmm__sim_memory_info(uint64_t *free_bytes, uint64_t *total_bytes);
/* An allocation on the current device, with the checks of mem_alloc. */
int rmm__sim_memory_take(const char *call, void **ptr_out, size_t bytes, sim_use_t use);

/* ---- managed.c ---- */

int rmm__sim_managed_alloc(void **ptr_out, size_t bytes);
int rmm__sim_mem_prefer(void *ptr, size_t bytes, int device);
int rmm__sim_mem_prefetch(
    const void *ptr, size_t bytes, int device, rmm_stream_t stream);

/* ---- notes.c ---- */

/* 0, or MEMORY_ALLOCATION. */
int rmm__sim_note_prefetched_locked(const void *ptr, size_t bytes, int device);
int rmm__sim_note_preferred_locked(const void *ptr, size_t bytes, int device);
/* The range is no managed memory any more. */
void rmm__sim_managed_forget_locked(const void *ptr, uint64_t bytes);
int rmm__sim_prefetched_to_locked(const void *ptr, size_t bytes);
int rmm__sim_preferred_at_locked(const void *ptr, size_t bytes);

/* ---- host.c ---- */

int rmm__sim_host_alloc(void **ptr_out, size_t bytes);
int rmm__sim_host_free(void *ptr);

/* ---- extent.c ---- */

typedef struct sim_extent sim_extent_t;

/* Which parts of [0, bytes) are free. */
typedef struct sim_space {
    sim_extent_t *free, *used;
    uint64_t random; /* balances the trees; any value */
} sim_space_t;

/* False without host memory. */
bool rmm__sim_space_init(sim_space_t *space, uint64_t bytes);
/* Nothing of it is used. */
void rmm__sim_space_fini(sim_space_t *space);
/* The lowest free [offset, offset + bytes) at a multiple of align. */
bool rmm__sim_space_take(
    sim_space_t *space, uint64_t bytes, uint64_t align, int use, uint64_t *offset_out);
typedef struct sim_found {
    uint64_t offset, bytes;
    int use;
} sim_found_t;

/* Find the used extent that holds the offset; false if it is free. */
bool rmm__sim_space_find(const sim_space_t *space, uint64_t offset, sim_found_t *out);
/* The length of what begins at offset, now free; 0 if nothing that is used does. */
uint64_t rmm__sim_space_give(sim_space_t *space, uint64_t offset);

/* ---- observe.c ---- */

typedef struct sim_observation {
    rmm_diag_event_kind_t kind;
    int device;
    rmm_stream_t stream;
    rmm_sim_kernel_fn kernel;
    const char *name;
    const uint64_t *words;
    size_t word_count;
    size_t stale_words; /* the last ones: of large structs */
    uint64_t bytes;
    bool capturing;
    bool before;    /* the call: it is about to be made */
    uint64_t graph; /* that it is recorded into; 0: none */
} sim_observation_t;

extern _Atomic(rmm_diag_event_fn) rmm__sim_observer;

void rmm__sim_inject(void);
void rmm__sim_observe(rmm_diag_event_fn fn, void *context);
void rmm__sim_observe_slow(const sim_observation_t *observation);

/* As CUPTI does when a copy, fill or prefetch begins: what it was given, right or wrong. */
void rmm__sim_tell_before(const sim_observation_t *observation);

/* Report an event in the life of a graph; `of`: as in rmm/sys/diag.h. */
void rmm__sim_tell_graph(rmm_diag_event_kind_t kind, uint64_t graph, uint64_t of);

/* The graph that is being captured, for an observer; 0: none is. No handle has that bit. */
static inline uint64_t rmm__sim_captured_graph(uint64_t capture_id)
{
    return capture_id != 0 ? capture_id | (uint64_t)1 << 63 : 0;
}

static inline bool rmm__sim_is_observed(void)
{
    return atomic_load_explicit(&rmm__sim_observer, memory_order_relaxed) != NULL;
}

/* Tell the observer of a call, without the lock. */
static inline void rmm__sim_tell(const sim_observation_t *observation)
{
    if (rmm__sim_is_observed()) {
        rmm__sim_observe_slow(observation);
    }
}

/* ---- error.c ---- */

const char *rmm__sim_error_name(int error);
const char *rmm__sim_error_text(int error);

#endif /* RMM_DRIVER_SIM_INTERNAL_H */
