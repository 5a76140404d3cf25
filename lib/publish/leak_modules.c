/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of modules; see leak_modules.h.
 *
 * Locking: one thread at a time uses the table, the one that sets `busy`. Other threads do not wait
 * for it: that thread calls the loader, whose lock may be held by a thread that is allocating. A
 * child that is forked meanwhile finds `busy` set for ever, but no reader sees its table.
 */
#include "publish/leak_modules.h"

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "core/assert.h"
#include "core/hash.h"
#include "core/loaded_module.h"

#define PAGE_SHIFT 12
#define PAGES                                                                          \
    256u /* a power of two; pages of code that a program's stacks go through */

/* A copy of what the table lists. The segment's copy can be written by others. */
typedef struct span {
    uintptr_t begin, end;
    uint64_t path_hash;
} span_t;

static _Atomic(rmm_leaks_header_t *) header;  /* NULL: no table */
static rmm_leaks_module_t *table;             /* behind header */
static _Atomic(uintptr_t) known_pages[PAGES]; /* listed, or in no module */
static _Atomic(uintptr_t) own_begin, own_end; /* 0: not known, or the program's */
static atomic_flag busy = ATOMIC_FLAG_INIT;   /* protects: */
static span_t written[RMM_LEAK_MODULES];
static uint32_t written_count;
static uint64_t seen_adds; /* dlpi_adds when the loader was last queried */

static const char own_place = 0;

/* --- the table ---------------------------------------------------------------------- */

static bool is_written(const span_t *span)
{
    for (uint32_t i = 0; i < written_count; i++) {
        if (written[i].begin == span->begin && written[i].end == span->end &&
            written[i].path_hash == span->path_hash) {
            return true;
        }
    }
    return false;
}

/* Copies the end of the path, by which modules differ. */
static void copy_path(char target[RMM_LEAKS_PATH_BYTES], const char *path)
{
    size_t length = strlen(path);
    size_t cut = length < RMM_LEAKS_PATH_BYTES ? 0 : length - RMM_LEAKS_PATH_BYTES + 1;

    memcpy(target, path + cut, length - cut + 1);
}

static void tell(const span_t *span, uintptr_t base, const char *path)
{
    rmm_leaks_module_t *module = &table[written_count];

    module->begin = span->begin;
    module->end = span->end;
    module->base = base;
    copy_path(module->path, path);
    written[written_count++] = *span;
    /* release: pairs with rmm__leaks_each_module(): a reader that counts it sees it complete */
    atomic_store_explicit(
        &atomic_load_explicit(&header, memory_order_relaxed)->modules_used,
        written_count, memory_order_release);
}

/* --- the loader --------------------------------------------------------------------- */

static span_t span_of(const struct dl_phdr_info *info)
{
    span_t span = {0};

    rmm__module_span(info, &span.begin, &span.end);
    return span;
}

static void note_own(const span_t *span)
{
    uintptr_t place = (uintptr_t)&own_place;

    if (span->begin <= place && place < span->end) {
        atomic_store_explicit(&own_begin, span->begin, memory_order_relaxed);
        atomic_store_explicit(&own_end, span->end, memory_order_relaxed);
    }
}

/* The first is the program, which has no name here. */
static int see_module(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    bool *is_program = arg;
    char program[4096];
    const char *path = info->dlpi_name;
    span_t span = span_of(info);

    (void)bytes;
    if (*is_program) {
        if (info->dlpi_adds == seen_adds) {
            return 1; /* nothing is new */
        }
        seen_adds = info->dlpi_adds;
        rmm__program_path(program, sizeof(program));
        path = program;
    } else {
        note_own(&span);
    }
    *is_program = false;
    span.path_hash = rmm__hash_text(RMM_HASH_BEGIN, path);
    if (span.begin < span.end && path[0] != '\0' && !is_written(&span)) {
        tell(&span, info->dlpi_addr, path);
    }
    return written_count == RMM_LEAK_MODULES;
}

static bool is_in_module(uintptr_t address)
{
    for (uint32_t i = 0; i < written_count; i++) {
        if (written[i].begin <= address && address < written[i].end) {
            return true;
        }
    }
    return false;
}

/* --- stacks ------------------------------------------------------------------------- */

static _Atomic(uintptr_t) *known_page(uintptr_t page)
{
    return &known_pages[page % PAGES];
}

RMM_COLD static void learn_page(uintptr_t address)
{
    bool is_program = true;

    /* acquire, release: the thread at the table sees what the last one did */
    if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        return;
    }
    if (!is_in_module(address) && written_count < RMM_LEAK_MODULES) {
        (void)dl_iterate_phdr(see_module, &is_program);
    }
    atomic_store_explicit(
        known_page(address >> PAGE_SHIFT), address >> PAGE_SHIFT, memory_order_relaxed);
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

void rmm__leak_modules_learn(void *const *frames, size_t count)
{
    /* acquire: pairs with rmm__leak_modules_open() */
    if (atomic_load_explicit(&header, memory_order_acquire) == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uintptr_t address = (uintptr_t)frames[i] - 1; /* in the call */
        uintptr_t page = address >> PAGE_SHIFT;

        if (atomic_load_explicit(known_page(page), memory_order_relaxed) != page) {
            learn_page(address);
        }
    }
}

size_t rmm__leak_modules_own(void *const *frames, size_t count)
{
    uintptr_t begin = atomic_load_explicit(&own_begin, memory_order_relaxed);
    uintptr_t end = atomic_load_explicit(&own_end, memory_order_relaxed);
    size_t own = 0;

    while (own < count && (uintptr_t)frames[own] > begin &&
           (uintptr_t)frames[own] <= end) {
        own++;
    }
    return own < count ? own : 0;
}

void rmm__leak_modules_open(rmm_leaks_header_t *leaks, rmm_leaks_module_t *modules)
{
    table = modules;
    /* release: pairs with rmm__leak_modules_learn() */
    atomic_store_explicit(&header, leaks, memory_order_release);
}
