/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the root that need no snapshot.
 */
#include "render/parts.h"
#include "render/printers.h"

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
    "metrics          for Prometheus, few figures a program; metrics.all has all\n"
    "json             all figures as one object\n"
    "top              the largest processes, for people: watch -n1 cat /rmm/top\n"
    "index.html       the same as a page: open it in a browser\n"
    "processes  users  cgroups   the same as tables over the whole node\n"
    "jobs             Slurm jobs, pods, containers and units, until 10 min after the "
    "end\n"
    "dmem             the kernel's limits on GPU memory for control groups\n"
    "oom              the last refused allocations, and who held the memory then;\n"
    "                 oom.json for programs\n"
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

void print_version(const subject_t *subject, text_t *text)
{
    (void)subject;
    text_puts(text, TREE_VERSION);
}

void print_readme(const subject_t *subject, text_t *text)
{
    (void)subject;
    text_puts(text, readme);
}

void print_devices(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    text_puts(text, "#gpu uuid pci_bus_id capacity_bytes name\n");
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        const gpu_t *gpu = &model->gpus[i].gpu;
        text_printf(
            text, "gpu%u %s %s ", i, gpu->uuid[0] != '\0' ? gpu->uuid : "-1",
            gpu->pci_bus_id[0] != '\0' ? gpu->pci_bus_id : "-1");
        render_column(
            text, gpu->capacity_bytes != 0 ? gpu->capacity_bytes : FIGURE_UNKNOWN);
        render_string(text, gpu->name);
    }
}
