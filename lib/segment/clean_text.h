/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that crosses processes: fixed size, always terminated, always printable UTF-8.
 * Both sides clean: the writer so that others need not, the reader because it trusts
 * no writer. A name with a newline would forge lines of a table or of metrics.
 */
#ifndef RMM_SEGMENT_CLEAN_TEXT_H
#define RMM_SEGMENT_CLEAN_TEXT_H

#include <stddef.h>

/*
 * Make text[0..bytes) a terminated string in place: whatever is not well-formed UTF-8 and
 * every control character becomes '?', byte for byte. A character that the end cuts is
 * dropped.
 */
void rmm__text_clean(char *text, size_t bytes);

/* Copy `source` (NULL: "") cut to fit, cleaned; the rest of the target is zeroed. */
void rmm__text_copy(char *target, size_t bytes, const char *source);

#endif /* RMM_SEGMENT_CLEAN_TEXT_H */
