/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which printer makes the text of which file; see render.h. The printers are in the other files of
 * this folder.
 */
#include "render/render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "render/parts.h"
#include "render/printers.h"

#define COLLECT_OF_GAUGE COLLECT_FIGURES
#define COLLECT_OF_COUNTER COLLECT_FIGURES
#define COLLECT_OF_MARK COLLECT_MARKS

static const struct row {
    collect_t collect;
    void (*print)(const subject_t *subject, text_t *text);
} rows[FILE_ID_COUNT] = {
#define FILE_ROW(id, name, access, kind, where, collect)                               \
    [FILE_##id] = {COLLECT_##collect, print_##id},
#include "model/tree_files.def"
#define X(field, kind, unit, help) [FILE_##field] = {COLLECT_OF_##kind, print_##field},
    RMM_COMMON_STATS(X) RMM_LOCATION_ONLY_STATS(X) RMM_SLOT_ONLY_STATS(X)
#undef X
#define X(field, kind, unit, help) [FILE_##field] = {COLLECT_FREE, print_##field},
        RMM_SLOT_FREE_STATS(X)
#undef X
};

/* --- of programs and devices ---------------------------------------------------------- */

int render_begin(model_t *model, node_t node, text_t *text, subject_t *subject)
{
    const struct row *row = &rows[node.file];
    text_clear(text);
    if (node.file == FILE_SELF) {
        return -EISDIR;
    }
    int error = tree_dir_has((dir_kind_t)node.dir, node.file)
                    ? subject_collect(model, node, row->collect, subject)
                    : -ENOENT;
    if (error != 0 || !collect_reads_model(row->collect)) {
        return error;
    }
    row->print(subject, text);
    return text_error(text);
}

int render_end(subject_t *subject, text_t *text)
{
    const struct row *row = &rows[subject->node.file];
    if (!collect_reads_model(row->collect)) {
        row->print(subject, text);
        subject_close(subject);
    }
    text_trim(text);
    return text_error(text);
}

/* --- of the whole node ---------------------------------------------------------------- */

bool render_is_of_node(node_t node)
{
    return node.dir == DIR_ROOT && rows[node.file].collect == COLLECT_NODE;
}

static void
print_snapshot(const snapshot_t *snapshot, model_t *model, node_t node, text_t *text)
{
    subject_t subject;
    (void)subject_collect(model, node, COLLECT_NODE, &subject);
    subject.snapshot = snapshot;
    rows[node.file].print(&subject, text);
}

/* Only what the reader may see: the processes, their jobs, and how much was left out of whose. */
static void
hide_processes(const snapshot_t *snapshot, const text_t *text, snapshot_t *shown)
{
    shown->process_count = 0;
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        if (is_shown_to(&snapshot->hiding, snapshot->processes[i].uid, text)) {
            shown->processes[shown->process_count++] = snapshot->processes[i];
        }
    }
    shown->job_count = 0;
    for (uint32_t i = 0; i < snapshot->job_count; i++) {
        if (is_shown_to(&snapshot->hiding, snapshot->jobs[i].uid, text)) {
            shown->jobs[shown->job_count++] = snapshot->jobs[i];
        }
    }
    for (uint32_t i = 0; i < SHARES_USERS_MAX; i++) {
        if (!is_shown_to(
                &snapshot->hiding, shown->location_shares.users[i].uid, text)) {
            shown->location_shares.users[i].refused = 0;
        }
        if (!is_shown_to(
                &snapshot->hiding, shown->resource_shares.users[i].uid, text)) {
            shown->resource_shares.users[i].refused = 0;
        }
        if (!is_shown_to(
                &snapshot->hiding, shown->newer_stats.shares.users[i].uid, text)) {
            shown->newer_stats.shares.users[i].refused = 0;
        }
    }
}

/* From a copy of the snapshot without what is hidden. */
static void
print_shown_part(const snapshot_t *snapshot, model_t *model, node_t node, text_t *text)
{
    size_t bytes = sizeof(*snapshot) +
                   snapshot->process_count * sizeof(snapshot->processes[0]) +
                   snapshot->job_count * sizeof(snapshot->jobs[0]);
    if (!text_take_scratch(text, bytes)) {
        return;
    }
    snapshot_t *shown = malloc(bytes);
    if (shown == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        /* Other threads change the references meanwhile. */
        memcpy(shown, snapshot, offsetof(snapshot_t, references));
        shown->processes = (snapshot_process_t *)(void *)(shown + 1);
        shown->jobs =
            (snapshot_job_t *)(void *)(shown->processes + snapshot->process_count);
        hide_processes(snapshot, text, shown);
        print_snapshot(shown, model, node, text);
    }
    free(shown);
    text_give_scratch(text, bytes);
}

int render_snapshot(
    const snapshot_t *snapshot, model_t *model, node_t node, text_t *text)
{
    text_clear(text);
    text->limit = TEXT_NODE_BYTES_MAX;
    if (snapshot->hiding.level == HIDING_OFF) {
        print_snapshot(snapshot, model, node, text);
    } else {
        print_shown_part(snapshot, model, node, text);
    }
    text_trim(text);
    return text_error(text);
}
