/* SPDX-License-Identifier: Apache-2.0 */
/*
 * THE list of statistics. A line here is the word in the segment's records, the entry in the
 * schema that travels in it, the file of that name under /rmm, its line in `stat`, its key in
 * `json` and its series in `metrics`; tests say which row docs/statistics.md lacks
 * (unit.stat_docs) and which entry rmm(5) lacks (unit.rmmfs_man_page). What remains is the line
 * of code that counts. docs/extending.md has the recipe.
 *
 * X(name, kind, unit, help)
 *   kind  GAUGE    goes up and down, leaves with the process or the resource
 *         COUNTER  never falls
 *         MARK     the highest value of something; those of peak_reset (segment_format.h) are
 *                  reset on request, any other is not
 *   unit  BYTES | COUNT
 *
 * A new one goes anywhere into RMM_COMMON_OTHER_STATS, RMM_LOCATION_ONLY_STATS or
 * RMM_SLOT_ONLY_STATS. The order of the lists is the order of the words in the records,
 * on which no reader relies: it finds a word by its name in the schema. The lists before
 * those keep what every allocation touches on two cache lines (segment_format.h).
 *
 * current_count is not stored: it is total_count - freed_count.
 *
 * A statistic of RMM_STRIPED_STATS is the sum of the record's word and of one word on each
 * stripe; threads on different stripes do not wait for each other's cache line.
 * X(name, word of a stripe that is added, word that is subtracted)
 */
#ifndef RMM_SEGMENT_STAT_FIELDS_H
#define RMM_SEGMENT_STAT_FIELDS_H

/* At a location (one GPU, or host memory) and at a resource. At a location: what users hold,
 * however resources are stacked. At a resource: all that passes it. */
/* Every allocation writes these. */
#define RMM_COMMON_HOT_STATS(X)                                                        \
    X(current_bytes, GAUGE, BYTES, "Bytes handed out and not yet freed, as requested") \
    X(total_bytes, COUNTER, BYTES, "Bytes of all allocations ever")                    \
    X(total_count, COUNTER, COUNT, "Allocations ever")                                 \
    X(freed_count, COUNTER, COUNT, "Allocations freed")                                \
    X(padding_bytes, GAUGE, BYTES, "Bytes lost to rounding in live blocks")

/* Every allocation compares these, and writes those that rise. */
#define RMM_COMMON_MARK_STATS(X)                                                       \
    X(peak_bytes, MARK, BYTES, "Highest current_bytes since creation or reset")        \
    X(peak_count, MARK, COUNT, "Highest number of live allocations, likewise")         \
    X(lifetime_peak_bytes, MARK, BYTES, "Highest current_bytes ever; never reset")

#define RMM_COMMON_OTHER_STATS(X)                                                      \
    X(reserved_bytes, GAUGE, BYTES, "Bytes held from upstream or the driver")          \
    X(asleep_bytes, GAUGE, BYTES, "Bytes that pools which sleep will take to wake")    \
    X(oom_count, COUNTER, COUNT, "Requests refused for lack of memory")                \
    X(invalid_free_count, COUNTER, COUNT, "Frees refused: wrong pointer, size, twice") \
    X(limit_count, COUNTER, COUNT, "Allocations and growths refused by a limit_bytes")

/* At a location only: first its marks, which are compared like the others. */
#define RMM_LOCATION_ONLY_STATS(X)                                                     \
    X(node_peak_bytes, MARK, BYTES, "As peak_bytes, reset with the node's mark")       \
    X(node_peak_count, MARK, COUNT, "As peak_count, reset with the node's mark")       \
    X(leaked_bytes, COUNTER, BYTES, "Bytes still live when their resource ended")

/* At a resource only. What is free: a location shows it too, added up by the reader. */
#define RMM_SLOT_FREE_STATS(X)                                                         \
    X(free_bytes, GAUGE, BYTES, "Free bytes inside: reserved, not in a live block")    \
    X(largest_free_bytes, GAUGE, BYTES, "Largest block that needs no growth or merge")

#define RMM_SLOT_ONLY_STATS(X)                                                         \
    X(maximum_bytes, GAUGE, BYTES, "Most that reserved_bytes may become; 0: any")      \
    X(growth_count, COUNTER, COUNT, "Chunks taken from upstream")                      \
    X(sync_count, COUNTER, COUNT, "Times the device was synchronised for memory")      \
    X(cross_stream_count, COUNTER, COUNT, "Blocks taken over from another stream")     \
    X(sleep_count, COUNTER, COUNT, "Times that it fell asleep")                        \
    X(wake_count, COUNTER, COUNT, "Times that it woke")

/* The lists above put together. */
#define RMM_COMMON_STATS(X)                                                            \
    RMM_COMMON_HOT_STATS(X)                                                            \
    RMM_COMMON_MARK_STATS(X)                                                           \
    RMM_COMMON_OTHER_STATS(X)

#define RMM_LOCATION_STATS(X)                                                          \
    RMM_COMMON_HOT_STATS(X)                                                            \
    RMM_COMMON_MARK_STATS(X)                                                           \
    RMM_LOCATION_ONLY_STATS(X)                                                         \
    RMM_COMMON_OTHER_STATS(X)

#define RMM_SLOT_STATS(X)                                                              \
    RMM_COMMON_HOT_STATS(X)                                                            \
    RMM_SLOT_FREE_STATS(X)                                                             \
    RMM_COMMON_MARK_STATS(X)                                                           \
    RMM_COMMON_OTHER_STATS(X)                                                          \
    RMM_SLOT_ONLY_STATS(X)

/* Each statistic once. */
#define RMM_EACH_STAT(X)                                                               \
    RMM_COMMON_STATS(X)                                                                \
    RMM_LOCATION_ONLY_STATS(X)                                                         \
    RMM_SLOT_FREE_STATS(X)                                                             \
    RMM_SLOT_ONLY_STATS(X)

/* free_bytes has no word there, but depends on what has (RMM_SLOT_FREE_IS_REST). */
#define RMM_STRIPED_STATS(X)                                                           \
    X(current_bytes, current_bytes, NONE)                                              \
    X(total_bytes, total_bytes, NONE)                                                  \
    X(total_count, total_count, NONE)                                                  \
    X(freed_count, freed_count, NONE)                                                  \
    X(padding_bytes, padding_added, padding_removed)                                   \
    X(free_bytes, NONE, NONE)

#endif /* RMM_SEGMENT_STAT_FIELDS_H */
