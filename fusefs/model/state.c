/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps rmmfs.state; see state.h. A write happens when something is gained that no segment
 * holds: an exit, a reset, a new mark over several processes. On a busy machine it takes
 * milliseconds, so it is made from a copy, without the model's lock. Nothing is synced: the
 * segments themselves end with the machine.
 *
 * Locking: `write_lock` orders writers and protects the folder and what they know; it is
 * taken before the model's lock. `lock` protects what state_tell() shows, and is never held
 * during a system call: readers that hold the model's lock take it.
 */
#include "model/state.h"

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

#include "model/gpus.h"
#include "model/newer_stats.h"
#include "model/state_copy.h"
#include "model/state_dir.h"
#include "segment/open_in.h"
#include "segment/runtime_dir.h"
#include "support/daemon_log.h"
#include "support/text.h"

#define STATE_BYTES_MAX (16u << 20)
#define LOCK_TRIES 40 /* of 50 ms: a daemon that ends may need a moment to be gone */
#define REASON_BYTES 400
#define NAME RMM_TOTALS_FILE
#define NEW_NAME NAME ".new"
#define LOCK_NAME NAME ".lock"

struct state {
    state_dir_t dir;
    int dirfd, lock_fd;
    pthread_mutex_t write_lock;
    uint64_t written; /* the last of `wanted` that is in the file, or failed */
    char trouble[REASON_BYTES]; /* why the folder or the file is no good */
    _Atomic(uint64_t) wanted;   /* rises with each state_want() */
    pthread_mutex_t lock;
    bool off;                  /* for good; set by state_open() only */
    bool failing;              /* the last write: logged */
    char reason[REASON_BYTES]; /* of either */
};

/* state_t.wanted as this thread's last state_want() left it; 0: it wants nothing. */
static _Thread_local uint64_t wanted_here;

static _Atomic(uint64_t) *mark_at(device_t *device, size_t offset)
{
    return (_Atomic(uint64_t) *)(void *)((char *)device + offset);
}

/* --- the files ------------------------------------------------------------------------ */

static void close_folder(state_t *state)
{
    if (state->lock_fd >= 0) {
        (void)close(state->lock_fd);
        (void)close(state->dirfd);
        state->lock_fd = state->dirfd = -1;
    }
}

/* -1: not a regular file of ours. */
static int open_lock_file(int dirfd)
{
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(dirfd, LOCK_NAME, flags, 0600);
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
                    status.st_uid != geteuid())) {
        (void)close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* A file of that name in our own folder is ours, or was put there by mistake. */
static int open_lock(int dirfd)
{
    int fd = open_lock_file(dirfd);
    if (fd < 0 && unlinkat(dirfd, LOCK_NAME, 0) == 0) {
        fd = open_lock_file(dirfd);
    }
    return fd;
}

static bool take_lock(int lock_fd, int tries)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    while (flock(lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (--tries <= 0) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

/* Replaces the descriptors, if all is well. Errors are in state->trouble. */
static bool open_folder(state_t *state, int tries)
{
    int dirfd = state_dir_open(&state->dir, state->trouble, sizeof(state->trouble));
    if (dirfd < 0) {
        return false;
    }
    int lock_fd = open_lock(dirfd);
    if (lock_fd >= 0 && take_lock(lock_fd, tries)) {
        close_folder(state);
        state->dirfd = dirfd;
        state->lock_fd = lock_fd;
        return true;
    }
    if (lock_fd >= 0) {
        (void)snprintf(
            state->trouble, sizeof(state->trouble), "another rmmfs uses %s/%s",
            state->dir.path, NAME);
        (void)close(lock_fd);
    } else {
        (void)snprintf(
            state->trouble, sizeof(state->trouble), "cannot open %s/%s: %s",
            state->dir.path, LOCK_NAME, strerror(errno));
    }
    (void)close(dirfd);
    return false;
}

state_t *state_open(const char *runtime_dir, bool is_wanted)
{
    state_t *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        log_warn("a restart will lose peaks and totals: out of memory");
        return NULL;
    }
    state->dirfd = state->lock_fd = -1;
    pthread_mutex_init(&state->write_lock, NULL);
    pthread_mutex_init(&state->lock, NULL);
    state_dir_choose(is_wanted ? runtime_dir : NULL, &state->dir);
    if (!open_folder(state, LOCK_TRIES)) {
        state->off = true;
        memcpy(state->reason, state->trouble, sizeof(state->reason));
        log_warn("a restart will lose peaks and totals: %s", state->reason);
    }
    return state;
}

void state_close(state_t *state)
{
    if (state == NULL) {
        return;
    }
    close_folder(state);
    pthread_mutex_destroy(&state->write_lock);
    pthread_mutex_destroy(&state->lock);
    free(state);
}

void state_tell(state_t *state, text_t *text)
{
    pthread_mutex_lock(&state->lock);
    if (state->off || state->failing) {
        text_printf(text, "%s: %s\n", state->off ? "off" : "failing", state->reason);
    } else {
        text_puts(text, "ok\n");
    }
    pthread_mutex_unlock(&state->lock);
}

/* --- reading -------------------------------------------------------------------------- */

static device_t *find_device(model_t *model, const char *uuid)
{
    if (strcmp(uuid, "host") == 0) {
        return &model->host;
    }
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        if (strcmp(model->gpus[i].gpu.uuid, uuid) == 0) {
            return &model->gpus[i];
        }
    }
    return NULL;
}

/* model NULL in these: only look whether the line is good. */

static bool load_gpu_of(model_t *model, uid_t uid, const char *fields)
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
            capacity_bytes, uid};
        (void)gpus_number(model, &identity);
    }
    return true;
}

static bool load_gpu(model_t *model, const char *fields)
{
    return load_gpu_of(model, 0, fields);
}

static bool load_reported_gpu(model_t *model, const char *fields)
{
    unsigned uid;
    int end = 0;
    return sscanf(fields, "%u %n", &uid, &end) == 1 && end > 0 &&
           load_gpu_of(model, (uid_t)uid, fields + end);
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
    for (size_t i = 0; line.device != NULL && i < STATE_MARK_COUNT; i++) {
        if (strcmp(state_marks[i].name, line.name) == 0) {
            atomic_store_explicit(
                mark_at(line.device, state_marks[i].offset), line.value,
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
    newer_add(&line.device->newer, line.name, RMM_KIND_COUNTER, line.value);
    return true;
}

static bool load_totalled(model_t *model, const char *fields)
{
    totalled_t totalled;
    unsigned uid;
    int count = sscanf(
        fields, "%63s %" SCNu64 " %31s %u", totalled.name, &totalled.exited_ns,
        totalled.process, &uid);
    if (count != 4 || !rmm__segment_name_parse(totalled.name, NULL) ||
        strchr(totalled.process, '/') != NULL) {
        return false;
    }
    totalled.uid = (uid_t)uid;
    return model == NULL || model_add_totalled(model, &totalled);
}

static bool load_ended(model_t *model, const char *fields)
{
    identity_t identity;
    if (!identity_parse(fields, &identity)) {
        return false;
    }
    if (model != NULL) {
        identity_add(&model->ended, &identity);
    }
    return true;
}

static bool
parse_limit_device(const model_t *model, const char *uuid, uint32_t *device_out)
{
    bool is_found = strcmp(uuid, "all") == 0 || strcmp(uuid, "host") == 0;
    *device_out = strcmp(uuid, "all") == 0 ? LIMIT_EACH_GPU : DEVICE_HOST;
    for (uint32_t i = 0; i < model->gpu_count && !is_found; i++) {
        is_found = strcmp(model->gpus[i].gpu.uuid, uuid) == 0;
        *device_out = i;
    }
    return is_found;
}

/* "KIND UID SET_BY HAD_PROGRAMS BYTES DEVICE NAME" */
static bool load_limit(model_t *model, const char *fields)
{
    char kind[24], uuid[48];
    unsigned uid, set_by, had_programs;
    limit_t limit = {.kind = 0};
    if (sscanf(
            fields, "%23s %u %u %u %" SCNu64 " %47s %127s", kind, &uid, &set_by,
            &had_programs, &limit.limit_bytes, uuid, limit.name) != 7 ||
        !limit_kind_parse(kind, &limit.kind)) {
        return false;
    }
    limit.uid = (uid_t)uid;
    limit.set_by = (uid_t)set_by;
    limit.had_programs = had_programs != 0;
    if (limit.kind == LIMIT_OF_DEVICE) {
        limit.name[0] = '\0';
    }
    if (model != NULL && parse_limit_device(model, uuid, &limit.device)) {
        (void)limits_restore(&model->limits, &limit);
    }
    return true;
}

static bool load_line(model_t *model, const char *line)
{
    static const struct record {
        const char *key;
        bool (*load)(model_t *model, const char *fields);
    } records[] = {
        {"gpu ", load_gpu},         {"reported_gpu ", load_reported_gpu},
        {"mark ", load_mark},       {"exited ", load_exited},
        {"folded ", load_totalled}, {"ended ", load_ended},
        {"limit ", load_limit},
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

/* --- writing -------------------------------------------------------------------------- */

static bool replace_file(const state_t *state, const text_t *text)
{
    (void)unlinkat(state->dirfd, NEW_NAME, 0); /* of a daemon that was killed */
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(state->dirfd, NEW_NAME, flags, 0600);
    if (fd < 0) {
        return false;
    }
    ssize_t put = write(fd, text->data, text->length);
    if (put >= 0 && put != (ssize_t)text->length) {
        errno = ENOSPC;
    }
    int error = put == (ssize_t)text->length ? 0 : errno;
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    if (error == 0 && renameat(state->dirfd, NEW_NAME, state->dirfd, NAME) != 0) {
        error = errno;
    }
    if (error != 0) {
        (void)unlinkat(state->dirfd, NEW_NAME, 0);
    }
    errno = error;
    return error == 0;
}

static bool folder_is_gone(const state_t *state)
{
    struct stat status;
    return fstat(state->dirfd, &status) != 0 || status.st_nlink == 0;
}

/* False with state->trouble. Another process may have removed the folder: then a new one. */
static bool write_text(state_t *state, const text_t *text)
{
    if (text->failed != TEXT_GOOD) {
        (void)snprintf(state->trouble, sizeof(state->trouble), "out of memory");
        return false;
    }
    if (folder_is_gone(state) && !open_folder(state, 1)) {
        return false;
    }
    if (!replace_file(state, text)) {
        (void)snprintf(
            state->trouble, sizeof(state->trouble), "cannot write %s/%s: %s",
            state->dir.path, NAME, strerror(errno));
        return false;
    }
    return true;
}

/* True if it is something else than before. */
static bool tell_result(state_t *state, bool is_good)
{
    pthread_mutex_lock(&state->lock);
    bool is_news = state->failing == is_good;
    state->failing = !is_good;
    memcpy(state->reason, state->trouble, sizeof(state->reason));
    pthread_mutex_unlock(&state->lock);
    return is_news;
}

static bool write_copy(state_t *state, const state_copy_t *copy)
{
    text_t text;
    text_init(&text);
    text.limit = STATE_BYTES_MAX;
    state_copy_write(copy, &text);
    bool is_good = write_text(state, &text);
    text_fini(&text);
    return is_good;
}

/* write_lock held. */
static void save(state_t *state, model_t *model)
{
    state_copy_t copy;
    pthread_rwlock_rdlock(&model->lock);
    /* acquire: pairs with state_want(); the copy has what it was called for */
    state->written = atomic_load_explicit(&state->wanted, memory_order_acquire);
    bool is_good = state_copy_take(&copy, model);
    pthread_rwlock_unlock(&model->lock);
    if (is_good) {
        is_good = write_copy(state, &copy);
        state_copy_free(&copy);
    } else {
        (void)snprintf(state->trouble, sizeof(state->trouble), "out of memory");
    }
    if (!tell_result(state, is_good)) {
        return;
    }
    if (is_good) {
        log_info("writing %s/%s succeeded again", state->dir.path, NAME);
    } else {
        log_warn(
            "%s; a restart may lose peaks and totals; rmmfs tries again",
            state->trouble);
    }
}

static bool is_on(const model_t *model)
{
    return model->state != NULL && !model->state->off;
}

void state_save(model_t *model)
{
    if (is_on(model)) {
        pthread_mutex_lock(&model->state->write_lock);
        save(model->state, model);
        pthread_mutex_unlock(&model->state->write_lock);
    }
}

void state_want(const model_t *model)
{
    if (is_on(model)) {
        /* release: pairs with save() */
        wanted_here =
            atomic_fetch_add_explicit(&model->state->wanted, 1, memory_order_release) +
            1;
    }
}

void state_settle(model_t *model)
{
    uint64_t wanted = wanted_here;
    wanted_here = 0;
    if (wanted == 0 || !is_on(model)) {
        return;
    }
    pthread_mutex_lock(&model->state->write_lock);
    if (model->state->written < wanted) { /* else another's write had it */
        save(model->state, model);
    }
    pthread_mutex_unlock(&model->state->write_lock);
}

void state_keep(model_t *model)
{
    state_t *state = model->state;
    if (!is_on(model)) {
        return;
    }
    pthread_mutex_lock(&state->write_lock);
    if (state->failing || faccessat(state->dirfd, NAME, F_OK, 0) != 0) {
        save(state, model);
    }
    pthread_mutex_unlock(&state->write_lock);
}

/* --- loading -------------------------------------------------------------------------- */

/* A file of ours as a string; NULL with errno. */
static char *read_file(int dirfd, const char *name)
{
    int fd = rmm__open_in(dirfd, name, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return NULL;
    }
    struct stat status;
    char *text = NULL;
    if (fstat(fd, &status) != 0) {
        goto out;
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_nlink != 1 || status.st_size > STATE_BYTES_MAX) {
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

/* Otherwise the next save would replace it. Needs no descriptor and no memory. */
static void set_aside(const state_t *state, const char *why)
{
    log_warn(
        "%s/" NAME " %s: peaks and totals start from zero; renamed the file to " NAME
        ".bad",
        state->dir.path, why);
    (void)renameat(state->dirfd, NAME, state->dirfd, NAME ".bad");
}

static void set_unread_aside(const state_t *state, int error)
{
    char why[96];
    (void)snprintf(why, sizeof(why), "cannot be read (%s)", strerror(error));
    set_aside(state, why);
}

static bool load_good(const state_t *state, model_t *model, char *text)
{
    char *copy = strdup(text); /* reading cuts lines */
    if (copy == NULL) {
        set_unread_aside(state, ENOMEM);
        return false;
    }
    unsigned bad_line = load_text(NULL, copy);
    free(copy);
    if (bad_line != 0) {
        char why[48];
        (void)snprintf(why, sizeof(why), "is damaged at line %u", bad_line);
        set_aside(state, why);
        return false;
    }
    (void)load_text(model, text);
    return true;
}

bool state_load(state_t *state, model_t *model)
{
    if (state == NULL || state->off) {
        return false;
    }
    char *text = read_file(state->dirfd, NAME);
    if (text != NULL) {
        bool is_good = load_good(state, model, text);
        free(text);
        return is_good;
    }
    int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO) {
        set_unread_aside(state, error);
    } else if (error != ENOENT) { /* not the daemon's */
        log_warn("cannot read %s/" NAME ": %s", state->dir.path, strerror(error));
    }
    return false;
}
