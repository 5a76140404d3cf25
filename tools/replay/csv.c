/* SPDX-License-Identifier: Apache-2.0 */
/* The FILE keeps errors of writing; they are reported once, at the end. */
#include "replay/csv.h"

#include <inttypes.h>

bool csv_open(csv_t *csv, const char *path, const char *heading, uint64_t operations)
{
    *csv = (csv_t){
        .operations = operations,
        .stretch = (operations + CSV_ROWS_MAX - 1) / CSV_ROWS_MAX};
    if (!output_open(&csv->output, path)) {
        return false;
    }
    fprintf(
        csv->output.file, "# %s\noperation,time_ns,live_bytes,reserved_bytes\n",
        heading);
    return true;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

void csv_note(csv_t *csv, uint64_t due_ns, uint64_t live_bytes, uint64_t reserved_bytes)
{
    csv->seen++;
    csv->live_bytes = larger(csv->live_bytes, live_bytes);
    csv->reserved_bytes = larger(csv->reserved_bytes, reserved_bytes);
    if (csv->seen % csv->stretch != 0 && csv->seen != csv->operations) {
        return;
    }
    fprintf(
        csv->output.file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
        csv->seen, due_ns, csv->live_bytes, csv->reserved_bytes);
    csv->live_bytes = 0;
    csv->reserved_bytes = 0;
}

bool csv_close(csv_t *csv)
{
    if (csv->seen != csv->operations) {
        output_discard(&csv->output);
        return true;
    }
    return output_commit(&csv->output);
}
