/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets of the tables in the side file: they follow the header, one after the other.
 */
#ifndef RMM_DIAG_LAYOUT_H
#define RMM_DIAG_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "diag/diag_format.h"

/* Bytes of a file with so many rows and kernels. */
size_t rmm__diag_file_bytes(uint32_t row_count, uint32_t kernel_count);

/* Writes all of the header that says what the file is and where its tables are. */
void rmm__diag_lay_out(
    rmm_diag_header_t *header, uint32_t row_count, uint32_t kernel_count);

#endif /* RMM_DIAG_LAYOUT_H */
