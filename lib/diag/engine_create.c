/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an engine is made: its checkers, and its part of the side file, whose sections follow the
 * header one after the other.
 */
#include "diag/checker.h"
#include "diag/peak.h"
#include "diag/resource_names.h"
#include "diag/verdicts.h"

#include <stdio.h>
#include <stdlib.h>

static const rmm_checker_t *const checkers[] = {
#define ADDRESS(name) &rmm__##name##_checker,
    RMM_CHECKER_MAP(ADDRESS)
#undef ADDRESS
};

#define CHECKERS (sizeof(checkers) / sizeof(checkers[0]))

static_assert(CHECKERS < RMM_CHECKERS_MAX, "each list of checkers has an end");

/* --- the side file ----------------------------------------------------------------- */

typedef struct counts {
#define COUNT(name, type, bytes) uint32_t name;
    RMM_DIAG_SECTION_MAP(COUNT)
#undef COUNT
} counts_t;

/* The section is at the end of the file, which grows by it. */
static void append_section(
    rmm_diag_header_t *header, rmm_diag_section_t *section, uint32_t bytes,
    uint32_t count)
{
    section->offset = (uint32_t)header->file_bytes;
    section->stride = bytes;
    section->count = count;
    header->file_bytes += (uint64_t)bytes * count;
}

static void
lay_out(rmm_diag_header_t *header, uint32_t row_count, uint32_t kernel_count)
{
    const counts_t counts = {
        .kernels = kernel_count,
        .rows = row_count,
        .findings = RMM_DIAG_FINDINGS_COUNT,
        .functions = RMM_DIAG_FUNCTIONS_COUNT,
        .peaks = RMM_DIAG_PEAKS_COUNT,
        .parts = RMM_DIAG_PEAKS_COUNT * RMM_DIAG_PARTS_COUNT,
        .stacks = RMM_DIAG_FINDINGS_COUNT,
        .modules = RMM_DIAG_MODULES_COUNT,
        .verdicts = RMM_DIAG_VERDICTS_COUNT,
        .origins = RMM_DIAG_FINDINGS_COUNT,
        .frees = RMM_DIAG_FINDINGS_COUNT,
        .sites = RMM_STACK_DEPOT_COUNT,
        .resources = RMM_DIAG_RESOURCES_COUNT,
        .lines = RMM_DIAG_LINES_COUNT};

    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->version_minor = RMM_DIAG_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(*header);
#define APPEND(name, type, bytes)                                                      \
    append_section(header, &header->name, sizeof(type), counts.name);
    RMM_DIAG_SECTION_MAP(APPEND)
#undef APPEND
}

size_t rmm__diag_file_bytes(uint32_t row_count, uint32_t kernel_count)
{
    rmm_diag_header_t header = {0};

    lay_out(&header, row_count, kernel_count);
    return header.file_bytes;
}

/* --- checkers ---------------------------------------------------------------------- */

static void
append(rmm_active_checker_t list[RMM_CHECKERS_MAX], const rmm_active_checker_t *active)
{
    uint32_t i = 0;

    while (list[i].checker != NULL) {
        i++;
    }
    list[i] = *active;
}

static void activate(rmm_diag_engine_t *engine, const rmm_active_checker_t *active)
{
    append(engine->active, active);
#define APPEND(hook)                                                                   \
    if (active->checker->hook != NULL) {                                               \
        append(engine->on_##hook, active);                                             \
    }
    RMM_CHECKER_HOOK_MAP(APPEND)
#undef APPEND
}

static void stop_checkers(rmm_diag_engine_t *engine)
{
    for (uint32_t i = 0; engine->active[i].checker != NULL; i++) {
        const rmm_active_checker_t *active = &engine->active[i];

        if (active->checker->fini != NULL) {
            active->checker->fini(active->state);
        }
        free(active->state);
    }
}

static bool start_checker(
    rmm_diag_engine_t *engine, const rmm_checker_t *checker,
    const rmm_diag_engine_desc_t *desc)
{
    rmm_active_checker_t active = {.checker = checker};

    if (checker->is_wanted != NULL && !checker->is_wanted(desc)) {
        return true;
    }
    active.state = calloc(1, checker->state_bytes + 1); /* never 0 bytes */
    if (active.state == NULL) {
        return false;
    }
    if (checker->init != NULL && !checker->init(active.state, engine, desc)) {
        free(active.state);
        return false;
    }
    activate(engine, &active);
    return true;
}

static bool
start_checkers(rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    for (uint32_t i = 0; i < CHECKERS; i++) {
        if (!start_checker(engine, checkers[i], desc)) {
            stop_checkers(engine);
            return false;
        }
    }
    return true;
}

/* --- the engine -------------------------------------------------------------------- */

static void place_sections(rmm_diag_engine_t *engine)
{
    rmm_diag_header_t *header = engine->header;
    unsigned char *memory = (void *)header;

    engine->blocks.header = header;
    engine->blocks.rows = (void *)(memory + header->rows.offset);
    engine->findings = (rmm_findings_t){
        .header = header, .entries = (void *)(memory + header->findings.offset)};
    engine->users = (rmm_users_t){
        .header = header,
        .kernel_entries = (void *)(memory + header->kernels.offset),
        .functions = (void *)(memory + header->functions.offset)};
}

static void note_text(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text != NULL ? text : "");
}

rmm_diag_engine_t *rmm__diag_engine_create(const rmm_diag_engine_desc_t *desc)
{
    rmm_diag_engine_t *engine = calloc(1, sizeof(*engine));

    if (engine == NULL) {
        return NULL;
    }
    engine->header = desc->memory;
    lay_out(engine->header, desc->row_count, desc->kernel_count);
    note_text(engine->header->run, sizeof(engine->header->run), desc->run);
    note_text(engine->header->rank, sizeof(engine->header->rank), desc->rank);
    place_sections(engine);
    rmm__mutex_init(&engine->lock);
    rmm__stacks_init(&engine->stacks, engine->header);
    rmm__mode_switch_init(&engine->modes, engine->header, desc->source, desc->modes);
    if (!rmm__live_blocks_init(&engine->blocks, desc->row_count)) {
        goto err_free_engine;
    }
    if (!rmm__users_init(&engine->users, desc->kernel_count, desc->demangle)) {
        goto err_fini_blocks;
    }
    if (!rmm__stack_depot_init(&engine->depot)) {
        goto err_fini_users;
    }
    if (!start_checkers(engine, desc)) {
        goto err_fini_depot;
    }
    return engine;

err_fini_depot:
    rmm__stack_depot_fini(&engine->depot);
err_fini_users:
    rmm__users_fini(&engine->users);
err_fini_blocks:
    rmm__live_blocks_fini(&engine->blocks);
err_free_engine:
    rmm__stacks_fini(&engine->stacks);
    rmm__mutex_fini(&engine->lock);
    free(engine);
    return NULL;
}

void rmm__diag_engine_destroy(rmm_diag_engine_t *engine)
{
    if (engine == NULL) {
        return;
    }
    stop_checkers(engine);
    rmm__stack_depot_fini(&engine->depot);
    rmm__users_fini(&engine->users);
    rmm__live_blocks_fini(&engine->blocks);
    rmm__stacks_fini(&engine->stacks);
    rmm__mutex_fini(&engine->lock);
    free(engine);
}

/* Cut to fit; one line. */
static void copy_line(char *to, size_t room, const char *from)
{
    size_t i = 0;

    for (; i + 1 < room && from[i] != '\0'; i++) {
        to[i] = (unsigned char)from[i] < ' ' ? ' ' : from[i];
    }
    to[i] = '\0';
}

void rmm__diag_engine_publish(rmm_diag_engine_t *engine, const char *source)
{
    rmm_diag_header_t *header = engine->header;
    char modes[RMM_DIAG_MODES_TEXT];

    rmm__diag_modes_print(
        atomic_load_explicit(&engine->modes.modes, memory_order_relaxed), modes);
    copy_line(header->mode, sizeof(header->mode), modes);
    copy_line(header->source, sizeof(header->source), source);
    /* release: all that does not change is written; pairs with diag_reader.c */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

bool rmm__diag_engine_check(rmm_diag_engine_t *engine)
{
    bool good = false;

    rmm__mutex_lock(&engine->lock);
    good = rmm__live_blocks_check(&engine->blocks);
    for (uint32_t i = 0; engine->active[i].checker != NULL; i++) {
        const rmm_active_checker_t *active = &engine->active[i];

        good = good && (active->checker->check == NULL ||
                        active->checker->check(active->state));
    }
    rmm__mutex_unlock(&engine->lock);
    return good;
}
