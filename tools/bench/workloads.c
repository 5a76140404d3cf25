/* SPDX-License-Identifier: Apache-2.0 */
/* The table. docs/performance.md says what each is for. */
#include "bench/workload.h"

#include <stdio.h>
#include <string.h>

#include <rmm/status.h>

#include "bench/wraps.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define CHURN_MAX_BYTES (4 * MIB)
#define PAIR_BYTES KIB

#define PAIR(name_, stream_, about_)                                                   \
    {                                                                                  \
        .name = "pair-" name_, .group = "pair", .unit = "ns a pair", .about = about_,  \
        .run = run_pair, .amount = PAIR_BYTES, .block_bytes = PAIR_BYTES,              \
        .stream = stream_                                                              \
    }

/* A block has 432 KiB in the mean. */
#define CHURN(live_)                                                                   \
    {                                                                                  \
        .name = "churn-" #live_, .group = "churn", .unit = "ns a step",                \
        .about = "free one of " #live_ " live blocks, allocate another of 2^8 to "     \
                 "2^22 bytes",                                                         \
        .run = run_churn, .amount = live_, .block_bytes = CHURN_MAX_BYTES,             \
        .device_bytes = live_ * 480 * KIB, .stream = WORKLOAD_LEGACY                   \
    }

#define MIX(mib_, device_bytes_)                                                       \
    {                                                                                  \
        .name = "random-" #mib_, .group = "random", .unit = "ns an operation",         \
        .about = "RMM's random mix: 1 byte to " #mib_ " MiB, 73 % allocations",        \
        .run = run_mix, .amount = mib_ * MIB, .block_bytes = mib_ * MIB,               \
        .device_bytes = device_bytes_, .stream = WORKLOAD_LEGACY                       \
    }

#define THREADS(name_, count_, stream_, about_)                                        \
    {                                                                                  \
        .name = "threads-" name_ "-" #count_, .group = "threads", .unit = "Mops/s",    \
        .about = #count_ " threads, random mix up to 1 MiB, " about_,                  \
        .run = run_threads, .amount = count_, .block_bytes = MIB,                      \
        .device_bytes = 18 * GIB, .stream = stream_                                    \
    }
#define OWN(count_) THREADS("own", count_, WORKLOAD_OWN, "each on a stream of its own")
#define ONE(count_) THREADS("one", count_, WORKLOAD_CREATED, "all on one stream")

#define LARGEST(name_, step_, about_)                                                  \
    {                                                                                  \
        .name = "largest-" #name_, .group = "largest", .unit = "% of what is free",    \
        .about = "one request, after growing in 64 steps to a maximum, " about_,       \
        .run = run_largest, .amount = step_, .block_bytes = 16 * MIB,                  \
        .device_bytes = 2 * GIB, .resources = WORKLOAD_GROWN                           \
    }

#define ADAPTOR(name_, wrap_, against_, about_)                                        \
    {                                                                                  \
        .name = "adaptor-" name_, .group = "adaptor", .unit = "ns a pair",             \
        .about = about_, .run = run_pair, .amount = PAIR_BYTES,                        \
        .block_bytes = PAIR_BYTES, .wrap = wrap_, .against = against_,                 \
        .stream = WORKLOAD_CREATED, .resources = WORKLOAD_POOL                         \
    }
#define OVER(name_) ADAPTOR(#name_, wrap_##name_, "adaptor-none", #name_ " over it")

#define READER(name_, has_reader_, against_, about_)                                   \
    {                                                                                  \
        .name = "reader-" name_, .group = "reader", .unit = "ns a step",               \
        .about = about_, .run = run_churn, .amount = 1000,                             \
        .block_bytes = CHURN_MAX_BYTES, .device_bytes = 480 * MIB,                     \
        .has_reader = has_reader_, .against = against_, .stream = WORKLOAD_LEGACY,     \
        .resources = WORKLOAD_POOL                                                     \
    }

const workload_t workloads[] = {
    PAIR(
        "legacy", WORKLOAD_LEGACY,
        "allocate and free 1 KiB on the legacy default stream"),
    PAIR(
        "created", WORKLOAD_CREATED,
        "the same on a stream made with rmm_stream_create"),
    PAIR(
        "never-captures", WORKLOAD_NEVER_CAPTURES,
        "the same on one made with RMM_STREAM_NEVER_CAPTURES"),
    PAIR(
        "foreign", WORKLOAD_FOREIGN,
        "the same on a stream that the program made with CUDA itself"),
    PAIR(
        "per-thread", WORKLOAD_PER_THREAD,
        "the same on the thread's own default stream"),
    CHURN(100),
    CHURN(1000),
    CHURN(10000),
    CHURN(100000),
    MIX(1, 18 * GIB),
    MIX(4, 18 * GIB),
    MIX(64, 18 * GIB),
    OWN(1),
    OWN(2),
    OWN(4),
    OWN(8),
    OWN(16),
    ONE(1),
    ONE(2),
    ONE(4),
    ONE(8),
    ONE(16),
    {.name = "handoff",
     .group = "handoff",
     .unit = "ns a block",
     .about = "one stream allocates 64 blocks of up to 1 MiB, another frees them",
     .run = run_handoff,
     .block_bytes = MIB,
     .device_bytes = 64 * MIB},
    {.name = "full",
     .group = "full",
     .unit = "ns a failure",
     .about = "request two blocks from a full resource with every other block free",
     .run = run_full,
     .block_bytes = 8 * KIB,
     .device_bytes = 500 * MIB,
     .resources = WORKLOAD_SIZED},
    {.name = "growth",
     .group = "growth",
     .unit = "us",
     .about = "from nothing to 1 GiB in 64 blocks (--quick: 64 MiB)",
     .run = run_growth,
     .block_bytes = 16 * MIB,
     .device_bytes = 2 * GIB},
    {.name = "trim",
     .group = "growth",
     .unit = "us",
     .about = "give back the memory of growth, all of it free",
     .run = run_trim,
     .block_bytes = 16 * MIB,
     .device_bytes = 2 * GIB,
     .resources = WORKLOAD_TRIM},
    LARGEST(free, 1, "all of it free"),
    LARGEST(holes, 2, "every other block free"),
    ADAPTOR("none", NULL, NULL, "pair-created once more, for the adaptors below"),
    OVER(aligned),
    OVER(failure_callback),
    OVER(limiting),
    OVER(logging),
    OVER(prefetch),
    OVER(statistics),
    OVER(thread_safe),
    OVER(tracking),
    ADAPTOR("stacks", wrap_stacks, "adaptor-none", "tracking with call stacks over it"),
    READER("off", false, NULL, "churn-1000 once more, for the next"),
    READER("on", true, "reader-off", "while a thread reads the segment at 100 Hz"),
};

const size_t workload_count = sizeof workloads / sizeof *workloads;

const workload_t *workload_find(const char *name)
{
    for (size_t i = 0; i < workload_count; i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            return &workloads[i];
        }
    }
    return NULL;
}

void trial_refuse(trial_t *trial, const char *why)
{
    if (trial->problem[0] == '\0') {
        snprintf(trial->problem, sizeof trial->problem, "%s", why);
    }
}

void trial_fail(trial_t *trial, rmm_status_t status)
{
    if (status != RMM_OK) {
        trial_refuse(trial, rmm_last_error_message());
    }
}
