/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines before the rows of `metrics`, and all that is not a row of a level: what is said of
 * devices, processes and the daemon; see metrics.h.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "render/metrics.h"
#include "render/parts.h"

/* --- labels --------------------------------------------------------------------------- */

void metrics_put_label(text_t *text, const char *before, const char *value)
{
    text_puts(text, before);
    put_quoted(text, value);
}

void metrics_put_device_labels(text_t *text, const snapshot_device_t *device)
{
    metrics_put_label(
        text, "{gpu=", device->device == DEVICE_HOST ? "host" : device->name + 3);
    if (device->uuid[0] != '\0') {
        metrics_put_label(text, ",UUID=", device->uuid);
    }
}

/* --- heads ---------------------------------------------------------------------------- */

/* In OpenMetrics a family has the name of its samples without _total or _info. */
void metrics_put_head(const metrics_t *metrics, const head_t *head)
{
    text_t *text = metrics->text;
    bool is_counter = strcmp(head->type, "counter") == 0;
    bool is_info = strcmp(head->type, "info") == 0;
    if (metrics->format == METRICS_OPENMETRICS) {
        text_printf(text, "# TYPE %s%s %s\n", head->prefix, head->name, head->type);
        if (head->unit[0] != '\0') {
            text_printf(text, "# UNIT %s%s %s\n", head->prefix, head->name, head->unit);
        }
        text_printf(
            text, "# HELP %s%s %s%s\n", head->prefix, head->name, head->help,
            head->what);
        return;
    }
    const char *suffix = is_counter ? "_total" : is_info ? "_info" : "";
    text_printf(
        text, "# HELP %s%s%s %s%s\n# TYPE %s%s%s %s\n", head->prefix, head->name,
        suffix, head->help, head->what, head->prefix, head->name, suffix,
        is_info ? "gauge" : head->type);
}

/* --- of devices and processes ----------------------------------------------------------- */

static void put_device_value(
    const metrics_t *metrics, const char *name, uint32_t index, uint64_t value)
{
    const level_t *level = &metrics->levels[index];
    if (value != 0) { /* unknown */
        text_puts(metrics->text, name);
        text_append(
            metrics->text, metrics->labels.data + level->labels, level->labels_length);
        render_value(metrics->text, value);
    }
}

static void put_capacities(const metrics_t *metrics)
{
    const snapshot_t *snapshot = metrics->snapshot;
    metrics_put_head(
        metrics,
        &(head_t){
            "rmm_device_", "capacity_bytes", "gauge", "bytes", "Memory of a GPU", ""});
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        put_device_value(
            metrics, "rmm_device_capacity_bytes", i,
            snapshot->devices[i].capacity_bytes);
    }
    metrics_put_head(
        metrics,
        &(head_t){
            "rmm_device_", "driver_free_bytes", "gauge", "bytes",
            "The driver's last answer to a program that asked what is free", ""});
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        put_device_value(
            metrics, "rmm_device_driver_free_bytes", i,
            snapshot->devices[i].figures.device_free_bytes);
    }
}

static void put_device_infos(const metrics_t *metrics)
{
    metrics_put_head(
        metrics, &(head_t){"rmm_", "device", "info", "", "What is known of a GPU", ""});
    for (uint32_t i = 0; i < metrics->snapshot->device_count; i++) {
        const snapshot_device_t *device = &metrics->snapshot->devices[i];
        if (device->device != DEVICE_HOST) {
            text_puts(metrics->text, "rmm_device_info");
            metrics_put_device_labels(metrics->text, device);
            metrics_put_label(metrics->text, ",pci_bus_id=", device->pci_bus_id);
            metrics_put_label(metrics->text, ",name=", device->model);
            text_puts(metrics->text, "} 1\n");
        }
    }
}

/* A process that cannot be read is 0, and has no other series: old is never shown as 0. */
static void put_up(const metrics_t *metrics)
{
    char uid[16];
    metrics_put_head(
        metrics, &(head_t){
                     "rmm_process_", "up", "gauge", "",
                     "1: its figures are read; 0: they cannot be read", ""});
    for (uint32_t i = 0; i < metrics->snapshot->process_count; i++) {
        const snapshot_process_t *process = &metrics->snapshot->processes[i];
        if (process->is_live || !process->is_readable) {
            (void)snprintf(uid, sizeof(uid), "%u", (unsigned)process->uid);
            metrics_put_label(metrics->text, "rmm_process_up{pid=", process->name);
            metrics_put_label(metrics->text, ",comm=", process->comm);
            metrics_put_label(metrics->text, ",uid=", uid);
            text_puts(metrics->text, process->is_readable ? "} 1\n" : "} 0\n");
        }
    }
}

static void put_known_label(text_t *text, const char *before, const char *value)
{
    if (value[0] != '\0') {
        metrics_put_label(text, before, value);
    }
}

/* A name only with its namespace, as DCGM's exporter has them. */
static void
put_pod(const metrics_t *metrics, const snapshot_process_t *process, const char *uid)
{
    const snapshot_job_t *job = snapshot_job(metrics->snapshot, process->jobs[JOB_POD]);
    const char *slash = job != NULL ? strchr(job->pod, '/') : NULL;
    put_known_label(metrics->text, ",pod_uid=", uid);
    if (slash != NULL) {
        text_printf(
            metrics->text, ",namespace=\"%.*s\",pod=\"%s\"", (int)(slash - job->pod),
            job->pod, slash + 1);
    }
}

static void put_info(const metrics_t *metrics, const snapshot_process_t *process)
{
    text_t *text = metrics->text;
    const char *user = user_names_find(&metrics->users, process->uid);
    metrics_put_label(text, "rmm_process_info{pid=", process->name);
    metrics_put_label(text, ",comm=", process->comm);
    text_printf(text, ",uid=\"%u\"", (unsigned)process->uid);
    put_known_label(text, ",user=", user != NULL ? user : "");
    if (process->placement != NULL) {
        const cgroup_t *group = &process->placement->group;
        put_known_label(text, ",slurm_job=", group->job);
        put_known_label(text, ",slurm_step=", group->step);
        put_pod(metrics, process, group->pod);
        put_known_label(text, ",container=", group->container);
        put_known_label(text, ",unit=", group->unit);
    }
    text_puts(text, "} 1\n");
}

static void put_infos(const metrics_t *metrics)
{
    metrics_put_head(
        metrics,
        &(head_t){"rmm_", "process", "info", "", "To whom a live process belongs", ""});
    for (uint32_t i = 0; i < metrics->snapshot->process_count; i++) {
        if (metrics->snapshot->processes[i].is_live) {
            put_info(metrics, &metrics->snapshot->processes[i]);
        }
    }
}

/* --- jobs ------------------------------------------------------------------------------ */

typedef struct job_metric {
    const char *name, *unit, *help;
    size_t offset;  /* in snapshot_job_t */
    bool is_of_few; /* also in `metrics` */
    bool is_of_ended;
} job_metric_t;

static uint64_t job_value(const snapshot_job_t *job, const job_metric_t *metric)
{
    const char *value = (const char *)job + metric->offset;
    return *(const uint64_t *)(const void *)value;
}

static void put_job_metric(const metrics_t *metrics, const job_metric_t *metric)
{
    metrics_put_head(
        metrics,
        &(head_t){"rmm_job_", metric->name, "gauge", metric->unit, metric->help, ""});
    for (uint32_t i = 0; i < metrics->snapshot->job_count; i++) {
        const snapshot_job_t *job = &metrics->snapshot->jobs[i];
        uint64_t value = job_value(job, metric);
        if (value != FIGURE_UNKNOWN &&
            (metric->is_of_ended || job->ended_ns_ago == FIGURE_UNKNOWN)) {
            text_printf(
                metrics->text, "rmm_job_%s{kind=\"%s\"", metric->name,
                job_kind_name(job->kind));
            metrics_put_label(metrics->text, ",name=", job->name);
            text_printf(metrics->text, ",uid=\"%u\"} ", (unsigned)job->uid);
            render_value(metrics->text, value);
        }
    }
}

static void put_jobs(const metrics_t *metrics)
{
#define AT(field) offsetof(snapshot_job_t, field)
    static const job_metric_t all[] = {
        {"current_bytes", "bytes", "What its processes hold on GPUs", AT(current_bytes),
         true, false},
        {"peak_bytes", "bytes",
         "The most they held together, until 10 minutes after its end", AT(peak_bytes),
         true, true},
        {"reserved_bytes", "bytes", "What their pools hold on GPUs", AT(reserved_bytes),
         false, false},
        {"host_bytes", "bytes", "What they hold of host memory", AT(host_bytes), false,
         false},
        {"host_peak_bytes", "bytes", "The most host memory they held together",
         AT(host_peak_bytes), false, true},
    };
#undef AT
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (metrics->has_all || all[i].is_of_few) {
            put_job_metric(metrics, &all[i]);
        }
    }
}

/* --- limits ---------------------------------------------------------------------------- */

static void put_limit_sample(
    const metrics_t *metrics, const char *name, const limit_t *limit, uint64_t value)
{
    char device[16];
    put_limited_device(limit, device);
    text_printf(
        metrics->text, "rmm_limit_%s{kind=\"%s\"", name, limit_kind_name(limit->kind));
    metrics_put_label(metrics->text, ",name=", limit->name);
    if (limit_has_user(limit)) {
        text_printf(metrics->text, ",uid=\"%u\"", (unsigned)limit->uid);
    }
    text_printf(
        metrics->text, ",gpu=\"%s\"} ",
        strncmp(device, "gpu", 3) == 0 ? device + 3 : device);
    render_value(metrics->text, value);
}

static void put_limit_metric(
    const metrics_t *metrics, const char *name, const char *help, size_t offset)
{
    const snapshot_t *snapshot = metrics->snapshot;
    metrics_put_head(
        metrics, &(head_t){"rmm_limit_", name, "gauge", "bytes", help, ""});
    for (uint32_t i = 0; i < snapshot->limit_count; i++) {
        const snapshot_limit_t *shown = &snapshot->limits[i];
        const char *value = (const char *)shown + offset;
        if (is_limit_shown(snapshot, &shown->limit, metrics->text)) {
            put_limit_sample(
                metrics, name, &shown->limit, *(const uint64_t *)(const void *)value);
        }
    }
}

static void put_limits(const metrics_t *metrics)
{
    put_limit_metric(
        metrics, "bytes", "The most that the programs of a group may hold on a GPU",
        offsetof(snapshot_limit_t, limit.limit_bytes));
    put_limit_metric(
        metrics, "held_bytes", "What they hold",
        offsetof(snapshot_limit_t, held_bytes));
}

/* --- the daemon ------------------------------------------------------------------------ */

static void name_user(const shares_t *shares, uint32_t index, char name[16])
{
    if (index == SHARES_USERS_MAX - 1) {
        (void)snprintf(name, 16, "others");
    } else {
        (void)snprintf(name, 16, "%u", (unsigned)shares->users[index].uid);
    }
}

static void add_left_out(shares_t *sum, const shares_t *shares)
{
    for (uint32_t i = 0; i < shares->count; i++) {
        if (shares->users[i].refused > 0) {
            shares_refuse(sum, shares->users[i].uid, shares->users[i].refused);
        }
    }
}

static void put_over_budget(metrics_t *metrics)
{
    char uid[16];
    add_left_out(&metrics->left_out, &metrics->snapshot->location_shares);
    add_left_out(&metrics->left_out, &metrics->snapshot->resource_shares);
    add_left_out(&metrics->left_out, &metrics->snapshot->newer_stats.shares);
    metrics_put_head(
        metrics, &(head_t){
                     "rmm_", "over_budget", "gauge", "",
                     "Devices of processes and resources of a user that are left "
                     "out here",
                     ""});
    for (uint32_t i = 0; i < metrics->left_out.count; i++) {
        name_user(&metrics->left_out, i, uid);
        metrics_put_label(metrics->text, "rmm_over_budget{uid=", uid);
        text_puts(metrics->text, "} ");
        render_value(metrics->text, metrics->left_out.users[i].refused);
    }
}

static void put_refusals(const metrics_t *metrics, budget_t *budget)
{
    budget_user_t user;
    char uid[16];
    metrics_put_head(
        metrics, &(head_t){
                     "rmm_", "refused", "counter", "",
                     "What the daemon refused a user, as in daemon/over_budget", ""});
    for (uint32_t i = 0; budget_user_at(budget, i, &user); i++) {
        (void)snprintf(
            uid, sizeof(uid), user.uid == BUDGET_OTHERS ? "others" : "%u",
            (unsigned)user.uid);
        if (!is_shown_to(&metrics->snapshot->hiding, user.uid, metrics->text)) {
            continue;
        }
        for (budget_kind_t kind = 0; kind < BUDGET_KIND_COUNT; kind++) {
            if (user.refused[kind] > 0) {
                metrics_put_label(metrics->text, "rmm_refused_total{uid=", uid);
                metrics_put_label(metrics->text, ",kind=", budget_kind_name(kind));
                text_puts(metrics->text, "} ");
                render_value(metrics->text, user.refused[kind]);
            }
        }
    }
}

static void put_single(const metrics_t *metrics, const head_t *head, uint64_t value)
{
    metrics_put_head(metrics, head);
    text_puts(metrics->text, head->prefix);
    text_puts(metrics->text, head->name);
    text_puts(metrics->text, strcmp(head->type, "counter") == 0 ? "_total " : " ");
    render_value(metrics->text, value);
}

static void put_daemon(const metrics_t *metrics)
{
    const snapshot_t *snapshot = metrics->snapshot;
    put_single(
        metrics,
        &(head_t){
            "rmm_daemon_", "segments", "gauge", "",
            "Segments of live programs that are shown", ""},
        snapshot->segments);
    put_single(
        metrics,
        &(head_t){
            "rmm_daemon_", "segments_rejected", "counter", "",
            "Segments that were refused; the daemon's log says why", ""},
        snapshot->segments_rejected);
    put_single(
        metrics,
        &(head_t){
            "rmm_daemon_", "start_time_seconds", "gauge", "seconds",
            "When the daemon was started, since 1970", ""},
        snapshot->start_seconds);
}

/* --- all -------------------------------------------------------------------------------- */

void metrics_put_before(const metrics_t *metrics)
{
    put_device_infos(metrics);
    put_capacities(metrics);
}

void metrics_put_after(metrics_t *metrics, budget_t *budget)
{
    put_up(metrics);
    put_infos(metrics);
    put_jobs(metrics);
    if (metrics->snapshot->limit_count > 0) {
        put_limits(metrics);
    }
    put_over_budget(metrics);
    put_refusals(metrics, budget);
    put_daemon(metrics);
    if (metrics->format == METRICS_OPENMETRICS) {
        text_puts(metrics->text, "# EOF\n");
    }
}
