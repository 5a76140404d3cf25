/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of events that a program left, on hostile files: the reader, the history that rmm-run
 * makes of it, and what of the page and the trace is computed from that. An engine has written the
 * ring and the other side file; only the ring is changed.
 */
#include "fuzz/changes.h"

#include <fcntl.h>
#include <stdio.h>

#include "diag/engine.h"
#include "diag/timeline_reader.h"
#include "run/names.h"
#include "run/timeline.h"
#include "timeline/page_calls.h"
#include "timeline/page_map.h"
#include "timeline/page_peak.h"
#include "timeline/trace.h"

#define SEGMENT "fuzz"
#define EVENTS 16u
#define ROWS 8u
#define KERNELS 4u
#define BASE 0x7f4000000000ull

static unsigned char sample[sizeof(rmm_timeline_header_t) + EVENTS * 64];
static run_left_t left;

/* The demangler is libstdc++'s. */
char *run_demangle(const char *name)
{
    (void)name;
    return NULL;
}

/* --- the sample ---------------------------------------------------------------------- */

static rmm_diag_block_v1_t block_number(uint64_t i)
{
    return (rmm_diag_block_v1_t){
        .address = BASE + i * 0x10000,
        .bytes = 100 << i,
        .stream_id = i,
        .resource_id = (uint32_t)i,
        .device = (int32_t)i - 1};
}

static void tell(rmm_diag_engine_t *engine, uint32_t kind, uint64_t i)
{
    const uint64_t word = BASE + i * 0x10000;
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .stream = (rmm_stream_t)(uintptr_t)(i * 0x100),
        .function = "kernel",
        .name = "kernel",
        .words = &word,
        .word_count = 1,
        .bytes = kind == RMM_DIAG_LAUNCH ? 0 : 64};

    rmm__diag_engine_on_event(engine, &event);
}

/* More events than the ring has room for, and two blocks that are left. */
static void fill(rmm_diag_engine_t *engine)
{
    for (uint64_t i = 0; i < 5; i++) {
        const rmm_diag_block_v1_t block = block_number(i);

        rmm__diag_engine_on_alloc(engine, &block);
        tell(engine, RMM_DIAG_LAUNCH, i);
        tell(engine, RMM_DIAG_SET, i);
        tell(engine, RMM_DIAG_COPY, i);
        if (i < 3) {
            rmm__diag_engine_on_free(engine, &block);
        }
    }
}

/* Once: the other side file stays as it is. */
static void make_sample(void)
{
    size_t bytes = rmm__diag_file_bytes(ROWS, KERNELS);
    void *memory = calloc(1, bytes);
    const rmm_diag_engine_desc_t desc = {
        .memory = memory,
        .row_count = ROWS,
        .kernel_count = KERNELS,
        .modes = RMM_DIAG_MODE_USAGE,
        .timeline = sample,
        .timeline_events = EVENTS};
    rmm_diag_engine_t *engine = memory != NULL ? rmm__diag_engine_create(&desc) : NULL;
    int fd = memfd_create("diag", MFD_CLOEXEC);

    if (engine == NULL || sizeof(sample) != rmm__timeline_file_bytes(EVENTS)) {
        abort();
    }
    rmm__diag_engine_publish(engine, "active");
    fill(engine);
    if (write(fd, memory, bytes) != (ssize_t)bytes ||
        rmm__diag_attach(&left.diag, fd) != 0) {
        abort();
    }
    rmm__diag_engine_destroy(engine);
    free(memory);
    left.dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    strcpy(left.segment, SEGMENT);
}

/* The ring as the input changes it, under the name that rmm-run looks for. */
static void put_ring(const uint8_t *data, size_t bytes)
{
    unsigned char image[sizeof(sample)];
    int from, to = open(
                  SEGMENT "." RMM_TIMELINE_SUFFIX,
                  O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t size;

    memcpy(image, sample, sizeof(image));
    from = changed_file(image, sizeof(image), data, bytes);
    size = pread(from, image, sizeof(image), 0);
    if (to < 0 || size < 0 || write(to, image, (size_t)size) != size) {
        abort();
    }
    (void)close(from);
    (void)close(to);
}

/* --- what must hold ------------------------------------------------------------------ */

static bool count(const rmm_timeline_event_t *event, void *arg)
{
    uint64_t *seen = arg;

    (void)event;
    (*seen)++;
    return true;
}

static void exercise_reader(void)
{
    rmm_timeline_file_t file;
    uint64_t seen = 0;

    if (rmm__timeline_open(&file, left.dirfd, SEGMENT, geteuid()) != 0) {
        return;
    }
    if ((rmm__timeline_each(&file, count, &seen) &&
         seen != rmm__timeline_kept(&file)) ||
        rmm__timeline_kept(&file) > file.header.events_count) {
        abort();
    }
    rmm__timeline_close(&file);
}

static void check_history(const history_t *history)
{
    for (size_t i = 0; i < history->block_count; i++) {
        const history_block_t *block = &history->blocks[i];

        if (block->begin_ns > block->end_ns || block->begin_ns < history->begin_ns ||
            block->end_ns > history->end_ns ||
            block->stream >= history->streams.count ||
            block->resource >= history->resources.count) {
            abort();
        }
    }
    for (size_t i = 0; i < history->call_count; i++) {
        if (history->calls[i].stream >= history->streams.count) {
            abort();
        }
    }
}

/* Behind a string only numbers and what JSON puts between them: no "nan", no "inf". */
static void check_text(const char *text)
{
    bool is_quoted = false;

    for (; *text != '\0'; text++) {
        if (*text == '"') {
            is_quoted = !is_quoted;
        } else if (is_quoted && *text == '\\') {
            text++;
        } else if (!is_quoted && strchr("0123456789-.,:[]{} \n", *text) == NULL) {
            abort();
        }
    }
    if (is_quoted) {
        abort();
    }
}

static void write_all(const history_t *history)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL || !page_put_peaks(history, out) || !page_put_map(history, out) ||
        !page_put_calls(history, out)) {
        abort();
    }
    trace_write(history, out);
    if (fclose(out) != 0) {
        abort();
    }
    check_text(text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    history_t history;
    char why[160];

    if (left.segment[0] == '\0') {
        make_sample();
    }
    put_ring(data, bytes);
    exercise_reader();
    history_init(&history);
    if (run_timeline_read(&history, "program", 7, &left, why)) {
        check_history(&history);
        write_all(&history);
    }
    history_fini(&history);
    return 0;
}
