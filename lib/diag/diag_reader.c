/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the diagnosis side file; see diag_reader.h. */
#include "diag/diag_reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "diag/diag_names.h"
#include "diag/modes.h"
#include "diag/resource_reader.h"
#include "diag/stacks_reader.h"
#include "segment/clean_text.h"
#include "segment/segment_side.h"

#define TABLE(file, section, type)                                                     \
    rmm__diag_table(&(file)->header.section, sizeof(type))

/* --- opening -------------------------------------------------------------------------- */

static const struct {
    size_t at; /* in the header: rmm_diag_section_t */
    uint32_t bytes;
} sections[] = {
#define SECTION(name, type, bytes) {offsetof(rmm_diag_header_t, name), sizeof(type)},
    RMM_DIAG_SECTION_MAP(SECTION)
#undef SECTION
};

static bool sections_fit(const rmm_diag_header_t *header)
{
    bool fit = true;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        const void *section = (const char *)header + sections[i].at;
        const rmm_side_table_t table = rmm__diag_table(section, sections[i].bytes);
        fit = fit &&
              (table.count == 0 ||
               rmm__side_table_fits(&table, header->header_bytes, header->file_bytes));
    }
    return fit;
}

static bool header_holds(const rmm_diag_header_t *header, uint64_t file_bytes)
{
    return header->magic == RMM_DIAG_MAGIC && header->version_major == RMM_DIAG_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes && file_bytes <= RMM_DIAG_FILE_BYTES_MAX &&
           sections_fit(header);
}

static bool has_switch(const rmm_diag_header_t *header)
{
    return (atomic_load_explicit(&header->modes_applied, memory_order_relaxed) &
            RMM_DIAG_MODES_SET) != 0;
}

int rmm__diag_attach(rmm_diag_file_t *file, int fd)
{
    rmm_diag_header_t *header = &file->header;
    uint64_t file_bytes;
    int error;
    file->fd = -1;
    error = rmm__side_file_header(
        fd, header, sizeof(*header), offsetof(rmm_diag_header_t, ready), &file_bytes);
    if (error != 0) {
        return error;
    }
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
    rmm__text_clean(header->run, sizeof(header->run));
    rmm__text_clean(header->rank, sizeof(header->rank));
    rmm__text_clean(header->python, sizeof(header->python));
    file->fd = fd;
    return 0;
}

static int attach_or_close(rmm_diag_file_t *file, int fd)
{
    int error = fd < 0 ? fd : rmm__diag_attach(file, fd);

    return rmm__side_file_keep(&file->fd, fd, error);
}

int rmm__diag_open(rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    return attach_or_close(
        file, rmm__side_file_open(dirfd, segment, RMM_DIAG_SUFFIX, owner));
}

int rmm__diag_open_to_switch(
    rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    return attach_or_close(
        file, rmm__side_file_open_to_write(dirfd, segment, RMM_DIAG_SUFFIX, owner));
}

void rmm__diag_close(rmm_diag_file_t *file)
{
    rmm__file_close(&file->fd);
}

/* --- modes ------------------------------------------------------------------------------ */

bool rmm__diag_has_switch(const rmm_diag_file_t *file)
{
    return has_switch(&file->header);
}

uint32_t rmm__diag_modes_on(const rmm_diag_file_t *file)
{
    return atomic_load_explicit(&file->header.modes_on, memory_order_relaxed);
}

uint32_t rmm__diag_modes_wanted(const rmm_diag_file_t *file)
{
    return atomic_load_explicit(&file->header.modes_wanted, memory_order_relaxed) &
           ~RMM_DIAG_MODES_SET;
}

bool rmm__diag_modes_are_applied(const rmm_diag_file_t *file)
{
    return atomic_load_explicit(&file->header.modes_wanted, memory_order_relaxed) ==
           atomic_load_explicit(&file->header.modes_applied, memory_order_relaxed);
}

bool rmm__diag_want_modes(const rmm_diag_file_t *file, uint32_t modes)
{
    uint32_t wanted = modes | RMM_DIAG_MODES_SET;

    return pwrite(
               file->fd, &wanted, sizeof(wanted),
               offsetof(rmm_diag_header_t, modes_wanted)) == sizeof(wanted);
}

/* --- kernels -------------------------------------------------------------------------- */

uint32_t rmm__diag_kernel_count(const rmm_diag_file_t *file)
{
    return rmm__diag_used(&file->header.kernels);
}

uint32_t rmm__diag_row_count(const rmm_diag_file_t *file)
{
    uint32_t used = rmm__diag_used(&file->header.rows);
    return used < RMM_DIAG_ROWS_MAX ? used : RMM_DIAG_ROWS_MAX;
}

static bool read_entry(
    const rmm_diag_file_t *file, const rmm_side_table_t *table, uint32_t index,
    void *out)
{
    return rmm__read_at(
        file->fd, out, table->least_stride,
        table->offset + (uint64_t)table->stride * index);
}

bool rmm__diag_read_kernel(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_kernel_info_t *out)
{
    rmm_diag_kernel_t kernel;
    const rmm_side_table_t kernels = TABLE(file, kernels, rmm_diag_kernel_t);
    if (index >= rmm__diag_kernel_count(file) ||
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
    const rmm_side_table_t functions = TABLE(file, functions, rmm_diag_function_t);
    if (index >= rmm__diag_used(&file->header.functions) ||
        !read_entry(file, &functions, index, &function)) {
        return false;
    }
    memcpy(name, function.name, sizeof(function.name));
    rmm__text_clean(name, sizeof(function.name));
    return true;
}

bool rmm__diag_read_user(
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
    if (!rmm__diag_read_kernel(file, user, &kernel)) {
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
} row_visitor_t;

static bool visit_row(const void *bytes, uint32_t index, void *arg)
{
    const row_visitor_t *visitor = arg;
    const rmm_diag_row_t *row = bytes;
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
    (void)index;
    return GET(row, live) == 0 || visitor->visit(&info, visitor->arg);
}

uint32_t
rmm__diag_each_row(const rmm_diag_file_t *file, rmm_diag_row_fn visit, void *arg)
{
    rmm_side_table_t rows = TABLE(file, rows, rmm_diag_row_t);
    row_visitor_t visitor = {visit, arg};
    rows.count = rmm__diag_row_count(file);
    return rmm__side_rows_each(file->fd, &rows, visit_row, &visitor);
}

/* --- findings ------------------------------------------------------------------------- */

uint64_t rmm__diag_bytes_beyond(const rmm_diag_finding_info_t *finding)
{
    uint64_t end = finding->address + finding->bytes;
    uint64_t block_end = finding->block_address + finding->block_bytes;
    return end > block_end ? end - block_end : 0;
}

bool rmm__diag_read_findings_total(const rmm_diag_file_t *file, uint64_t *total_out)
{
    return rmm__read_at(
        file->fd, total_out, sizeof(*total_out),
        offsetof(rmm_diag_header_t, findings_total));
}

typedef struct finding_visitor {
    rmm_diag_finding_fn visit;
    void *arg;
    const rmm_diag_file_t *file;
} finding_visitor_t;

/* Who called, and who was before: kernels have their names in a table. */
static void name_parties(
    const rmm_diag_file_t *file, const rmm_diag_finding_t *finding,
    rmm_diag_finding_info_t *info)
{
    if (!rmm__diag_read_user(file, GET(finding, user), info->function)) {
        static_assert(
            sizeof(info->function) >= sizeof(finding->function), "function fits");
        memcpy(info->function, finding->function, sizeof(finding->function));
        rmm__text_clean(info->function, sizeof(finding->function));
    }
    (void)rmm__diag_read_user(file, GET(finding, other_user), info->other_function);
}

static bool visit_finding(const void *bytes, uint32_t index, void *arg)
{
    const finding_visitor_t *visitor = arg;
    const rmm_diag_finding_t *finding = bytes;
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
        .other_call = RMM_DIAG_NO_CALL};
    if (rmm__diag_finding_class(info.kind)->other == RMM_DIAG_OTHER_USE) {
        info.other_call = GET(finding, other_call);
    }
    if (info.kind == 0) {
        return true;
    }
    name_parties(visitor->file, finding, &info);
    rmm__diag_read_resource(visitor->file, info.resource_id, &info.resource);
    return visitor->visit(&info, visitor->arg);
}

/* Sections of names grow while the file is open. */
static void read_used(rmm_diag_file_t *file)
{
    rmm_diag_header_t now;
    if (rmm__read_at(file->fd, &now, sizeof(now), 0)) {
        atomic_init(&file->header.kernels.used, GET(&now, kernels.used));
        atomic_init(&file->header.functions.used, GET(&now, functions.used));
    }
}

uint32_t rmm__diag_each_finding(
    const rmm_diag_file_t *file, rmm_diag_finding_fn visit, void *arg)
{
    rmm_diag_file_t named = *file;
    rmm_side_table_t findings = TABLE(file, findings, rmm_diag_finding_t);
    finding_visitor_t visitor = {visit, arg, &named};
    findings.count = rmm__diag_used(&file->header.findings);
    read_used(&named);
    return rmm__side_rows_each(file->fd, &findings, visit_finding, &visitor);
}

/* --- peaks ---------------------------------------------------------------------------- */

uint32_t rmm__diag_peak_count(const rmm_diag_file_t *file)
{
    uint32_t used = rmm__diag_used(&file->header.peaks);
    return used < RMM_DIAG_PEAKS_COUNT ? used : RMM_DIAG_PEAKS_COUNT;
}

static bool take_peak(const void *bytes, uint32_t index, void *arg)
{
    rmm_diag_peak_info_t *info = arg;
    const rmm_diag_peak_t *peak = bytes;
    (void)index;
    *info = (rmm_diag_peak_info_t){
        .device = GET(peak, device),
        .bytes = GET(peak, bytes),
        .count = GET(peak, count),
        .when_ns = GET(peak, when_ns)};
    return true;
}

bool rmm__diag_read_peak(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_peak_info_t *out)
{
    rmm_side_table_t peak = TABLE(file, peaks, rmm_diag_peak_t);
    *out = (rmm_diag_peak_info_t){.when_ns = 0};
    if (index >= rmm__diag_peak_count(file)) {
        return false;
    }
    peak.offset += peak.stride * index;
    peak.count = 1;
    (void)rmm__side_rows_each(file->fd, &peak, take_peak, out);
    return out->when_ns != 0;
}

typedef struct part_visitor {
    rmm_diag_part_fn visit;
    void *arg;
    uint64_t when_ns;
} part_visitor_t;

static bool visit_part(const void *bytes, uint32_t index, void *arg)
{
    const part_visitor_t *visitor = arg;
    const rmm_diag_part_t *part = bytes;
    const rmm_diag_part_info_t info = {
        .resource_id = GET(part, resource_id),
        .first_user = GET(part, first_user),
        .site = GET(part, site),
        .bytes = GET(part, bytes),
        .count = GET(part, count)};
    (void)index;
    return GET(part, when_ns) != visitor->when_ns ||
           visitor->visit(&info, visitor->arg);
}

uint32_t rmm__diag_each_part(
    const rmm_diag_file_t *file, uint32_t index, uint64_t when_ns,
    rmm_diag_part_fn visit, void *arg)
{
    part_visitor_t visitor = {visit, arg, when_ns};
    rmm_side_table_t parts = TABLE(file, parts, rmm_diag_part_t);
    if (index >= rmm__diag_peak_count(file)) {
        return 0;
    }
    parts.count /= file->header.peaks.count;
    parts.offset += parts.stride * parts.count * index;
    return rmm__side_rows_each(file->fd, &parts, visit_part, &visitor);
}

/* --- verdicts ------------------------------------------------------------------------- */

typedef struct verdict_visitor {
    rmm_diag_verdict_fn visit;
    void *arg;
} verdict_visitor_t;

static bool visit_verdict(const void *bytes, uint32_t index, void *arg)
{
    const verdict_visitor_t *visitor = arg;
    const rmm_diag_verdict_entry_t *entry = bytes;
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
    (void)index;
    return group.verdict == 0 || visitor->visit(&group, visitor->arg);
}

uint32_t rmm__diag_each_verdict(
    const rmm_diag_file_t *file, rmm_diag_verdict_fn visit, void *arg)
{
    const rmm_side_table_t verdicts = TABLE(file, verdicts, rmm_diag_verdict_entry_t);
    verdict_visitor_t visitor = {visit, arg};
    return rmm__side_rows_each(file->fd, &verdicts, visit_verdict, &visitor);
}
