/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a statistic is called as a metric, by the conventions of Prometheus: only counters end in
 * _total, only histograms in _count, _sum and _bucket. Pure. Threads: any.
 */
#ifndef RMM_FUSEFS_METRIC_NAMES_H
#define RMM_FUSEFS_METRIC_NAMES_H

#include <stdbool.h>

#define METRIC_NAME_BYTES 64

/* Without the prefix of its level and without _total; "" if nothing is left of it. */
void metric_name(const char *stat, char name[METRIC_NAME_BYTES]);

/* This daemon's own metrics of resources, or else of locations and devices, have the name. */
bool metric_is_known(const char *name, bool of_resources);

#endif /* RMM_FUSEFS_METRIC_NAMES_H */
