/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the diagnosis side file; see diag_reader.h. */
#include "diag/diag_reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "diag/modes.h"
#include "diag/resource_reader.h"
#include "diag/stacks_reader.h"
#include "segment/segment_side.h"
#include "segment/text.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --- opening -------------------------------------------------------------------------- */

static uint32_t row_bytes(uint16_t version_minor)
{
    if (version_minor < 2) {
        return RMM_DIAG_ROW_BYTES_MIN;
    }
    return version_minor < 10 ? RMM_DIAG_ROW_BYTES_2 : sizeof(rmm_diag_row_t);
}

static rmm_side_table_t rows_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->rows_offset,
        .stride = header->rows_stride,
        .count = least(header->rows_count, RMM_DIAG_ROWS_MAX),
        .least_stride = row_bytes(header->version_minor)};
}

static rmm_side_table_t kernels_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->kernels_offset,
        .stride = header->kernels_stride,
        .count = header->kernels_count,
        .least_stride = sizeof(rmm_diag_kernel_t)};
}

static rmm_side_table_t functions_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->functions_offset,
        .stride = header->functions_stride,
        .count = header->functions_count,
        .least_stride = sizeof(rmm_diag_function_t)};
}

static rmm_side_table_t findings_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->findings_offset,
        .stride = header->findings_stride,
        .count = header->findings_count,
        .least_stride = header->version_minor < 4 ? RMM_DIAG_FINDING_BYTES_MIN
                                                  : sizeof(rmm_diag_finding_t)};
}

static rmm_side_table_t peaks_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->peaks_offset,
        .stride = header->peaks_stride,
        .count = header->peaks_count,
        .least_stride = sizeof(rmm_diag_peak_t)};
}

static rmm_side_table_t parts_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->parts_offset,
        .stride = header->parts_stride,
        .count = header->parts_count,
        .least_stride = sizeof(rmm_diag_part_t)};
}

static rmm_side_table_t verdicts_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->verdicts_offset,
        .stride = header->verdicts_stride,
        .count = header->verdicts_count,
        .least_stride = header->version_minor < 10 ? RMM_DIAG_VERDICT_BYTES_MIN
                                                   : sizeof(rmm_diag_verdict_entry_t)};
}

static bool fits(const rmm_diag_header_t *header, rmm_side_table_t table)
{
    return rmm_side_table_fits(&table, header->header_bytes, header->file_bytes);
}

/* A writer of an older minor version has none. */
static bool is_absent_or_fits(const rmm_diag_header_t *header, rmm_side_table_t table)
{
    return table.count == 0 || fits(header, table);
}

static bool header_holds(const rmm_diag_header_t *header, uint64_t file_bytes)
{
    return header->magic == RMM_DIAG_MAGIC && header->version_major == RMM_DIAG_MAJOR &&
           header->header_bytes >= RMM_DIAG_HEADER_BYTES_MIN &&
           header->file_bytes <= file_bytes && file_bytes <= RMM_DIAG_FILE_BYTES_MAX &&
           fits(header, rows_of(header)) && fits(header, kernels_of(header)) &&
           is_absent_or_fits(header, findings_of(header)) &&
           is_absent_or_fits(header, functions_of(header)) &&
           is_absent_or_fits(header, rmm_diag_stacks_of(header)) &&
           is_absent_or_fits(header, rmm_diag_origins_of(header)) &&
           is_absent_or_fits(header, rmm_diag_frees_of(header)) &&
           is_absent_or_fits(header, rmm_diag_sites_of(header)) &&
           is_absent_or_fits(header, rmm_diag_modules_of(header)) &&
           is_absent_or_fits(header, rmm_diag_resources_of(header)) &&
           is_absent_or_fits(header, peaks_of(header)) &&
           is_absent_or_fits(header, parts_of(header)) &&
           is_absent_or_fits(header, verdicts_of(header));
}

/* What an older writer's header does not have is 0. */
static void cut_header(rmm_diag_header_t *header)
{
    if (header->header_bytes < sizeof(*header)) {
        memset(
            (char *)header + header->header_bytes, 0,
            sizeof(*header) - header->header_bytes);
    }
}

static bool has_switch(const rmm_diag_header_t *header)
{
    return (atomic_load_explicit(&header->modes_applied, memory_order_relaxed) &
            RMM_DIAG_MODES_SET) != 0;
}

int rmm_diag_attach(rmm_diag_file_t *file, int fd)
{
    rmm_diag_header_t *header = &file->header;
    uint64_t file_bytes;
    file->fd = -1;
    int error = rmm_side_file_header(
        fd, header, sizeof(*header), offsetof(rmm_diag_header_t, ready), &file_bytes);
    if (error != 0) {
        return error;
    }
    cut_header(header);
    if (!header_holds(header, file_bytes)) {
        return -EPROTO;
    }
    rmm__text_clean(header->mode, sizeof(header->mode));
    memcpy(file->modes, header->mode, sizeof(header->mode));
    if (has_switch(header)) {
        rmm__diag_modes_print(
            atomic_load_explicit(&header->modes_on, memory_order_relaxed), file->modes);
    }
    rmm__text_clean(header->source, sizeof(header->source));
    file->fd = fd;
    return 0;
}

static int attach_or_close(rmm_diag_file_t *file, int fd)
{
    int error = fd < 0 ? fd : rmm_diag_attach(file, fd);

    return rmm_side_file_keep(&file->fd, fd, error);
}

int rmm_diag_open(rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    return attach_or_close(
        file, rmm_side_file_open(dirfd, segment, RMM_DIAG_SUFFIX, owner));
}

int rmm_diag_open_to_switch(
    rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    return attach_or_close(
        file, rmm_side_file_open_to_write(dirfd, segment, RMM_DIAG_SUFFIX, owner));
}

void rmm_diag_close(rmm_diag_file_t *file)
{
    rmm__file_close(&file->fd);
}

/* --- modes ------------------------------------------------------------------------------ */

bool rmm_diag_has_switch(const rmm_diag_file_t *file)
{
    return has_switch(&file->header);
}

uint32_t rmm_diag_modes_on(const rmm_diag_file_t *file)
{
    return atomic_load_explicit(&file->header.modes_on, memory_order_relaxed);
}

uint32_t rmm_diag_modes_wanted(const rmm_diag_file_t *file)
{
    return atomic_load_explicit(&file->header.modes_wanted, memory_order_relaxed) &
           ~RMM_DIAG_MODES_SET;
}

bool rmm_diag_modes_are_applied(const rmm_diag_file_t *file)
{
    return atomic_load_explicit(&file->header.modes_wanted, memory_order_relaxed) ==
           atomic_load_explicit(&file->header.modes_applied, memory_order_relaxed);
}

bool rmm_diag_want_modes(const rmm_diag_file_t *file, uint32_t modes)
{
    uint32_t wanted = modes | RMM_DIAG_MODES_SET;

    return pwrite(
               file->fd, &wanted, sizeof(wanted),
               offsetof(rmm_diag_header_t, modes_wanted)) == sizeof(wanted);
}

/* --- kernels -------------------------------------------------------------------------- */

uint32_t rmm_diag_kernel_count(const rmm_diag_file_t *file)
{
    uint32_t used =
        atomic_load_explicit(&file->header.kernels_used, memory_order_relaxed);
    return least(used, file->header.kernels_count);
}

uint32_t rmm_diag_row_count(const rmm_diag_file_t *file)
{
    uint32_t used = atomic_load_explicit(&file->header.rows_used, memory_order_relaxed);
    return least(least(used, file->header.rows_count), RMM_DIAG_ROWS_MAX);
}

static bool read_entry(
    const rmm_diag_file_t *file, const rmm_side_table_t *table, uint32_t index,
    void *out)
{
    return rmm__read_at(
        file->fd, out, table->least_stride,
        table->offset + (uint64_t)table->stride * index);
}

bool rmm_diag_read_kernel(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_kernel_info_t *out)
{
    rmm_diag_kernel_t kernel;
    const rmm_side_table_t kernels = kernels_of(&file->header);
    if (index >= rmm_diag_kernel_count(file) ||
        !read_entry(file, &kernels, index, &kernel)) {
        return false;
    }
    out->launches = atomic_load_explicit(&kernel.launches, memory_order_relaxed);
    memcpy(out->name, kernel.name, sizeof(out->name));
    rmm__text_clean(out->name, sizeof(out->name));
    return true;
}

static bool read_function(const rmm_diag_file_t *file, uint32_t index, char *name)
{
    rmm_diag_function_t function;
    const rmm_side_table_t functions = functions_of(&file->header);
    uint32_t used =
        atomic_load_explicit(&file->header.functions_used, memory_order_relaxed);
    if (index >= least(used, functions.count) ||
        !read_entry(file, &functions, index, &function)) {
        return false;
    }
    memcpy(name, function.name, sizeof(function.name));
    rmm__text_clean(name, sizeof(function.name));
    return true;
}

bool rmm_diag_read_user(
    const rmm_diag_file_t *file, uint32_t user, char name[RMM_DIAG_NAME_BYTES])
{
    rmm_diag_kernel_info_t kernel;
    static_assert(
        sizeof(kernel.name) == RMM_DIAG_NAME_BYTES &&
            sizeof(((rmm_diag_function_t *)0)->name) <= RMM_DIAG_NAME_BYTES,
        "every name fits");
    name[0] = '\0';
    if (user == RMM_DIAG_NO_USER) {
        return false;
    }
    if ((user & RMM_DIAG_FUNCTION) != 0) {
        return read_function(file, user & ~RMM_DIAG_FUNCTION, name) && name[0] != '\0';
    }
    if (!rmm_diag_read_kernel(file, user, &kernel)) {
        return false;
    }
    memcpy(name, kernel.name, sizeof(kernel.name));
    return name[0] != '\0';
}

/* --- rows ----------------------------------------------------------------------------- */

#define GET(row, field) atomic_load_explicit(&(row)->field, memory_order_relaxed)

typedef struct row_visitor {
    rmm_diag_row_fn visit;
    void *arg;
    size_t bytes; /* of a row, as far as it is known here */
} row_visitor_t;

static bool visit_row(const void *bytes, uint32_t index, void *arg)
{
    (void)index;
    const row_visitor_t *visitor = arg;
    rmm_diag_row_t copy = {0}; /* a shorter row of an older writer has zeros */
    const rmm_diag_row_t *row = memcpy(&copy, bytes, visitor->bytes);
    const rmm_diag_row_info_t info = {
        .address = GET(row, address),
        .bytes = GET(row, bytes),
        .stream_id = GET(row, stream_id),
        .launches = GET(row, launches),
        .copies = GET(row, copies),
        .fills = GET(row, fills),
        .prefetches = GET(row, prefetches),
        .allocated_at = GET(row, allocated_at),
        .first_use_at = GET(row, first_use_at),
        .last_use_at = GET(row, last_use_at),
        .allocated_ns = GET(row, allocated_ns),
        .first_use_ns = GET(row, first_use_ns),
        .last_use_ns = GET(row, last_use_ns),
        .resource_id = GET(row, resource_id),
        .device = GET(row, device),
        .first_user = GET(row, first_user),
        .last_user = GET(row, last_user),
        .site = GET(row, site)};
    return GET(row, live) == 0 || visitor->visit(&info, visitor->arg);
}

uint32_t
rmm_diag_each_row(const rmm_diag_file_t *file, rmm_diag_row_fn visit, void *arg)
{
    rmm_side_table_t rows = rows_of(&file->header);
    row_visitor_t visitor = {visit, arg, rows.least_stride};
    rows.count = rmm_diag_row_count(file);
    return rmm_side_rows_each(file->fd, &rows, visit_row, &visitor);
}

/* --- findings ------------------------------------------------------------------------- */

uint64_t rmm_diag_bytes_beyond(const rmm_diag_finding_info_t *finding)
{
    uint64_t end = finding->address + finding->bytes;
    uint64_t block_end = finding->block_address + finding->block_bytes;
    return end > block_end ? end - block_end : 0;
}

bool rmm_diag_read_findings_total(const rmm_diag_file_t *file, uint64_t *total_out)
{
    return rmm__read_at(
        file->fd, total_out, sizeof(*total_out),
        offsetof(rmm_diag_header_t, findings_total));
}

typedef struct finding_visitor {
    rmm_diag_finding_fn visit;
    void *arg;
    const rmm_diag_file_t *file;
    size_t bytes; /* of a finding, as far as it is known here */
} finding_visitor_t;

/* Who called, and who was before: kernels have their names in a table. */
static void name_parties(
    const rmm_diag_file_t *file, const rmm_diag_finding_t *finding,
    rmm_diag_finding_info_t *info)
{
    if (!rmm_diag_read_user(file, GET(finding, user), info->function)) {
        static_assert(
            sizeof(info->function) >= sizeof(finding->function), "function fits");
        memcpy(info->function, finding->function, sizeof(finding->function));
        rmm__text_clean(info->function, sizeof(finding->function));
    }
    (void)rmm_diag_read_user(file, GET(finding, other_user), info->other_function);
}

/* A shorter finding of an older writer is about bounds. */
static void fill_older(rmm_diag_finding_t *finding)
{
    atomic_init(&finding->user, RMM_DIAG_NO_USER);
    atomic_init(&finding->other_user, RMM_DIAG_NO_USER);
    atomic_init(&finding->stream_id, UINT64_MAX);
    atomic_init(&finding->other_stream_id, UINT64_MAX);
}

static bool is_of_order(uint32_t kind)
{
    return kind == RMM_DIAG_USE_UNORDERED || kind == RMM_DIAG_FREE_UNORDERED ||
           kind == RMM_DIAG_FREE_UNDER_GRAPH;
}

static bool visit_finding(const void *bytes, uint32_t index, void *arg)
{
    const finding_visitor_t *visitor = arg;
    rmm_diag_finding_t copy = {0};
    const rmm_diag_finding_t *finding = &copy;
    fill_older(&copy);
    memcpy(&copy, bytes, visitor->bytes);
    rmm_diag_finding_info_t info = {
        .index = index,
        .kind = GET(finding, kind),
        .call = GET(finding, call),
        .access = GET(finding, access),
        .resource_id = GET(finding, resource_id),
        .device = GET(finding, device),
        .count = GET(finding, count),
        .first_ns = GET(finding, first_ns),
        .last_ns = GET(finding, last_ns),
        .block_address = GET(finding, block_address),
        .block_bytes = GET(finding, block_bytes),
        .block_stream_id = GET(finding, block_stream_id),
        .address = GET(finding, address),
        .bytes = GET(finding, bytes),
        .stream_id = GET(finding, stream_id),
        .other_stream_id = GET(finding, other_stream_id),
        .confidence = GET(finding, confidence),
        .is_in_graph = GET(finding, call) == RMM_DIAG_CALL_GRAPH,
        .other_call = is_of_order(GET(finding, kind)) ? GET(finding, other_call)
                                                      : RMM_DIAG_NO_CALL};
    if (info.kind == 0) {
        return true;
    }
    name_parties(visitor->file, finding, &info);
    rmm_diag_read_resource(visitor->file, info.resource_id, &info.resource);
    return visitor->visit(&info, visitor->arg);
}

/* Tables of names grow while the file is open. */
static void read_used(rmm_diag_file_t *file)
{
    rmm_diag_header_t now;
    if (rmm__read_at(file->fd, &now, sizeof(now), 0)) {
        now.header_bytes = file->header.header_bytes;
        cut_header(&now);
        atomic_init(&file->header.kernels_used, GET(&now, kernels_used));
        atomic_init(&file->header.functions_used, GET(&now, functions_used));
    }
}

uint32_t
rmm_diag_each_finding(const rmm_diag_file_t *file, rmm_diag_finding_fn visit, void *arg)
{
    rmm_diag_file_t named = *file;
    rmm_side_table_t findings = findings_of(&file->header);
    finding_visitor_t visitor = {visit, arg, &named, findings.least_stride};
    uint32_t used =
        atomic_load_explicit(&file->header.findings_used, memory_order_relaxed);
    findings.count = least(used, findings.count);
    read_used(&named);
    return rmm_side_rows_each(file->fd, &findings, visit_finding, &visitor);
}

/* --- peaks ---------------------------------------------------------------------------- */

uint32_t rmm_diag_peak_count(const rmm_diag_file_t *file)
{
    uint32_t used =
        atomic_load_explicit(&file->header.peaks_used, memory_order_relaxed);
    return least(least(used, file->header.peaks_count), RMM_DIAG_PEAKS_COUNT);
}

static bool take_peak(const void *bytes, uint32_t index, void *arg)
{
    (void)index;
    rmm_diag_peak_info_t *info = arg;
    const rmm_diag_peak_t *peak = bytes;
    *info = (rmm_diag_peak_info_t){
        .device = GET(peak, device),
        .bytes = GET(peak, bytes),
        .count = GET(peak, count),
        .when_ns = GET(peak, when_ns)};
    return true;
}

bool rmm_diag_read_peak(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_peak_info_t *out)
{
    rmm_side_table_t peak = peaks_of(&file->header);
    *out = (rmm_diag_peak_info_t){.when_ns = 0};
    if (index >= rmm_diag_peak_count(file)) {
        return false;
    }
    peak.offset += peak.stride * index;
    peak.count = 1;
    (void)rmm_side_rows_each(file->fd, &peak, take_peak, out);
    return out->when_ns != 0;
}

typedef struct part_visitor {
    rmm_diag_part_fn visit;
    void *arg;
    uint64_t when_ns;
} part_visitor_t;

static bool visit_part(const void *bytes, uint32_t index, void *arg)
{
    (void)index;
    const part_visitor_t *visitor = arg;
    const rmm_diag_part_t *part = bytes;
    const rmm_diag_part_info_t info = {
        .resource_id = GET(part, resource_id),
        .first_user = GET(part, first_user),
        .site = GET(part, site),
        .bytes = GET(part, bytes),
        .count = GET(part, count)};
    return GET(part, when_ns) != visitor->when_ns ||
           visitor->visit(&info, visitor->arg);
}

uint32_t rmm_diag_each_part(
    const rmm_diag_file_t *file, uint32_t index, uint64_t when_ns,
    rmm_diag_part_fn visit, void *arg)
{
    part_visitor_t visitor = {visit, arg, when_ns};
    rmm_side_table_t parts = parts_of(&file->header);
    if (index >= rmm_diag_peak_count(file)) {
        return 0;
    }
    parts.count /= file->header.peaks_count;
    parts.offset += parts.stride * parts.count * index;
    return rmm_side_rows_each(file->fd, &parts, visit_part, &visitor);
}

/* --- verdicts ------------------------------------------------------------------------- */

typedef struct verdict_visitor {
    rmm_diag_verdict_fn visit;
    void *arg;
    size_t bytes; /* of an entry, as far as it is known here */
} verdict_visitor_t;

static bool visit_verdict(const void *bytes, uint32_t index, void *arg)
{
    (void)index;
    const verdict_visitor_t *visitor = arg;
    rmm_diag_verdict_entry_t copy = {0}; /* a shorter one has zeros */
    const rmm_diag_verdict_entry_t *entry = memcpy(&copy, bytes, visitor->bytes);
    const rmm_diag_group_t group = {
        .verdict = GET(entry, verdict),
        .resource_id = GET(entry, resource_id),
        .first_user = GET(entry, first_user),
        .device = GET(entry, device),
        .size_class = GET(entry, size_class),
        .site = GET(entry, site),
        .bytes = GET(entry, bytes),
        .count = GET(entry, count),
        .largest = GET(entry, largest),
        .byte_ms = GET(entry, byte_ms)};
    return group.verdict == 0 || visitor->visit(&group, visitor->arg);
}

uint32_t
rmm_diag_each_verdict(const rmm_diag_file_t *file, rmm_diag_verdict_fn visit, void *arg)
{
    rmm_side_table_t verdicts = verdicts_of(&file->header);
    verdict_visitor_t visitor = {visit, arg, verdicts.least_stride};
    return rmm_side_rows_each(file->fd, &verdicts, visit_verdict, &visitor);
}
