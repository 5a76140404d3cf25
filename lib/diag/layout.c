/* SPDX-License-Identifier: Apache-2.0 */
/* Places of tables; see layout.h. */
#include "diag/layout.h"

#include "diag/findings.h"
#include "diag/peak.h"
#include "diag/resource_names.h"
#include "diag/stack_depot.h"
#include "diag/stacks.h"
#include "diag/uses.h"
#include "diag/verdicts.h"

/* The table is at the end of the file, which grows by it. */
#define PUT_TABLE(header, table, type, number)                                         \
    do {                                                                               \
        (header)->table##_offset = (uint32_t)(header)->file_bytes;                     \
        (header)->table##_stride = sizeof(type);                                       \
        (header)->table##_count = (number);                                            \
        (header)->file_bytes += (uint64_t)sizeof(type) * (number);                     \
    } while (0)

void rmm__diag_lay_out(
    rmm_diag_header_t *header, uint32_t row_count, uint32_t kernel_count)
{
    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->version_minor = RMM_DIAG_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(*header);
    PUT_TABLE(header, kernels, rmm_diag_kernel_t, kernel_count);
    PUT_TABLE(header, rows, rmm_diag_row_t, row_count);
    PUT_TABLE(header, findings, rmm_diag_finding_t, RMM_DIAG_FINDINGS_COUNT);
    PUT_TABLE(header, functions, rmm_diag_function_t, RMM_DIAG_FUNCTIONS_COUNT);
    PUT_TABLE(header, peaks, rmm_diag_peak_t, RMM_DIAG_PEAKS_COUNT);
    PUT_TABLE(
        header, parts, rmm_diag_part_t, RMM_DIAG_PEAKS_COUNT * RMM_DIAG_PARTS_COUNT);
    PUT_TABLE(header, stacks, rmm_diag_stack_t, RMM_DIAG_FINDINGS_COUNT);
    PUT_TABLE(header, modules, rmm_diag_module_t, RMM_DIAG_MODULES_COUNT);
    PUT_TABLE(header, verdicts, rmm_diag_verdict_entry_t, RMM_DIAG_VERDICTS_COUNT);
    PUT_TABLE(header, origins, rmm_diag_stack_t, RMM_DIAG_FINDINGS_COUNT);
    PUT_TABLE(header, frees, rmm_diag_stack_t, RMM_DIAG_FINDINGS_COUNT);
    PUT_TABLE(header, sites, rmm_diag_stack_t, RMM_STACK_DEPOT_COUNT);
    PUT_TABLE(header, resources, rmm_diag_resource_t, RMM_DIAG_RESOURCES_COUNT);
}

size_t rmm__diag_file_bytes(uint32_t row_count, uint32_t kernel_count)
{
    rmm_diag_header_t header = {0};

    rmm__diag_lay_out(&header, row_count, kernel_count);
    return header.file_bytes;
}
