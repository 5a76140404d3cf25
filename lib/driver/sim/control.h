/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU for the tests of this tree, which have its objects in the program: librmm-sim
 * exports none of these but rmm_sim_driver(). As in <rmm/sim.h>, calls do not count for the fault
 * plan, an int is a cudaError_t value, and any thread may call.
 */
#ifndef RMM_DRIVER_SIM_CONTROL_H
#define RMM_DRIVER_SIM_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/export.h>
#include <rmm/sim.h>
#include <rmm/stream.h>

#include "driver/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entry of librmm-sim: rmm_sim_driver_fn. */
RMM_API const rmm_driver_t *rmm_sim_driver(
    const char *version, rmm_status_t *status_out, char *message, size_t message_bytes);

/* Draw a new order of work from here on. */
void rmm__sim_reseed(uint64_t seed);

/* A fault of the current plan has occurred. */
bool rmm__sim_fault_has_struck(void);

/* The text of the last violation, "" before the first; valid until the next. */
const char *rmm__sim_violation_text(void);

/* The events that the library created through its driver table and did not destroy. One that it
 * tried to destroy is not counted, whether or not that failed. */
uint64_t rmm__sim_library_events(void);

/* The device that this thread's calls go to. The simulated GPU is open. */
int rmm__sim_device_set(int device);
int rmm__sim_device_get(int *device_out);

/* Run all work of a stream, as cudaStreamSynchronize(). */
int rmm__sim_stream_synchronize(rmm_stream_t stream);

/* Copy or instantiate a graph, which is the same here. The copy has its own launches. */
int rmm__sim_graph_copy(rmm_sim_graph_t graph, rmm_sim_graph_t *copy_out);

/* Not the same for the whole range; not in a memory pool of the host. */
#define SIM_NOWHERE (-2)

/* The target of the last prefetch of a range, and its preferred location: a device, -1 for the
 * host, SIM_NOWHERE. */
int rmm__sim_prefetched_to(const void *ptr, size_t bytes);
int rmm__sim_preferred_at(const void *ptr, size_t bytes);
/* The NUMA node on which a memory pool of the host has this memory: 0 or 1, -1 for any,
 * SIM_NOWHERE. */
int rmm__sim_node_of(const void *ptr);

/* The bytes of address ranges that are reserved now for mapped memory, mapped or not. */
uint64_t rmm__sim_address_bytes(void);
/* The uses that the memory which is mapped there was made for: RMM_DRIVER_HANDLE_*,
 * RMM_DRIVER_RDMA. */
uint32_t rmm__sim_physical_flags(const void *ptr);

/* Asked by stream_key() in a program that compares the ids that the library remembers; NULL: none
 * does. Set before the first call. */
extern bool (*rmm__sim_is_known_wrongly)(
    rmm_stream_t handle, const rmm_stream_key_t *key);

#ifdef __cplusplus
}
#endif

#endif /* RMM_DRIVER_SIM_CONTROL_H */
