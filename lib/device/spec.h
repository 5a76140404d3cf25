/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource described by a text: "[adaptor[:sizes]+...]type[:sizes][/type[:sizes]...]", such as
 * "statistics+pool:50%:8GiB". Three steps:
 *
 *   parse   text to words and sizes; knows no resource (spec_parse.c, pure)
 *   check   do these words and sizes make sense together (spec_check.c)
 *   build   create the resources, innermost first (spec_build.c)
 *
 * The words are those of one list (spec_kinds.def).
 *
 * A reason is one phrase that follows "the value is '...': ".
 */
#ifndef RMM_DEVICE_SPEC_H
#define RMM_DEVICE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/resource.h>

enum {
    RMM_SPEC_PARTS = 8,
    RMM_SPEC_SIZES = 2,
    RMM_SPEC_OPTIONS = RMM_SPEC_SIZES, /* the value behind the sizes */
    RMM_SPEC_NODE,                     /* and the one behind that */
    RMM_SPEC_VALUES,
    RMM_SPEC_NAME_BYTES = 24,
    RMM_SPEC_REASON_BYTES = 400,
    RMM_SPEC_SHOWN_BYTES = 64
};

typedef struct rmm_spec_size {
    uint64_t value;
    bool is_percent; /* of the device's free memory */
    bool is_ms;      /* a time; if neither: bytes */
} rmm_spec_size_t;

/* Options, words that may stand among the sizes: the word, and a bit of its own. One of them
 * may have a number behind it, numa=1. */
#define RMM_SPEC_OPTION_MAP(X)                                                         \
    X(no_peer_access, RMM_SPEC_NO_PEER_ACCESS, 1)                                      \
    X(wait, RMM_SPEC_WAIT, 2)                                                          \
    X(auto_flush, RMM_SPEC_AUTO_FLUSH, 4)                                              \
    X(pool_size, RMM_SPEC_POOL_SIZE, 8)                                                \
    X(numa, RMM_SPEC_NUMA, 16)                                                         \
    X(exportable, RMM_SPEC_EXPORTABLE, 32)

enum {
#define X(word, ours, bit) ours = (bit),
    RMM_SPEC_OPTION_MAP(X)
#undef X
};

typedef struct rmm_spec_part {
    char name[RMM_SPEC_NAME_BYTES];
    bool is_alternate; /* behind a "/": for what the type before it refuses */
    uint32_t options;
    uint32_t node; /* 1 more than the number behind numa=; 0: none */
    uint32_t size_count;
    rmm_spec_size_t sizes[RMM_SPEC_SIZES];
} rmm_spec_part_t;

/* Outermost first, as written: adaptors, a type, its alternates. */
typedef struct rmm_spec {
    uint32_t count;
    rmm_spec_part_t parts[RMM_SPEC_PARTS];
} rmm_spec_t;

/* False: why, in reason. */
bool rmm__spec_parse(
    const char *text, rmm_spec_t *out, char reason[RMM_SPEC_REASON_BYTES]);

/* As much of a text as belongs into a message, fit for one line; returns `shown`. */
const char *
rmm__spec_show(const char *text, size_t length, char shown[RMM_SPEC_SHOWN_BYTES]);

/*
 * The resource that a word stands for. create() gets what the part stands on (NULL for a type) and
 * as many sizes as were given, the others 0; a time is one more than it says. Behind them, at
 * RMM_SPEC_OPTIONS and RMM_SPEC_NODE, are the options and the node, which is one more likewise.
 */
typedef struct rmm_spec_kind {
    const char *name;
    rmm_status_t (*create)(
        rmm_resource_t *upstream, const uint64_t sizes[RMM_SPEC_VALUES],
        rmm_resource_t **out);
    bool is_adaptor;
    bool no_percent; /* its sizes are bytes */
    bool in_ms;      /* or times */
    bool needs_time; /* which are not 0 */
    uint32_t least_sizes;
    uint32_t most_sizes;
    const char *size_names; /* "initial and maximum"; NULL: takes none */
} rmm_spec_kind_t;

/* The words one by one, from 0; NULL: there are no more. */
const rmm_spec_kind_t *rmm__spec_kind_at(size_t index);
/* NULL: no such word. */
const rmm_spec_kind_t *rmm__spec_kind(const char *name);
/* The options that the word takes. */
uint32_t rmm__spec_options_of(const rmm_spec_kind_t *kind);

/* False: why, in reason. */
bool rmm__spec_check(const rmm_spec_t *spec, char reason[RMM_SPEC_REASON_BYTES]);

/*
 * All of it on the current device. `what` begins a message about the text:
 * "RMM_RESOURCE is".
 */
rmm_status_t rmm__spec_create(const char *what, const char *text, rmm_resource_t **out);

#endif /* RMM_DEVICE_SPEC_H */
