/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rows without copying: a column is a piece of the line, never terminated.
 *
 * Accepted beyond what RMM writes today: the colon that older versions put before the
 * fraction of the time, (nil) for no address, spaces around a column, CRLF, empty lines,
 * a log without its header, the header again where logs were joined, the byte order mark with
 * which Windows programs begin UTF-8.
 */
#include "replay/alloc_log.h"

#include <stdio.h>
#include <string.h>

#include "common/numbers.h"

#define COLUMNS 6
#define POOL_COLUMNS                                                                   \
    2 /* that ours may have behind them: RMM_LOGGING_FORMAT_POOL_SIZE */
#define EXTENDED_COLUMNS 3 /* and RMM_LOGGING_FORMAT_EXTENDED */
#define NS_PER_SECOND UINT64_C(1000000000)
#define HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

typedef struct column {
    const char *text;
    size_t length;
} column_t;

static bool column_is(column_t column, const char *word)
{
    return column.length == strlen(word) &&
           memcmp(column.text, word, column.length) == 0;
}

static column_t trimmed(const char *begin, const char *end)
{
    while (begin < end && (*begin == ' ' || *begin == '\t')) {
        begin++;
    }
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return (column_t){begin, (size_t)(end - begin)};
}

/* Splits at commas; returns how many columns there are, filling the first six. */
static size_t split(const char *text, size_t length, column_t columns[COLUMNS])
{
    const char *end = text + length;
    size_t count = 0;
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma != NULL ? comma : end;
        if (count < COLUMNS) {
            columns[count] = trimmed(text, stop);
        }
        count++;
        if (comma == NULL) {
            return count;
        }
        text = comma + 1;
    }
}

static bool is_row_of(size_t columns)
{
    size_t more = columns - COLUMNS;
    return columns >= COLUMNS &&
           (more == 0 || more == POOL_COLUMNS || more == EXTENDED_COLUMNS ||
            more == POOL_COLUMNS + EXTENDED_COLUMNS);
}

/* RMM's, maybe with more columns. */
static bool is_header(column_t line)
{
    const size_t length = strlen(HEADER);
    return line.length >= length && memcmp(line.text, HEADER, length) == 0 &&
           (line.length == length || line.text[length] == ',');
}

/* "Size "abc" is not a number", with what a terminal should not see made visible. */
static void describe(
    char problem[LOG_PROBLEM_MAX], const char *name, column_t column, const char *what)
{
    char shown[41];
    size_t length = column.length < sizeof shown ? column.length : sizeof shown - 1;
    for (size_t i = 0; i < length; i++) {
        char c = column.text[i];
        shown[i] = (char)(c >= ' ' && c <= '~' ? c : '?');
    }
    shown[length] = '\0';
    snprintf(problem, LOG_PROBLEM_MAX, "%s \"%s\" %s", name, shown, what);
}

static bool parse_number_column(
    column_t column, const char *name, uint64_t *out, char problem[LOG_PROBLEM_MAX])
{
    rmm_number_result_t result = number_parse_address(column.text, column.length, out);
    if (result != RMM_NUMBER_OK) {
        describe(
            problem, name, column,
            result == RMM_NUMBER_TOO_LARGE ? "does not fit in 64 bits"
                                           : "is not a number");
    }
    return result == RMM_NUMBER_OK;
}

/* Two digits below limit, or false. */
static bool parse_two_digits(const char *text, uint64_t limit, uint64_t *out)
{
    return rmm__number_parse(text, 2, out) == RMM_NUMBER_OK && *out < limit;
}

/* HH:MM:SS and a fraction of one to nine digits. */
static bool parse_time(column_t column, uint64_t *time_ns)
{
    const char *text = column.text;
    uint64_t hours;
    uint64_t minutes;
    uint64_t seconds;
    if (column.length < 8 || text[2] != ':' || text[5] != ':' ||
        !parse_two_digits(text, 24, &hours) ||
        !parse_two_digits(text + 3, 60, &minutes) ||
        !parse_two_digits(text + 6, 60, &seconds)) {
        return false;
    }
    uint64_t fraction = 0;
    if (column.length > 8) {
        size_t digits = column.length - 9;
        if ((text[8] != '.' && text[8] != ':') || digits > 9 ||
            rmm__number_parse(text + 9, digits, &fraction) != RMM_NUMBER_OK) {
            return false;
        }
        for (; digits < 9; digits++) {
            fraction *= 10;
        }
    }
    *time_ns = ((hours * 60 + minutes) * 60 + seconds) * NS_PER_SECOND + fraction;
    return true;
}

static bool parse_action(column_t column, log_action_t *out)
{
    static const char *const words[] = {
        [LOG_ALLOCATE] = "allocate",
        [LOG_FREE] = "free",
        [LOG_ALLOCATE_FAILURE] = "allocate failure",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (column_is(column, words[i])) {
            *out = (log_action_t)i;
            return true;
        }
    }
    return false;
}

static bool parse_pointer(column_t column, uint64_t *out, char problem[LOG_PROBLEM_MAX])
{
    if (column_is(column, "(nil)")) {
        *out = 0;
        return true;
    }
    return parse_number_column(column, "Pointer", out, problem);
}

bool log_parse_row(
    const char *text, size_t length, log_row_t *row, char problem[LOG_PROBLEM_MAX])
{
    column_t columns[COLUMNS];
    size_t count = split(text, length, columns);
    if (!is_row_of(count)) {
        snprintf(
            problem, LOG_PROBLEM_MAX, "%zu column%s where %d are expected (" HEADER ")",
            count, count == 1 ? "" : "s", COLUMNS);
        return false;
    }
    if (!parse_number_column(columns[0], "Thread", &row->thread, problem)) {
        return false;
    }
    if (!parse_time(columns[1], &row->time_ns)) {
        describe(problem, "Time", columns[1], "is not HH:MM:SS.ffffff");
        return false;
    }
    if (!parse_action(columns[2], &row->action)) {
        describe(
            problem, "Action", columns[2],
            "is none of allocate, free, allocate failure");
        return false;
    }
    return parse_pointer(columns[3], &row->pointer, problem) &&
           parse_number_column(columns[4], "Size", &row->bytes, problem) &&
           parse_number_column(columns[5], "Stream", &row->stream, problem);
}

void log_reader_init(log_reader_t *reader, const log_sink_t *sink)
{
    reader->sink = *sink;
    reader->line = 0;
    reader->length = 0;
    reader->overlong = false;
}

/* The line as it is parsed: without what ends it, and without a mark before the first one. */
static column_t line_of(const log_reader_t *reader)
{
    column_t line = {reader->text, reader->length};
    const size_t mark = strlen(BYTE_ORDER_MARK);
    if (reader->line == 1 && line.length >= mark &&
        memcmp(line.text, BYTE_ORDER_MARK, mark) == 0) {
        line.text += mark;
        line.length -= mark;
    }
    if (line.length > 0 && line.text[line.length - 1] == '\r') {
        line.length--;
    }
    return line;
}

static bool finish_line(log_reader_t *reader)
{
    char problem[LOG_PROBLEM_MAX];
    bool overlong = reader->overlong;
    log_row_t row = {.line = ++reader->line};
    const column_t line = line_of(reader);
    reader->length = 0;
    reader->overlong = false;

    if (overlong) {
        snprintf(
            problem, sizeof problem, "the line is longer than %d characters",
            LOG_LINE_MAX);
        return reader->sink.problem(reader->sink.context, row.line, problem);
    }
    if (trimmed(line.text, line.text + line.length).length == 0 || is_header(line)) {
        return true;
    }
    if (!log_parse_row(line.text, line.length, &row, problem)) {
        return reader->sink.problem(reader->sink.context, row.line, problem);
    }
    return reader->sink.row(reader->sink.context, &row);
}

bool log_reader_feed(log_reader_t *reader, const char *data, size_t length)
{
    while (length > 0) {
        const char *newline = memchr(data, '\n', length);
        size_t piece = newline != NULL ? (size_t)(newline - data) : length;
        size_t room = sizeof reader->text - reader->length;
        reader->overlong = reader->overlong || piece > room;
        size_t copied = piece < room ? piece : room;
        memcpy(reader->text + reader->length, data, copied);
        reader->length += copied;
        if (newline == NULL) {
            return true;
        }
        if (!finish_line(reader)) {
            return false;
        }
        data += piece + 1;
        length -= piece + 1;
    }
    return true;
}

bool log_reader_end(log_reader_t *reader)
{
    return (reader->length == 0 && !reader->overlong) || finish_line(reader);
}
