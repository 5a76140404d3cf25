/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page about the node: devices, users and jobs, programs with their resources and the blocks of
 * pools, and refused allocations. One file of HTML that needs nothing else.
 *
 * The owner calls in the order of the functions below, and passes only what its reader may see.
 * Texts are those of other programs, and escaped here. A figure that is not known is
 * RMM_PAGE_UNKNOWN.
 *
 * Scripts. A page that is served anew at each read (is_live) has one script, page.js, which reads
 * the page again and keeps which rows are open; a meta refresh would close them. The page's
 * Content-Security-Policy names that script and the style sheet by their SHA-256, so a browser
 * runs no other script, even if a text of a program were not escaped, and loads nothing but the
 * page itself. Other pages have no script.
 *
 * Bounds: a page of RMM_PAGE_MAPS_BYTES_MAX gets no more pictures of blocks, one of
 * RMM_PAGE_BYTES_MAX no more programs, and it says how many it leaves out. So it exceeds the second
 * bound by one program and the refusals at most.
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

typedef struct rmm_page {
    rmm_sink_t *sink;
    bool is_live;
    uint32_t history_seconds; /* that its histories cover; 0: it has none */
    uint32_t programs, left_out, maps_left_out;
} rmm_page_t;

/* Samples of the last time, the oldest first; one below 0 is missing. The first series is at the
 * bottom of the picture. */
#define RMM_PAGE_SERIES_MAX 3u
typedef struct rmm_page_history {
    struct {
        const char *name; /* a class of cells.h */
        const float *samples;
    } series[RMM_PAGE_SERIES_MAX];
    uint32_t series_count;
    uint32_t count, room; /* room: of all the time that the picture shows */
    uint32_t step_ms;
} rmm_page_history_t;

typedef struct rmm_page_summary {
    uint32_t gpus, programs, users;
    uint64_t current_bytes, reserved_bytes, capacity_bytes; /* of the GPUs */
    uint64_t refused;
} rmm_page_summary_t;

typedef struct rmm_page_device {
    const char *name, *model; /* model: "" is not known */
    uint64_t current_bytes, reserved_bytes, cached_bytes, others_bytes, free_bytes;
    uint64_t capacity_bytes;
    const rmm_page_history_t *history; /* NULL: none is kept */
} rmm_page_device_t;

/* What has processes and is known by a name. */
typedef struct rmm_page_job {
    const char *kind, *name, *user;
    uint64_t current_bytes, reserved_bytes, peak_bytes; /* on GPUs */
    uint64_t capacity_bytes;                            /* of all GPUs */
    uint64_t oom_count;
    uint32_t programs;
    uint64_t ended_seconds_ago; /* RMM_PAGE_UNKNOWN: it is live */
    const rmm_page_history_t *history;
} rmm_page_job_t;

/* A program on a device, or a resource of it. */
typedef struct rmm_page_figures {
    uint64_t current_bytes, reserved_bytes, cached_bytes, padding_bytes, peak_bytes;
    uint64_t current_count, oom_count;
} rmm_page_figures_t;

typedef struct rmm_page_program {
    const char *pid, *user, *command, *state; /* state: "" where it is live */
    const char *owner; /* a job, pod, container or unit; "": unknown */
    /* These by rmm__page_program_add(). */
    char devices[40];
    uint32_t device_count;
    rmm_page_figures_t figures; /* on its GPUs; without any, in host memory */
    uint64_t capacity_bytes;    /* of its GPUs */
} rmm_page_program_t;

typedef struct rmm_page_resource {
    const char *name, *type, *device; /* name: "2.pool" */
    uint32_t upstream_id;             /* 0: none */
    rmm_page_figures_t figures;
    uint64_t free_bytes, largest_free_bytes;
} rmm_page_resource_t;

/* An allocation that was refused for want of memory. */
typedef struct rmm_page_refusal {
    uint64_t number; /* no two on a page have the same */
    const char *time, *process, *user, *command, *job, *device, *resource;
    uint64_t bytes, free_bytes;             /* free: on the device */
    uint64_t current_bytes, reserved_bytes; /* of the resource */
} rmm_page_refusal_t;

typedef struct rmm_page_holder {
    const char *process, *user, *command;
    uint64_t held_bytes, current_bytes;
} rmm_page_holder_t;

/* title: of this machine, or of a test. */
void rmm__page_begin(
    rmm_page_t *page, rmm_sink_t *sink, const char *title, time_t now, bool is_live);
/* A line about what the page does not show. */
void rmm__page_remark(rmm_page_t *page, uint64_t count, const char *what);
void rmm__page_summary(rmm_page_t *page, const rmm_page_summary_t *summary);

/* history_seconds: that the histories of devices and jobs cover; 0: there are none. */
void rmm__page_begin_devices(rmm_page_t *page, uint32_t history_seconds);
void rmm__page_device(rmm_page_t *page, const rmm_page_device_t *device);
void rmm__page_end_devices(rmm_page_t *page);

/* Only where there are any. */
void rmm__page_begin_jobs(rmm_page_t *page);
void rmm__page_job(rmm_page_t *page, const rmm_page_job_t *job);
void rmm__page_end_jobs(rmm_page_t *page);

void rmm__page_begin_programs(rmm_page_t *page);
/* Before the program begins: what it has on a device, of which it may have several. */
void rmm__page_program_add(
    rmm_page_program_t *program, const char *device, const rmm_page_figures_t *figures,
    uint64_t capacity_bytes);
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
void rmm__page_end_programs(rmm_page_t *page);

/* Only where there are any. */
void rmm__page_begin_refusals(rmm_page_t *page);
void rmm__page_begin_refusal(rmm_page_t *page, const rmm_page_refusal_t *refusal);
void rmm__page_holder(rmm_page_t *page, const rmm_page_holder_t *holder);
/* more: programs that are not among the holders. */
void rmm__page_end_refusal(rmm_page_t *page, uint32_t more, uint64_t more_bytes);

void rmm__page_end_refusals(rmm_page_t *page);

void rmm__page_end(rmm_page_t *page);

#endif /* RMM_PAGE_NODE_PAGE_H */
