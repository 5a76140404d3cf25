/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches as uses, what the peak was made of, and verdicts, on a real GPU: a
 * known number of each, then the side file must say exactly that. Run it under rmm-run:
 *
 *   rmm-run --diag usage,bounds -- diag_uses
 *
 * Output and exit status are those of diag_usage.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include <cuda_runtime.h>

#include <rmm/rmm.h>

#include "diag/diag_names.h"
#include "diag/peak_reader.h"
#include "diag/verdict_reader.h"
#include "gpu/diag_kernels.h"
#include "gpu/diagnosed.h"

#define KIB 1024u
#define MIB (KIB * KIB)

static rmm_resource_t *pool;
static rmm_diag_groups_t *groups;

static void did(int error, const char *what)
{
    if (error != 0) {
        printf("%s: CUDA error %d\n", what, error);
        give_up(what);
    }
}
#define DO(call) did((int)(call), #call)

static float *take(rmm_resource_t *mr, size_t bytes)
{
    void *block = NULL;

    if (rmm_resource_alloc(mr, bytes, 0, RMM_STREAM_DEFAULT, &block) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
    return block;
}

static void drop(float *block, size_t bytes)
{
    rmm_resource_dealloc(pool, block, bytes, 0, RMM_STREAM_DEFAULT);
}

static rmm_diag_file_t open_file(void)
{
    char path[512];
    rmm_diag_file_t file;
    int fd = diag_file_find(directory, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 || rmm__diag_attach(&file, fd) != 0) {
        give_up("the side file is there");
    }
    return file;
}

/* --- uses -------------------------------------------------------------------------- */

static void check_uses(
    const diag_file_t *file, const char *what, const void *block, uint64_t copies,
    uint64_t fills, uint64_t prefetches, const char *first, const char *last)
{
    const rmm_diag_row_t *row = diag_file_row(file, (uint64_t)(uintptr_t)block);

    if (row == NULL) {
        check(false, what, "no row for %p", block);
        return;
    }
    check(
        row->copies == copies && row->fills == fills && row->prefetches == prefetches &&
            strstr(diag_file_user(file, row->first_user), first) != NULL &&
            strstr(diag_file_user(file, row->last_user), last) != NULL,
        what,
        "%" PRIu64 " copies, %" PRIu64 " fills, %" PRIu64 " prefetches from %s to %s",
        row->copies, row->fills, row->prefetches, diag_file_user(file, row->first_user),
        diag_file_user(file, row->last_user));
}

static cudaError_t prefetch(const void *block)
{
#if CUDART_VERSION >= 13000
    const struct cudaMemLocation device = {.type = cudaMemLocationTypeDevice, .id = 0};

    return cudaMemPrefetchAsync(block, KIB, device, 0, NULL);
#else
    return cudaMemPrefetchAsync(block, KIB, 0, NULL);
#endif
}

static void copies_fills_and_prefetches(void)
{
    static char host[KIB];
    rmm_resource_t *managed = NULL;
    float *a = take(pool, MIB), *b = take(pool, MIB), *m = NULL;
    diag_file_t file;

    if (rmm_resource_create_from_spec("pool_managed:1MiB", &managed) != RMM_OK) {
        give_up("a managed pool");
    }
    m = take(managed, 4 * KIB);
    DO(diag_set(a, MIB, NULL));
    DO(diag_copy(b, a, MIB, NULL));
    DO(diag_copy(b, a, MIB, NULL));
    DO(cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice));
    DO(cudaMemcpy(host, a, sizeof(host), cudaMemcpyDeviceToHost));
    DO(diag_fill(b, 16, NULL));
    DO(prefetch(m));
    DO(diag_synchronize());
    read_file(&file);
    check_uses(&file, "filled, copied from and to", a, 4, 1, 0, "Memset", "Memcpy");
    check_uses(&file, "copied to, launched on", b, 2, 0, 0, "Memcpy", "fill_kernel");
    check_uses(&file, "prefetched", m, 0, 0, 1, "Prefetch", "Prefetch");
    check(
        file.header->copies == 4 && file.header->fills == 1 &&
            file.header->prefetches == 1 && file.header->launches == 1,
        "every call was seen, once",
        "%" PRIu64 " copies, %" PRIu64 " fills, %" PRIu64 " prefetches",
        file.header->copies, file.header->fills, file.header->prefetches);
    diag_file_close(&file);
}

/* --- the peak ---------------------------------------------------------------------- */

/* Bytes of the groups that this kernel used first. */
static uint64_t bytes_of(const rmm_diag_file_t *file, const char *kernel)
{
    char name[RMM_DIAG_NAME_BYTES];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < groups->count; i++) {
        if (rmm__diag_read_user(file, groups->entries[i].first_user, name) &&
            strstr(name, kernel) != NULL) {
            bytes += groups->entries[i].bytes;
        }
    }
    return bytes;
}

/* Live: 2 MiB and 4 KiB that were copied, filled and prefetched; and what is taken here. */
static void what_the_peak_was_made_of(void)
{
    const uint64_t expected = 2 * MIB + 4 * KIB + 24 * MIB;
    float *large = take(pool, 16 * MIB), *small = take(pool, 8 * MIB);
    rmm_diag_composition_t peak;
    rmm_diag_file_t file;

    DO(diag_fill(large, 16, NULL));
    DO(diag_synchronize());
    drop(large, 16 * MIB);
    DO(diag_scale(small, small, NULL)); /* after the peak, while it is live */
    DO(diag_synchronize());
    file = open_file();
    if (!rmm__diag_read_composition(&file, 0, groups, &peak)) {
        give_up("a peak");
    }
    check(
        peak.peak.bytes == expected && peak.missing_bytes == 0,
        "the peak is all that was live", "%" PRIu64 " bytes, %" PRIu64 " missing",
        peak.peak.bytes, peak.missing_bytes);
    check(
        bytes_of(&file, "fill_kernel") == 16 * MIB &&
            bytes_of(&file, "scale_kernel") == 8 * MIB,
        "its parts have their kernels", "%" PRIu64 " and %" PRIu64 " bytes",
        bytes_of(&file, "fill_kernel"), bytes_of(&file, "scale_kernel"));
    rmm__diag_close(&file);
    drop(small, 8 * MIB);
}

/* --- verdicts ---------------------------------------------------------------------- */

static void other_launches(void)
{
    for (int i = 0; i < 3; i++) {
        DO(diag_nothing(NULL));
    }
}

static void check_verdict(rmm_diag_verdict_t verdict, uint64_t bytes)
{
    char what[80];
    uint64_t seen = 0;

    for (uint32_t i = 0; i < groups->count; i++) {
        if (groups->entries[i].verdict == (uint32_t)verdict) {
            seen += groups->entries[i].bytes;
        }
    }
    snprintf(
        what, sizeof(what), "verdict %s", rmm__diag_verdict_name((uint32_t)verdict));
    check(seen == bytes, what, "%" PRIu64 " bytes, expected %" PRIu64, seen, bytes);
}

static void check_confidence(const char *expected)
{
    rmm_diag_file_t file = open_file();
    const char *seen = rmm__diag_confidence(&file, RMM_DIAG_NEVER_USED);

    check(strcmp(seen, expected) == 0, expected, "it is %s", seen);
    rmm__diag_close(&file);
}

static void verdicts(void)
{
    float *never = take(pool, 512 * KIB), *early = NULL, *late = NULL;
    rmm_diag_file_t file;

    drop(never, 512 * KIB);
    early = take(pool, 64 * KIB);
    other_launches();
    DO(diag_fill(early, 16, NULL));
    drop(early, 64 * KIB);
    late = take(pool, 32 * KIB);
    DO(diag_fill(late, 16, NULL));
    other_launches();
    drop(late, 32 * KIB);
    DO(diag_synchronize());
    file = open_file();
    rmm__diag_read_verdicts(&file, UINT64_MAX, true, groups);
    check_verdict(RMM_DIAG_NEVER_USED, 512 * KIB);
    check_verdict(RMM_DIAG_ALLOCATED_EARLY, 64 * KIB);
    check_verdict(RMM_DIAG_FREED_LATE, 32 * KIB);
    check_verdict(RMM_DIAG_LEAKED, 2 * MIB + 4 * KIB);
    rmm__diag_close(&file);
    check_confidence("likely");
    early = take(pool, KIB);
    DO(diag_graph(early, 1, 2));
    drop(early, KIB);
    check_confidence("likely"); /* what the replays use is seen */
}

int main(void)
{
    diagnosed_begin("diag_uses", diag_gpu_count());
    groups = rmm__diag_groups_create();
    if (groups == NULL ||
        rmm_resource_create_from_spec("pool:64MiB", &pool) != RMM_OK) {
        give_up("a pool");
    }
    copies_fills_and_prefetches();
    what_the_peak_was_made_of();
    verdicts();
    return diagnosed_end();
}
