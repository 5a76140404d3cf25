/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of newer programs: the schema in a segment names what this daemon was not
 * built with, and `stat` shows it all the same. Sums over segments; of marks the largest.
 *
 * At most DEVICE_EXTRAS_MAX names per level are shown. Threads: the model lock.
 */
#ifndef RMM_FUSEFS_EXTRAS_H
#define RMM_FUSEFS_EXTRAS_H

#include "model.h"
#include "slots.h"

void extras_of_resource(const slot_view_t *view, extras_t *out);
void extras_of_process(const process_t *process, uint32_t device, extras_t *out);
void extras_of_device(const model_t *model, uint32_t device, extras_t *out);

/* Counters that a member leaves stay with the device. Lock held alone. */
void extras_fold(device_t *device, const member_t *member, uint32_t location);

/* Whether a segment has any; most have none, as what they publish is known here. */
bool extras_has(const rmm_segment_t *segment);

/* Those of a record of a location or a resource (RMM_SCHEMA_*), as far as they can be true. */
typedef void (*extra_fn)(const rmm_segment_schema_t *entry, uint64_t value, void *arg);
void extras_each(
    const rmm_segment_t *segment, uint16_t scope, const rmm_record_t *record,
    extra_fn visit, void *arg);

/* Add to the statistic of that name; for a mark, raise it. Of another kind
 * than the one that is there: nothing, the first program wins. */
void extras_add(extras_t *extras, const char *name, uint16_t kind, uint64_t value);

#endif /* RMM_FUSEFS_EXTRAS_H */
