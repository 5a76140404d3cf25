/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of newer programs, that this version does not know: the schema in a segment names
 * them (node/figures.h). Sums over segments; of marks the largest.
 *
 *   newer_list_t    those of one level, for its `stat`; and the counters that ended programs left
 *                   at a device. At most NEWER_OF_LEVEL_MAX
 *   newer_stats_t   those of all levels, for texts about the whole node: which there are, and a
 *                   chain of values for each level, in one array
 *
 * Nothing in a schema is trusted. The reader has checked the characters and the length of a name
 * (segment_reader.c). A name that another program uses with another kind is refused: the first
 * program wins. In a table the number of names is bounded, for each user too, and so is refused
 * what would give a metric the name of another one. Such a refusal marks the segment, and
 * daemon/rejected shows it.
 *
 * Threads: the model lock; those of a table: its owner's.
 */
#ifndef RMM_FUSEFS_NEWER_STATS_H
#define RMM_FUSEFS_NEWER_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/model.h"
#include "model/slots.h"
#include "support/shares.h"

/* --- of one level --------------------------------------------------------------------- */

void newer_of_resource(const slot_view_t *view, newer_list_t *out);
void newer_of_process(const process_t *process, uint32_t device, newer_list_t *out);
void newer_of_device(const model_t *model, uint32_t device, newer_list_t *out);

/* Counters that a member leaves stay with the device. Lock held alone. */
void newer_add_totals(device_t *device, const member_t *member, uint32_t location);

/* Add to the statistic of that name; for a mark, raise it. Of another kind
 * than the one that is there: nothing, the first program wins. */
void newer_add(newer_list_t *newer, const char *name, uint16_t kind, uint64_t value);

/* --- of all levels -------------------------------------------------------------------- */

#define NEWER_STATS_MAX 64u
#define NEWER_STATS_OF_USER 16u
#define NEWER_VALUES_MAX 16384u
#define NEWER_VALUES_OF_DEVICES 8256u /* of these: each statistic at each device */
#define NEWER_METRIC_BYTES 64u

typedef struct newer_stat {
    char name[40];
    char metric[NEWER_METRIC_BYTES]; /* without prefix and _total */
    uint16_t kind;                   /* RMM_KIND_* */
    bool of_resources;               /* else of locations and devices */
    uid_t uid;                       /* whose program had it first */
} newer_stat_t;

/* A value, and the next one of its level. */
typedef struct newer_value {
    uint16_t stat; /* index in newer_stats_t */
    uint32_t next; /* position of the next one + 1; 0: the last one */
    uint64_t value;
} newer_value_t;

typedef struct newer_stats {
    newer_stat_t items[NEWER_STATS_MAX];
    uint32_t count;
    newer_value_t *values; /* NULL: none */
    uint32_t value_count;
    shares_t shares; /* of the values; refused: what is left out */
} newer_stats_t;

void newer_stats_fini(newer_stats_t *stats);

/* Of all members before the first value is added. */
void newer_stats_want(newer_stats_t *stats, const member_t *member);
void newer_stats_allot(newer_stats_t *stats);

/* A level that the values of a member are added to. head: of its chain, position + 1 or 0. */
typedef struct newer_target {
    newer_stats_t *stats;
    member_t *member;
    uint32_t *head;
} newer_target_t;

/* Those of a record of a location or a resource (RMM_SCHEMA_*). */
void newer_values_add(
    const newer_target_t *target, uint16_t scope, const rmm_record_t *record);
/* The same at one of its locations, which is read for it; nothing is read without any. */
void newer_values_add_location(const newer_target_t *target, uint32_t location);
/* Add the values that ended processes left at a device. */
void newer_values_add_ended(
    newer_stats_t *stats, const device_t *device, uint32_t *head);

/* FIGURE_UNKNOWN: the level has none. */
uint64_t newer_value_of(const newer_stats_t *stats, uint32_t head, uint32_t stat);

#endif /* RMM_FUSEFS_NEWER_STATS_H */
