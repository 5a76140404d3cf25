/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocation event as a row of RMM's CSV, the format that its logging adaptor writes
 * and its replay tool reads:
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   4711,13:02:59.000123,allocate,0x7f6e40000000,1024,0
 *
 * Thread is the kernel's thread id, Time local time with microseconds, Pointer of a
 * failure "(nil)", Stream the handle as a number: 0 for NULL.
 *
 * Printed by hand: a printf of six columns takes some 400 ns, this 40.
 */
#ifndef RMM_SEGMENT_EVENT_CSV_H
#define RMM_SEGMENT_EVENT_CSV_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define RMM_EVENT_CSV_HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define RMM_EVENT_CSV_BYTES 128 /* no row is longer, its newline counted */

enum {
    RMM_EVENT_ALLOCATE = 1,
    RMM_EVENT_FREE = 2,
    RMM_EVENT_FAILURE = 3 /* an allocation that failed */
};

typedef struct rmm_event {
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint64_t pointer; /* 0: a failure, or 0 bytes */
    uint64_t bytes;
    uint64_t stream; /* the handle */
    uint32_t thread;
    uint32_t action; /* RMM_EVENT_*; others print as "unknown" */
} rmm_event_t;

/* Local time is queried once a second; all zero at first. One thread at a time. A process that
 * may fork sets local_time: the C library's own may hang in a child (core/local_time.h). */
typedef struct rmm_event_clock {
    void (*local_time)(time_t seconds, struct tm *out); /* NULL: localtime_r() */
    uint64_t second; /* since 1970, of which text is */
    char text[8];    /* HH:MM:SS */
} rmm_event_clock_t;

/* Write the row with its newline, no NUL; returns its length. */
size_t rmm__event_csv(
    char row[RMM_EVENT_CSV_BYTES], const rmm_event_t *event, rmm_event_clock_t *clock);

/* The pieces, for rows with more columns. Each returns the place behind. */
char *rmm__csv_decimal(char *to, uint64_t value);
char *rmm__csv_pointer(char *to, uint64_t value, const char *zero);

#endif /* RMM_SEGMENT_EVENT_CSV_H */
