/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files, and what users do with them in the directory of segments: made, written,
 * locked, renamed, linked, removed, replaced by other kinds of files.
 *
 * Promised: the parser tells the kinds of names apart as segment_name.h says. Once all notices
 * are taken the daemon knows the names of segments that are there and no other, each in the
 * list that its kind says, and each member by its name.
 *
 * The input: 2 bytes that are the lengths of two names, these names, then steps of 4 bytes:
 *   what, name, other name, value
 */
#include <fcntl.h>
#include <regex.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "fuzz/exercise_segment.h"
#include "fuzz/small_segment.h"
#include "harness/runtime.h"

#include "model/model.h"
#include "programs/holders.h"
#include "programs/members.h"
#include "programs/scan.h"
#include "segments/dirs.h"
#include "support/daemon_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define NAME_MOST 80u
#define FIXED_NAMES 8u
#define NAMES (FIXED_NAMES + 2u)
#define HELD_MOST 8
#define STEP_BYTES 4
#define STEPS_MOST 24
#define SCAN_STEPS_MOST 100000

typedef struct world {
    model_t model;
    dirs_t dirs;
    scan_t scan;
    char names[NAMES][NAME_MOST + 1];
    int held[HELD_MOST]; /* -1, or a file whose lock a program holds */
    uint32_t met;        /* entries, in check_lists */
} world_t;

typedef struct step {
    const char *name, *other;
    uint8_t what, value;
} step_t;

static runtime_t *folder(void)
{
    static runtime_t runtime;
    if (runtime.path[0] == '\0') {
        runtime_open(&runtime);
    }
    return &runtime;
}

/* --- the parser -------------------------------------------------------------------------- */

#define STEM "(0|[1-9][0-9]{0,9})\\.[0-9a-f]{16}"

static bool matches(rmm_file_kind_t kind, const char *name)
{
    static const char *const patterns[] = {
        [RMM_FILE_SEGMENT] = "^" STEM "$",
        [RMM_FILE_SIDE] = "^" STEM "\\.[a-z0-9_]{1,15}$",
        [RMM_FILE_TEMPORARY] = "^\\." STEM "\\.tmp$",
    };
    static regex_t regexes[RMM_FILE_TEMPORARY + 1];
    static bool is_ready[RMM_FILE_TEMPORARY + 1];
    if (!is_ready[kind]) {
        PROMISE(regcomp(&regexes[kind], patterns[kind], REG_EXTENDED | REG_NOSUB) == 0);
        is_ready[kind] = true;
    }
    return regexec(&regexes[kind], name, 0, NULL, 0) == 0;
}

static rmm_file_kind_t kind_of(const char *name)
{
    const char *uid = name[0] == '.' ? name + 1 : name;
    if (strtoull(uid, NULL, 10) >= UINT32_MAX) {
        return RMM_FILE_OTHER;
    }
    for (rmm_file_kind_t kind = RMM_FILE_SEGMENT; kind <= RMM_FILE_TEMPORARY; kind++) {
        if (matches(kind, name)) {
            return kind;
        }
    }
    return RMM_FILE_OTHER;
}

static void check_parser(const char *name)
{
    rmm_file_name_t parsed = rmm__file_name_parse(name);
    uid_t uid = 0;
    char printed[16];
    PROMISE(parsed.kind == kind_of(name));
    PROMISE(rmm__segment_name_parse(name, &uid) == (parsed.kind == RMM_FILE_SEGMENT));
    if (parsed.kind == RMM_FILE_SEGMENT || parsed.kind == RMM_FILE_SIDE) {
        int length = snprintf(printed, sizeof(printed), "%u.", (unsigned)parsed.uid);
        PROMISE(strncmp(name, printed, (size_t)length) == 0);
        PROMISE(parsed.stem_bytes == (size_t)length + 16);
    }
}

/* --- what users do ----------------------------------------------------------------------- */

static bool is_file_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static const image_t *sample(void)
{
    static image_t image;
    if (image.size == 0) {
        small_segment_make(&image, 4);
    }
    return &image;
}

/* A segment that another program made, at the value's time, or a part of one. */
static void write_segment(const step_t *step)
{
    static image_t image;
    rmm_segment_header_t *header = (void *)image.bytes;
    int fd = openat(folder()->fd, step->name, O_WRONLY | O_CREAT | O_NONBLOCK, 0600);
    image = *sample();
    header->start_time_ns = step->value;
    header->ready = step->value % 5 != 0;
    header->magic += step->value % 7 == 0;
    if (fd >= 0) {
        size_t bytes = step->value % 11 == 0 ? image.size / 2 : image.size;
        PROMISE(write(fd, image.bytes, bytes) == (ssize_t)bytes);
        (void)close(fd);
    }
}

/* A program begins to hold the segment's lock, or ends. */
static void hold(world_t *world, const step_t *step)
{
    int *held = &world->held[step->value % HELD_MOST];
    if (*held >= 0) {
        (void)close(*held);
        *held = -1;
        return;
    }
    *held = openat(folder()->fd, step->name, O_RDWR | O_NONBLOCK | O_NOFOLLOW);
    if (*held >= 0) {
        (void)flock(*held, LOCK_EX | LOCK_NB);
    }
}

static void make_empty(const step_t *step)
{
    int fd = openat(folder()->fd, step->name, O_WRONLY | O_CREAT | O_NONBLOCK, 0600);
    if (fd >= 0) {
        (void)!ftruncate(fd, step->value % 3 * 4096);
        (void)close(fd);
    }
}

static void settle(world_t *world);

static void act(world_t *world, const step_t *step)
{
    int fd = folder()->fd;
    switch (step->what % 12) {
    case 0:
        make_empty(step);
        break;
    case 1:
    case 2:
        write_segment(step);
        break;
    case 3:
        hold(world, step);
        break;
    case 4:
        (void)renameat(fd, step->name, fd, step->other);
        break;
    case 5:
        (void)!linkat(fd, step->name, fd, step->other, 0);
        break;
    case 6:
        (void)unlinkat(fd, step->name, 0);
        break;
    case 7:
        (void)mkdirat(fd, step->name, 0700);
        break;
    case 8:
        (void)unlinkat(fd, step->name, AT_REMOVEDIR);
        break;
    case 9:
        (void)!symlinkat(step->other, fd, step->name);
        break;
    case 10:
        (void)!fchownat(fd, step->name, step->value * 1000u, 0, AT_SYMLINK_NOFOLLOW);
        break;
    default:
        if (world->model.holders != NULL) { /* what waits for the list of locks */
            settle(world);
            (void)holders_read(world->model.holders);
        }
        settle(world);
        break;
    }
}

/* --- what the daemon knows --------------------------------------------------------------- */

static uint32_t length_of(const entry_list_t *list)
{
    const entry_t *entry;
    uint32_t length = 0;
    TAILQ_FOREACH(entry, list, link)
    {
        length++;
    }
    return length;
}

static bool check_entry(entry_t *entry, void *arg)
{
    world_t *world = arg;
    struct stat status;
    PROMISE(entry->kind != ENTRY_NEW && entry->kind != ENTRY_QUEUED);
    PROMISE(kind_of(entry->name) == RMM_FILE_SEGMENT);
    PROMISE(fstatat(folder()->fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0);
    PROMISE(entry->kind == ENTRY_WAITING || entry->inode == status.st_ino);
    PROMISE(entry->member == NULL || entry->member->entry == entry);
    world->met += entry->kind != ENTRY_TAKEN;
    return true;
}

static void check_lists(world_t *world)
{
    const scan_t *scan = &world->scan;
    uint32_t waiting = 0;
    world->met = 0;
    entries_each(&world->dirs.list[0]->entries, check_entry, world);
    for (uint32_t i = 0; i < SCAN_WAIT_LEVELS; i++) {
        waiting += length_of(&scan->waiting[i]);
    }
    PROMISE(TAILQ_EMPTY(&scan->arrivals) && TAILQ_EMPTY(&scan->owners));
    PROMISE(length_of(&scan->refused) == scan->refused_count);
    PROMISE(world->met == waiting + scan->refused_count);
    PROMISE(
        world->dirs.list[0]->entries.count ==
        (size_t)runtime_count(folder(), RMM_FILE_SEGMENT, NULL));
}

static void check_members(const world_t *world)
{
    for (uint32_t i = 0; i < world->model.member_count; i++) {
        const member_t *member = world->model.members[i];
        const entry_t *entry = member->entry;
        PROMISE(entry == NULL || entry->member == member);
        PROMISE(entry == NULL || strcmp(entry->name, member->segment.name) == 0);
        PROMISE(member->process != NULL);
    }
}

/* Until all that has happened is known. A name that is looked at again makes no notice. */
static void settle(world_t *world)
{
    int steps = 0;
    do {
        dirs_take_news(&world->dirs);
        if (world->dirs.stale) {
            dirs_survey(&world->dirs);
        }
        while (scan_step(&world->scan)) {
            PROMISE(++steps < SCAN_STEPS_MOST);
        }
        members_check_some(&world->model);
    } while (dirs_have_news(&world->dirs) || !TAILQ_EMPTY(&world->scan.arrivals));
    check_lists(world);
    check_members(world);
}

/* --- all --------------------------------------------------------------------------------- */

/* Once: the end of an inotify instance takes the kernel 10 ms. */
static void open_dirs(world_t *world)
{
    char reason[256];
    log_level_set(LOG_LEVEL_OFF);
    PROMISE(folder()->fd >= 0);
    PROMISE(dirs_open(&world->dirs, true, reason, sizeof(reason)));
    scan_init(&world->scan, &world->model, &world->dirs, -1);
}

static void open_world(world_t *world, bool with_holders)
{
    static const char fixed[FIXED_NAMES][NAME_MOST] = {
        "0.0000000000000001",
        "0.0000000000000002",
        "1000.0000000000000001",
        "0.0000000000000001.leaks",
        ".0.0000000000000001.tmp",
        "0.0000000000000001.control",
        "other",
        "4294967295.0000000000000001"};
    memset(world->names, 0, sizeof(world->names));
    for (uint32_t i = 0; i < FIXED_NAMES; i++) {
        memcpy(world->names[i], fixed[i], sizeof(fixed[i]));
    }
    for (int i = 0; i < HELD_MOST; i++) {
        world->held[i] = -1;
    }
    model_init(&world->model);
    world->model.descriptor_limit = 1024;
    world->model.holders = with_holders ? holders_open(HOLDERS_PATH) : NULL;
    settle(world);
}

/* Nothing is left for the next input. */
static void close_world(world_t *world)
{
    for (int i = 0; i < HELD_MOST; i++) {
        if (world->held[i] >= 0) {
            (void)close(world->held[i]);
        }
    }
    runtime_empty(folder());
    settle(world);
    PROMISE(world->dirs.list[0]->entries.count == 0);
    holders_close(world->model.holders);
    model_fini(&world->model);
}

/* The names that the input gives; returns the bytes that they are of. */
static size_t read_names(world_t *world, const uint8_t *data, size_t bytes)
{
    size_t at = 2;
    for (uint32_t i = 0; i < 2; i++) {
        size_t length = data[i] % NAME_MOST;
        length = length < bytes - at ? length : bytes - at;
        char *name = world->names[FIXED_NAMES + i];
        memcpy(name, data + at, length);
        check_parser(name);
        if (!is_file_name(name)) {
            strcpy(name, world->names[i]);
        }
        at += length;
    }
    return at;
}

static world_t the_world;

static void close_dirs(void)
{
    dirs_close(&the_world.dirs);
    runtime_close(folder());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool is_begun;
    world_t *world = &the_world;
    if (!is_begun) {
        is_begun = true;
        open_dirs(world);
        (void)atexit(close_dirs);
    }
    if (bytes < 2) {
        return 0;
    }
    open_world(world, data[0] >= 240); /* their list, /proc/locks, is slow */
    size_t at = read_names(world, data, bytes);
    for (int i = 0; i < STEPS_MOST && at + STEP_BYTES <= bytes; i++) {
        const step_t step = {
            .what = data[at],
            .name = world->names[data[at + 1] % NAMES],
            .other = world->names[data[at + 2] % NAMES],
            .value = data[at + 3]};
        act(world, &step);
        at += STEP_BYTES;
    }
    settle(world);
    close_world(world);
    return 0;
}
