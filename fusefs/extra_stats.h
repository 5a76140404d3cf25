/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of newer programs: which there are, by the schemas in the segments, and
 * their values at each level. A level has a chain of values, in one array.
 *
 * Nothing in a schema is trusted. The reader has checked the characters and the length of a name
 * (segment_reader.c); here the number of names is bounded, for each user too, and a name that
 * another program uses with another kind, or that would give a metric the name of another one, is
 * refused: the first program wins. A refusal marks the segment, and daemon/rejected shows it.
 *
 * Threads: the owner's.
 */
#ifndef RMM_FUSEFS_EXTRA_STATS_H
#define RMM_FUSEFS_EXTRA_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model.h"
#include "shares.h"

#define EXTRA_STATS_MAX 64u
#define EXTRA_STATS_OF_USER 16u
#define EXTRA_VALUES_MAX 16384u
#define EXTRA_VALUES_OF_DEVICES 8256u /* of these: each statistic at each device */
#define EXTRA_METRIC_BYTES 64u

typedef struct extra_stat {
    char name[40];
    char metric[EXTRA_METRIC_BYTES]; /* without prefix and _total */
    uint16_t kind;                   /* RMM_KIND_* */
    bool of_resources;               /* else of locations and devices */
    uid_t uid;                       /* whose program had it first */
} extra_stat_t;

/* A value, and the next one of its level. */
typedef struct extra_value {
    uint16_t stat; /* index in extra_stats_t */
    uint32_t next; /* position of the next one + 1; 0: the last one */
    uint64_t value;
} extra_value_t;

typedef struct extra_stats {
    extra_stat_t items[EXTRA_STATS_MAX];
    uint32_t count;
    extra_value_t *values; /* NULL: none */
    uint32_t value_count;
    shares_t shares; /* of the values; refused: what is left out */
} extra_stats_t;

void extra_stats_fini(extra_stats_t *stats);

/* Of all members before the first value is added. */
void extra_stats_want(extra_stats_t *stats, const member_t *member);
void extra_stats_allot(extra_stats_t *stats);

/* What the values of a member are added to. head: of the level's chain, position + 1 or 0. */
typedef struct extra_target {
    extra_stats_t *stats;
    member_t *member;
    uint32_t *head;
} extra_target_t;

/* Those of a record of a location or a resource (RMM_SCHEMA_*). */
void extra_values_add(
    const extra_target_t *target, uint16_t scope, const rmm_record_t *record);
/* The same at one of its locations, which is read for it; nothing is read without any. */
void extra_values_add_location(const extra_target_t *target, uint32_t location);
/* What ended processes left at a device. */
void extra_values_add_ended(
    extra_stats_t *stats, const device_t *device, uint32_t *head);

/* FIGURE_UNKNOWN: the level has none. */
uint64_t extra_value_of(const extra_stats_t *stats, uint32_t head, uint32_t stat);

#endif /* RMM_FUSEFS_EXTRA_STATS_H */
