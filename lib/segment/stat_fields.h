/* SPDX-License-Identifier: Apache-2.0 */
/*
 * THE list of statistics. From it come the counters in the segment, the schema that
 * travels in it, the file names under /rmm, and docs/statistics.md. Append only: the
 * position is ABI.
 *
 * X(name, kind, unit, help)
 *   kind  GAUGE    goes up and down, leaves with the process or the resource
 *         COUNTER  never falls
 *         MARK     high-water mark of the gauge that it names, reset on request
 *   unit  BYTES | COUNT
 *
 * current_count is not stored: it is total_count - freed_count.
 *
 * What is in RMM_STRIPED_STATS is a sum of the record's word and of words that are spread
 * over stripes, so that threads do not wait for each other's cache line.
 * X(name, word of a stripe that is added, word that is subtracted)
 */
#ifndef RMM_SEGMENT_STAT_FIELDS_H
#define RMM_SEGMENT_STAT_FIELDS_H

/* 0 (the option RMM_ACCOUNTING=OFF) only to measure what counting costs: all figures stay 0,
 * and nothing is published, so that nobody believes them. */
#ifndef RMM_ACCOUNTING_ON
#define RMM_ACCOUNTING_ON 1
#endif

/* What a location (one GPU, or host memory) and a resource both have. At a location: what
 * users hold, however resources are stacked. At a resource: all that passes it. */
#define RMM_COMMON_STATS(X)                                                            \
    X(current_bytes, GAUGE, BYTES, "Bytes handed out and not yet freed, as requested") \
    X(total_bytes, COUNTER, BYTES, "Bytes of all allocations ever")                    \
    X(total_count, COUNTER, COUNT, "Allocations ever")                                 \
    X(freed_count, COUNTER, COUNT, "Allocations freed")                                \
    X(peak_bytes, MARK, BYTES, "Highest current_bytes since creation or reset")        \
    X(peak_count, MARK, COUNT, "Highest number of live allocations, likewise")         \
    X(lifetime_peak_bytes, MARK, BYTES, "Highest current_bytes ever; never reset")     \
    X(reserved_bytes, GAUGE, BYTES, "Bytes held from upstream or the driver")          \
    X(padding_bytes, GAUGE, BYTES, "Bytes lost to rounding in live blocks")            \
    X(oom_count, COUNTER, COUNT, "Requests refused for lack of memory")                \
    X(invalid_free_count, COUNTER, COUNT, "Frees refused: wrong pointer, size, twice")

#define RMM_LOCATION_STATS(X)                                                          \
    RMM_COMMON_STATS(X)                                                                \
    X(node_peak_bytes, MARK, BYTES, "As peak_bytes, reset with the node's mark")       \
    X(node_peak_count, MARK, COUNT, "As peak_count, reset with the node's mark")

#define RMM_SLOT_STATS(X)                                                              \
    RMM_COMMON_STATS(X)                                                                \
    X(free_bytes, GAUGE, BYTES, "Free bytes inside: reserved, not in a live block")    \
    X(largest_free_bytes, GAUGE, BYTES, "Largest block that needs no growth or merge") \
    X(growth_count, COUNTER, COUNT, "Chunks taken from upstream")                      \
    X(cross_stream_count, COUNTER, COUNT, "Blocks taken over from another stream")     \
    X(sync_count, COUNTER, COUNT, "Times the device was synchronised for memory")

/* free_bytes has no word there, but depends on what has (RMM_SLOT_FREE_IS_REST). */
#define RMM_STRIPED_STATS(X)                                                           \
    X(total_bytes, total_bytes, NONE)                                                  \
    X(total_count, total_count, NONE)                                                  \
    X(freed_count, freed_count, NONE)                                                  \
    X(padding_bytes, padding_added, padding_removed)                                   \
    X(free_bytes, NONE, NONE)

#endif /* RMM_SEGMENT_STAT_FIELDS_H */
