/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names of resources (resource_names.h) out of a side file, and trusts nothing in it. */
#ifndef RMM_DIAG_RESOURCE_READER_H
#define RMM_DIAG_RESOURCE_READER_H

#include "diag/diag_reader.h"

/* Both are empty if the resource is not known. */
void rmm__diag_read_resource(
    const rmm_diag_file_t *file, uint32_t id, rmm_diag_resource_name_t *out);

#endif /* RMM_DIAG_RESOURCE_READER_H */
