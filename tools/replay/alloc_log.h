/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's allocation log, the CSV of its logging adaptor:
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   1,03:14:15.576338,allocate,0x7fda6b587600,37632,0
 *
 * and the same with the columns that ours may have behind these (rmm/logging_adaptor.h), which are
 * skipped.
 *
 * The reader takes bytes in pieces of any size, so that it can be fed by zlib, by a
 * test and by a fuzzer. What it cannot read it reports with the line and goes on; its
 * sink decides whether to stop.
 */
#ifndef RMM_TOOLS_REPLAY_ALLOC_LOG_H
#define RMM_TOOLS_REPLAY_ALLOC_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer lines are malformed: RMM's have about 70 characters. */
#define LOG_LINE_MAX 1024
#define LOG_PROBLEM_MAX 160

typedef enum log_action { LOG_ALLOCATE, LOG_FREE, LOG_ALLOCATE_FAILURE } log_action_t;

typedef struct log_row {
    uint64_t line; /* of the log, from 1 */
    uint64_t thread;
    uint64_t time_ns; /* since midnight */
    uint64_t pointer;
    uint64_t bytes;
    uint64_t stream; /* handle as logged; 0: legacy default stream */
    log_action_t action;
} log_row_t;

/* Functions that get the rows; false stops the reading. */
typedef struct log_sink {
    void *context;
    bool (*row)(void *context, const log_row_t *row);
    bool (*problem)(void *context, uint64_t line, const char *text);
} log_sink_t;

typedef struct log_reader {
    log_sink_t sink;
    uint64_t line; /* lines ended so far */
    size_t length; /* of the unfinished line */
    bool overlong; /* the unfinished line did not fit */
    char text[LOG_LINE_MAX];
} log_reader_t;

/* Parse one line without its line break; fills all of row but line. */
bool log_parse_row(
    const char *text, size_t length, log_row_t *row, char problem[LOG_PROBLEM_MAX]);

void log_reader_init(log_reader_t *reader, const log_sink_t *sink);

/* False: the sink stopped the reading. */
bool log_reader_feed(log_reader_t *reader, const char *data, size_t length);

/* Call at the end of the input: the last line may lack its line break. */
bool log_reader_end(log_reader_t *reader);

#endif /* RMM_TOOLS_REPLAY_ALLOC_LOG_H */
