/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine over private memory, and short ways to feed it and to look at its rows.
 */
#ifndef RMM_TESTS_UNIT_DIAG_FIXTURE_H
#define RMM_TESTS_UNIT_DIAG_FIXTURE_H

#include <stdlib.h>

#include "diag/engine.h"

typedef struct diag_fixture {
    rmm_diag_engine_t *engine;
    rmm_diag_header_t *header;
    rmm_diag_kernel_t *kernels;
    rmm_diag_row_t *rows;
    rmm_diag_finding_t *findings;
    rmm_diag_function_t *functions;
} diag_fixture_t;

/* With memory for what the description says. */
static inline diag_fixture_t diag_open_described(rmm_diag_engine_desc_t desc)
{
    diag_fixture_t fixture = {0};
    void *memory = calloc(1, rmm__diag_file_bytes(desc.row_count, desc.kernel_count));

    assert_non_null(memory);
    desc.memory = memory;
    fixture.engine = rmm__diag_engine_create(&desc);
    assert_non_null(fixture.engine);
    fixture.header = memory;
    fixture.kernels = (void *)((char *)memory + fixture.header->kernels.offset);
    fixture.rows = (void *)((char *)memory + fixture.header->rows.offset);
    fixture.findings = (void *)((char *)memory + fixture.header->findings.offset);
    fixture.functions = (void *)((char *)memory + fixture.header->functions.offset);
    return fixture;
}

static inline diag_fixture_t diag_open_modes(
    uint32_t rows, uint32_t kernels, rmm_demangle_fn demangle, uint32_t modes)
{
    return diag_open_described((rmm_diag_engine_desc_t){
        .row_count = rows,
        .kernel_count = kernels,
        .demangle = demangle,
        .modes = modes});
}

static inline diag_fixture_t
diag_open(uint32_t rows, uint32_t kernels, rmm_demangle_fn demangle)
{
    return diag_open_modes(
        rows, kernels, demangle, RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS);
}

static inline void diag_close(diag_fixture_t *fixture)
{
    assert_true(rmm__diag_engine_check(fixture->engine));
    rmm__diag_engine_destroy(fixture->engine);
    free(fixture->header);
}

static inline rmm_diag_block_v1_t diag_block(uint64_t address, uint64_t bytes)
{
    return (rmm_diag_block_v1_t){
        .address = address, .bytes = bytes, .stream_id = 7, .resource_id = 3};
}

static inline void diag_alloc(diag_fixture_t *fixture, uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = diag_block(address, bytes);

    rmm__diag_engine_on_alloc(fixture->engine, &block);
}

static inline void diag_free(diag_fixture_t *fixture, uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = diag_block(address, bytes);

    rmm__diag_engine_on_free(fixture->engine, &block);
}

static inline void diag_event(
    diag_fixture_t *fixture, uint32_t kind, const void *function, const char *name,
    const uint64_t *words, size_t count)
{
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .function = function,
        .name = name,
        .words = words,
        .word_count = count,
    };

    rmm__diag_engine_on_event(fixture->engine, &event);
}

/* A launch with the words given, of a kernel whose handle is its name's address. */
#define diag_launch(fixture, name, ...)                                                \
    diag_event(                                                                        \
        (fixture), RMM_DIAG_LAUNCH, (name), (name), (const uint64_t[]){__VA_ARGS__},   \
        sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* The live row of the block at this address, or NULL. */
static inline const rmm_diag_row_t *
diag_row(const diag_fixture_t *fixture, uint64_t address)
{
    for (uint32_t i = 0; i < fixture->header->rows.used; i++) {
        if (fixture->rows[i].live && fixture->rows[i].address == address) {
            return &fixture->rows[i];
        }
    }
    return NULL;
}

/* The name of a kernel or function. */
static inline const char *diag_user_name(const diag_fixture_t *fixture, uint32_t user)
{
    uint32_t function = user & ~RMM_DIAG_FUNCTION;

    if (user < fixture->header->kernels.used) {
        return fixture->kernels[user].name;
    }
    return (user & RMM_DIAG_FUNCTION) != 0 && function < fixture->header->functions.used
               ? fixture->functions[function].name
               : "none";
}

#endif /* RMM_TESTS_UNIT_DIAG_FIXTURE_H */
