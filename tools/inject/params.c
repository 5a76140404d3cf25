/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants: a layout in the table is complete and does not change; it is freed under
 * the lock only, so it is read under the lock only.
 */
#include "inject/params.h"

#include <stdlib.h>
#include <string.h>

#include <rmm/sys/diag.h>

enum {
    QUERY_OK = 0,
    QUERY_INVALID_VALUE = 1,    /* CUDA_ERROR_INVALID_VALUE: no such parameter */
    QUERY_INVALID_HANDLE = 400, /* CUDA_ERROR_INVALID_HANDLE: not a function */
    LAYOUTS_MAX = 16384         /* then all are forgotten: they can be asked again */
};

/* CU_LAUNCH_PARAM_*: keys of `extra` */
enum {
    EXTRA_END = 0,
    EXTRA_BUFFER_POINTER = 1,
    EXTRA_BUFFER_SIZE = 2,
    EXTRA_KEYS_MAX = 16
};

/* --- table ------------------------------------------------------------------------- */

void inject_layouts_init(inject_layouts_t *layouts, inject_queries_t queries)
{
    *layouts = (inject_layouts_t){.queries = queries};
    rmm__mutex_init(&layouts->lock);
}

static void clear_locked(inject_layouts_t *layouts)
{
    rmm_pointer_map_entry_t entry;
    size_t from = 0;

    RMM_ASSERT_LOCKED(&layouts->lock);
    while (rmm__pointer_map_any(&layouts->by_function, &from, &entry)) {
        free(entry.owner);
        rmm__pointer_map_erase(&layouts->by_function, entry.ptr);
    }
}

void inject_layouts_clear(inject_layouts_t *layouts)
{
    rmm__mutex_lock(&layouts->lock);
    clear_locked(layouts);
    rmm__mutex_unlock(&layouts->lock);
}

void inject_layouts_fini(inject_layouts_t *layouts)
{
    inject_layouts_clear(layouts);
    rmm__pointer_map_fini(&layouts->by_function);
    rmm__mutex_fini(&layouts->lock);
}

static inject_layout_t *find_locked(inject_layouts_t *layouts, const void *function)
{
    rmm_pointer_map_entry_t entry = {.owner = NULL};

    RMM_ASSERT_LOCKED(&layouts->lock);
    (void)rmm__pointer_map_find_entry(&layouts->by_function, function, &entry);
    return entry.owner;
}

/* Takes the layout over: keeps it, or frees it where it is not wanted. */
static void keep(inject_layouts_t *layouts, inject_layout_t *layout)
{
    rmm__mutex_lock(&layouts->lock);
    if (layouts->by_function.count == LAYOUTS_MAX) {
        clear_locked(layouts);
    }
    if (find_locked(layouts, layout->function) == NULL &&
        rmm__pointer_map_reserve(&layouts->by_function)) {
        rmm__pointer_map_insert_entry(
            &layouts->by_function,
            &(rmm_pointer_map_entry_t){(void *)(uintptr_t)layout->function, 0, layout});
        layout = NULL;
    }
    rmm__mutex_unlock(&layouts->lock);
    free(layout); /* another thread was first, or there is no room */
}

/* --- asking the driver ------------------------------------------------------------- */

static inject_layout_t *layout_create(const void *function)
{
    inject_layout_t *layout = calloc(1, sizeof(*layout));

    if (layout != NULL) {
        layout->function = function;
    }
    return layout;
}

static bool is_small(const inject_span_t *span)
{
    return span->word_count < RMM_DIAG_LARGE_STRUCT_BYTES / sizeof(uint64_t);
}

/* In its place: small ones before large ones. NULL: no host memory; the old layout is freed. */
static inject_layout_t *layout_insert(inject_layout_t *layout, inject_span_t span)
{
    size_t bytes = sizeof(*layout) + (layout->span_count + 1) * sizeof(span);
    inject_layout_t *grown = realloc(layout, bytes);
    uint32_t at = 0;

    if (grown == NULL) {
        free(layout);
        return NULL;
    }
    at = grown->span_count++;
    for (; at > 0 && is_small(&span) && !is_small(&grown->spans[at - 1]); at--) {
        grown->spans[at] = grown->spans[at - 1];
    }
    grown->spans[at] = span;
    grown->word_count += span.word_count;
    return grown;
}

/* The whole words of a parameter at this offset of the parameter block. */
static inject_span_t words_of(size_t index, size_t offset, size_t bytes)
{
    size_t skip = (8 - offset % 8) % 8;
    inject_span_t span = {
        .parameter = (uint32_t)index,
        .offset_bytes = (uint32_t)offset,
        .skip_bytes = (uint32_t)skip};

    span.word_count = bytes < skip ? 0 : (uint32_t)((bytes - skip) / 8);
    return span;
}

static inject_query_fn
choose_query(const inject_queries_t *queries, const void *function)
{
    size_t offset = 0, bytes = 0;

    if (queries->of_function == NULL) {
        return queries->of_kernel;
    }
    if (queries->of_kernel != NULL &&
        queries->of_function(function, 0, &offset, &bytes) == QUERY_INVALID_HANDLE) {
        return queries->of_kernel;
    }
    return queries->of_function;
}

/* NULL: no host memory. */
static inject_layout_t *ask(const inject_queries_t *queries, const void *function)
{
    inject_query_fn query = choose_query(queries, function);
    inject_layout_t *layout = layout_create(function);
    size_t offset = 0, bytes = 0, index = 0;
    int answer = QUERY_INVALID_HANDLE;

    while (query != NULL && layout != NULL) {
        inject_span_t span;

        answer = query(function, index, &offset, &bytes);
        if (answer != QUERY_OK || offset > INJECT_PARAM_BYTES_MAX ||
            bytes > INJECT_PARAM_BYTES_MAX - offset ||
            index == INJECT_PARAM_BYTES_MAX) {
            break;
        }
        span = words_of(index, offset, bytes);
        if (span.word_count > 0) {
            layout = layout_insert(layout, span);
        }
        index++;
    }
    if (layout != NULL) {
        layout->known = answer == QUERY_INVALID_VALUE; /* the end of the list */
    }
    return layout;
}

/* --- collecting -------------------------------------------------------------------- */

void inject_words_init(inject_words_t *words)
{
    words->words = words->inline_words;
    words->count = 0;
    words->stale_count = 0;
}

void inject_words_fini(inject_words_t *words)
{
    if (words->words != words->inline_words) {
        free(words->words);
    }
}

static bool reserve(inject_words_t *words, size_t count)
{
    if (count > INJECT_WORDS_INLINE) {
        uint64_t *heap = malloc(count * sizeof(*heap));

        if (heap == NULL) {
            return false;
        }
        words->words = heap;
    }
    return true;
}

static void append(inject_words_t *words, const void *from, size_t count)
{
    uint64_t *to = &words->words[words->count];

    if (count == 1) { /* most parameters: no call, as the size is known */
        memcpy(to, from, sizeof(*to));
    } else {
        memcpy(to, from, count * sizeof(*to));
    }
    words->count += count;
}

/* Where a launch has its parameters. */
typedef struct values {
    void *const *addresses; /* one of each; NULL: they are in the buffer */
    const unsigned char *buffer;
    size_t buffer_bytes;
} values_t;

/* The first word of the span; NULL: the program has not passed it. */
static const unsigned char *words_at(const values_t *values, const inject_span_t *span)
{
    size_t begin = (size_t)span->offset_bytes + span->skip_bytes;
    size_t end = begin + span->word_count * sizeof(uint64_t);

    if (values->addresses != NULL) {
        const unsigned char *value = values->addresses[span->parameter];

        return value != NULL ? value + span->skip_bytes : NULL;
    }
    return end <= values->buffer_bytes ? values->buffer + begin : NULL;
}

static bool
gather(inject_words_t *words, const inject_layout_t *layout, const values_t *values)
{
    if (!layout->known || !reserve(words, layout->word_count)) {
        return false;
    }
    for (uint32_t i = 0; i < layout->span_count; i++) {
        const inject_span_t *span = &layout->spans[i];
        const unsigned char *from = words_at(values, span);

        if (from != NULL) {
            append(words, from, span->word_count);
            words->stale_count += is_small(span) ? 0 : span->word_count;
        }
    }
    return true;
}

static bool gather_by_layout(
    inject_words_t *words, inject_layouts_t *layouts, const void *function,
    const values_t *values)
{
    inject_layout_t *layout = NULL;
    bool good = false;

    rmm__mutex_lock(&layouts->lock);
    layout = find_locked(layouts, function);
    if (layout != NULL) {
        good = gather(words, layout, values);
    }
    rmm__mutex_unlock(&layouts->lock);
    if (layout != NULL) {
        return good;
    }
    layout = ask(&layouts->queries, function);
    if (layout == NULL) {
        return false;
    }
    good = gather(words, layout, values);
    keep(layouts, layout);
    return good;
}

/* A buffer packed by the program. False: it is not known. */
static bool find_buffer(void *const *extra, values_t *values)
{
    for (size_t i = 0; i < EXTRA_KEYS_MAX && (uintptr_t)extra[i] != EXTRA_END; i += 2) {
        switch ((uintptr_t)extra[i]) {
        case EXTRA_BUFFER_POINTER:
            values->buffer = extra[i + 1];
            break;
        case EXTRA_BUFFER_SIZE:
            memcpy(&values->buffer_bytes, extra[i + 1], sizeof(values->buffer_bytes));
            break;
        default:
            return false; /* a key that we do not know: its value may be anything */
        }
    }
    return values->buffer != NULL ? values->buffer_bytes <= INJECT_PARAM_BYTES_MAX
                                  : values->buffer_bytes == 0;
}

/* Where the driver does not tell the layout: all words, padding among them. */
static bool gather_all(inject_words_t *words, const values_t *values)
{
    size_t count = values->buffer_bytes / sizeof(uint64_t);

    if (!reserve(words, count)) {
        return false;
    }
    if (count > 0) {
        append(words, values->buffer, count);
    }
    words->stale_count =
        count > RMM_DIAG_SMALL_BUFFER_BYTES / sizeof(uint64_t) ? count : 0;
    return true;
}

bool inject_words_collect(
    inject_words_t *words, inject_layouts_t *layouts, const inject_params_t *params)
{
    values_t values = {.addresses = params->addresses};

    inject_words_init(words);
    if (params->addresses != NULL) {
        return gather_by_layout(words, layouts, params->function, &values);
    }
    if (params->extra != NULL) {
        return find_buffer(params->extra, &values) &&
               (gather_by_layout(words, layouts, params->function, &values) ||
                gather_all(words, &values));
    }
    return true;
}
