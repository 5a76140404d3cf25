/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `json`: all figures of the node as one object. Levels have their names and a key for each
 * statistic that has a file at their level; keys are only ever added.
 */
#include <inttypes.h>

#include "model/metric_names.h"
#include "render/parts.h"
#include "render/printers.h"

#define JSON_SCHEMA_VERSION "1"

static void put_member(text_t *text, const char *key, const char *value)
{
    text_puts(text, ", ");
    put_quoted(text, key);
    text_puts(text, ": ");
    put_quoted(text, value);
}

static void put_figures(text_t *text, dir_kind_t dir, const figures_t *figures)
{
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        if (!tree_dir_has(dir, shown_stats[i].file)) {
            continue;
        }
        uint64_t value = shown_value(figures, &shown_stats[i]);
        put_number_key(text, shown_stats[i].name, value != FIGURE_UNKNOWN, value);
    }
}

/* head: of the level's chain. */
static void put_newer(text_t *text, const snapshot_t *snapshot, uint32_t head)
{
    for (uint32_t i = 0; head != 0 && i < snapshot->newer_stats.count; i++) {
        uint64_t value = newer_value_of(&snapshot->newer_stats, head, i);
        if (value != FIGURE_UNKNOWN) {
            text_printf(text, ", \"%s\": ", snapshot->newer_stats.items[i].name);
            render_number(text, value);
        }
    }
}

/* An object, left open. */
static void
put_level(text_t *text, const char *device, dir_kind_t dir, const figures_t *figures)
{
    text_puts(text, "{\"device\": ");
    put_quoted(text, device);
    put_figures(text, dir, figures);
}

/* Keys that only a GPU has. */
static void put_gpu(text_t *text, const snapshot_device_t *device)
{
    uint64_t free_bytes = device->figures.device_free_bytes;
    put_member(text, "uuid", device->uuid);
    put_member(text, "pci_bus_id", device->pci_bus_id);
    put_member(text, "name", device->model);
    put_number_key(
        text, "capacity_bytes", device->capacity_bytes != 0, device->capacity_bytes);
    put_number_key(
        text, "device_free_bytes", free_bytes != 0 && free_bytes != FIGURE_UNKNOWN,
        free_bytes);
}

static void put_devices(text_t *text, const snapshot_t *snapshot)
{
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const snapshot_device_t *device = &snapshot->devices[i];
        text_puts(text, i > 0 ? ",\n" : "");
        put_level(text, device->name, DIR_DEVICE, &device->figures);
        if (i + 1 < snapshot->device_count) { /* host memory comes last */
            put_gpu(text, device);
        }
        put_newer(text, snapshot, device->newer);
        text_puts(text, "}");
    }
}

static void put_resources(
    text_t *text, const snapshot_t *snapshot, const snapshot_process_t *process,
    uint32_t device)
{
    const char *separator = "";
    for (uint32_t i = 0; i < process->resource_count; i++) {
        const snapshot_resource_t *resource =
            &snapshot->resources[process->resource + i];
        if (resource->device == device) {
            text_puts(text, separator);
            text_puts(text, "{\"resource\": ");
            put_quoted(text, resource->name);
            put_member(text, "type", resource->type);
            put_number_key(text, "instance_id", true, resource->instance_id);
            put_number_key(
                text, "upstream_id", resource->upstream_id != 0, resource->upstream_id);
            put_figures(text, DIR_RESOURCE, &resource->figures);
            put_newer(text, snapshot, resource->newer);
            text_puts(text, "}");
            separator = ",\n";
        }
    }
}

/* To whom it belongs. */
static void
put_groups(text_t *text, const snapshot_t *snapshot, const snapshot_process_t *process)
{
    static const cgroup_t unknown;
    const cgroup_t *group =
        process->placement != NULL ? &process->placement->group : &unknown;
    const snapshot_job_t *pod = snapshot_job(snapshot, process->jobs[JOB_POD]);
    put_text_key(text, "slurm_job", group->job);
    put_text_key(text, "slurm_step", group->step);
    put_text_key(text, "pod_uid", group->pod);
    put_text_key(text, "pod", pod != NULL ? pod->pod : "");
    put_text_key(text, "container", group->container);
    put_text_key(text, "unit", group->unit);
}

static void
put_process(text_t *text, const snapshot_t *snapshot, const snapshot_process_t *process)
{
    text_puts(text, "{\"pid\": ");
    put_quoted(text, process->name);
    put_member(text, "state", process->state);
    text_puts(text, ", \"uid\": ");
    render_number(text, process->uid);
    put_number_key(
        text, "start_time_ns", process->start_time_ns != 0, process->start_time_ns);
    put_member(text, "comm", process->comm);
    put_groups(text, snapshot, process);
    text_puts(text, ", \"devices\": [\n");
    for (uint32_t i = 0; i < process->location_count; i++) {
        const snapshot_location_t *location =
            &snapshot->locations[process->location + i];
        text_puts(text, i > 0 ? ",\n" : "");
        put_level(
            text, snapshot->devices[location->device].name, DIR_PROCESS_DEVICE,
            &location->figures);
        put_newer(text, snapshot, location->newer);
        text_puts(text, ", \"resources\": [\n");
        put_resources(text, snapshot, process, location->device);
        text_puts(text, "]}");
    }
    text_puts(text, "]}");
}

static void put_job(text_t *text, const snapshot_job_t *job)
{
    bool is_live = job->ended_ns_ago == FIGURE_UNKNOWN;
    text_printf(text, "{\"kind\": \"%s\"", job_kind_name(job->kind));
    put_member(text, "name", job->name);
    put_text_key(text, "pod", job->pod);
    text_printf(text, ", \"uid\": %u", (unsigned)job->uid);
    put_member(text, "state", is_live ? "live" : "ended");
    put_number_key(text, "ended_ns_ago", !is_live, job->ended_ns_ago);
    put_number_key(text, "processes", true, job->processes);
    put_number_key(text, "current_bytes", true, job->current_bytes);
    put_number_key(text, "reserved_bytes", true, job->reserved_bytes);
    put_number_key(text, "host_bytes", true, job->host_bytes);
    put_number_key(text, "peak_bytes", true, job->peak_bytes);
    put_number_key(text, "host_peak_bytes", true, job->host_peak_bytes);
    put_number_key(text, "oom_count", true, job->oom_count);
    text_puts(text, "}");
}

static void put_jobs(text_t *text, const snapshot_t *snapshot)
{
    for (uint32_t i = 0; i < snapshot->job_count; i++) {
        text_puts(text, i > 0 ? ",\n" : "");
        put_job(text, &snapshot->jobs[i]);
    }
}

static void put_limit(text_t *text, const snapshot_limit_t *shown)
{
    const limit_t *limit = &shown->limit;
    char device[16];
    put_limited_device(limit, device);
    text_printf(text, "{\"kind\": \"%s\"", limit_kind_name(limit->kind));
    put_text_key(text, "name", limit->name);
    put_number_key(text, "uid", limit_has_user(limit), limit->uid);
    put_member(text, "device", device);
    put_number_key(text, "limit_bytes", true, limit->limit_bytes);
    put_number_key(text, "held_bytes", true, shown->held_bytes);
    put_number_key(text, "given_bytes", true, shown->given_bytes);
    put_number_key(text, "processes", true, shown->processes);
    put_number_key(text, "set_by", true, limit->set_by);
    text_puts(text, "}");
}

static void put_limits(text_t *text, const snapshot_t *snapshot)
{
    const char *separator = "";
    for (uint32_t i = 0; i < snapshot->limit_count; i++) {
        if (is_limit_shown(snapshot, &snapshot->limits[i].limit, text)) {
            text_puts(text, separator);
            put_limit(text, &snapshot->limits[i]);
            separator = ",\n";
        }
    }
}

void print_json(const subject_t *subject, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    text_printf(
        text,
        "{\"schema_version\": " JSON_SCHEMA_VERSION ", \"levels_not_shown\": %" PRIu64
        ", \"devices\": [\n",
        shares_refused(&snapshot->location_shares) +
            shares_refused(&snapshot->resource_shares));
    put_devices(text, snapshot);
    text_puts(text, "],\n\"processes\": [\n");
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        text_puts(text, i > 0 ? ",\n" : "");
        put_process(text, snapshot, &snapshot->processes[i]);
    }
    text_puts(text, "],\n\"jobs\": [\n");
    put_jobs(text, snapshot);
    text_puts(text, "],\n\"limits\": [\n");
    put_limits(text, snapshot);
    text_puts(text, "]}\n");
}
