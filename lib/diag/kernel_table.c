/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables onto one list of entries: by handle (forgetful: it can always be learnt again)
 * and by name (never forgets).
 */
#include "diag/kernel_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

bool rmm__kernel_table_init(
    rmm_kernel_table_t *table, rmm_diag_kernel_t *entries, uint32_t capacity,
    rmm_demangle_fn demangle)
{
    *table = (rmm_kernel_table_t){
        .names = calloc(capacity, sizeof(char *)),
        .capacity = capacity,
        .entries = entries,
        .demangle = demangle,
    };
    return table->names != NULL;
}

void rmm__kernel_table_fini(rmm_kernel_table_t *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        free(table->names[i]);
    }
    free(table->names);
    rmm__pointer_map_fini(&table->by_name);
    rmm__pointer_map_fini(&table->by_handle);
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
    uint64_t hash = RMM_HASH_BEGIN, word = 0;
    size_t left = strlen(name);

    for (; left >= sizeof(word); left -= sizeof(word), name += sizeof(word)) {
        memcpy(&word, name, sizeof(word));
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, name, left);
    return mix(hash, word);
}

/* False: there is none. */
static bool find(const rmm_pointer_map_t *map, const void *key, uint32_t *entry_out)
{
    size_t bytes = 0;
    bool is_there = rmm__pointer_map_find(map, key, &bytes);

    *entry_out = (uint32_t)(bytes - 1);
    return is_there;
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

/* Of two names with one hash, which are not to be expected, the second one has no entry. */
static uint32_t entry_by_name(rmm_kernel_table_t *table, const char *name)
{
    void *hash = (void *)(uintptr_t)hash_of_name(name);
    uint32_t entry;

    if (find(&table->by_name, hash, &entry)) {
        return strcmp(table->names[entry], name) == 0 ? entry : RMM_DIAG_NO_USER;
    }
    entry = table->count;
    if (entry == table->capacity || !rmm__pointer_map_reserve(&table->by_name)) {
        return RMM_DIAG_NO_USER;
    }
    table->names[entry] = strdup(name);
    if (table->names[entry] == NULL) {
        rmm__pointer_map_unreserve(&table->by_name);
        return RMM_DIAG_NO_USER;
    }
    write_shown_name(table, table->entries[entry].name, name);
    rmm__pointer_map_insert(&table->by_name, hash, (size_t)entry + 1);
    table->count++;
    return entry;
}

static void
remember_handle(rmm_kernel_table_t *table, const void *function, uint32_t entry)
{
    const rmm_pointer_map_entry_t known = {
        (void *)(uintptr_t)function, (size_t)entry + 1, NULL};
    rmm_pointer_map_entry_t stale;

    if (table->by_handle.count / 4 >= table->capacity) {
        rmm__pointer_map_fini(&table->by_handle);
    }
    if (rmm__pointer_map_reserve(&table->by_handle)) {
        (void)rmm__pointer_map_replace_entry(&table->by_handle, &known, &stale);
    }
}

uint32_t rmm__kernel_table_entry(
    rmm_kernel_table_t *table, const void *function, const char *name)
{
    char unnamed[32];
    uint32_t entry;

    if (name == NULL || name[0] == '\0') {
        snprintf(unnamed, sizeof(unnamed), "kernel@0x%" PRIxPTR, (uintptr_t)function);
        name = unnamed;
    }
    if (find(&table->by_handle, function, &entry) &&
        strcmp(table->names[entry], name) == 0) {
        return entry;
    }
    entry = entry_by_name(table, name);
    if (function != NULL && entry != RMM_DIAG_NO_USER) {
        remember_handle(table, function, entry);
    }
    return entry;
}
