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

#include "journal.h"
#include "render.h"
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
    uid_t uid;        /* who opened it */
    stream_t *stream; /* NULL: it is none */
    bool is_new;      /* rendered by the open, not yet read from its beginning */
    text_t text;
};

/* Its place in the node's log. */
static void read_spool(watch_t *watch, file_t *file, size_t size, off_t offset)
{
    const model_t *model = watch_begin(watch);
    journal_collect(model->journal, model);
    text_clear(&file->text);
    if (offset >= 0) {
        journal_read(
            model->journal, file->node.id, file->uid, (uint64_t)offset, size,
            &file->text);
    }
    watch_end(watch);
}

static int render(watch_t *watch, file_t *file)
{
    model_t *model = watch_model(watch);
    (void)watch_begin(watch);
    int error = render_file(model, file->node, &file->text);
    watch_end(watch);
    return error;
}

/* May this file be written at all? The kernel lets root open anything. */
static int check_writable(watch_t *watch, node_t node)
{
    node_info_t info;
    const model_t *model = watch_begin(watch);
    bool found = tree_info(model, node, &info);
    watch_end(watch);
    if (!found) {
        return -ENOENT;
    }
    return (info.mode & S_IWUSR) != 0 ? 0 : -EACCES;
}

static void free_file(opened_t *opened)
{
    file_t *file = (file_t *)opened;
    if (file->stream != NULL) {
        stream_close(file->stream);
    }
    text_fini(&file->text);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

static file_t *make_file(node_t node, uid_t uid)
{
    file_t *file = calloc(1, sizeof(*file));
    if (file != NULL) {
        file->uid = uid;
        file->opened.free = free_file;
        atomic_init(&file->references, 1);
        pthread_mutex_init(&file->lock, NULL);
        file->node = node;
        file->is_new = true;
        text_init(&file->text);
    }
    return file;
}

/* For the first read. */
static int prepare(watch_t *watch, file_t *file)
{
    if (node_is_spool(file->node)) {
        return 0;
    }
    if (stream_is(file->node)) {
        file->stream = stream_open(file->node, file->uid);
        return file->stream != NULL ? 0 : -ENOMEM;
    }
    return render(watch, file);
}

int file_open(
    opened_list_t *list, watch_t *watch, node_t node, int flags, uid_t uid,
    file_t **file_out)
{
    int mode = flags & O_ACCMODE;
    int error = mode != O_RDONLY ? check_writable(watch, node) : 0;
    if (error != 0) {
        return error;
    }
    file_t *file = make_file(node, uid);
    if (file == NULL) {
        return -ENOMEM;
    }
    error = mode != O_WRONLY ? prepare(watch, file) : 0;
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

node_t file_node_of(const file_t *file)
{
    return file->node;
}

stream_t *file_stream_of(const file_t *file)
{
    return file->stream;
}

/* What file->text holds from `at` on. */
static void cut_text(
    file_t *file, size_t at, size_t size, const char **bytes_out, size_t *length_out)
{
    size_t length = file->text.length;
    at = at < length ? at : length;
    *bytes_out = file->text.data + at;
    *length_out = length - at < size ? length - at : size;
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
}

int file_read(
    file_t *file, watch_t *watch, size_t size, off_t offset, const char **bytes_out,
    size_t *length_out)
{
    int error = 0;
    pthread_mutex_lock(&file->lock);
    if (node_is_spool(file->node)) {
        read_spool(watch, file, size, offset);
        cut_text(file, 0, size, bytes_out, length_out);
        return 0;
    }
    if (offset == 0 && !file->is_new) {
        error = render(watch, file);
    }
    file->is_new = file->is_new && offset != 0;
    if (error != 0) {
        pthread_mutex_unlock(&file->lock);
        return error;
    }
    cut_text(
        file, offset < 0 ? file->text.length : (size_t)offset, size, bytes_out,
        length_out);
    return 0;
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
    bool failed;
};

static void add_item(const char *name, node_t node, void *arg)
{
    listing_t *listing = arg;
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity == 0 ? 32 : listing->capacity * 2;
        item_t *grown = realloc(listing->items, capacity * sizeof(*grown));
        if (grown == NULL) {
            listing->failed = true;
            return;
        }
        listing->items = grown;
        listing->capacity = capacity;
    }
    item_t *item = &listing->items[listing->count++];
    (void)snprintf(item->name, sizeof(item->name), "%s", name);
    item->node = node;
}

static void free_listing(opened_t *opened)
{
    listing_t *listing = (listing_t *)opened;
    free(listing->items);
    free(listing);
}

int listing_open(
    opened_list_t *list, watch_t *watch, node_t dir, listing_t **listing_out)
{
    listing_t *listing = calloc(1, sizeof(*listing));
    if (listing == NULL) {
        return -ENOMEM;
    }
    listing->opened.free = free_listing;
    listing->dir = dir;
    const model_t *model = watch_begin(watch);
    bool found = tree_list(model, dir, add_item, listing);
    listing->parent = tree_parent(model, dir);
    watch_end(watch);
    if (!found || listing->failed) {
        free_listing(&listing->opened);
        return found ? -ENOMEM : -ENOENT;
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
