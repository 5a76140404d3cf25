/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps rmmfs.state; see state.h. Writing costs some 30 us on tmpfs and happens when
 * something is gained that no segment holds: an exit, a reset, a new mark over several
 * processes. Nothing is synced: the segments themselves end with the machine.
 *
 * Locking: `lock` orders writers, who hold the model's lock at least shared.
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "extras.h"
#include "gpus.h"
#include "log.h"
#include "text.h"

#define STATE_BYTES_MAX (16u << 20)
#define LOCK_TRIES 40 /* of 50 ms: a killed daemon may need a moment to be gone */

struct state {
    int dirfd; /* borrowed */
    int lock_fd;
    char path[300]; /* of the directory, for messages */
    char name[48], new_name[64], lock_name[64];
    pthread_mutex_t lock;
    bool failed; /* the last write: already logged */
};

/* Marks by name, for both directions. */
static const struct mark {
    const char *name;
    size_t offset;
} marks[] = {
    {"peak_bytes", offsetof(device_t, peak_bytes)},
    {"peak_count", offsetof(device_t, peak_count)},
    {"peak_upper_bytes", offsetof(device_t, peak_upper_bytes)},
    {"lifetime_peak_bytes", offsetof(device_t, lifetime_peak_bytes)},
};
#define MARK_COUNT (sizeof(marks) / sizeof(marks[0]))

static _Atomic(uint64_t) *mark_at(device_t *device, size_t offset)
{
    return (_Atomic(uint64_t) *)(void *)((char *)device + offset);
}

static uint64_t mark_value(const device_t *device, size_t offset)
{
    const void *mark = (const char *)device + offset;
    return atomic_load_explicit((const _Atomic(uint64_t) *)mark, memory_order_relaxed);
}

/* --- the files ------------------------------------------------------------------------ */

/* -1: not a regular file of ours. */
static int try_lock_file(const state_t *state)
{
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(state->dirfd, state->lock_name, flags, 0600);
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
                    status.st_uid != geteuid())) {
        (void)close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* In /run/rmm anybody may have taken the name: root can take it back. */
static int open_lock(const state_t *state)
{
    int fd = try_lock_file(state);
    if (fd < 0 && unlinkat(state->dirfd, state->lock_name, 0) == 0) {
        fd = try_lock_file(state);
    }
    if (fd < 0) {
        log_warn(
            "peaks are lost at a restart: cannot open %s/%s as a file of uid %u: %s",
            state->path, state->lock_name, (unsigned)geteuid(), strerror(errno));
    }
    return fd;
}

static bool take_lock(const state_t *state)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(state->lock_fd, LOCK_EX | LOCK_NB) == 0) {
            return true;
        }
        const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
        (void)nanosleep(&pause, NULL);
    }
    log_warn(
        "peaks are lost at a restart: another rmmfs uses %s/%s", state->path,
        state->name);
    return false;
}

state_t *state_open(int dirfd, const char *dir_path)
{
    struct stat status;
    state_t *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        log_warn("peaks are lost at a restart: out of memory");
        return NULL;
    }
    bool own = fstat(dirfd, &status) == 0 && status.st_uid == geteuid();
    state->dirfd = dirfd;
    (void)snprintf(state->path, sizeof(state->path), "%s", dir_path);
    if (own) {
        (void)snprintf(state->name, sizeof(state->name), "rmmfs.state");
    } else {
        (void)snprintf(
            state->name, sizeof(state->name), "rmmfs.%u.state", (unsigned)geteuid());
    }
    (void)snprintf(state->new_name, sizeof(state->new_name), "%s.new", state->name);
    (void)snprintf(state->lock_name, sizeof(state->lock_name), "%s.lock", state->name);
    pthread_mutex_init(&state->lock, NULL);
    state->lock_fd = open_lock(state);
    if (state->lock_fd < 0 || !take_lock(state)) {
        state_close(state);
        return NULL;
    }
    return state;
}

void state_move(state_t *state, int dirfd)
{
    if (state == NULL) {
        return;
    }
    pthread_mutex_lock(&state->lock);
    state->dirfd = dirfd;
    int lock_fd = open_lock(state);
    if (lock_fd >= 0) {
        (void)close(state->lock_fd);
        state->lock_fd = lock_fd;
        (void)flock(lock_fd, LOCK_EX | LOCK_NB);
    }
    pthread_mutex_unlock(&state->lock);
}

void state_close(state_t *state)
{
    if (state == NULL) {
        return;
    }
    if (state->lock_fd >= 0) {
        (void)close(state->lock_fd);
    }
    pthread_mutex_destroy(&state->lock);
    free(state);
}

/* --- reading -------------------------------------------------------------------------- */

static device_t *find_device(model_t *model, const char *uuid)
{
    if (strcmp(uuid, "host") == 0) {
        return &model->host;
    }
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        if (strcmp(model->gpus[i].uuid, uuid) == 0) {
            return &model->gpus[i];
        }
    }
    return NULL;
}

/* model NULL in these: only look whether the line is good. */

static bool load_gpu(model_t *model, const char *fields)
{
    char uuid[48], pci_bus_id[24];
    uint64_t capacity_bytes;
    int end = 0;
    if (sscanf(
            fields, "%47s %23s %" SCNu64 " %n", uuid, pci_bus_id, &capacity_bytes,
            &end) != 3 ||
        end == 0) {
        return false;
    }
    if (model != NULL) {
        const gpu_identity_t identity = {
            uuid, strcmp(pci_bus_id, "-") == 0 ? "" : pci_bus_id, fields + end,
            capacity_bytes};
        (void)gpus_number(model, &identity);
    }
    return true;
}

/* "UUID NAME VALUE" */
typedef struct figure_line {
    device_t *device; /* NULL: only looked at, or of no device */
    char name[40];
    uint64_t value;
} figure_line_t;

static bool read_figure(model_t *model, const char *fields, figure_line_t *line)
{
    char uuid[48];
    if (sscanf(fields, "%47s %39s %" SCNu64, uuid, line->name, &line->value) != 3) {
        return false;
    }
    line->device = model != NULL ? find_device(model, uuid) : NULL;
    return true;
}

static bool load_mark(model_t *model, const char *fields)
{
    figure_line_t line;
    if (!read_figure(model, fields, &line)) {
        return false;
    }
    for (size_t i = 0; line.device != NULL && i < MARK_COUNT; i++) {
        if (strcmp(marks[i].name, line.name) == 0) {
            atomic_store_explicit(
                mark_at(line.device, marks[i].offset), line.value,
                memory_order_relaxed);
        }
    }
    return true;
}

static bool load_exited(model_t *model, const char *fields)
{
    figure_line_t line;
    if (!read_figure(model, fields, &line)) {
        return false;
    }
    if (line.device == NULL) {
        return true;
    }
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        if (strcmp(rmm__location_stats[i].name, line.name) == 0) {
            line.device->exited[i] = line.value;
            return true;
        }
    }
    extras_add(&line.device->extras, line.name, RMM_KIND_COUNTER, line.value);
    return true;
}

static bool load_folded(model_t *model, const char *fields)
{
    char name[RMM_SEGMENT_NAME_BYTES], process[32];
    uint64_t exited_ns;
    if (sscanf(fields, "%63s %" SCNu64 " %31s", name, &exited_ns, process) != 3 ||
        !rmm_segment_name_parse(name, NULL) || strchr(process, '/') != NULL) {
        return false;
    }
    if (model == NULL) {
        return true;
    }
    if (!model_add_folded(model, name, process, exited_ns)) {
        return false;
    }
    model_folded(model, name)->present = false; /* until it is met */
    return true;
}

static bool load_line(model_t *model, const char *line)
{
    static const struct record {
        const char *key;
        bool (*load)(model_t *model, const char *fields);
    } records[] = {
        {"gpu ", load_gpu},
        {"mark ", load_mark},
        {"exited ", load_exited},
        {"folded ", load_folded},
    };
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        size_t length = strlen(records[i].key);
        if (strncmp(line, records[i].key, length) == 0) {
            return records[i].load(model, line + length);
        }
    }
    return false;
}

/* 0, or the number of the first bad line. */
static unsigned load_text(model_t *model, char *text)
{
    unsigned number = 0;
    bool ended = false;
    char *rest = text;
    char *line;
    while ((line = strsep(&rest, "\n")) != NULL && !ended) {
        number++;
        if (number == 1 ? strcmp(line, "rmmfs-state 1") != 0
                        : strcmp(line, "end") != 0 && !load_line(model, line)) {
            return number;
        }
        ended = strcmp(line, "end") == 0;
    }
    return ended ? 0 : number;
}

/* The file as a string; NULL with errno. */
static char *read_file(const state_t *state)
{
    int fd = openat(state->dirfd, state->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    struct stat status;
    char *text = NULL;
    if (fstat(fd, &status) != 0) {
        goto out;
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_size > STATE_BYTES_MAX) {
        errno = EPERM;
        goto out;
    }
    text = calloc(1, (size_t)status.st_size + 1);
    if (text != NULL &&
        pread(fd, text, (size_t)status.st_size, 0) != (ssize_t)status.st_size) {
        free(text);
        text = NULL;
        errno = EIO;
    }
out:
    (void)close(fd);
    return text;
}

static void set_aside(const state_t *state, unsigned line)
{
    char bad[64];
    (void)snprintf(bad, sizeof(bad), "%s.bad", state->name);
    log_warn(
        "%s/%s is damaged at line %u: peaks and totals begin again; the damaged file "
        "is now %s",
        state->path, state->name, line, bad);
    (void)renameat(state->dirfd, state->name, state->dirfd, bad);
}

bool state_load(state_t *state, model_t *model)
{
    if (state == NULL) {
        return false;
    }
    char *text = read_file(state);
    if (text == NULL) {
        if (errno != ENOENT) {
            log_warn(
                "cannot read %s/%s: %s", state->path, state->name, strerror(errno));
        }
        return false;
    }
    char *copy = strdup(text); /* reading cuts lines */
    unsigned bad_line = copy == NULL ? 1 : load_text(NULL, copy);
    if (bad_line == 0) {
        (void)load_text(model, text);
    } else {
        set_aside(state, bad_line);
    }
    free(copy);
    free(text);
    return bad_line == 0;
}

/* --- writing -------------------------------------------------------------------------- */

static void save_device(text_t *text, const device_t *device)
{
    if (device->uuid[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < MARK_COUNT; i++) {
        text_printf(
            text, "mark %s %s %" PRIu64 "\n", device->uuid, marks[i].name,
            mark_value(device, marks[i].offset));
    }
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        if (rmm__location_stats[i].kind == RMM_KIND_COUNTER) {
            text_printf(
                text, "exited %s %s %" PRIu64 "\n", device->uuid,
                rmm__location_stats[i].name, device->exited[i]);
        }
    }
    for (uint32_t i = 0; i < device->extras.count; i++) {
        text_printf(
            text, "exited %s %s %" PRIu64 "\n", device->uuid,
            device->extras.items[i].name, device->extras.items[i].value);
    }
}

static void save_model(text_t *text, const model_t *model)
{
    text_puts(text, "rmmfs-state 1\n");
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        const device_t *gpu = &model->gpus[i];
        if (gpu->uuid[0] != '\0') {
            text_printf(
                text, "gpu %s %s %" PRIu64 " %s\n", gpu->uuid,
                gpu->pci_bus_id[0] != '\0' ? gpu->pci_bus_id : "-", gpu->capacity_bytes,
                gpu->name);
        }
    }
    save_device(text, &model->host);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        save_device(text, &model->gpus[i]);
    }
    for (uint32_t i = 0; i < model->folded_count; i++) {
        text_printf(
            text, "folded %s %" PRIu64 " %s\n", model->folded[i].name,
            model->folded[i].exited_ns, model->folded[i].process);
    }
    text_puts(text, "end\n");
}

static bool replace_file(const state_t *state, const text_t *text)
{
    (void)unlinkat(state->dirfd, state->new_name, 0); /* of a daemon that was killed */
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(state->dirfd, state->new_name, flags, 0600);
    if (fd < 0) {
        return false;
    }
    errno = ENOSPC; /* for a short write */
    bool good = write(fd, text->data, text->length) == (ssize_t)text->length;
    good = close(fd) == 0 && good;
    good =
        good && renameat(state->dirfd, state->new_name, state->dirfd, state->name) == 0;
    if (!good) {
        (void)unlinkat(state->dirfd, state->new_name, 0);
    }
    return good;
}

void state_save(model_t *model)
{
    state_t *state = model->state;
    if (state == NULL) {
        return;
    }
    text_t text;
    text_init(&text);
    pthread_mutex_lock(&state->lock);
    save_model(&text, model);
    bool good = !text.failed && replace_file(state, &text);
    if (!good && !state->failed) {
        log_warn(
            "cannot write %s/%s: %s; a restart may lose peaks and totals", state->path,
            state->name, strerror(errno));
    }
    state->failed = !good;
    pthread_mutex_unlock(&state->lock);
    text_fini(&text);
}
