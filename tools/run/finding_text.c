/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills in the texts of diag/finding_classes.def: each part in braces is a function here. Texts
 * that depend on more than the class are chosen here, and have parts of their own.
 */
#include "run/finding_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "diag/diag_names.h"
#include "run/names.h"

static void
print_text(const char *text, const rmm_diag_finding_info_t *finding, FILE *out);

/* --- who, where, how often --------------------------------------------------------------- */

static void print_count(uint64_t count, const char *one, const char *many, FILE *out)
{
    fprintf(out, "%" PRIu64 " %s", count, count == 1 ? one : many);
}

static void print_call(const rmm_diag_finding_info_t *finding, FILE *out)
{
    run_name_print(finding->function, "an unnamed kernel", out);
}

static void print_other_call(const rmm_diag_finding_info_t *finding, FILE *out)
{
    run_name_print(finding->other_function, "unnamed kernel", out);
}

static void print_in_graph(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fputs(finding->is_in_graph ? " in a graph" : "", out);
}

static void print_uses(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fputs(finding->access == RMM_DIAG_USES ? "was passed" : "uses", out);
}

/* A stream without an id is named by its handle, which is an address. */
static void print_stream_of(uint64_t stream_id, FILE *out)
{
    if (stream_id == UINT64_MAX) {
        fputs("a stream", out);
    } else if (stream_id > UINT32_MAX) {
        fprintf(out, "stream 0x%" PRIx64, stream_id);
    } else {
        fprintf(out, "stream %" PRIu64, stream_id);
    }
}

static void print_stream(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_stream_of(finding->stream_id, out);
}

static void print_other_stream(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_stream_of(finding->other_stream_id, out);
}

/* The work that the call is not ordered after. */
static void print_other(const rmm_diag_finding_info_t *finding, FILE *out)
{
    if (finding->other_call == 0) {
        fputs("the allocation of its block on ", out);
    } else {
        fputs("the use of its block by ", out);
        run_name_print(finding->other_function, "an unnamed kernel", out);
        fputs(" on ", out);
    }
    print_other_stream(finding, out);
}

static void print_times(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_count(finding->count, "time", "times", out);
}

static void print_confidence(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fputs(rmm__diag_confidence_name(finding->confidence), out);
}

static void print_access(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fputs(rmm__diag_access_name(finding->access), out);
}

static void print_address(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(out, "0x%" PRIx64, finding->address);
}

static void print_bytes(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_count(finding->bytes, "byte", "bytes", out);
}

static void print_offset(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(out, "%" PRId64, run_finding_offset(finding));
}

static void print_block(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fputs("a block of ", out);
    print_count(finding->block_bytes, "byte", "bytes", out);
    fprintf(out, " at 0x%" PRIx64 " of ", finding->block_address);
    run_resource_print(finding->resource_id, &finding->resource, out);
    if (finding->device < 0) {
        fputs(" in host memory", out);
    } else {
        fprintf(out, " on device %d", finding->device);
    }
}

static void print_block_or_none(const rmm_diag_finding_info_t *finding, FILE *out)
{
    if (finding->block_bytes == 0) {
        fputs("no block of ", out);
        run_resource_print(finding->resource_id, &finding->resource, out);
        fputs(" is known there", out);
    } else {
        print_text("{block}, at byte {offset}", finding, out);
    }
}

static void print_free_later(const rmm_diag_finding_info_t *finding, FILE *out)
{
    const char *remedy = "free the block after its last use";
    if (finding->is_in_graph) {
        remedy = "free the block when the graph is not launched any more";
    } else if (finding->access == RMM_DIAG_USES) {
        remedy = "free the block after its last use; "
                 "no error if the kernel does not follow the pointer: "
                 "then clear the pointer, or suppress the finding";
    }
    fputs(remedy, out);
}

/* --- bounds ------------------------------------------------------------------------------ */

static void print_caller(const rmm_diag_finding_info_t *finding, FILE *out)
{
    run_name_print(finding->function, "a call", out);
}

static void print_writer(const rmm_diag_finding_info_t *finding, FILE *out)
{
    run_name_print(
        finding->function,
        finding->call == 0 ? "something before the free" : "an unnamed kernel", out);
}

static void print_beyond(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_count(rmm__diag_bytes_beyond(finding), "byte", "bytes", out);
}

/* Bytes of the range that are in the block. */
static void print_within(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(out, "%" PRIu64, finding->bytes - rmm__diag_bytes_beyond(finding));
}

/* The size of a block that the range would fit in. */
static void print_needed(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(out, "%" PRIu64, finding->block_bytes + rmm__diag_bytes_beyond(finding));
}

/* A guard's words are printed as a position, those of a range as a distance. */
static void print_position(const rmm_diag_finding_info_t *finding, FILE *out)
{
    int64_t offset = run_finding_offset(finding);
    if (offset < 0) {
        fprintf(out, "%" PRIu64 " before its begin", (uint64_t)-offset);
    } else {
        fprintf(
            out, "%" PRIu64 " past its end", (uint64_t)offset - finding->block_bytes);
    }
}

static void print_distance(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_count(
        (uint64_t)run_finding_offset(finding) - finding->block_bytes, "byte", "bytes",
        out);
}

static void print_side(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fputs(run_finding_offset(finding) < 0 ? "before" : "past the end of", out);
}

#define GUARD                                                                          \
    "{writer} wrote {side} a block, {times}\n{block}, first changed byte: "            \
    "{position}\n"
#define RANGE                                                                          \
    "{caller} {access}s {bytes}, {times}\n"                                            \
    "in {block}, from byte {offset}"

/* A guard behind a block was changed: by a kernel, or by something that no check has followed;
 * else the range of a call is wrong. */
static const char *bounds_text(const rmm_diag_finding_info_t *finding)
{
    uint64_t beyond = rmm__diag_bytes_beyond(finding);
    if (finding->call == 0) {
        return GUARD "a kernel that is not given the block, or one of a graph: "
                     "run the program under compute-sanitizer";
    }
    if (finding->call == RMM_DIAG_CALL_LAUNCH) {
        return GUARD "check the index of the kernel's last threads; "
                     "compute-sanitizer names the line";
    }
    if (beyond > 0 && beyond < finding->bytes) {
        return RANGE " to {beyond} past its end\n"
                     "allocate {needed} bytes, or pass at most {within}";
    }
    if (run_finding_offset(finding) >= (int64_t)finding->block_bytes) {
        return RANGE ", {distance} behind its end\n"
                     "check the index: an array of n elements ends before element n";
    }
    return RANGE "\nthe range begins outside of the block: "
                 "check the pointer's offset, and that its own block is not freed";
}

static void print_bounds(const rmm_diag_finding_info_t *finding, FILE *out)
{
    print_text(bounds_text(finding), finding, out);
}

/* --- texts ------------------------------------------------------------------------------- */

#define PART(part)                                                                     \
    {                                                                                  \
#part, print_##part                                                            \
    }

static const struct {
    const char *name;
    void (*print)(const rmm_diag_finding_info_t *finding, FILE *out);
} parts[] = {PART(access),        PART(address),      PART(beyond),   PART(block),
             PART(block_or_none), PART(bounds),       PART(bytes),    PART(call),
             PART(caller),        PART(confidence),   PART(distance), PART(free_later),
             PART(in_graph),      PART(needed),       PART(offset),   PART(other),
             PART(other_call),    PART(other_stream), PART(position), PART(side),
             PART(stream),        PART(times),        PART(uses),     PART(within),
             PART(writer)};

/* A part that is not known stands in the report as it is in the text. */
static void print_part(
    const char *name, size_t length, const rmm_diag_finding_info_t *finding, FILE *out)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strlen(parts[i].name) == length &&
            memcmp(parts[i].name, name, length) == 0) {
            parts[i].print(finding, out);
            return;
        }
    }
    fprintf(out, "{%.*s}", (int)length, name);
}

/* Lines but the first are indented. */
static void
print_text(const char *text, const rmm_diag_finding_info_t *finding, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '{') {
            size_t length = strcspn(text + 1, "}");
            print_part(text + 1, length, finding, out);
            text += length + 1;
        } else if (*text == '\n') {
            fputs("\n    ", out);
        } else {
            fputc(*text, out);
        }
    }
}

void run_finding_print(const rmm_diag_finding_info_t *finding, FILE *out)
{
    const rmm_diag_finding_class_t *class = rmm__diag_finding_class(finding->kind);
    fprintf(out, "  %s: ", class->name);
    print_text(class->text, finding, out);
    fputc('\n', out);
}
