/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that readers share; see node_texts.h. There are few: those of the last seconds. */
#include "session/node_texts.h"

#include <stdlib.h>

void node_texts_init(node_texts_t *texts)
{
    pthread_mutex_init(&texts->lock, NULL);
    LIST_INIT(&texts->items);
}

void node_texts_fini(node_texts_t *texts)
{
    pthread_mutex_destroy(&texts->lock);
}

static bool is_same(const node_text_key_t *a, const node_text_key_t *b)
{
    return a->snapshot_ns == b->snapshot_ns && a->file == b->file && a->uid == b->uid &&
           a->is_member == b->is_member;
}

node_text_t *node_texts_find(node_texts_t *texts, const node_text_key_t *key)
{
    node_text_t *text;
    pthread_mutex_lock(&texts->lock);
    LIST_FOREACH(text, &texts->items, link)
    {
        if (is_same(&text->key, key)) {
            text->references++;
            break;
        }
    }
    pthread_mutex_unlock(&texts->lock);
    return text;
}

node_text_t *node_text_new(const node_text_key_t *key, budget_t *budget)
{
    node_text_t *text = calloc(1, sizeof(*text));
    if (text != NULL) {
        text->references = 1;
        text->key = *key;
        text_init(&text->text);
        text_charge(&text->text, budget, key->uid);
        text->text.is_member = key->is_member;
    }
    return text;
}

void node_texts_add(node_texts_t *texts, node_text_t *text)
{
    pthread_mutex_lock(&texts->lock);
    LIST_INSERT_HEAD(&texts->items, text, link);
    pthread_mutex_unlock(&texts->lock);
}

void node_texts_release(node_texts_t *texts, node_text_t *text)
{
    if (text == NULL) {
        return;
    }
    pthread_mutex_lock(&texts->lock);
    bool is_last = --text->references == 0;
    if (is_last && text->link.le_prev != NULL) { /* NULL: it was never added */
        LIST_REMOVE(text, link);
    }
    pthread_mutex_unlock(&texts->lock);
    if (is_last) {
        text_fini(&text->text);
        free(text);
    }
}
