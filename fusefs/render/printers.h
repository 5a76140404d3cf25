/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A printer for each row of tree_files.def, and for each statistic: print_ID() makes the text of
 * the file from what the row says is collected (subject.h). Only for this folder.
 */
#ifndef RMM_FUSEFS_PRINTERS_H
#define RMM_FUSEFS_PRINTERS_H

#include "render/subject.h"
#include "support/text.h"

#define FILE_ROW(id, name, access, kind, where, collect)                               \
    void print_##id(const subject_t *subject, text_t *text);
#include "model/tree_files.def"
#define X(field, kind, unit, help)                                                     \
    void print_##field(const subject_t *subject, text_t *text);
RMM_EACH_STAT(X)
#undef X

#endif /* RMM_FUSEFS_PRINTERS_H */
