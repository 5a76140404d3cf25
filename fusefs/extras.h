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

/* Add to the statistic of that name; for a mark, raise it. */
void extras_add(extras_t *extras, const char *name, uint16_t kind, uint64_t value);

#endif /* RMM_FUSEFS_EXTRAS_H */
