/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process behind a segment; see holders.h.
 */
#include "programs/holders.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "segment/open_in.h"
#include "segment/process_check.h"
#include "segment/segment_holder.h"

#define LOCKS_MAX 262144u
#define BUFFER_BYTES 16384u
#define PIECE_LINES 64u /* about as many as one read gives */
#define PIECE_FAST_NS 1000000u
#define PIECE_SLOW_NS 10000000u /* no longer pause than for this */

/* Lines of /proc/locks, sorted by file. */
typedef struct table {
    rmm_lock_line_t *lines;
    size_t count, capacity;
    uint64_t begun_ns; /* its reading, CLOCK_BOOTTIME; 0: never */
    uint64_t cpu_ns;   /* that it took */
} table_t;

struct holders {
    const char *path;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    pthread_t thread;
    bool has_thread;
    table_t table;
    uint64_t before_ns; /* when the reading of the table before this one was begun */
    bool is_wanted;
    uint64_t reading_ns; /* since when the next table is being read; 0: it is not */
    atomic_bool is_over;
};

/* --- the table of locks ----------------------------------------------------------------- */

static int by_file(const void *left, const void *right)
{
    const rmm_lock_line_t *a = left, *b = right;
    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return (a->inode > b->inode) - (a->inode < b->inode);
}

static bool add_line(table_t *table, const rmm_lock_line_t *lock)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        rmm_lock_line_t *grown = capacity > LOCKS_MAX
                                     ? NULL
                                     : realloc(table->lines, capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        table->lines = grown;
        table->capacity = capacity;
    }
    table->lines[table->count++] = *lock;
    return true;
}

/* While the kernel looks for the next lines, every flock(2) on the machine waits, also that
 * of this daemon: so between two pieces that are slow there is time for others. */
static void pause_between(uint64_t piece_ns)
{
    if (piece_ns > PIECE_FAST_NS) {
        uint64_t pause = piece_ns < PIECE_SLOW_NS ? piece_ns : PIECE_SLOW_NS;
        const struct timespec wait = {.tv_nsec = (long)(HOLDERS_SHARE * pause)};
        (void)nanosleep(&wait, NULL);
    }
}

static bool is_over(const holders_t *holders)
{
    return atomic_load_explicit(&holders->is_over, memory_order_relaxed);
}

/* False: it was not read to its end. */
static bool
read_lines(const holders_t *holders, FILE *file, uint64_t until_ns, table_t *table)
{
    char line[256];
    rmm_lock_line_t lock;
    uint64_t begin = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID), piece = begin, now = begin;
    bool is_whole = true;
    for (uint32_t i = 1; is_whole && fgets(line, sizeof(line), file) != NULL; i++) {
        if (rmm__lock_line_parse(line, &lock) && !add_line(table, &lock)) {
            break;
        }
        if (i % PIECE_LINES == 0) {
            now = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID);
            pause_between(now - piece);
            piece = now;
            is_whole = !is_over(holders) && model_clock_ns() < until_ns;
        }
    }
    table->cpu_ns = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    return is_whole;
}

/* Without a lock: with many locks on the machine the kernel takes seconds. */
static void read_table(const holders_t *holders, uint64_t until_ns, table_t *table)
{
    char buffer[BUFFER_BYTES]; /* libc's own is smaller than what one read gives */
    table->begun_ns = model_clock_ns();
    FILE *file = fopen(holders->path, "re");
    if (file == NULL) {
        table->begun_ns = rmm__is_out_of_descriptors(errno) ? 0 : table->begun_ns;
        return;
    }
    (void)setvbuf(file, buffer, _IOFBF, sizeof(buffer));
    if (!read_lines(holders, file, until_ns, table)) {
        table->count = 0;
        table->begun_ns = 0;
    }
    (void)fclose(file);
    if (table->count > 1) {
        qsort(table->lines, table->count, sizeof(table->lines[0]), by_file);
    }
}

/* Lock held. When the next reading may begin. */
static uint64_t next_reading_ns(const table_t *table)
{
    uint64_t pause = HOLDERS_SHARE * table->cpu_ns;
    pause = pause > HOLDERS_EVERY_NS ? pause : HOLDERS_EVERY_NS;
    return table->begun_ns == 0 ? 0 : table->begun_ns + pause;
}

/* Lock held, but not while it reads. */
static void replace_table(holders_t *holders, uint64_t until_ns)
{
    table_t fresh = {0};
    holders->reading_ns = model_clock_ns();
    pthread_mutex_unlock(&holders->lock);
    read_table(holders, until_ns, &fresh);
    pthread_mutex_lock(&holders->lock);
    free(holders->table.lines);
    holders->before_ns = holders->table.begun_ns;
    holders->table = fresh;
    holders->reading_ns = 0;
    holders->is_wanted = false;
}

static void *run(void *arg)
{
    holders_t *holders = arg;
    pthread_mutex_lock(&holders->lock);
    while (!is_over(holders)) {
        if (holders->is_wanted) {
            replace_table(holders, UINT64_MAX);
        } else {
            pthread_cond_wait(&holders->wanted, &holders->lock);
        }
    }
    pthread_mutex_unlock(&holders->lock);
    return NULL;
}

holders_t *holders_open(const char *path)
{
    holders_t *holders = calloc(1, sizeof(*holders));
    if (holders == NULL) {
        return NULL;
    }
    holders->path = path;
    pthread_mutex_init(&holders->lock, NULL);
    pthread_cond_init(&holders->wanted, NULL);
    return holders;
}

bool holders_start(holders_t *holders)
{
    holders->has_thread = pthread_create(&holders->thread, NULL, run, holders) == 0;
    return holders->has_thread;
}

bool holders_read(holders_t *holders)
{
    uint64_t until_ns = model_clock_ns() + HOLDERS_PATIENCE_NS;
    pthread_mutex_lock(&holders->lock);
    bool is_wanted = holders->is_wanted;
    if (is_wanted) {
        replace_table(holders, until_ns);
        replace_table(holders, until_ns);
    }
    pthread_mutex_unlock(&holders->lock);
    return is_wanted;
}

void holders_close(holders_t *holders)
{
    if (holders == NULL) {
        return;
    }
    pthread_mutex_lock(&holders->lock);
    atomic_store_explicit(&holders->is_over, true, memory_order_relaxed);
    pthread_cond_signal(&holders->wanted);
    pthread_mutex_unlock(&holders->lock);
    if (holders->has_thread) {
        (void)pthread_join(holders->thread, NULL);
    }
    pthread_cond_destroy(&holders->wanted);
    pthread_mutex_destroy(&holders->lock);
    free(holders->table.lines);
    free(holders);
}

/* --- the locker of a segment ------------------------------------------------------------ */

/* NULL: none is known. A table that is older than the segment may have a lock of an earlier
 * file with the same inode number. */
static const rmm_lock_line_t *
find_line(const table_t *table, const rmm_segment_t *segment, uint64_t since_ns)
{
    const rmm_lock_line_t wanted = {.device = segment->device, .inode = segment->inode};
    return table->count == 0 || table->begun_ns <= since_ns
               ? NULL
               : bsearch(&wanted, table->lines, table->count, sizeof(wanted), by_file);
}

/* Lock held. The tables are older than the segment: whether to wait for the next one. */
static holder_answer_t ask_for_table(holders_t *holders)
{
    uint64_t now = model_clock_ns(), next = next_reading_ns(&holders->table);
    if (holders->reading_ns != 0) {
        return now - holders->reading_ns < HOLDERS_PATIENCE_NS ? HOLDER_LATER
                                                               : HOLDER_UNKNOWN;
    }
    if (next > now) {
        return next - now < HOLDERS_PATIENCE_NS ? HOLDER_LATER : HOLDER_UNKNOWN;
    }
    holders->is_wanted = true;
    pthread_cond_signal(&holders->wanted);
    return HOLDER_LATER;
}

static holder_answer_t find_locker(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns, pid_t *pid_out)
{
    if (holders == NULL) {
        return HOLDER_UNKNOWN;
    }
    pthread_mutex_lock(&holders->lock);
    const rmm_lock_line_t *line = find_line(&holders->table, segment, since_ns);
    holder_answer_t answer = HOLDER_FOUND;
    if (line != NULL) {
        *pid_out = line->pid;
    } else if (holders->before_ns > since_ns) {
        answer =
            HOLDER_UNKNOWN; /* twice: the kernel skips one when others go meanwhile */
    } else {
        answer = ask_for_table(holders);
    }
    pthread_mutex_unlock(&holders->lock);
    return answer;
}

/* --- both ----------------------------------------------------------------------------- */

bool holders_is_process(const rmm_segment_t *segment, pid_t pid)
{
    return rmm__process_is(pid, segment->uid, segment->header.start_time_ticks);
}

static holder_answer_t check(const rmm_segment_t *segment, pid_t pid)
{
    errno = 0;
    if (holders_is_process(segment, pid)) {
        return HOLDER_FOUND;
    }
    return rmm__is_out_of_descriptors(errno) ? HOLDER_SHORT : HOLDER_UNKNOWN;
}

holder_answer_t holders_find(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns, pid_t *pid_out)
{
    pid_t pid = (pid_t)segment->header.pid;
    holder_answer_t answer = check(segment, pid);
    if (answer == HOLDER_UNKNOWN) {
        answer = find_locker(holders, segment, since_ns, &pid);
        answer = answer == HOLDER_FOUND ? check(segment, pid) : answer;
    }
    *pid_out = answer == HOLDER_FOUND ? pid : 0;
    return answer;
}

holder_answer_t holders_find_owner(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns, pid_t *pid_out)
{
    pid_t pid = 0;
    holder_answer_t answer = find_locker(holders, segment, since_ns, &pid);
    if (answer == HOLDER_FOUND && !rmm__process_belongs_to(pid, segment->uid)) {
        answer = HOLDER_UNKNOWN;
    }
    *pid_out = answer == HOLDER_FOUND ? pid : 0;
    return answer;
}
