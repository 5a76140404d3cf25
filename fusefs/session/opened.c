/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files; see opened.h.
 */
#include "session/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "model/journal.h"
#include "programs/event_poll.h"
#include "programs/snapshots.h"
#include "render/render.h"

struct file {
    opened_t opened;
    atomic_uint references; /* the descriptor's, and one of each read under way */
    pthread_mutex_t lock;   /* orders reads: held from file_read to file_read_end */
    node_t node;
    node_owner_t owner; /* when it was opened */
    uid_t uid;          /* of the user who opened it */
    bool is_personal;   /* and what it shows is for no other user */
    stream_t *stream;   /* NULL: it is none */
    bool is_new;        /* rendered by the open, not yet read from its beginning */
    _Atomic(uint32_t) changes; /* of its counters, before file_is_outdated() looked */
    _Atomic(uint64_t) of_node; /* the same of all counters: compared first */
    budget_t *budget;          /* that the handle is charged to */
    text_t text;
    node_texts_t *texts;
    node_text_t *shared; /* in place of `text`: of a file about the node; NULL: none */
};

/* What reads are answered from. */
static const text_t *shown(const file_t *file)
{
    return file->shared != NULL ? &file->shared->text : &file->text;
}

/* Its place in the node's log. */
static int read_spool(watch_t *watch, file_t *file, size_t size, off_t offset)
{
    const model_t *model = watch_begin(watch);
    journal_collect(model->journal, model);
    text_clear(&file->text);
    if (offset >= 0) {
        journal_read(
            model->journal, file->node.id, file->owner.uid, (uint64_t)offset, size,
            &file->text);
    }
    watch_end(watch);
    return text_error(&file->text);
}

static int render_new(
    watch_t *watch, const snapshot_t *snapshot, const node_text_key_t *key,
    file_t *file)
{
    node_text_t *made = node_text_new(key, file->budget);
    if (made == NULL) {
        return -ENOMEM;
    }
    int error = render_snapshot(snapshot, watch_model(watch), file->node, &made->text);
    if (error != 0) {
        node_texts_release(file->texts, made);
        return error;
    }
    node_texts_add(file->texts, made);
    file->shared = made;
    return 0;
}

/* That of another reader, where it is the same. */
static int render_of_node(watch_t *watch, file_t *file)
{
    snapshot_t *snapshot = snapshots_take(watch_snapshots(watch), watch);
    if (snapshot == NULL) {
        return -ENOMEM;
    }
    const node_text_key_t key = {
        snapshot->begun_ns, file->node.file, file->uid, file->text.is_member};
    node_text_t *same = node_texts_find(file->texts, &key);
    node_texts_release(file->texts, file->shared);
    file->shared = same;
    int error = same == NULL ? render_new(watch, snapshot, &key, file) : 0;
    snapshot_release(snapshot);
    return error;
}

static void settle(watch_t *watch, node_t node)
{
    if (node.file == FILE_oom || node.file == FILE_oom_json) {
        watch_settle(watch);
    }
}

static int
render_now(watch_t *watch, node_t node, const node_owner_t *owner, text_t *text)
{
    model_t *model = watch_model(watch);
    subject_t subject;
    settle(watch, node);
    (void)watch_begin(watch);
    int error = tree_is_of(model, node, owner)
                    ? render_begin(model, node, text, &subject)
                    : -ENOENT;
    watch_end(watch);
    return error != 0 ? error : render_end(&subject, text);
}

/* The kernel has checked, by attributes that it may have kept for a second; and it lets root
 * open anything. */
static int admit(const model_t *model, file_t *file, int mode, bool is_member)
{
    node_info_t info;
    if (!tree_owner(model, file->node, &file->owner) ||
        (mode != O_RDONLY && !tree_info(model, file->node, &info))) {
        return -ENOENT;
    }
    file->is_personal = tree_is_personal(model, file->node);
    if (file->node.serial != 0 &&
        !hiding_shows(&model->hiding, file->owner.uid, file->uid, is_member)) {
        return -EACCES;
    }
    bool may =
        (mode == O_WRONLY || tree_may_read(file->node, &file->owner, file->uid)) &&
        (mode == O_RDONLY || tree_may_write(file->node, &file->owner, file->uid));
    return may ? 0 : -EACCES;
}

static void free_file(opened_t *opened)
{
    file_t *file = (file_t *)opened;
    if (file->stream != NULL) {
        stream_close(file->stream);
    }
    text_fini(&file->text);
    node_texts_release(file->texts, file->shared);
    budget_give(file->budget, file->uid, BUDGET_HANDLES, 1);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

/* 0, -EDQUOT, -ENOMEM */
static int make_file(
    opened_list_t *list, budget_t *budget, node_t node, reader_t reader,
    file_t **file_out)
{
    uid_t uid = reader.uid;
    if (!budget_take(budget, uid, BUDGET_HANDLES, 1)) {
        return -EDQUOT;
    }
    file_t *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        budget_give(budget, uid, BUDGET_HANDLES, 1);
        return -ENOMEM;
    }
    file->uid = uid;
    file->opened.free = free_file;
    atomic_init(&file->references, 1);
    pthread_mutex_init(&file->lock, NULL);
    file->node = node;
    file->is_new = true;
    file->budget = budget;
    file->texts = &list->texts;
    text_init(&file->text);
    text_charge(&file->text, budget, uid);
    file->text.is_member = reader.is_member;
    *file_out = file;
    return 0;
}

/* The text for the first read. The lock is held when it is called, and not when it returns. */
static int render_first(watch_t *watch, file_t *file)
{
    subject_t subject;
    int error = 0;
    bool of_node = render_is_of_node(file->node);
    if (!of_node) {
        error = render_begin(watch_model(watch), file->node, &file->text, &subject);
    }
    watch_end(watch);
    if (error == 0) {
        error =
            of_node ? render_of_node(watch, file) : render_end(&subject, &file->text);
    }
    return error;
}

/* 0 or -ENOMEM */
static int begin_stream(const model_t *model, file_t *file)
{
    file->stream = stream_open(file->node, file->owner.serial, file->uid, file->budget);
    return file->stream != NULL &&
                   stream_begin(file->stream, file->text.is_member, model)
               ? 0
               : -ENOMEM;
}

/* Admit the reader, and make what the first read is answered from. */
static int open_contents(watch_t *watch, file_t *file, int mode)
{
    settle(watch, file->node);
    const model_t *model = watch_begin(watch);
    file_kind_t kind = tree_kind(file->node);
    int error = admit(model, file, mode, file->text.is_member);
    if (error == 0 && mode != O_WRONLY && kind != KIND_PIPE && kind != KIND_LOG) {
        return render_first(watch, file);
    }
    watch_end(watch);
    return error == 0 && kind == KIND_PIPE ? begin_stream(model, file) : error;
}

int file_open(
    opened_list_t *list, watch_t *watch, node_t node, int flags, reader_t reader,
    file_t **file_out)
{
    const opened_by_t by = {node_to_inode(node), reader.uid, reader.thread};
    file_t *file;
    int error = make_file(list, &watch_model(watch)->budget, node, reader, &file);
    if (error != 0) {
        return error;
    }
    error = open_contents(watch, file, flags & O_ACCMODE);
    if (error != 0) {
        free_file(&file->opened);
        return error;
    }
    if (tree_is_text(node)) {
        opened_sizes_note(&list->sizes, &by, shown(file)->length);
    }
    opened_list_add(list, &file->opened);
    *file_out = file;
    return 0;
}

void file_close(opened_list_t *list, file_t *file)
{
    /* acquire-release: what the others did with it is over before it is freed */
    if (atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) == 1) {
        opened_list_remove(list, &file->opened);
        free_file(&file->opened);
    }
}

bool file_may_read(const file_t *file, uid_t uid)
{
    if (file->is_personal && uid != 0 && uid != file->uid && uid != file->owner.uid) {
        return false;
    }
    return tree_may_read(file->node, &file->owner, uid);
}

bool file_write_waits(const file_t *file)
{
    return tree_write_waits(file->node);
}

int file_write(
    const file_t *file, watch_t *watch, uid_t uid, const file_bytes_t *written,
    waiting_write_t *wait)
{
    model_t *model = watch_begin_change(watch);
    const command_t command = {model,          file->node,      uid,
                               written->bytes, written->length, wait};
    int error =
        tree_is_of(model, file->node, &file->owner) ? control_write(&command) : -ENOENT;
    watch_end(watch);
    return error;
}

stream_t *file_stream_of(const file_t *file)
{
    return file->stream;
}

bool file_has_counters(const file_t *file)
{
    return file->node.file == FILE_events;
}

static void note_changes(watch_t *watch, file_t *file)
{
    uint32_t changes = 0;
    const model_t *model = watch_begin(watch);
    (void)event_poll_changes(model, file->node, &changes);
    atomic_store_explicit(
        &file->of_node, event_poll_on_node(model), memory_order_relaxed);
    watch_end(watch);
    atomic_store_explicit(&file->changes, changes, memory_order_relaxed);
}

bool file_is_outdated(file_t *file, watch_t *watch)
{
    text_t now;
    text_init(&now);
    note_changes(
        watch, file); /* before the text: what changes after it is not missed */
    pthread_mutex_lock(&file->lock);
    bool is_other = render_now(watch, file->node, &file->owner, &now) != 0 ||
                    now.length != file->text.length ||
                    memcmp(now.data, file->text.data, now.length) != 0;
    file->is_new =
        file->is_new && !is_other; /* the next read gets what was polled for */
    pthread_mutex_unlock(&file->lock);
    text_fini(&now);
    return is_other;
}

bool file_may_be_outdated(file_t *file, const model_t *model)
{
    uint32_t changes;
    uint64_t of_node = event_poll_on_node(model);
    if (atomic_exchange_explicit(&file->of_node, of_node, memory_order_relaxed) ==
        of_node) {
        return false;
    }
    return !event_poll_changes(model, file->node, &changes) ||
           changes != atomic_load_explicit(&file->changes, memory_order_relaxed);
}

/* False: it is held, and may not be waited for. */
static bool lock_file(file_t *file, bool may_wait)
{
    if (may_wait) {
        pthread_mutex_lock(&file->lock);
        return true;
    }
    return pthread_mutex_trylock(&file->lock) == 0;
}

/* Make shown(file) what a read of this part is answered from; *at_out: where in it. The lock
 * is held. */
static int make_current(
    file_t *file, watch_t *watch, const file_part_t *part, bool may_wait,
    size_t *at_out)
{
    int error = 0;
    *at_out = 0;
    if (tree_kind(file->node) == KIND_LOG) {
        return read_spool(watch, file, part->size, part->offset);
    }
    bool is_stale = part->offset == 0 && !file->is_new;
    is_stale = is_stale && tree_kind(file->node) != KIND_REPORT;
    if (is_stale && !may_wait) {
        return -EWOULDBLOCK;
    }
    if (is_stale && render_is_of_node(file->node)) {
        error = render_of_node(watch, file);
    } else if (is_stale) {
        error = render_now(watch, file->node, &file->owner, &file->text);
    }
    file->is_new = file->is_new && part->offset != 0;
    /* Its size says more than there is (TREE_VALUE_BYTES), so a position counted from the
     * end may be beyond it. No bytes would mean an empty file. */
    if (error == 0 &&
        (part->offset < 0 || (uint64_t)part->offset > shown(file)->length)) {
        error = -ESPIPE;
    }
    *at_out = (size_t)part->offset;
    return error;
}

int file_read(
    file_t *file, watch_t *watch, const file_part_t *part, bool may_wait,
    const char **bytes_out, size_t *length_out)
{
    size_t at;
    if (!lock_file(file, may_wait)) {
        return -EWOULDBLOCK;
    }
    int error = make_current(file, watch, part, may_wait, &at);
    if (error != 0) {
        pthread_mutex_unlock(&file->lock);
        return error;
    }
    size_t left = shown(file)->length - at;
    *bytes_out = shown(file)->data + at;
    *length_out = left < part->size ? left : part->size;
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
    return 0;
}

void file_read_end(opened_list_t *list, file_t *file)
{
    pthread_mutex_unlock(&file->lock);
    file_close(list, file);
}
