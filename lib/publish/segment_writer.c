/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes this process's segment, once, and keeps it until the process ends: nothing is
 * unmapped at exit, so that no order of exit handlers matters. A small copy takes the
 * segment's name then, so that last figures stay readable. Sweepers remove it later.
 *
 * Never fails for the caller. Where no file can be made the same records live in static
 * memory, after one warning.
 *
 * Fork: the mappings are not inherited (the lock would be, and the child would count in
 * its parent's accounting). The child handler puts anonymous memory into the holes, so that a
 * free or an exit handler there writes to no file. It only calls mmap. The lock is held
 * over fork(): a child never sees a file half made, nor inherits its descriptor.
 */
#include "publish/accounting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmm/version.h>

#include "core/error.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "log/log.h"
#include "publish/log_ring.h"
#include "publish/process_identity.h"
#include "publish/publisher.h"
#include "publish/requests.h"
#include "publish/shared_file.h"
#include "publish/trace.h"
#include "segment/clean_text.h"
#include "segment/limits_mark.h"
#include "segment/segment_reader.h"
#include "segment/segment_shrink.h"

#define WARNING_BYTES 1024
#define RECLAIM_TRIES 100 /* others that start take what was freed */

/* Only touched, and so only backed, where nothing is published. */
static rmm_segment_layout_t private_segment;
static rmm_control_page_t private_control;

rmm_publisher_t rmm__publisher = {
    .lock = RMM_MUTEX_INITIALIZER,
    .segment = &private_segment,
    .control = &private_control,
};
rmm_segment_location_t *rmm__locations = private_segment.locations;
rmm_segment_stripe_t (*rmm__location_stripes)[RMM_SEGMENT_STRIPES] =
    private_segment.location_stripes;
const rmm_control_location_t *rmm__location_requests = private_control.locations;

/* --- fork --------------------------------------------------------------------------- */

static void forget_files_in_child(void)
{
    rmm_segment_pages_t *pages = &rmm__publisher.pages;

    for (uint32_t i = 0; i < rmm__publisher.mapping_count; i++) {
        rmm_mapping_t *mapping = &rmm__publisher.mappings[i];

        if (mapping->shared) {
            (void)mmap(
                mapping->pages.memory, mapping->pages.bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            mapping->shared = false; /* inherited by the child's own children */
        }
    }
    for (uint32_t i = 0; i < RMM_PAGE_WORDS; i++) {
        atomic_store_explicit(&pages->wanting[i], 0, memory_order_relaxed);
        atomic_store_explicit(&pages->refused[i], 0, memory_order_relaxed);
    }
    if (rmm__publisher.state == RMM_PUBLISH_SHARED) {
        rmm__publisher.state = RMM_PUBLISH_PRIVATE;
    }
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_PUBLISHER, &rmm__publisher.lock, forget_files_in_child);
}

/* --- pages -------------------------------------------------------------------------- */

/* All pages of a segment that has its file. */
static void want_all_pages_locked(void)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t page = 0; page * page_bytes < sizeof(rmm_segment_layout_t); page++) {
        atomic_fetch_or_explicit(
            &rmm__publisher.pages.wanting[page / 64], UINT64_C(1) << page % 64,
            memory_order_relaxed);
    }
}

static void note_backed_locked(size_t offset, size_t bytes)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t page = offset / page_bytes; page * page_bytes < offset + bytes;
         page++) {
        atomic_fetch_and_explicit(
            &rmm__publisher.pages.wanting[page / 64], ~(UINT64_C(1) << page % 64),
            memory_order_relaxed);
    }
}

/* Two threads at once do the same. */
RMM_COLD static bool back_page(size_t page, size_t page_bytes)
{
    rmm_segment_pages_t *pages = &rmm__publisher.pages;
    const uint64_t bit = UINT64_C(1) << page % 64;
    bool good = rmm__shared_pages_back(
                    &rmm__publisher.mappings[0].pages, page * page_bytes, 1) == 0;

    if (!good) {
        atomic_fetch_or_explicit(&pages->refused[page / 64], bit, memory_order_relaxed);
    }
    /* release: a thread that finds the bit gone finds the page there, or refused */
    atomic_fetch_and_explicit(&pages->wanting[page / 64], ~bit, memory_order_release);
    return good;
}

bool rmm__segment_back(const void *record, size_t bytes)
{
    const rmm_segment_pages_t *pages = &rmm__publisher.pages;
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t offset =
        (size_t)((const char *)record - (const char *)rmm__publisher.segment);
    bool good = true;

    for (size_t page = offset / page_bytes; page * page_bytes < offset + bytes;
         page++) {
        const uint64_t bit = UINT64_C(1) << page % 64;
        /* acquire: pairs with back_page() */
        uint64_t wanting =
            atomic_load_explicit(&pages->wanting[page / 64], memory_order_acquire);
        uint64_t refused =
            atomic_load_explicit(&pages->refused[page / 64], memory_order_relaxed);

        good = good && (refused & bit) == 0 &&
               ((wanting & bit) == 0 || back_page(page, page_bytes));
    }
    return good;
}

/* --- contents ----------------------------------------------------------------------- */

static void
fill_entry(rmm_segment_schema_t *entry, uint16_t scope, const rmm_stat_desc_t *stat)
{
    const rmm_stripe_words_t *words = rmm__stripe_words(stat->name);

    rmm__text_copy(entry->name, sizeof(entry->name), stat->name);
    entry->scope = scope;
    entry->kind = stat->kind;
    entry->unit = stat->unit;
    entry->offset = stat->offset;
    entry->stripe_plus = words != NULL ? words->plus : RMM_STRIPE_NONE;
    entry->stripe_minus = words != NULL ? words->minus : RMM_STRIPE_NONE;
}

static void fill_schema(rmm_segment_schema_t *schema)
{
    for (uint32_t i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        fill_entry(schema++, RMM_SCHEMA_LOCATION, &rmm__location_stats[i]);
    }
    for (uint32_t i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        fill_entry(schema++, RMM_SCHEMA_SLOT, &rmm__slot_stats[i]);
    }
}

static void fill_segment(rmm_segment_layout_t *segment, const char *driver)
{
    rmm_segment_header_t *header = &segment->header;

    header->magic = RMM_SEGMENT_MAGIC;
    header->version_major = RMM_SEGMENT_MAJOR;
    header->version_minor = RMM_SEGMENT_MINOR;
    header->header_bytes = sizeof(*header);
    header->segment_bytes = sizeof(*segment);
    header->library_version = rmm_version();
    header->schema_offset = offsetof(rmm_segment_layout_t, schema);
    header->schema_stride = sizeof(rmm_segment_schema_t);
    header->schema_count = RMM_LOCATION_STAT_COUNT + RMM_SLOT_STAT_COUNT;
    header->locations_offset = offsetof(rmm_segment_layout_t, locations);
    header->locations_stride = sizeof(rmm_segment_location_t);
    header->locations_count = RMM_SEGMENT_LOCATIONS;
    header->slots_offset = offsetof(rmm_segment_layout_t, slots);
    header->slots_stride = sizeof(rmm_segment_slot_t);
    header->slots_count = RMM_SEGMENT_SLOTS;
    header->log_offset = offsetof(rmm_segment_layout_t, log_records);
    header->log_stride = sizeof(rmm_segment_log_record_t);
    header->log_count = RMM_LOG_RECORDS;
    header->stripes_stride = sizeof(rmm_segment_stripe_t);
    header->stripes_count = RMM_SEGMENT_STRIPES;
    header->location_stripes_offset = offsetof(rmm_segment_layout_t, location_stripes);
    header->slot_stripes_offset = offsetof(rmm_segment_layout_t, slot_stripes);
    header->refusals_offset = offsetof(rmm_segment_layout_t, refusal_records);
    header->refusals_stride = sizeof(rmm_segment_refusal_t);
    header->refusals_count = RMM_REFUSAL_RECORDS;
    segment->log.floor = 1 + RMM_LOG_FLOOR;
    rmm__text_copy(header->driver, sizeof(header->driver), driver);
    rmm__process_identity(header);
    fill_schema(segment->schema);
    /* release: pairs with read_header() in segment_reader.c */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

static void fill_control(rmm_control_page_t *control)
{
    control->magic = RMM_CONTROL_MAGIC;
    control->version_major = RMM_SEGMENT_MAJOR;
    control->version_minor = RMM_SEGMENT_MINOR;
    control->locations_offset = offsetof(rmm_control_page_t, locations);
    control->locations_stride = sizeof(rmm_control_location_t);
    control->locations_count = RMM_SEGMENT_LOCATIONS;
    control->slots_offset = offsetof(rmm_control_page_t, slots);
    control->slots_stride = sizeof(rmm_control_slot_t);
    control->slots_count = RMM_SEGMENT_SLOTS;
    control->shares_offset = offsetof(rmm_control_page_t, shares);
    control->shares_stride = sizeof(rmm_control_share_t);
    control->shares_count = RMM_SEGMENT_LOCATIONS;
    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        atomic_init(&control->locations[i].limit_bytes, RMM_SEGMENT_NO_LIMIT);
        atomic_init(&control->shares[i].share_bytes, RMM_SEGMENT_NO_LIMIT);
    }
    for (uint32_t i = 0; i < RMM_SEGMENT_SLOTS; i++) {
        atomic_init(&control->slots[i].limit_bytes, RMM_SEGMENT_NO_LIMIT);
    }
}

/* --- files -------------------------------------------------------------------------- */

static void
add_mapping_locked(const rmm_shared_pages_t *pages, bool shared, const char *suffix)
{
    rmm_mapping_t *mapping = &rmm__publisher.mappings[rmm__publisher.mapping_count++];

    mapping->pages = *pages;
    mapping->shared = shared;
    rmm__text_copy(mapping->suffix, sizeof(mapping->suffix), suffix);
}

static void side_name(char name[RMM_RUNTIME_DIR_BYTES], const char *suffix)
{
    snprintf(
        name, RMM_RUNTIME_DIR_BYTES, "%.*s.%s", RMM_SEGMENT_NAME_BYTES,
        rmm__publisher.name, suffix);
}

/* The control page gets its name first: a reader that sees the segment may look for it. */
static int publish_both_locked(
    rmm_shared_file_t *segment, rmm_shared_file_t *control, const char **step_out)
{
    char control_name[RMM_RUNTIME_DIR_BYTES];
    int error;

    snprintf(
        rmm__publisher.name, sizeof(rmm__publisher.name), "%u.%016" PRIx64,
        (unsigned)geteuid(), rmm__random64());
    side_name(control_name, "control");
    *step_out = "name a file";
    error = rmm__shared_file_publish(control, control_name);
    if (error != 0) {
        return error;
    }
    error = rmm__shared_file_publish(segment, rmm__publisher.name);
    if (error != 0) {
        (void)unlinkat(control->dirfd, control_name, 0);
    }
    return error;
}

/* A part of the file that a program with resources on one GPU uses; others are backed on demand. */
typedef struct span {
    size_t offset, bytes;
} span_t;

#define SPAN_OF(field)                                                                 \
    {                                                                                  \
        offsetof(rmm_segment_layout_t, field),                                         \
            sizeof(((rmm_segment_layout_t *)NULL)->field)                              \
    }
static const span_t first_spans[] = {
    SPAN_OF(header),         SPAN_OF(schema),
    SPAN_OF(locations[0]),   SPAN_OF(locations[RMM_SEGMENT_HOST_LOCATION]),
    SPAN_OF(slots[0]),       SPAN_OF(log),
    SPAN_OF(log_records[0]), SPAN_OF(location_stripes[0]),
    SPAN_OF(slot_stripes[0])};
#define FIRST_SPANS (sizeof(first_spans) / sizeof(first_spans[0]))

static int back_first_spans(const rmm_shared_pages_t *pages)
{
    int error = 0;

    for (size_t i = 0; i < FIRST_SPANS && error == 0; i++) {
        error =
            rmm__shared_pages_back(pages, first_spans[i].offset, first_spans[i].bytes);
    }
    return error;
}

/* From now on readers see what is written. */
static void
use_files_locked(const rmm_shared_pages_t *segment, const rmm_shared_pages_t *control)
{
    rmm__publisher.segment = (rmm_segment_layout_t *)segment->memory;
    rmm__publisher.control = (const rmm_control_page_t *)control->memory;
    add_mapping_locked(segment, true, "");
    add_mapping_locked(control, true, "control");
    want_all_pages_locked();
    for (size_t i = 0; i < FIRST_SPANS; i++) {
        note_backed_locked(first_spans[i].offset, first_spans[i].bytes);
    }
}

/*
 * A daemon shares out limits of groups: so this program asks for its share before it takes
 * anything. Looked at when the segment has its name: the daemon first says that there are limits,
 * and then looks for segments. What it has written into the page already stays.
 */
static void begin_with_asking(rmm_control_page_t *control)
{
    uint32_t not_wanted = 0;

    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        uint64_t none = RMM_SEGMENT_NO_LIMIT;

        (void)atomic_compare_exchange_strong_explicit(
            &control->shares[i].share_bytes, &none, RMM_SHARE_ASK, memory_order_relaxed,
            memory_order_relaxed);
    }
    (void)atomic_compare_exchange_strong_explicit(
        &control->wanted, &not_wanted, 1, memory_order_relaxed, memory_order_relaxed);
}

static int make_control(rmm_shared_file_t *control, int dirfd, const char **step_out)
{
    int error =
        rmm__shared_file_create(control, dirfd, sizeof(rmm_control_page_t), step_out);

    if (error != 0) {
        return error;
    }
    *step_out = "take space for a file";
    error = rmm__shared_pages_back(&control->pages, 0, control->pages.bytes);
    if (error != 0) {
        rmm__shared_file_discard(control);
        return error;
    }
    fill_control((rmm_control_page_t *)control->pages.memory);
    return 0;
}

static int make_segment(
    rmm_shared_file_t *segment, int dirfd, const char *driver, const char **step_out)
{
    int error =
        rmm__shared_file_create(segment, dirfd, sizeof(rmm_segment_layout_t), step_out);

    if (error != 0) {
        return error;
    }
    *step_out = "take space for a file";
    error = back_first_spans(&segment->pages);
    if (error != 0) {
        rmm__shared_file_discard(segment);
        return error;
    }
    fill_segment((rmm_segment_layout_t *)segment->pages.memory, driver);
    return 0;
}

static int make_files_locked(int dirfd, const char *driver, const char **step_out)
{
    rmm_shared_file_t segment, control;
    int error = make_control(&control, dirfd, step_out);

    if (error != 0) {
        return error;
    }
    error = make_segment(&segment, dirfd, driver, step_out);
    if (error != 0) {
        goto err_discard_control;
    }
    error = publish_both_locked(&segment, &control, step_out);
    if (error != 0) {
        goto err_discard_segment;
    }
    use_files_locked(&segment.pages, &control.pages);
    if (rmm__limits_are_in_force(dirfd)) {
        begin_with_asking((rmm_control_page_t *)control.pages.memory);
    }
    return 0;

err_discard_segment:
    rmm__shared_file_discard(&segment);
err_discard_control:
    rmm__shared_file_discard(&control);
    return error;
}

/* Removes files of ended programs if there is no room for a program that starts. */
static int
make_files_with_room_locked(int dirfd, const char *driver, const char **step_out)
{
    int error = make_files_locked(dirfd, driver, step_out);

    for (int i = 0; i < RECLAIM_TRIES && (error == -ENOSPC || error == -EDQUOT) &&
                    rmm__runtime_dir_reclaim(dirfd, (long)geteuid());
         i++) {
        error = make_files_locked(dirfd, driver, step_out);
    }
    return error;
}

/* --- open --------------------------------------------------------------------------- */

/* what: "" for all of it, or a side file's suffix: a smaller one may still be made. */
static void warn_about_step(
    char warning[WARNING_BYTES], const char *what, const char *step,
    const char *directory, int error)
{
    snprintf(
        warning, WARNING_BYTES,
        "/rmm will not show %s%s%sthis process: cannot %s in %s: %s (%d); free space "
        "or permit writing there, set RMM_RUNTIME_DIR to another directory, or set "
        "RMM_PUBLISH to 0",
        what[0] != '\0' ? "all of " : "", what, what[0] != '\0' ? " of " : "", step,
        directory, strerror(error), error);
}

static bool open_shared_locked(const char *driver, char warning[WARNING_BYTES])
{
    char reason[RMM_RUNTIME_DIR_BYTES + 128];
    const char *step = "install fork handlers for a file";
    int dirfd, error;

    if (!rmm__runtime_dir(rmm__publisher.directory, reason, sizeof(reason))) {
        snprintf(
            warning, WARNING_BYTES,
            "/rmm will not show this process: %s; correct this, "
            "or set RMM_PUBLISH to 0",
            reason);
        return false;
    }
    if (reason[0] != '\0') {
        snprintf(
            warning, WARNING_BYTES,
            "%s; this process publishes in %s instead, which root's rmmfs finds only "
            "outside of containers; `chmod 1777` the former, or restart rmmfs as root",
            reason, rmm__publisher.directory);
    }
    dirfd = open(rmm__publisher.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0) {
        warn_about_step(
            warning, "", "open a directory", rmm__publisher.directory, errno);
        return false;
    }
    error = ENOMEM;
    if (rmm__fork_is_watched()) {
        (void)rmm__runtime_dir_sweep_some(dirfd, (long)geteuid());
        error = -make_files_with_room_locked(dirfd, driver, &step);
    }
    close(dirfd);
    if (error != 0) {
        warn_about_step(warning, "", step, rmm__publisher.directory, error);
    }
    return error == 0;
}

static bool publishing_is_wanted(char warning[WARNING_BYTES])
{
    const char *request = getenv("RMM_PUBLISH");

    if (request != NULL && request[0] != '\0' && strcmp(request, "0") != 0 &&
        strcmp(request, "1") != 0) {
        snprintf(
            warning, WARNING_BYTES,
            "RMM_PUBLISH is '%.32s': set it to 0 to publish nothing, or to 1; "
            "publishing",
            request);
    }
    return request == NULL || strcmp(request, "0") != 0;
}

static void open_locked(const char *driver, char warning[WARNING_BYTES])
{
    if (publishing_is_wanted(warning) && open_shared_locked(driver, warning)) {
        rmm__publisher.state = RMM_PUBLISH_SHARED;
    } else {
        rmm__publisher.state = RMM_PUBLISH_PRIVATE;
        fill_control(&private_control);
    }
    rmm__locations = rmm__publisher.segment->locations;
    rmm__location_stripes = rmm__publisher.segment->location_stripes;
    rmm__location_requests = rmm__publisher.control->locations;
    rmm__log_attach(
        rmm__log_ring_put, &rmm__publisher.control->log_level,
        &rmm__publisher.segment->log.level);
    rmm__trace_request = &rmm__publisher.control->trace_enable;
    rmm__requests_wanted = &rmm__publisher.control->wanted;
    rmm__requests_attention = &rmm__publisher.control->attention;
}

/* A program that began with host memory only now uses GPUs. */
static void note_driver_locked(const char *driver)
{
    rmm_segment_header_t *header = &rmm__publisher.segment->header;

    if (strcmp(header->driver, "none") == 0 && strcmp(driver, "none") != 0) {
        rmm__text_copy(header->driver, sizeof(header->driver), driver);
    }
}

void rmm__publish_open(const char *driver)
{
    RMM_UNCANCELLED;
    char warning[WARNING_BYTES] = "";

    rmm__mutex_lock(&rmm__publisher.lock);
    if (rmm__publisher.state == RMM_PUBLISH_UNDECIDED) {
        open_locked(driver, warning);
    } else {
        note_driver_locked(driver);
    }
    rmm__mutex_unlock(&rmm__publisher.lock);
    if (warning[0] != '\0') {
        rmm__log_warn("%s", warning);
    }
}

/* --- exit -------------------------------------------------------------------------- */

/*
 * A process that ends as it should leaves a segment of a few KiB; of others a sweep makes
 * one. This runs after what uses the library: the program's destructors and exit handlers,
 * and those of libraries that are linked with it. What still counts then is in the old file,
 * which the daemon has open if it watches this process. The lock is not waited for: a signal
 * handler may have called exit().
 */
__attribute__((destructor(1001))) static void leave_small(void)
{
    RMM_UNCANCELLED;
    int dirfd;

    if (!rmm__mutex_trylock(&rmm__publisher.lock)) {
        return;
    }
    if (rmm__publisher.state == RMM_PUBLISH_SHARED) {
        dirfd = open(rmm__publisher.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dirfd >= 0) {
            (void)rmm__segment_shrink(dirfd, rmm__publisher.name);
            close(dirfd);
        }
    }
    rmm__mutex_unlock(&rmm__publisher.lock);
}

/* --- side files --------------------------------------------------------------------- */

static rmm_mapping_t *find_mapping_locked(const char *suffix)
{
    for (uint32_t i = 0; i < rmm__publisher.mapping_count; i++) {
        if (strcmp(rmm__publisher.mappings[i].suffix, suffix) == 0) {
            return &rmm__publisher.mappings[i];
        }
    }
    return NULL;
}

/* The caller retries with less and less; the failure is logged once. */
static bool side_warning_is_new_locked(const char *suffix)
{
    bool is_new = strcmp(rmm__publisher.refused_suffix, suffix) != 0;

    strcpy(rmm__publisher.refused_suffix, suffix);
    return is_new;
}

/* NULL with a warning if the file cannot be made. */
static void *
make_side_file_locked(const char *suffix, size_t bytes, char warning[WARNING_BYTES])
{
    char name[RMM_RUNTIME_DIR_BYTES];
    const char *step = "open a directory";
    rmm_shared_file_t file;
    int dirfd = open(rmm__publisher.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error;

    if (dirfd < 0) {
        warn_about_step(warning, suffix, step, rmm__publisher.directory, errno);
        return NULL;
    }
    side_name(name, suffix);
    error = rmm__shared_file_create(&file, dirfd, bytes, &step);
    if (error == 0) {
        step = "take space for a file";
        error = rmm__shared_pages_back(&file.pages, 0, bytes);
        if (error == 0) {
            step = "name a file";
            error = rmm__shared_file_publish(&file, name);
        }
        if (error != 0) {
            rmm__shared_file_discard(&file);
        }
    }
    close(dirfd);
    if (error != 0) {
        warn_about_step(warning, suffix, step, rmm__publisher.directory, -error);
        return NULL;
    }
    add_mapping_locked(&file.pages, true, suffix);
    return file.pages.memory;
}

static rmm_status_t side_memory_locked(
    const char *suffix, size_t bytes, void **memory_out, char warning[WARNING_BYTES])
{
    rmm_mapping_t *known = find_mapping_locked(suffix);
    void *memory = NULL;

    if (known != NULL) {
        RMM_ASSERT(known->pages.bytes == bytes && "one suffix, one size");
        *memory_out = known->pages.memory;
        return RMM_OK;
    }
    RMM_ASSERT(rmm__publisher.mapping_count < RMM_MAPPINGS_MAX && "raise the maximum");
    if (rmm__publisher.state == RMM_PUBLISH_SHARED) {
        memory = make_side_file_locked(suffix, bytes, warning);
        if (memory ==
            NULL) { /* no reader would see it in private memory: a smaller one may fit */
            return rmm__error(RMM_ERR_IO, "%s", warning);
        }
    } else {
        memory = rmm__calloc(1, bytes);
        if (memory == NULL) {
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
        add_mapping_locked(
            &(rmm_shared_pages_t){.memory = memory, .bytes = bytes}, false, suffix);
    }
    *memory_out = memory;
    return RMM_OK;
}

rmm_status_t rmm__publish_side_file(const char *suffix, size_t bytes, void **memory_out)
{
    RMM_UNCANCELLED;
    char warning[WARNING_BYTES] = "";
    bool is_new;
    rmm_status_t status;

    RMM_ASSERT(suffix[0] != '\0' && strlen(suffix) < RMM_SUFFIX_BYTES);
    rmm__mutex_lock(&rmm__publisher.lock);
    status = side_memory_locked(suffix, bytes, memory_out, warning);
    is_new = warning[0] != '\0' && side_warning_is_new_locked(suffix);
    rmm__mutex_unlock(&rmm__publisher.lock);
    if (is_new) {
        rmm__log_warn("%s", warning);
    }
    return status;
}
