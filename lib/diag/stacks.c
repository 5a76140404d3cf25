/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures stacks; see stacks.h. The frames of the diagnosis library itself, and of what it called,
 * are left out. A frame whose module is not known, or found no entry in the table, is its address.
 */
#include "diag/stacks.h"

#include <string.h>

#include "core/loaded_module.h"
#include "diag/python_frames.h"
#include "diag/python_lines.h"
#include "diag/row.h"

typedef struct place {
    uintptr_t begin, end, base;
    rmm_diag_module_t module;
    bool is_own;
} place_t;

typedef struct capture {
    const rmm_stack_raw_t *raw;
    uintptr_t frames[RMM_STACK_RAW_FRAMES]; /* in the call, not behind it */
    uint32_t frame_count;
    place_t places[RMM_DIAG_FRAMES_COUNT];
    uint32_t place_count;
    bool is_program; /* the next module is */
} capture_t;

static const char own_place = 0;

/* --- the stack --------------------------------------------------------------------- */

static bool is_in(uintptr_t address, uintptr_t begin, uintptr_t end)
{
    return begin <= address && address < end;
}

static bool has_frame_in(const capture_t *capture, uintptr_t begin, uintptr_t end)
{
    for (uint32_t i = 0; i < capture->frame_count; i++) {
        if (is_in(capture->frames[i], begin, end)) {
            return true;
        }
    }
    return false;
}

/* The end of the path, which distinguishes modules. */
static void copy_path(char path[RMM_DIAG_PATH_BYTES], const char *name, bool is_program)
{
    char program[4096];
    size_t length, cut;

    if (is_program) {
        rmm__program_path(program, sizeof(program));
        name = program;
    }
    length = strlen(name);
    cut = length < RMM_DIAG_PATH_BYTES ? 0 : length - RMM_DIAG_PATH_BYTES + 1;
    memcpy(path, name + cut, length - cut + 1);
}

static int see_module(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    capture_t *capture = arg;
    bool is_program = capture->is_program;
    place_t place = {.base = info->dlpi_addr};

    (void)bytes;
    capture->is_program = false; /* the first is */
    rmm__module_span(info, &place.begin, &place.end);
    if (has_frame_in(capture, place.begin, place.end)) {
        /* of a program that was linked with the engine statically all frames are shown */
        place.is_own =
            !is_program && is_in((uintptr_t)&own_place, place.begin, place.end);
        copy_path(place.module.path, info->dlpi_name, is_program);
        place.module.build_id_bytes = (uint32_t)rmm__module_build_id(
            info, place.module.build_id, sizeof(place.module.build_id));
        capture->places[capture->place_count++] = place;
    }
    return capture->place_count == RMM_DIAG_FRAMES_COUNT;
}

/* NULL: unknown. */
static const place_t *find_place(const capture_t *capture, uintptr_t frame)
{
    for (uint32_t i = 0; i < capture->place_count; i++) {
        if (is_in(frame, capture->places[i].begin, capture->places[i].end)) {
            return &capture->places[i];
        }
    }
    return NULL;
}

static void take_frames(capture_t *capture, const rmm_stack_raw_t *raw)
{
    capture->raw = raw;
    capture->frame_count = raw->count;
    for (uint32_t i = 0; i < raw->count; i++) {
        capture->frames[i] = (uintptr_t)raw->frames[i] - 1;
    }
    capture->place_count = 0;
    capture->is_program = true;
    (void)dl_iterate_phdr(see_module, capture);
}

/* The frames to leave out: through the last one of the diagnosis library, which also stands
 * between the library that it reports to and CUPTI. */
static uint32_t own_frames(const capture_t *capture)
{
    uint32_t own = 0;

    for (uint32_t i = 0; i < capture->frame_count; i++) {
        const place_t *place = find_place(capture, capture->frames[i]);

        own = place != NULL && place->is_own ? i + 1 : own;
    }
    return own;
}

/* --- the tables -------------------------------------------------------------------- */

static uint32_t module_locked(rmm_stacks_t *stacks, const rmm_diag_module_t *module)
{
    uint32_t used =
        atomic_load_explicit(&stacks->header->modules.used, memory_order_relaxed);

    RMM_ASSERT_LOCKED(&stacks->lock);
    for (uint32_t i = 0; i < used && i < RMM_DIAG_MODULES_COUNT; i++) {
        if (memcmp(&stacks->modules[i], module, sizeof(*module)) == 0) {
            return i;
        }
    }
    if (used >= RMM_DIAG_MODULES_COUNT) {
        return RMM_DIAG_NO_MODULE;
    }
    stacks->modules[used] = *module;
    /* release: the entry is written; pairs with a reader's load */
    atomic_store_explicit(
        &stacks->header->modules.used, used + 1, memory_order_release);
    return used;
}

/* The line is in the side file; RMM_DIAG_LINES_COUNT: it has no room, or is not known. */
static uint32_t line_locked(rmm_stacks_t *stacks, const rmm_diag_line_t *line)
{
    uint32_t used =
        atomic_load_explicit(&stacks->header->lines.used, memory_order_relaxed);

    RMM_ASSERT_LOCKED(&stacks->lock);
    for (uint32_t i = 0; i < used && i < RMM_DIAG_LINES_COUNT && line != NULL; i++) {
        if (memcmp(&stacks->lines[i], line, sizeof(*line)) == 0) {
            return i;
        }
    }
    if (line == NULL || used >= RMM_DIAG_LINES_COUNT) {
        return RMM_DIAG_LINES_COUNT;
    }
    stacks->lines[used] = *line;
    /* release: the entry is written; pairs with a reader's load */
    atomic_store_explicit(&stacks->header->lines.used, used + 1, memory_order_release);
    return used;
}

static void put_lines_locked(
    rmm_stacks_t *stacks, rmm_diag_stack_t *entry, const rmm_stack_raw_t *raw)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < raw->line_count; i++) {
        uint32_t line = line_locked(stacks, rmm__python_line_get(raw->lines[i]));

        if (line < RMM_DIAG_LINES_COUNT) {
            RMM_ROW_SET(entry, lines[count], line);
            count++;
        }
    }
    RMM_ROW_SET(entry, line_count, count);
    RMM_ROW_SET(stacks->header, python_lines, rmm__python_state());
}

static void
put_locked(rmm_stacks_t *stacks, rmm_diag_stack_t *entry, const capture_t *capture)
{
    uint32_t own = own_frames(capture), count = capture->frame_count - own;

    RMM_ASSERT_LOCKED(&stacks->lock);
    count = count < RMM_DIAG_FRAMES_COUNT ? count : RMM_DIAG_FRAMES_COUNT;
    RMM_ROW_BEGIN(entry);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t frame = capture->frames[own + i];
        const place_t *place = find_place(capture, frame);
        uint32_t module =
            place != NULL ? module_locked(stacks, &place->module) : RMM_DIAG_NO_MODULE;

        RMM_ROW_SET(entry, modules[i], module);
        RMM_ROW_SET(
            entry, offsets[i],
            module != RMM_DIAG_NO_MODULE ? frame - place->base : frame);
    }
    RMM_ROW_SET(entry, frame_count, count);
    put_lines_locked(stacks, entry, capture->raw);
    RMM_ROW_END(entry);
}

void rmm__stacks_capture(rmm_stacks_t *stacks, uint32_t first, uint32_t end)
{
    capture_t capture;

    take_frames(&capture, rmm__stack_take());
    rmm__mutex_lock(&stacks->lock);
    for (uint32_t i = first; i < end; i++) {
        put_locked(stacks, &stacks->entries[i], &capture);
    }
    rmm__mutex_unlock(&stacks->lock);
}

static void
put_raw(rmm_stacks_t *stacks, rmm_diag_stack_t *entry, const rmm_stack_raw_t *raw)
{
    capture_t capture;

    take_frames(&capture, raw);
    rmm__mutex_lock(&stacks->lock);
    put_locked(stacks, entry, &capture);
    rmm__mutex_unlock(&stacks->lock);
}

void rmm__stacks_put_call(
    rmm_stacks_t *stacks, uint32_t finding, const rmm_stack_raw_t *raw)
{
    put_raw(stacks, &stacks->entries[finding], raw);
}

void rmm__stacks_put_origin(
    rmm_stacks_t *stacks, uint32_t finding, const rmm_stack_raw_t *raw)
{
    put_raw(stacks, &stacks->origins[finding], raw);
}

void rmm__stacks_put_free(
    rmm_stacks_t *stacks, uint32_t finding, const rmm_stack_raw_t *raw)
{
    put_raw(stacks, &stacks->frees[finding], raw);
}

void rmm__stacks_put_site(
    rmm_stacks_t *stacks, uint32_t index, const rmm_stack_raw_t *raw)
{
    put_raw(stacks, &stacks->sites[index], raw);
}

/* --- making ------------------------------------------------------------------------ */

void rmm__stacks_init(rmm_stacks_t *stacks, rmm_diag_header_t *header)
{
    unsigned char *memory = (unsigned char *)header;

    stacks->header = header;
    stacks->entries = (void *)(memory + header->stacks.offset);
    stacks->origins = (void *)(memory + header->origins.offset);
    stacks->frees = (void *)(memory + header->frees.offset);
    stacks->sites = (void *)(memory + header->sites.offset);
    stacks->modules = (void *)(memory + header->modules.offset);
    stacks->lines = (void *)(memory + header->lines.offset);
    rmm__python_find();
    memcpy(header->python, rmm__python_version(), sizeof(header->python));
    RMM_ROW_SET(header, python_lines, rmm__python_state());
    rmm__mutex_init(&stacks->lock);
    (void)rmm__stack_take(); /* loads the unwinder now and not in a callback */
}

void rmm__stacks_fini(rmm_stacks_t *stacks)
{
    rmm__mutex_fini(&stacks->lock);
}
