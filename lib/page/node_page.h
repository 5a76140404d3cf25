/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page about the node as it is now: devices with bars, programs, their resources, and the blocks
 * of pools. One file of HTML that needs nothing else: styles and pictures are in it, scripts are
 * not, and it forbids the browser to run any or to load anything.
 *
 * The owner calls in the order of the functions below, and says only what its reader may see.
 * Texts are those of other programs, and escaped here. A figure that is not known is
 * RMM_PAGE_UNKNOWN.
 *
 * Bounds: a page of RMM_PAGE_MAPS_BYTES_MAX gets no more pictures of blocks, one of
 * RMM_PAGE_BYTES_MAX no more programs, and it says how many it leaves out. So it exceeds the second
 * bound by one program at most.
 */
#ifndef RMM_PAGE_NODE_PAGE_H
#define RMM_PAGE_NODE_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "page/map_svg.h"
#include "page/sink.h"

#define RMM_PAGE_UNKNOWN UINT64_MAX
#define RMM_PAGE_MAPS_BYTES_MAX ((uint64_t)4 << 20)
#define RMM_PAGE_BYTES_MAX ((uint64_t)8 << 20)
#define RMM_PAGE_MAP_LINES 32u
#define RMM_PAGE_OPEN_PROGRAMS 4u /* whose resources are shown without a click */

typedef struct rmm_page {
    rmm_sink_t *sink;
    uint32_t programs, left_out, maps_left_out;
} rmm_page_t;

typedef struct rmm_page_device {
    const char *name, *model; /* model: "" is not known */
    uint64_t current_bytes, reserved_bytes, cached_bytes, others_bytes, free_bytes;
    uint64_t capacity_bytes;
} rmm_page_device_t;

typedef struct rmm_page_program {
    const char *pid, *user, *command, *state; /* state: "" where it is live */
    const char *owner; /* a job, pod, container or unit; "": unknown */
} rmm_page_program_t;

/* A program on a device, or a resource of it. */
typedef struct rmm_page_figures {
    uint64_t current_bytes, reserved_bytes, padding_bytes, peak_bytes;
    uint64_t current_count, oom_count;
} rmm_page_figures_t;

typedef struct rmm_page_resource {
    const char *name, *type, *device; /* name: "2.pool" */
    uint32_t upstream_id;             /* 0: none */
    rmm_page_figures_t figures;
    uint64_t free_bytes, largest_free_bytes;
} rmm_page_resource_t;

/* title: of this machine, or of a test. */
void rmm__page_begin(rmm_page_t *page, rmm_sink_t *sink, const char *title, time_t now);
/* A line about what the page does not show. */
void rmm__page_remark(rmm_page_t *page, uint64_t count, const char *what);
void rmm__page_begin_devices(rmm_page_t *page);
void rmm__page_device(rmm_page_t *page, const rmm_page_device_t *device);
void rmm__page_begin_programs(rmm_page_t *page);

/* False: the page is full, and the program is counted; nothing may follow for it. */
bool rmm__page_begin_program(rmm_page_t *page, const rmm_page_program_t *program);
void rmm__page_use(
    rmm_page_t *page, const char *device, const rmm_page_figures_t *figures);
void rmm__page_begin_resources(rmm_page_t *page);
void rmm__page_resource(rmm_page_t *page, const rmm_page_resource_t *resource);
void rmm__page_end_resources(rmm_page_t *page);
/* The blocks of a pool; age_ns: of the report. After the resources. */
void rmm__page_map(
    rmm_page_t *page, const char *resource, const rmm_map_t *map, uint64_t age_ns);
void rmm__page_end_program(rmm_page_t *page);

void rmm__page_end(rmm_page_t *page);

#endif /* RMM_PAGE_NODE_PAGE_H */
