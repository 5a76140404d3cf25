/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses that leave their block inside a pool, and as many correct ones: what
 * compute-sanitizer must find on a real GPU (tests/gpu/nvtx_overruns.cu), and what the stand-in
 * for it must know on the simulated one (tests/sim/nvtx).
 */
#ifndef RMM_TESTS_HARNESS_OVERRUNS_H
#define RMM_TESTS_HARNESS_OVERRUNS_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct overrun {
    const char *name;
    const char *resource; /* a spec of overruns_make() */
    size_t bytes;         /* of the block */
    long offset;          /* of the access, from the begin of the block */
    unsigned width;       /* of the access: 1 or 4 */
    bool write;
    bool after_free;
} overrun_t;

extern const overrun_t overruns[];
extern const size_t overruns_count;

/* The same with the access inside of the block, before it is freed. */
overrun_t overruns_twin(const overrun_t *overrun);

/*
 * Make the resource and three blocks, and let `touch` make the access to the one in the
 * middle. False: the resource or the blocks could not be made; said on stderr.
 */
typedef void (*overruns_touch_fn)(
    void *context, const overrun_t *overrun, void *address);
bool overruns_run(const overrun_t *overrun, overruns_touch_fn touch, void *context);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TESTS_HARNESS_OVERRUNS_H */
