/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the two formats of metrics a client prefers. */
#ifndef RMM_EXPORTER_NEGOTIATE_H
#define RMM_EXPORTER_NEGOTIATE_H

#include <stdbool.h>

/* accept: the header of that name, or NULL. True: OpenMetrics 1.0; else the text format 0.0.4,
 * also where the client likes both as well, or neither. */
bool negotiate_openmetrics(const char *accept);

#endif /* RMM_EXPORTER_NEGOTIATE_H */
