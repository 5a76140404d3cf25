/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a process that are of no device: what it is, its sums, its log.
 */
#include "render/parts.h"
#include "render/printers.h"
#include "support/log_line.h"

/* --- what it is ----------------------------------------------------------------------- */

void print_state(const subject_t *subject, text_t *text)
{
    text_printf(text, "%s\n", process_state(subject->process));
}

void print_uid(const subject_t *subject, text_t *text)
{
    render_value(text, subject->process->uid);
}

void print_comm(const subject_t *subject, text_t *text)
{
    render_string(text, subject->readable->segment.header.comm);
}

void print_cmdline(const subject_t *subject, text_t *text)
{
    render_string(text, subject->readable->segment.header.cmdline);
}

void print_start_time_ns(const subject_t *subject, text_t *text)
{
    render_value(text, subject->readable->segment.header.start_time_ns);
}

/* --- its sums ------------------------------------------------------------------------- */

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

/* Several locations did not reach their marks at one moment, so the sum of them is an
 * upper bound, under a name of its own. */
static void put_sum(text_t *text, const char *prefix, const figures_t *sum)
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

void print_process_stat(const subject_t *subject, text_t *text)
{
    figures_t sum;
    sum_gpus(subject->model, subject->process, &sum);
    put_sum(text, "", &sum);
    if (!figures_of_process(subject->process, DEVICE_HOST, FIGURES_MARKS, &sum)) {
        sum = (figures_t){0};
    }
    put_sum(text, "host_", &sum);
}

/* --- its log and trace ---------------------------------------------------------------- */

static void append_message(const rmm_log_message_t *message, void *arg)
{
    log_line_append(arg, NULL, message);
}

/* All messages that are in the rings now. */
void print_process_log(const subject_t *subject, text_t *text)
{
    const process_t *process = subject->process;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        rmm_ring_cursor_t cursor = {0};
        if (member->state != MEMBER_UNREADABLE &&
            rmm__segment_has_log(&member->segment)) {
            (void)rmm__segment_read_log(
                &member->segment, &cursor, true, append_message, text);
        }
    }
}

/* An operator's request, else the program's own; of its first segment that has one. */
void print_process_log_level(const subject_t *subject, text_t *text)
{
    const process_t *process = subject->process;
    uint32_t level, least;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        if ((member->has_control && rmm__control_log_level(&member->control, &level)) ||
            (member->state != MEMBER_UNREADABLE &&
             rmm__segment_log_level(&member->segment, &level, &least))) {
            text_printf(text, "%s\n", rmm__segment_log_level_name(level));
            return;
        }
    }
    text_puts(text, "-1\n");
}

/* 1 if any of its segments traces. */
void print_enable(const subject_t *subject, text_t *text)
{
    const process_t *process = subject->process;
    bool is_on = false;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        is_on = is_on || (member->has_control && rmm__control_trace(&member->control));
    }
    render_value(text, is_on);
}

void print_lost(const subject_t *subject, text_t *text)
{
    const process_t *process = subject->process;
    uint64_t lost = 0;
    for (uint32_t i = 0; i < process->member_count; i++) {
        lost += atomic_load_explicit(
            &process->members[i]->events_lost, memory_order_relaxed);
    }
    render_value(text, lost);
}
