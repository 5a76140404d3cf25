/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread state of CPython 3.9 to 3.14 has its frames, and a frame its code object and its
 * position in it. A thread that is in C code cannot change its own frames: so they are read by
 * plain loads, without the GIL and without a call of Python, which would change reference counts.
 *
 * Nothing here changes or calls anything. Whether a layout is that of the interpreter at hand is
 * proved elsewhere (python_frames.c), by probes: loads that fail where there is no memory.
 */
#ifndef RMM_DIAG_PYTHON_LAYOUT_H
#define RMM_DIAG_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The innermost, RMM_DIAG_STACK_LINES: in PyTorch four or five are those of its modules. */
#define RMM_PYTHON_FRAMES 8u

/* Offsets in bytes. */
typedef struct rmm_python_layout {
    uint32_t state_frame; /* of a thread state: its innermost frame, or what has it */
    int32_t holder_frame; /* of what has it; -1: the thread state itself */
    uint32_t frame_back;  /* of a frame: the next one outwards */
    uint32_t frame_code;  /* its code object; the low bits may be a tag */
    uint32_t frame_at;    /* its position */
    int32_t frame_owner;  /* a byte that names its owner; -1: none */
    uint32_t code_file;   /* of a code object: the name of the file */
    uint32_t code_name;   /* that of the function */
    uint32_t code_line;   /* its first line */
    int32_t
        code_begin; /* its instructions: the position is an address in them; -1: it is the
                              number of an instruction */
    uint32_t at_bytes; /* of an instruction that is counted; 1: bytes are */
} rmm_python_layout_t;

typedef struct rmm_python_frame {
    const void *code;
    int32_t at;       /* bytes from its first instruction; negative: it has not begun */
    uint64_t content; /* of the code object, which may be another's memory tomorrow */
} rmm_python_frame_t;

/* The file descriptors of a pipe. */
typedef struct rmm_python_probe {
    int from, to;
} rmm_python_probe_t;

/* `runtime`: the interpreter's _PyRuntime, which describes itself from 3.13 on; may be NULL before.
 * False: this version, or what it says of itself, is not known. */
bool rmm__python_layout_of(
    int major, int minor, const void *runtime, rmm_python_layout_t *out);

/* The innermost frames of a thread state, at most RMM_PYTHON_FRAMES; how many. With a probe no
 * wrong layout does harm, and each load is two system calls. */
uint32_t rmm__python_walk(
    const rmm_python_layout_t *layout, const void *state, const void *code_type,
    const rmm_python_probe_t *probe, rmm_python_frame_t *frames);

#endif /* RMM_DIAG_PYTHON_LAYOUT_H */
