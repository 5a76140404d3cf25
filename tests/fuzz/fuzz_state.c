/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state file of rmmfs, as a daemon finds it.
 *
 * Promised: a damaged file changes nothing and is moved aside. What was loaded is saved so that
 * loading it again gives the same.
 *
 * The input: lines. The first byte of a line chooses the record that it is, the rest is the
 * record's text; an input that begins with 'r' is the whole file behind that.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fuse/model_fixture.h"
#include "fuzz/exercise_segment.h"
#include "harness/runtime.h"

#include "model/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define NAME "rmmfs.state"

static runtime_t *folder(void)
{
    static runtime_t runtime;
    if (runtime.path[0] == '\0') {
        runtime_open(&runtime);
    }
    return &runtime;
}

static void remove_folder(void)
{
    runtime_close(folder());
}

/* --- the file ---------------------------------------------------------------------------- */

/* Of a state that a daemon wrote: records that the fuzzer changes. */
static void put_line(text_t *text, const char *line, size_t length)
{
    static const char *const records[] = {
        "gpu GPU-a 0000:01:00.0 1024 ",
        "gpu ",
        "reported_gpu 1000 GPU-b - ",
        "reported_gpu ",
        "mark GPU-a peak_bytes ",
        "mark host ",
        "exited GPU-a total_bytes ",
        "exited host new_count ",
        "exited ",
        "folded 0.0123456789abcdef 5 4711 ",
        "folded ",
        "ended 1000 42 5 ",
        "ended ",
    };
    const size_t count = sizeof(records) / sizeof(records[0]);
    text_puts(text, records[(unsigned char)line[0] % count]);
    text_append(text, line + 1, length - 1);
    text_puts(text, "\n");
}

static void make_file(text_t *text, const char *data, size_t bytes)
{
    if (bytes > 0 && data[0] == 'r') {
        text_append(text, data + 1, bytes - 1);
        return;
    }
    text_puts(text, "rmmfs-state 1\n");
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(data + at, '\n', bytes - at);
        size_t length = end == NULL ? bytes - at : (size_t)(end - data) - at;
        if (length > 0) {
            put_line(text, data + at, length);
        }
        at += length + 1;
    }
    text_puts(text, "end\n");
}

static void write_file(const text_t *text)
{
    int fd = openat(folder()->fd, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    PROMISE(fd >= 0);
    PROMISE(write(fd, text->data, text->length) == (ssize_t)text->length);
    (void)close(fd);
}

static void read_saved(text_t *text)
{
    char piece[4096];
    ssize_t got;
    int fd = openat(folder()->fd, NAME, O_RDONLY);
    PROMISE(fd >= 0);
    while ((got = read(fd, piece, sizeof(piece))) > 0) {
        text_append(text, piece, (size_t)got);
    }
    (void)close(fd);
}

/* --- loading ----------------------------------------------------------------------------- */

static void check_untouched(model_t *model)
{
    static model_t fresh;
    model_init(&fresh);
    PROMISE(
        model->gpu_count == 0 && model->totalled_count == 0 && model->ended.count == 0);
    PROMISE(memcmp(&model->host, &fresh.host, sizeof(fresh.host)) == 0);
    model_fini(&fresh);
    PROMISE(faccessat(folder()->fd, NAME, F_OK, 0) != 0);
    PROMISE(unlinkat(folder()->fd, NAME ".bad", 0) == 0);
}

/* No text of a file can do harm in the tree. */
static void check_model(const model_t *model)
{
    PROMISE(model->gpu_count <= GPUS_MAX && model->ended.count <= IDENTITY_MAX);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        const device_t *device = &model->gpus[i];
        const gpu_t *gpu = &device->gpu;
        exercise_text(gpu->uuid, sizeof(gpu->uuid));
        exercise_text(gpu->name, sizeof(gpu->name));
        exercise_text(gpu->pci_bus_id, sizeof(gpu->pci_bus_id));
        PROMISE(
            strpbrk(gpu->uuid, "/ ") == NULL &&
            device->newer.count <= NEWER_OF_LEVEL_MAX);
    }
    for (uint32_t i = 0; i < model->totalled_count; i++) {
        PROMISE(rmm__segment_name_parse(model->totalled[i].name, NULL));
        PROMISE(strchr(model->totalled[i].process, '/') == NULL);
    }
}

static bool load(model_t *model)
{
    model_init(model);
    model->state = state_open(folder()->path, true);
    PROMISE(model->state != NULL);
    return state_load(model->state, model);
}

static void close_model(model_t *model)
{
    state_close(model->state);
    model_fini(model);
}

static void save_and_load_again(model_t *model)
{
    static model_t again;
    text_t first, second;
    text_init(&first);
    text_init(&second);
    state_save(model);
    close_model(model);
    read_saved(&first);
    PROMISE(load(&again));
    state_save(&again);
    close_model(&again);
    read_saved(&second);
    PROMISE(first.length == second.length);
    PROMISE(memcmp(first.data, second.data, first.length) == 0);
    text_fini(&first);
    text_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static model_t model;
    static bool is_begun;
    text_t text;
    if (!is_begun) {
        is_begun = true;
        log_level_set(LOG_LEVEL_OFF);
        (void)atexit(remove_folder);
    }
    text_init(&text);
    make_file(&text, (const char *)data, bytes);
    write_file(&text);
    text_fini(&text);
    if (load(&model)) {
        check_model(&model);
        save_and_load_again(&model);
    } else {
        check_untouched(&model);
        close_model(&model);
    }
    return 0;
}
