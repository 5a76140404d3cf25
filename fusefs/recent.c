/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers texts for a moment; see recent.h. The table is small: a reader whose entry was replaced
 * gets a size that is a moment newer, as without it.
 */
#include "recent.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"

#define ITEMS 64u

typedef struct item {
    uint64_t inode; /* 0: unused */
    pid_t thread;
    uint64_t since_ns; /* CLOCK_MONOTONIC */
    size_t bytes;
    bool has_text;
    text_t text;
} item_t;

struct recent {
    pthread_mutex_t lock;
    item_t items[ITEMS];
};

recent_t *recent_open(void)
{
    recent_t *recent = calloc(1, sizeof(*recent));
    if (recent != NULL) {
        pthread_mutex_init(&recent->lock, NULL);
    }
    return recent;
}

static void drop_text(item_t *item)
{
    if (item->has_text) {
        text_fini(&item->text);
        item->has_text = false;
    }
}

void recent_close(recent_t *recent)
{
    if (recent == NULL) {
        return;
    }
    for (size_t i = 0; i < ITEMS; i++) {
        drop_text(&recent->items[i]);
    }
    pthread_mutex_destroy(&recent->lock);
    free(recent);
}

/* Lock held. NULL: none that is young enough. */
static item_t *find(recent_t *recent, uint64_t inode, pid_t thread, uint64_t within_ns)
{
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < ITEMS; i++) {
        item_t *item = &recent->items[i];
        if (item->inode == inode && item->thread == thread &&
            now - item->since_ns < within_ns) {
            return item;
        }
    }
    return NULL;
}

/* Lock held. That of this thread and inode, or the oldest one, without a text. */
static item_t *renew(recent_t *recent, uint64_t inode, pid_t thread, size_t bytes)
{
    item_t *chosen = &recent->items[0];
    for (size_t i = 0; i < ITEMS; i++) {
        item_t *item = &recent->items[i];
        if (item->inode == inode && item->thread == thread) {
            chosen = item;
            break;
        }
        chosen = item->since_ns < chosen->since_ns ? item : chosen;
    }
    drop_text(chosen);
    chosen->inode = inode;
    chosen->thread = thread;
    chosen->bytes = bytes;
    chosen->since_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    return chosen;
}

bool recent_bytes(recent_t *recent, uint64_t inode, pid_t thread, size_t *bytes_out)
{
    if (recent == NULL) {
        return false;
    }
    pthread_mutex_lock(&recent->lock);
    const item_t *item = find(recent, inode, thread, RECENT_TOLD_NS);
    if (item != NULL) {
        *bytes_out = item->bytes;
    }
    pthread_mutex_unlock(&recent->lock);
    return item != NULL;
}

void recent_keep(recent_t *recent, uint64_t inode, pid_t thread, text_t *text)
{
    if (recent == NULL) {
        text_fini(text);
        return;
    }
    pthread_mutex_lock(&recent->lock);
    item_t *item = renew(recent, inode, thread, text->length);
    text_init(&item->text);
    text_move(&item->text, text);
    item->has_text = true;
    pthread_mutex_unlock(&recent->lock);
}

void recent_note(recent_t *recent, uint64_t inode, pid_t thread, size_t bytes)
{
    if (recent != NULL) {
        pthread_mutex_lock(&recent->lock);
        (void)renew(recent, inode, thread, bytes);
        pthread_mutex_unlock(&recent->lock);
    }
}

bool recent_take(recent_t *recent, uint64_t inode, pid_t thread, text_t *text)
{
    if (recent == NULL) {
        return false;
    }
    pthread_mutex_lock(&recent->lock);
    item_t *item = find(recent, inode, thread, RECENT_TAKEN_NS);
    bool taken = item != NULL && item->has_text;
    if (taken) {
        text_move(text, &item->text);
        drop_text(item);
    }
    pthread_mutex_unlock(&recent->lock);
    return taken;
}

void recent_expire(recent_t *recent)
{
    if (recent == NULL) {
        return;
    }
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&recent->lock);
    for (size_t i = 0; i < ITEMS; i++) {
        if (now - recent->items[i].since_ns >= RECENT_TAKEN_NS) {
            drop_text(&recent->items[i]);
        }
    }
    pthread_mutex_unlock(&recent->lock);
}
