/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of programs' debug logs as lines. The same as in the file that a program
 * itself writes; in the log of the node with the process before it:
 *
 *   [process][thread][YYYY-MM-DDTHH:MM:SS.microseconds+HH:MM][level] message
 */
#ifndef RMM_FUSEFS_LOG_LINE_H
#define RMM_FUSEFS_LOG_LINE_H

#include "segment/segment_log.h"
#include "support/text.h"

/* process: name of its directory; NULL: the reader knows. */
void log_line_append(
    text_t *text, const char *process, const rmm_log_message_t *message);

/* "# lost 3 messages of 4711"; nothing if count is 0. */
void log_line_append_lost(text_t *text, const char *process, uint64_t count);

/* From this level on a message reports an error. */
uint32_t log_line_error_level(void);
/* False: not the name of a level. */
bool log_line_level_parse(const char *name, uint32_t *level_out);

#endif /* RMM_FUSEFS_LOG_LINE_H */
