/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the daemon itself: its state, and what it refused; see render.h.
 */
#include <inttypes.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "model/state.h"
#include "render/parts.h"
#include "render/printers.h"
#include "segments/dirs.h"
#include "support/daemon_log.h"

/* Only what was refused: an empty table means that no user was refused anything. */
static void render_user(const budget_t *budget, const budget_user_t *user, text_t *text)
{
    for (budget_kind_t kind = 0; kind < BUDGET_KIND_COUNT; kind++) {
        if (user->refused[kind] == 0) {
            continue;
        }
        if (user->uid == BUDGET_OTHERS) {
            text_puts(text, "others ");
        } else {
            render_column(text, user->uid);
        }
        text_printf(text, "%s ", budget_kind_name(kind));
        render_column(text, user->used[kind]);
        render_column(text, budget_limit(budget, user->uid, kind));
        render_value(text, user->refused[kind]);
    }
}

/* NULL: nothing is wrong with it. */
static const char *why_rejected(const member_t *member)
{
    if (member->state == MEMBER_UNREADABLE) {
        return "cannot be read";
    }
    if (atomic_load_explicit(&member->is_implausible, memory_order_relaxed)) {
        return "has implausible figures";
    }
    return atomic_load_explicit(&member->has_odd_stats, memory_order_relaxed)
               ? "has statistics that conflict with those of others, or too many"
               : NULL;
}

/* Segments that are shown, but in no sum or not in all, or without all their statistics. */
void print_rejected(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    text_puts(text, "#uid process segment reason\n");
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        if (!is_shown_to(&model->hiding, process->uid, text)) {
            continue;
        }
        for (uint32_t j = 0; j < process->member_count; j++) {
            const member_t *member = process->members[j];
            const char *reason = why_rejected(member);
            if (reason != NULL) {
                text_begin_row(text);
                text_printf(
                    text, "%u %s %s %s\n", (unsigned)member->segment.uid, process->name,
                    member->segment.name, reason);
                (void)text_end_row(text);
            }
        }
    }
    text_end_rows(text);
}

static const char *dir_state_name(dir_state_t state)
{
    switch (state) {
    case DIR_OK:
        return "ok";
    case DIR_BELOW:
        return "below";
    case DIR_CLOSED:
        break;
    }
    return "closed";
}

/* rmmfs --check reads it, too. */
void print_directories(const subject_t *subject, text_t *text)
{
    const dirs_t *dirs = subject->model->dirs;
    text_puts(text, "#device inode mode uid state path\n");
    for (uint32_t i = 0; dirs != NULL && i < dirs->count; i++) {
        const segment_dir_t *dir = dirs->list[i];
        struct stat status;
        dir_state_t state = dirs_look_at(dir, &status);
        bool is_shown = dirs_is_for_all(dir) ||
                        is_shown_to(&subject->model->hiding, status.st_uid, text);
        if (dir->gone || !is_shown) {
            continue;
        }
        text_printf(
            text, "%u:%u %" PRIu64 " %04o %u %s %s\n", major(status.st_dev),
            minor(status.st_dev), (uint64_t)status.st_ino,
            (unsigned)(status.st_mode & 07777), (unsigned)status.st_uid,
            dir_state_name(state), dir->path);
    }
}

void print_over_budget(const subject_t *subject, text_t *text)
{
    model_t *model = subject->model;
    budget_user_t user;
    text_puts(text, "#uid kind used limit refused\n");
    for (uint32_t i = 0; budget_user_at(&model->budget, i, &user); i++) {
        if (is_shown_to(&model->hiding, user.uid, text)) {
            render_user(&model->budget, &user, text);
        }
    }
}

void print_persistence(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    if (model->state == NULL) {
        text_puts(text, "off: out of memory\n");
    } else {
        state_tell(model->state, text);
    }
}

void print_unshown(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    uint32_t of_memory = model->unshown[SHORT_OF_MEMORY];
    uint32_t of_descriptors = model->unshown[SHORT_OF_DESCRIPTORS];
    if (of_memory == 0 && of_descriptors == 0) {
        text_puts(text, "0\n");
    }
    if (of_memory != 0) {
        text_printf(text, "%u out of memory: raise MemoryMax\n", of_memory);
    }
    if (of_descriptors != 0) {
        text_printf(
            text, "%u out of descriptors (limit %u): raise LimitNOFILE\n",
            of_descriptors, model->descriptor_limit);
    }
}

void print_pid(const subject_t *subject, text_t *text)
{
    (void)subject;
    render_value(text, (uint64_t)getpid());
}

void print_uptime_seconds(const subject_t *subject, text_t *text)
{
    render_value(text, (model_clock_ns() - subject->model->started_ns) / 1000000000u);
}

void print_segments(const subject_t *subject, text_t *text)
{
    render_value(text, model_live_count(subject->model));
}

void print_segments_rejected(const subject_t *subject, text_t *text)
{
    render_value(text, subject->model->segments_rejected);
}

void print_reads_total(const subject_t *subject, text_t *text)
{
    render_value(
        text, atomic_load_explicit(&subject->model->reads_total, memory_order_relaxed));
}

void print_log_level(const subject_t *subject, text_t *text)
{
    (void)subject;
    text_printf(text, "%s\n", log_level_name(log_level_get()));
}
