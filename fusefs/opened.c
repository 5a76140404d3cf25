/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files and directories; see opened.h.
 */
#include "opened.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control.h"
#include "event_poll.h"
#include "journal.h"
#include "recent.h"
#include "render.h"
#include "snapshots.h"
#include "text.h"

/* --- the list ------------------------------------------------------------------------- */

void opened_list_init(opened_list_t *list)
{
    pthread_mutex_init(&list->lock, NULL);
    list->first.previous = &list->first;
    list->first.next = &list->first;
}

static void add_opened(opened_list_t *list, opened_t *opened)
{
    pthread_mutex_lock(&list->lock);
    opened->previous = &list->first;
    opened->next = list->first.next;
    opened->next->previous = opened;
    list->first.next = opened;
    pthread_mutex_unlock(&list->lock);
}

static void remove_opened(opened_list_t *list, opened_t *opened)
{
    pthread_mutex_lock(&list->lock);
    opened->previous->next = opened->next;
    opened->next->previous = opened->previous;
    pthread_mutex_unlock(&list->lock);
}

void opened_list_fini(opened_list_t *list)
{
    while (list->first.next != &list->first) {
        opened_t *opened = list->first.next;
        remove_opened(list, opened);
        opened->free(opened);
    }
    pthread_mutex_destroy(&list->lock);
}

/* --- files ---------------------------------------------------------------------------- */

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
    text_t piece; /* of a text with a source, for the read under way */
};

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

/* A lock for each: what is opened between two pages of others. */
static bool open_blocks(
    const render_means_t *means, uint32_t member_serial, rmm_blocks_file_t *file)
{
    watch_t *watch = *(watch_t *const *)means->from;
    const render_means_t of_model = {.from = watch_begin(watch)};
    bool is_open = render_open_blocks(&of_model, member_serial, file);
    watch_end(watch);
    return is_open;
}

static int render_of_node(watch_t *watch, node_t node, text_t *text)
{
    snapshot_t *snapshot = snapshots_take(watch_snapshots(watch), watch);
    if (snapshot == NULL) {
        return -ENOMEM;
    }
    const render_means_t means = {&watch_model(watch)->budget, open_blocks, &watch};
    int error = render_snapshot(snapshot, &means, node, text);
    snapshot_release(snapshot);
    return error;
}

/* owner NULL: any. */
static int
render_now(watch_t *watch, node_t node, const node_owner_t *owner, text_t *text)
{
    model_t *model = watch_model(watch);
    render_rest_t rest;
    if (render_is_of_node(node)) {
        return render_of_node(watch, node, text);
    }
    (void)watch_begin(watch);
    int error = owner == NULL || tree_is_of(model, node, owner)
                    ? render_begin(model, node, text, &rest)
                    : -ENOENT;
    watch_end(watch);
    return error != 0 ? error : render_end(&rest, text);
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
    text_fini(&file->piece);
    budget_give(file->budget, file->uid, BUDGET_HANDLES, 1);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

/* 0, -EDQUOT, -ENOMEM */
static int make_file(budget_t *budget, node_t node, reader_t reader, file_t **file_out)
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
    text_init(&file->text);
    text_charge(&file->text, budget, uid);
    text_init(&file->piece);
    text_charge(&file->piece, budget, uid);
    file->text.is_member = reader.is_member;
    *file_out = file;
    return 0;
}

/* A thread may be another user's next: what is remembered of the whole node is one user's. */
static uint64_t recent_key(node_t node, uid_t uid)
{
    return node_to_inode(node) | (node.serial == 0 ? (uint64_t)uid << 32 : 0);
}

/* Memory for all reads of a text with a source, so that none of an open file fails for lack of
 * it. Written to, or the kernel would count it later (memory.h). 0 or a negative errno. */
static int reserve_piece(file_t *file)
{
    const size_t bytes = OPENED_READ_BYTES_MAX + TEXT_ROW_BYTES_MAX;
    char *piece = file->text.source != NULL ? text_reserve(&file->piece, bytes) : NULL;
    if (piece != NULL) {
        memset(piece, 0, bytes);
    }
    return text_error(&file->piece);
}

/* With the text for the first read. */
static int prepare(watch_t *watch, file_t *file, int mode, reader_t reader)
{
    uint64_t key = recent_key(file->node, reader.uid);
    model_t *model = watch_model(watch);
    file_kind_t kind = tree_kind(file->node);
    render_rest_t rest;
    (void)watch_begin(watch);
    int error = admit(model, file, mode, reader.is_member);
    bool is_text = mode != O_WRONLY &&
                   (kind == KIND_VALUE || kind == KIND_TEXT || kind == KIND_REPORT);
    bool is_there = error == 0 && kind == KIND_TEXT &&
                    recent_take(model->recent, key, reader.thread, &file->text);
    is_text = is_text && !is_there;
    bool of_node = render_is_of_node(file->node);
    if (error == 0 && is_text && !of_node) {
        error = render_begin(model, file->node, &file->text, &rest);
    }
    watch_end(watch);
    if (error == 0 && is_text) {
        error = of_node ? render_of_node(watch, file->node, &file->text)
                        : render_end(&rest, &file->text);
    }
    if (error == 0) {
        error = reserve_piece(file);
    }
    if (error == 0 && (kind == KIND_TEXT || kind == KIND_REPORT)) {
        recent_note(model->recent, key, reader.thread, file->text.length);
    }
    if (error == 0 && kind == KIND_PIPE) {
        file->stream =
            stream_open(file->node, file->owner.serial, file->uid, file->budget);
        bool has_begun =
            file->stream != NULL && stream_begin(file->stream, reader.is_member, model);
        error = has_begun ? 0 : -ENOMEM;
    }
    return error;
}

int file_open(
    opened_list_t *list, watch_t *watch, node_t node, int flags, reader_t reader,
    file_t **file_out)
{
    file_t *file;
    int error = make_file(&watch_model(watch)->budget, node, reader, &file);
    if (error != 0) {
        return error;
    }
    error = prepare(watch, file, flags & O_ACCMODE, reader);
    if (error != 0) {
        free_file(&file->opened);
        return error;
    }
    add_opened(list, &file->opened);
    *file_out = file;
    return 0;
}

void file_close(opened_list_t *list, file_t *file)
{
    /* acquire-release: what the others did with it is over before it is freed */
    if (atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) == 1) {
        remove_opened(list, &file->opened);
        free_file(&file->opened);
    }
}

int node_text_bytes(watch_t *watch, node_t node, reader_t reader, size_t *bytes_out)
{
    recent_t *recent = watch_model(watch)->recent;
    uint64_t key = recent_key(node, reader.uid);
    text_t text;
    if (recent_bytes(recent, key, reader.thread, bytes_out)) {
        return 0;
    }
    if (tree_kind(node) == KIND_REPORT) { /* stat(2) asks no program for a report */
        *bytes_out = TREE_VALUE_BYTES;
        return 0;
    }
    text_init(&text);
    text_charge(&text, &watch_model(watch)->budget, reader.uid);
    text.is_member = reader.is_member;
    int error = render_now(watch, node, NULL, &text);
    *bytes_out = error == 0 ? text.length : 0;
    if (error == 0) {
        recent_keep(recent, key, reader.thread, &text);
    } else {
        text_fini(&text);
    }
    return error;
}

bool file_may_read(const file_t *file, uid_t uid)
{
    if (file->is_personal && uid != 0 && uid != file->uid && uid != file->owner.uid) {
        return false;
    }
    return tree_may_read(file->node, &file->owner, uid);
}

int file_write(
    const file_t *file, watch_t *watch, uid_t uid, const char *bytes, size_t size)
{
    model_t *model = watch_begin_change(watch);
    int error = tree_is_of(model, file->node, &file->owner)
                    ? control_write(model, file->node, uid, bytes, size)
                    : -ENOENT;
    watch_end(watch);
    return error;
}

bool file_is_trim(const file_t *file)
{
    return file->node.file == FILE_TRIM || file->node.file == FILE_MODE;
}

int file_trim(
    const file_t *file, watch_t *watch, uid_t uid, const char *bytes, size_t size,
    trim_t *trim)
{
    model_t *model = watch_begin_change(watch);
    int error = tree_is_of(model, file->node, &file->owner)
                    ? control_trim(model, file->node, uid, bytes, size, trim)
                    : -ENOENT;
    watch_end(watch);
    return error;
}

stream_t *file_stream_of(const file_t *file)
{
    return file->stream;
}

bool file_has_counters(const file_t *file)
{
    return file->node.file == FILE_EVENTS;
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

/* What file->text holds from `at` on. 0 or a negative errno. */
static int cut_text(
    file_t *file, size_t at, size_t size, const char **bytes_out, size_t *length_out)
{
    size_t length = size;
    const char *bytes = text_part(&file->text, at, &length, &file->piece);
    if (bytes == NULL) {
        return text_error(&file->piece);
    }
    *bytes_out = bytes;
    *length_out = length;
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
    return 0;
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

/* Make file->text what a read of this part is answered from; *at_out: where in it. The lock
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
    if (is_stale) {
        error = render_now(watch, file->node, &file->owner, &file->text);
        error = error == 0 ? reserve_piece(file) : error;
    }
    file->is_new = file->is_new && part->offset != 0;
    /* Its size says more than there is (TREE_VALUE_BYTES), so a position counted from the
     * end may be beyond it. No bytes would mean an empty file. */
    if (error == 0 &&
        (part->offset < 0 || (uint64_t)part->offset > file->text.length)) {
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
    if (error == 0) {
        error = cut_text(file, at, part->size, bytes_out, length_out);
    }
    if (error != 0) {
        pthread_mutex_unlock(&file->lock);
    }
    return error;
}

void file_read_end(opened_list_t *list, file_t *file)
{
    pthread_mutex_unlock(&file->lock);
    file_close(list, file);
}

/* --- directories ---------------------------------------------------------------------- */

typedef struct item {
    char name[TREE_NAME_BYTES];
    node_t node;
} item_t;

struct listing {
    opened_t opened;
    node_t dir, parent;
    item_t *items;
    size_t count, capacity;
    int error; /* of adding an item */
    budget_t *budget;
    uid_t uid;
};

static bool make_item_room(listing_t *listing)
{
    if (listing->count < listing->capacity) {
        return true;
    }
    size_t more = listing->capacity == 0 ? 32 : listing->capacity;
    size_t capacity = listing->capacity + more;
    if (!budget_take(
            listing->budget, listing->uid, BUDGET_TEXT_BYTES, more * sizeof(item_t))) {
        listing->error = -EDQUOT;
        return false;
    }
    item_t *grown = realloc(listing->items, capacity * sizeof(*grown));
    if (grown == NULL) {
        budget_give(
            listing->budget, listing->uid, BUDGET_TEXT_BYTES, more * sizeof(item_t));
        listing->error = -ENOMEM;
        return false;
    }
    listing->items = grown;
    listing->capacity = capacity;
    return true;
}

/* A directory while it is being listed for a reader. */
typedef struct listing_walk {
    const model_t *model;
    listing_t *listing;
    reader_t reader;
} listing_walk_t;

static void add_item(const char *name, node_t node, void *arg)
{
    const listing_walk_t *walk = arg;
    listing_t *listing = walk->listing;
    if (!tree_shows(walk->model, node, walk->reader.uid, walk->reader.is_member) ||
        listing->error != 0 || !make_item_room(listing)) {
        return;
    }
    item_t *item = &listing->items[listing->count++];
    (void)snprintf(item->name, sizeof(item->name), "%s", name);
    item->node = node;
}

static void free_listing(opened_t *opened)
{
    listing_t *listing = (listing_t *)opened;
    budget_give(
        listing->budget, listing->uid, BUDGET_TEXT_BYTES,
        listing->capacity * sizeof(item_t));
    budget_give(listing->budget, listing->uid, BUDGET_HANDLES, 1);
    free(listing->items);
    free(listing);
}

int listing_open(
    opened_list_t *list, watch_t *watch, node_t dir, reader_t reader,
    listing_t **listing_out)
{
    uid_t uid = reader.uid;
    budget_t *budget = &watch_model(watch)->budget;
    if (!budget_take(budget, uid, BUDGET_HANDLES, 1)) {
        return -EDQUOT;
    }
    listing_t *listing = calloc(1, sizeof(*listing));
    if (listing == NULL) {
        budget_give(budget, uid, BUDGET_HANDLES, 1);
        return -ENOMEM;
    }
    listing->budget = budget;
    listing->uid = uid;
    listing->opened.free = free_listing;
    listing->dir = dir;
    const model_t *model = watch_begin(watch);
    listing_walk_t walk = {model, listing, reader};
    bool found = tree_list(model, dir, uid, add_item, &walk);
    listing->parent = tree_parent(model, dir);
    watch_end(watch);
    int error = found ? listing->error : -ENOENT;
    if (error != 0) {
        free_listing(&listing->opened);
        return error;
    }
    add_opened(list, &listing->opened);
    *listing_out = listing;
    return 0;
}

void listing_close(opened_list_t *list, listing_t *listing)
{
    remove_opened(list, &listing->opened);
    free_listing(&listing->opened);
}

const char *listing_at(const listing_t *listing, size_t position, node_t *node_out)
{
    if (position < 2) {
        *node_out = position == 0 ? listing->dir : listing->parent;
        return position == 0 ? "." : "..";
    }
    if (position - 2 >= listing->count) {
        return NULL;
    }
    *node_out = listing->items[position - 2].node;
    return listing->items[position - 2].name;
}
