/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layouts, and the walk; see python_layout.h. The offsets of 3.9 to 3.12 are those of
 * CPython's headers, built without Py_TRACE_REFS, for machines with addresses of 64 bits. From 3.13
 * on the interpreter begins with a table of its offsets for debuggers: what is here is where in
 * that table each of them is.
 */
#include "diag/python_layout.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/hash.h"

enum {
    HOPS_MAX = 64,   /* frames that are looked at: some are no Python function's */
    OWNER_IS_C = 3,  /* this and more: a frame of the interpreter itself */
    TAG = 3,         /* low bits of a reference that are no address */
    OBJECT_TYPE = 8, /* of an object: its type; of a variable one: its size */
    OBJECT_SIZE = 16,
    INSTRUCTION = 2, /* bytes */
    PLAUSIBLE = 512  /* more is no offset in a structure of Python */
};

/* --- layouts ------------------------------------------------------------------------------ */

static const rmm_python_layout_t layouts[] = {
    [9] = {24, -1, 24, 32, 104, -1, 104, 112, 40, -1, 1},
    [10] = {24, -1, 24, 32, 96, -1, 104, 112, 40, -1, INSTRUCTION},
    [11] = {56, 8, 48, 32, 56, 69, 112, 128, 72, 184, 1},
    [12] = {56, 0, 8, 0, 56, 70, 112, 128, 68, 192, 1}};

/* Where the interpreter's own table has an offset. */
typedef struct described {
    uint32_t free_threaded, state_frame, frame_back, frame_code, frame_at, frame_owner,
        code_file, code_name, code_line, code_begin;
} described_t;

static const described_t descriptions[] = {
    [13] = {16, 184, 232, 240, 248, 264, 280, 296, 312, 344},
    [14] = {16, 208, 256, 264, 272, 288, 320, 336, 352, 384}};

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static bool take_offset(const void *runtime, uint32_t where, uint32_t *out)
{
    uint64_t offset = 0;

    memcpy(&offset, (const char *)runtime + where, sizeof(offset));
    *out = (uint32_t)offset;
    return offset < PLAUSIBLE;
}

static bool
take_described(const void *runtime, const described_t *where, rmm_python_layout_t *out)
{
    static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
    uint32_t free_threaded = 0, owner = 0, begin = 0;
    bool good = runtime != NULL && memcmp(runtime, cookie, sizeof(cookie)) == 0 &&
                take_offset(runtime, where->free_threaded, &free_threaded) &&
                free_threaded == 0 &&
                take_offset(runtime, where->state_frame, &out->state_frame) &&
                take_offset(runtime, where->frame_back, &out->frame_back) &&
                take_offset(runtime, where->frame_code, &out->frame_code) &&
                take_offset(runtime, where->frame_at, &out->frame_at) &&
                take_offset(runtime, where->frame_owner, &owner) &&
                take_offset(runtime, where->code_file, &out->code_file) &&
                take_offset(runtime, where->code_name, &out->code_name) &&
                take_offset(runtime, where->code_line, &out->code_line) &&
                take_offset(runtime, where->code_begin, &begin);

    out->holder_frame = -1;
    out->frame_owner = (int32_t)owner;
    out->code_begin = (int32_t)begin;
    out->at_bytes = 1;
    return good;
}

bool rmm__python_layout_of(
    int major, int minor, const void *runtime, rmm_python_layout_t *out)
{
    if (major != 3 || minor < 9 || minor >= COUNT(descriptions) ||
        sizeof(void *) != 8) {
        return false;
    }
    if (minor < COUNT(layouts)) {
        *out = layouts[minor];
        return true;
    }
    return take_described(runtime, &descriptions[minor], out);
}

/* --- the walk ----------------------------------------------------------------------------- */

static bool
load_probed(const rmm_python_probe_t *probe, const void *from, void *to, size_t bytes)
{
    /* The kernel answers EFAULT where there is no memory. Around write() itself a sanitizer would
     * look at the memory first. */
    return syscall(SYS_write, probe->to, from, bytes) == (long)bytes &&
           read(probe->from, to, bytes) == (ssize_t)bytes;
}

static inline bool load(
    const rmm_python_probe_t *probe, const void *object, int64_t offset, void *to,
    size_t bytes)
{
    const void *from = (const char *)object + offset;

    if (object == NULL) {
        return false;
    }
    if (probe != NULL) {
        return load_probed(probe, from, to, bytes);
    }
    memcpy(to, from, bytes);
    return true;
}

#define LOAD(object, offset, to) load(probe, object, offset, &(to), sizeof(to))

static bool innermost(
    const rmm_python_layout_t *layout, const void *state,
    const rmm_python_probe_t *probe, const void **frame)
{
    return LOAD(state, layout->state_frame, *frame) &&
           (layout->holder_frame < 0 || LOAD(*frame, layout->holder_frame, *frame));
}

/* False: it is not in the code object's instructions. */
static bool find_position(
    const rmm_python_layout_t *layout, const void *frame,
    const rmm_python_probe_t *probe, rmm_python_frame_t *out)
{
    const char *address = NULL;
    int64_t size = 0, at = 0;
    int32_t number = 0;

    if (layout->code_begin < 0) {
        bool good = LOAD(frame, layout->frame_at, number);

        out->at = number < 0 ? -1 : number * (int32_t)layout->at_bytes;
        return good;
    }
    if (!LOAD(frame, layout->frame_at, address) ||
        !LOAD(out->code, OBJECT_SIZE, size)) {
        return false;
    }
    at = address - ((const char *)out->code + layout->code_begin);
    out->at = at < 0 ? -1 : (int32_t)at;
    return at >= -INSTRUCTION && at < size * INSTRUCTION && at <= INT32_MAX;
}

static bool find_content(
    const rmm_python_layout_t *layout, const rmm_python_probe_t *probe,
    rmm_python_frame_t *out)
{
    uintptr_t file = 0, name = 0;
    int32_t line = 0;
    bool good = LOAD(out->code, layout->code_file, file) &&
                LOAD(out->code, layout->code_name, name) &&
                LOAD(out->code, layout->code_line, line);

    out->content = rmm__hash(rmm__hash(file) ^ name) ^ (uint32_t)line;
    return good;
}

static bool
is_code(const void *object, const void *code_type, const rmm_python_probe_t *probe)
{
    const void *type = NULL;

    return LOAD(object, OBJECT_TYPE, type) && type == code_type;
}

uint32_t rmm__python_walk(
    const rmm_python_layout_t *layout, const void *state, const void *code_type,
    const rmm_python_probe_t *probe, rmm_python_frame_t *frames)
{
    const void *frame = NULL;
    uint32_t count = 0;
    bool good = innermost(layout, state, probe, &frame);

    for (int hop = 0; good && frame != NULL && hop < HOPS_MAX; hop++) {
        rmm_python_frame_t *out = &frames[count];
        uint8_t owner = 0;
        uintptr_t code = 0;

        good = layout->frame_owner < 0 || LOAD(frame, layout->frame_owner, owner);
        if (good && owner < OWNER_IS_C) {
            good = LOAD(frame, layout->frame_code, code);
            out->code = (const void *)(code & ~(uintptr_t)TAG);
            good = good && is_code(out->code, code_type, probe) &&
                   find_position(layout, frame, probe, out) &&
                   find_content(layout, probe, out);
            count += good ? 1 : 0;
        }
        good =
            good && count < RMM_PYTHON_FRAMES && LOAD(frame, layout->frame_back, frame);
    }
    return count;
}
