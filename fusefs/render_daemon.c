/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the daemon itself: its state, and what it refused; see render.h.
 */
#include <errno.h>
#include <unistd.h>

#include "log.h"
#include "render_parts.h"
#include "state.h"

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

static bool is_shown_to(const model_t *model, uid_t owner, const text_t *text)
{
    return hiding_shows(&model->hiding, owner, text->uid, text->is_member);
}

/* Segments that are shown, but in no sum or not in all, or without all their statistics. */
static void render_rejected(const model_t *model, text_t *text)
{
    text_puts(text, "#uid process segment reason\n");
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        if (!is_shown_to(model, process->uid, text)) {
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

static void render_over_budget(model_t *model, text_t *text)
{
    budget_user_t user;
    text_puts(text, "#uid kind used limit refused\n");
    for (uint32_t i = 0; budget_user_at(&model->budget, i, &user); i++) {
        if (is_shown_to(model, user.uid, text)) {
            render_user(&model->budget, &user, text);
        }
    }
}

static void render_persistence(const model_t *model, text_t *text)
{
    if (model->state == NULL) {
        text_puts(text, "off: out of memory\n");
    } else {
        state_tell(model->state, text);
    }
}

static void render_unshown(const model_t *model, text_t *text)
{
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

int render_daemon(model_t *model, node_t node, text_t *text)
{
    switch (node.file) {
    case FILE_PID:
        render_value(text, (uint64_t)getpid());
        return 0;
    case FILE_UPTIME_SECONDS:
        render_value(text, (model_clock_ns() - model->started_ns) / 1000000000u);
        return 0;
    case FILE_SEGMENTS:
        render_value(text, model_live_count(model));
        return 0;
    case FILE_SEGMENTS_REJECTED:
        render_value(text, model->segments_rejected);
        return 0;
    case FILE_UNSHOWN:
        render_unshown(model, text);
        return 0;
    case FILE_PERSISTENCE:
        render_persistence(model, text);
        return 0;
    case FILE_READS_TOTAL:
        render_value(
            text, atomic_load_explicit(&model->reads_total, memory_order_relaxed));
        return 0;
    case FILE_REJECTED:
        render_rejected(model, text);
        return 0;
    case FILE_OVER_BUDGET:
        render_over_budget(model, text);
        return 0;
    case FILE_LOG_LEVEL:
        text_printf(text, "%s\n", log_level_name(log_level_get()));
        return 0;
    default:
        return -ENOENT;
    }
}
