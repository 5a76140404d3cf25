/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All open files and directories; see opened_list.h.
 */
#include "session/opened_list.h"

void opened_list_init(opened_list_t *list)
{
    pthread_mutex_init(&list->lock, NULL);
    list->first.previous = &list->first;
    list->first.next = &list->first;
    opened_sizes_init(&list->sizes);
    node_texts_init(&list->texts);
}

void opened_list_add(opened_list_t *list, opened_t *opened)
{
    pthread_mutex_lock(&list->lock);
    opened->previous = &list->first;
    opened->next = list->first.next;
    opened->next->previous = opened;
    list->first.next = opened;
    pthread_mutex_unlock(&list->lock);
}

void opened_list_remove(opened_list_t *list, opened_t *opened)
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
        opened_list_remove(list, opened);
        opened->free(opened);
    }
    node_texts_fini(&list->texts);
    opened_sizes_fini(&list->sizes);
    pthread_mutex_destroy(&list->lock);
}
