/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of one directory; see entries.h. Chained buckets, as many as names.
 */
#include "segments/entries.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/hash.h"

#define LEAST_BUCKETS 64u

static uint64_t seed; /* names are hostile: none can tell which ones collide */

static void choose_seed(void)
{
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        seed = (uint64_t)(uintptr_t)&seed; /* of a machine that has just booted */
    }
}

static size_t bucket_of(const char *name, size_t bucket_count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, choose_seed);
    return (size_t)(rmm__hash_text(RMM_HASH_BEGIN ^ seed, name) % bucket_count);
}

entry_t *entries_find(const entries_t *entries, const char *name)
{
    entry_t *entry = entries->bucket_count == 0
                         ? NULL
                         : entries->buckets[bucket_of(name, entries->bucket_count)];
    while (entry != NULL && strcmp(entry->name, name) != 0) {
        entry = entry->next;
    }
    return entry;
}

static void insert(entry_t **buckets, size_t bucket_count, entry_t *entry)
{
    entry_t **bucket = &buckets[bucket_of(entry->name, bucket_count)];
    entry->next = *bucket;
    *bucket = entry;
}

/* False: no memory, and no bucket at all. */
static bool grow(entries_t *entries)
{
    size_t wanted = entries->bucket_count == 0 ? LEAST_BUCKETS : 2 * entries->count;
    if (entries->count < entries->bucket_count) {
        return true;
    }
    entry_t **buckets = calloc(wanted, sizeof(entry_t *));
    if (buckets == NULL) {
        return entries->bucket_count != 0;
    }
    for (size_t i = 0; i < entries->bucket_count; i++) {
        while (entries->buckets[i] != NULL) {
            entry_t *entry = entries->buckets[i];
            entries->buckets[i] = entry->next;
            insert(buckets, wanted, entry);
        }
    }
    free(entries->buckets);
    entries->buckets = buckets;
    entries->bucket_count = wanted;
    return true;
}

entry_t *entries_add(entries_t *entries, const char *name)
{
    entry_t *entry = grow(entries) ? calloc(1, sizeof(*entry)) : NULL;
    if (entry != NULL) {
        (void)snprintf(entry->name, sizeof(entry->name), "%.63s", name);
        insert(entries->buckets, entries->bucket_count, entry);
        entries->count++;
    }
    return entry;
}

void entries_remove(entries_t *entries, entry_t *entry)
{
    entry_t **link = &entries->buckets[bucket_of(entry->name, entries->bucket_count)];
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    entries->count--;
    free(entry);
}

void entries_each(const entries_t *entries, entries_visit_fn visit, void *arg)
{
    for (size_t i = 0; i < entries->bucket_count; i++) {
        entry_t *entry = entries->buckets[i];
        while (entry != NULL) {
            entry_t *next = entry->next;
            if (!visit(entry, arg)) {
                return;
            }
            entry = next;
        }
    }
}

static bool free_entry(entry_t *entry, void *arg)
{
    (void)arg;
    free(entry);
    return true;
}

void entries_fini(entries_t *entries)
{
    entries_each(entries, free_entry, NULL);
    free(entries->buckets);
    *entries = (entries_t){0};
}
