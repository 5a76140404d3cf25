/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables onto one list of entries: by handle (small, forgetful: it can always be
 * learnt again) and by name (never forgets). Both probe linearly; the first is kept below
 * three quarters, the second is twice as large as there are entries.
 */
#include "diag/kernel_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t power_of_two_above(uint32_t n)
{
    uint32_t power = 16;

    while (power <= n) {
        power *= 2;
    }
    return power;
}

bool rmm__kernel_table_init(
    rmm_kernel_table_t *table, rmm_diag_kernel_t *entries, uint32_t capacity,
    rmm_demangle_fn demangle)
{
    uint32_t keys = power_of_two_above(4 * capacity);
    uint32_t names = power_of_two_above(2 * capacity);

    *table = (rmm_kernel_table_t){
        .keys = calloc(keys, sizeof(rmm_kernel_key_t)),
        .key_mask = keys - 1,
        .by_name = calloc(names, sizeof(uint32_t)),
        .by_name_mask = names - 1,
        .names = calloc(capacity, sizeof(char *)),
        .capacity = capacity,
        .entries = entries,
        .demangle = demangle,
    };
    if (table->keys == NULL || table->by_name == NULL || table->names == NULL) {
        rmm__kernel_table_fini(table);
        return false;
    }
    return true;
}

void rmm__kernel_table_fini(rmm_kernel_table_t *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        free(table->names[i]);
    }
    free(table->names);
    free(table->by_name);
    free(table->keys);
    *table = (rmm_kernel_table_t){0};
}

/* With its upper half, on which few bits of the product's lower half depend. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x100000001b3ull;
    return hash ^ hash >> 32;
}

/* FNV-1a on words instead of bytes, because names of templates have thousands of bytes and a
 * kernel without an entry is looked for at each launch. */
static uint64_t hash_of_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull, word = 0;
    size_t left = strlen(name);

    for (; left >= sizeof(word); left -= sizeof(word), name += sizeof(word)) {
        memcpy(&word, name, sizeof(word));
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, name, left);
    return mix(hash, word);
}

/* Where a search begins. Only upper bits of the product depend on all bits of the value. */
static uint32_t bucket_of(uint64_t value, uint32_t mask)
{
    return (uint32_t)(value * 0x9e3779b97f4a7c15ull >> 32) & mask;
}

static rmm_kernel_key_t *key_bucket(rmm_kernel_table_t *table, const void *function)
{
    uint32_t at = bucket_of((uintptr_t)function, table->key_mask);

    while (table->keys[at].function != NULL && table->keys[at].function != function) {
        at = (at + 1) & table->key_mask;
    }
    return &table->keys[at];
}

static uint32_t *name_bucket(rmm_kernel_table_t *table, const char *name)
{
    uint32_t at = bucket_of(hash_of_name(name), table->by_name_mask);

    while (table->by_name[at] != 0 &&
           strcmp(table->names[table->by_name[at] - 1], name) != 0) {
        at = (at + 1) & table->by_name_mask;
    }
    return &table->by_name[at];
}

/* Cut to fit, and fit for one line of text. The demangler takes a name that is not mangled for that
 * of a type: a kernel "f" would be "float". */
static void write_shown_name(rmm_kernel_table_t *table, char *to, const char *name)
{
    size_t room = sizeof(table->entries[0].name) - 1;
    int status = 0;
    char *nice = NULL;
    const char *text = name;
    size_t i = 0;

    if (table->demangle != NULL && strncmp(name, "_Z", 2) == 0) {
        nice = table->demangle(name, NULL, NULL, &status);
        text = nice != NULL && status == 0 ? nice : name;
    }
    for (; i < room && text[i] != '\0'; i++) {
        to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
    }
    to[i] = '\0';
    free(nice);
}

static uint32_t entry_by_name(rmm_kernel_table_t *table, const char *name)
{
    uint32_t *bucket = name_bucket(table, name);
    uint32_t entry = table->count;

    if (*bucket != 0) {
        return *bucket - 1;
    }
    if (entry == table->capacity) {
        return RMM_DIAG_NO_USER;
    }
    table->names[entry] = strdup(name);
    if (table->names[entry] == NULL) {
        return RMM_DIAG_NO_USER;
    }
    write_shown_name(table, table->entries[entry].name, name);
    *bucket = entry + 1;
    table->count++;
    return entry;
}

static void
remember_key(rmm_kernel_table_t *table, const void *function, uint32_t entry)
{
    rmm_kernel_key_t *bucket = key_bucket(table, function);

    if (bucket->function == NULL) {
        if (4 * (table->key_count + 1) > 3 * (table->key_mask + 1)) {
            memset(table->keys, 0, (table->key_mask + 1) * sizeof(*table->keys));
            table->key_count = 0;
            bucket = key_bucket(table, function);
        }
        bucket->function = function;
        table->key_count++;
    }
    bucket->entry = entry;
}

uint32_t rmm__kernel_table_entry(
    rmm_kernel_table_t *table, const void *function, const char *name)
{
    char unnamed[32];
    uint32_t entry = 0;

    if (name == NULL || name[0] == '\0') {
        snprintf(unnamed, sizeof(unnamed), "kernel@0x%" PRIxPTR, (uintptr_t)function);
        name = unnamed;
    }
    if (function != NULL) {
        const rmm_kernel_key_t *key = key_bucket(table, function);

        if (key->function == function && strcmp(table->names[key->entry], name) == 0) {
            return key->entry;
        }
    }
    entry = entry_by_name(table, name);
    if (function != NULL && entry != RMM_DIAG_NO_USER) {
        remember_key(table, function, entry);
    }
    return entry;
}
