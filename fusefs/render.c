/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the root, of devices, processes and resources; see render.h.
 */
#include "render.h"

#include <errno.h>
#include <inttypes.h>

#include "control.h"
#include "extras.h"
#include "log_line.h"
#include "marks.h"
#include "render_parts.h"
#include "slots.h"

#define TREE_VERSION "1\n" /* of names and formats: within it only additions */

static const char readme[] =
    "This tree shows the GPU memory of all programs that use librmm-c, live.\n"
    "\n"
    "  cat /rmm/gpu0/current_bytes         bytes that programs hold on GPU 0 now\n"
    "  cat /rmm/gpu0/peak_bytes            the most they held; echo > it to reset it\n"
    "  cat /rmm/gpu0/processes             which processes hold it\n"
    "  grep . /rmm/proc/*/gpu0/*_bytes     the same by process\n"
    "  ls /rmm/proc/<pid>/gpu0/mr          a process's pools and other resources\n"
    "  watch -n1 cat /rmm/gpu0/stat        everything of a level in one file\n"
    "  tail -F /rmm/log                    log messages of all programs\n"
    "  echo debug > /rmm/proc/<pid>/log_level   more messages from one program\n"
    "  echo 4GiB > /rmm/proc/<pid>/gpu0/limit_bytes   the most that it may hold; max\n"
    "  echo all > /rmm/proc/<pid>/gpu0/trim     it gives back what it does not use\n"
    "  echo 1 > /rmm/proc/<pid>/trace/enable    then cat events_pipe in its folder:\n"
    "                                      every allocation and free, as CSV\n"
    "\n"
    "metrics  json    all figures: for Prometheus, as one object\n"
    "top              the largest processes, for people: watch -n1 cat /rmm/top\n"
    "index.html       the same as a page: open it in a browser\n"
    "processes  users  cgroups   the same as tables over the whole node\n"
    "devices          table of GPUs; by-uuid/ has links by stable name\n"
    "gpuN/  host/     sums over all processes, for a GPU and for host memory\n"
    "proc/<pid>/      one process, until 30 s after its end\n"
    "proc/<pid>/gpuN/mr/<id>.<name>/   one resource\n"
    "daemon/          rmmfs itself\n"
    "events_pipe      starts, exits, refused memory and more as lines of JSON\n"
    "log              text that grows; log_pipe is the same, but a read waits for "
    "more\n"
    "                 at its end. proc/<pid>/ has log_pipe and events_pipe, too. No "
    "pipe\n"
    "                 is listed in its directory, so that cp -r and grep -r end\n"
    "\n"
    "Numbers are decimal: bytes, nanoseconds or a count; -1 means unknown.\n"
    "current_bytes counts requested bytes, reserved_bytes the bytes held from the\n"
    "driver, padding_bytes the loss by rounding, cached_bytes reserved bytes that\n"
    "are not in use. stat has one `key value` on each line; later versions may add\n"
    "keys. Each write to a writable file is one command: writing anything to\n"
    "peak_bytes resets the peak to the current value.\n"
    "\n"
    "Over several processes gpuN/peak_bytes is a lower bound, exact for one\n"
    "process; peak_upper_bytes is an upper bound, the sum of their own peaks.\n"
    "Formats: rmm(5), docs/filesystem.md.\n";

/* --- root ---------------------------------------------------------------------------- */

static void render_gpus(const model_t *model, text_t *text)
{
    text_puts(text, "#gpu uuid pci_bus_id capacity_bytes name\n");
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        const device_t *gpu = &model->gpus[i];
        text_printf(
            text, "gpu%u %s %s ", i, gpu->uuid[0] != '\0' ? gpu->uuid : "-1",
            gpu->pci_bus_id[0] != '\0' ? gpu->pci_bus_id : "-1");
        render_column(
            text, gpu->capacity_bytes != 0 ? gpu->capacity_bytes : FIGURE_UNKNOWN);
        render_string(text, gpu->name);
    }
}

static int render_root(model_t *model, node_t node, text_t *text)
{
    switch (node.file) {
    case FILE_VERSION:
        text_puts(text, TREE_VERSION);
        return 0;
    case FILE_README:
        text_puts(text, readme);
        return 0;
    case FILE_DEVICES:
        render_gpus(model, text);
        return 0;
    default:
        return -ENOENT;
    }
}

/* --- a device ------------------------------------------------------------------------- */

static void render_processes(const model_t *model, uint32_t device, text_t *text)
{
    text_puts(text, "#pid uid state current_bytes peak_bytes reserved_bytes comm\n");
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        figures_t figures;
        if (!process_is_live(process) ||
            !hiding_shows(&model->hiding, process->uid, text->uid, text->is_member) ||
            !figures_of_process(process, device, FIGURES_MARKS, &figures)) {
            continue;
        }
        text_printf(
            text, "%s %u %s ", process->name, (unsigned)process->uid,
            process_state(process));
        render_column(text, figures.current_bytes);
        render_column(text, figures.peak_bytes);
        render_column(text, figures.reserved_bytes);
        render_string(text, process_speaker(process)->segment.header.comm);
    }
}

static bool render_identity(const device_t *device, uint8_t file, text_t *text)
{
    switch (file) {
    case FILE_UUID:
        render_string(text, device->uuid);
        return true;
    case FILE_PCI_BUS_ID:
        render_string(text, device->pci_bus_id);
        return true;
    case FILE_NAME:
        render_string(text, device->name);
        return true;
    case FILE_CAPACITY_BYTES:
        render_value(
            text,
            device->capacity_bytes != 0 ? device->capacity_bytes : FIGURE_UNKNOWN);
        return true;
    default:
        return false;
    }
}

static int render_device(model_t *model, node_t node, text_t *text)
{
    const device_t *device = model_device_const(model, node.id);
    if (device == NULL) {
        return -ENOENT;
    }
    if (render_identity(device, node.file, text)) {
        return 0;
    }
    if (node.file == FILE_PROCESSES) {
        render_processes(model, node.id, text);
        return 0;
    }
    figures_t figures;
    extras_t extras;
    marks_show_device(model, node.id, render_figure_needs(node.file), &figures);
    switch (node.file) {
    case FILE_DEVICE_FREE_BYTES:
        render_value(
            text, figures.device_free_bytes != 0 ? figures.device_free_bytes
                                                 : FIGURE_UNKNOWN);
        return 0;
    case FILE_EVENTS:
        render_events(text, &figures);
        return 0;
    case FILE_STAT:
        extras_of_device(model, node.id, &extras);
        render_location_stat(text, &figures, &extras);
        render_key(text, "peak_upper_bytes", figures.peak_upper_bytes);
        render_key(text, "processes_left_out", figures.left_out);
        return 0;
    default:
        return render_figure(text, node.file, &figures) ? 0 : -ENOENT;
    }
}

/* --- a process ------------------------------------------------------------------------ */

static void sum_gpus(const model_t *model, const process_t *process, figures_t *sum)
{
    *sum = (figures_t){0};
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        figures_t part;
        if (figures_of_process(process, i, FIGURES_MARKS, &part)) {
            figures_add(sum, &part);
        }
    }
}

/* Of several locations: their marks were not reached at one moment, so the sum of them is an
 * upper bound, under a name of its own. */
static void render_process_sum(text_t *text, const char *prefix, const figures_t *sum)
{
    const struct {
        const char *key;
        bool shown;
        uint64_t value;
    } keys[] = {
#define X(field, kind, unit, help)                                                     \
    {#field, RMM_KIND_##kind != RMM_KIND_MARK, sum->field},
        RMM_COMMON_STATS(X)
#undef X
            {"current_count", true, sum->current_count},
        {"peak_upper_bytes", true, sum->peak_bytes},
        {"cached_bytes", true, sum->cached_bytes},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].shown) {
            text_puts(text, prefix);
            render_key(text, keys[i].key, keys[i].value);
        }
    }
}

static void
render_process_stat(const model_t *model, const process_t *process, text_t *text)
{
    figures_t sum;
    sum_gpus(model, process, &sum);
    render_process_sum(text, "", &sum);
    if (!figures_of_process(process, DEVICE_HOST, FIGURES_MARKS, &sum)) {
        sum = (figures_t){0};
    }
    render_process_sum(text, "host_", &sum);
}

static void append_message(const rmm_log_message_t *message, void *arg)
{
    log_line_append(arg, NULL, message);
}

/* What is in the rings now. */
static void render_process_log(const process_t *process, text_t *text)
{
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        rmm_ring_cursor_t cursor = {0};
        if (member->state != MEMBER_UNREADABLE &&
            rmm_segment_has_log(&member->segment)) {
            (void)rmm_segment_read_log(
                &member->segment, &cursor, true, append_message, text);
        }
    }
}

/* enable is 1 if any of its segments traces. */
static int render_trace(model_t *model, node_t node, text_t *text)
{
    const process_t *process = model_process(model, node.serial);
    uint64_t lost = 0;
    bool on = false;
    if (process == NULL) {
        return -ENOENT;
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        lost += atomic_load_explicit(&member->events_lost, memory_order_relaxed);
        on = on || (member->has_control && rmm_control_trace(&member->control));
    }
    switch (node.file) {
    case FILE_ENABLE:
        render_value(text, on);
        return 0;
    case FILE_LOST:
        render_value(text, lost);
        return 0;
    default:
        return -ENOENT;
    }
}

/* An operator's request, else the program's own; of its first segment that has one. */
static void render_process_log_level(const process_t *process, text_t *text)
{
    uint32_t level, least;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        if ((member->has_control && rmm_control_log_level(&member->control, &level)) ||
            (member->state != MEMBER_UNREADABLE &&
             rmm_segment_log_level(&member->segment, &level, &least))) {
            text_printf(text, "%s\n", rmm_segment_log_level_name(level));
            return;
        }
    }
    text_puts(text, "-1\n");
}

static int render_process(model_t *model, node_t node, text_t *text)
{
    const process_t *process = model_process(model, node.serial);
    const member_t *speaker = process != NULL ? process_speaker(process) : NULL;
    if (process == NULL) {
        return -ENOENT;
    }
    if (node.file == FILE_STATE) {
        text_printf(text, "%s\n", process_state(process));
        return 0;
    }
    if (node.file == FILE_UID) {
        render_value(text, process->uid);
        return 0;
    }
    if (speaker == NULL) {
        return -ENOENT;
    }
    switch (node.file) {
    case FILE_COMM:
        render_string(text, speaker->segment.header.comm);
        return 0;
    case FILE_CMDLINE:
        render_string(text, speaker->segment.header.cmdline);
        return 0;
    case FILE_START_TIME_NS:
        render_value(text, speaker->segment.header.start_time_ns);
        return 0;
    case FILE_STAT:
        render_process_stat(model, process, text);
        return 0;
    case FILE_PROCESS_LOG:
        render_process_log(process, text);
        return 0;
    case FILE_LOG_LEVEL:
        render_process_log_level(process, text);
        return 0;
    default:
        return -ENOENT;
    }
}

/* How many trims the program has made. */
static void render_trims(const process_t *process, text_t *text)
{
    uint64_t made = FIGURE_UNKNOWN;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        uint32_t seen;
        if (member->state != MEMBER_UNREADABLE &&
            rmm_segment_trim_seen(&member->segment, &seen)) {
            made = made == FIGURE_UNKNOWN ? seen : figure_add(made, seen);
        }
    }
    render_value(text, made);
}

static int render_process_device(model_t *model, node_t node, text_t *text)
{
    const process_t *process = model_process(model, node.serial);
    figures_t figures;
    extras_t extras;
    if (process == NULL ||
        !figures_of_process(
            process, node.id, render_figure_needs(node.file), &figures)) {
        return -ENOENT;
    }
    switch (node.file) {
    case FILE_EVENTS:
        render_events(text, &figures);
        return 0;
    case FILE_STAT:
        extras_of_process(process, node.id, &extras);
        render_location_stat(text, &figures, &extras);
        return 0;
    case FILE_LIMIT_BYTES:
        render_limit(text, control_process_limit(process, node.id));
        return 0;
    case FILE_TRIM:
        render_trims(process, text);
        return 0;
    default:
        return render_figure(text, node.file, &figures) ? 0 : -ENOENT;
    }
}

/* --- a resource ----------------------------------------------------------------------- */

static int render_resource(model_t *model, node_t node, text_t *text)
{
    member_t *member = model_member(model, node.serial);
    slot_view_t view;
    figures_t figures;
    extras_t extras;
    if (member == NULL || !slots_find_low(member, node.id, &view)) {
        return -ENOENT;
    }
    if (node.file == FILE_TYPE) {
        render_string(text, rmm_record_slot(&view.record)->type);
        return 0;
    }
    if (node.file == FILE_LIMIT_BYTES) {
        render_limit(text, control_resource_limit(&view));
        return 0;
    }
    if (node.file == FILE_TRIM) {
        render_trims(member->process, text);
        return 0;
    }
    figures_of_resource(&view, render_figure_needs(node.file), &figures);
    if (node.file == FILE_STAT) {
        extras_of_resource(&view, &extras);
        render_slot_stat(text, &figures, &extras);
        return 0;
    }
    return render_figure(text, node.file, &figures) ? 0 : -ENOENT;
}

/* --- all ------------------------------------------------------------------------------ */

/* What is in side files: none of it is read yet. */
static int begin_rest(const model_t *model, node_t node, render_rest_t *rest)
{
    const process_t *process = model_process(model, node.serial);
    if (process == NULL ||
        (node.dir == DIR_PROCESS && process_speaker(process) == NULL)) {
        return -ENOENT;
    }
    rest->node = node;
    if (node.dir == DIR_DIAG) {
        render_diag_begin(process, rest);
    } else if (node.file == FILE_ALLOCATIONS) {
        render_allocations_begin(process, rest);
    } else {
        render_leaks_begin(process, rest);
    }
    return 0;
}

int render_begin(model_t *model, node_t node, text_t *text, render_rest_t *rest)
{
    static int (*const renderers[DIR_KIND_COUNT])(model_t *, node_t, text_t *) = {
        [DIR_ROOT] = render_root,
        [DIR_DAEMON] = render_daemon,
        [DIR_DEVICE] = render_device,
        [DIR_PROCESS] = render_process,
        [DIR_PROCESS_DEVICE] = render_process_device,
        [DIR_RESOURCE] = render_resource,
        [DIR_TRACE] = render_trace,
    };
    text_clear(text);
    rest->node = tree_root;
    rest->leaks_count = 0;
    rest->has_diag = false;
    rest->has_ended = false;
    rest->ended_ns_ago = 0;
    rest->blocks_count = 0;
    rest->places_count = 0;
    if (node.file == FILE_SELF) {
        return -EISDIR;
    }
    if (node.dir == DIR_DIAG || node.file == FILE_LEAKS ||
        node.file == FILE_ALLOCATIONS) {
        return begin_rest(model, node, rest);
    }
    if (tree_kind(node) == KIND_REPORT) {
        return render_blocks_begin(model, node, rest);
    }
    int error =
        renderers[node.dir] == NULL ? -ENOENT : renderers[node.dir](model, node, text);
    return error != 0 ? error : text_error(text);
}

int render_end(render_rest_t *rest, text_t *text)
{
    if (rest->node.dir == DIR_DIAG) {
        render_diag(rest, text);
    } else if (rest->node.file == FILE_LEAKS) {
        render_leaks(rest, text);
    } else if (rest->node.file == FILE_ALLOCATIONS) {
        render_allocations(rest, text);
    } else if (tree_kind(rest->node) == KIND_REPORT) {
        render_blocks(rest, text);
    }
    text_trim(text);
    return text_error(text);
}
