/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of RMM's CSV; see event_csv.h.
 */
#include "segment/event_csv.h"

#include <string.h>
#include <time.h>

char *rmm__csv_decimal(char *to, uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (count != 0) {
        *to++ = digits[--count];
    }
    return to;
}

static char *put(char *to, const char *text)
{
    size_t length = strlen(text);

    memcpy(to, text, length);
    return to + length;
}

char *rmm__csv_pointer(char *to, uint64_t value, const char *zero)
{
    int shift = 60;

    if (value == 0) {
        return put(to, zero);
    }
    to = put(to, "0x");
    while ((value >> shift & 15) == 0) {
        shift -= 4;
    }
    for (; shift >= 0; shift -= 4) {
        *to++ = "0123456789abcdef"[value >> shift & 15];
    }
    return to;
}

/* Exactly `digits` of them, with zeros in front. */
static char *put_padded(char *to, uint32_t value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        to[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return to + digits;
}

static void set_clock(rmm_event_clock_t *clock, uint64_t second)
{
    time_t seconds = (time_t)second;
    struct tm local;
    char *to = clock->text;

    memset(&local, 0, sizeof(local));
    if (clock->local_time != NULL) {
        clock->local_time(seconds, &local);
    } else {
        (void)localtime_r(&seconds, &local);
    }
    to = put_padded(to, (uint32_t)local.tm_hour, 2);
    *to++ = ':';
    to = put_padded(to, (uint32_t)local.tm_min, 2);
    *to++ = ':';
    (void)put_padded(to, (uint32_t)local.tm_sec, 2);
    clock->second = second;
}

static const char *action_name(uint32_t action)
{
    switch (action) {
    case RMM_EVENT_ALLOCATE:
        return "allocate";
    case RMM_EVENT_FREE:
        return "free";
    case RMM_EVENT_FAILURE:
        return "allocate failure";
    default:
        return "unknown";
    }
}

size_t rmm__event_csv(
    char row[RMM_EVENT_CSV_BYTES], const rmm_event_t *event, rmm_event_clock_t *clock)
{
    uint64_t second = event->time_ns / 1000000000u;
    char *to = rmm__csv_decimal(row, event->thread);

    if (second != clock->second || clock->text[0] == '\0') {
        set_clock(clock, second);
    }
    *to++ = ',';
    memcpy(to, clock->text, sizeof(clock->text));
    to += sizeof(clock->text);
    *to++ = '.';
    to = put_padded(to, (uint32_t)(event->time_ns % 1000000000u / 1000u), 6);
    *to++ = ',';
    to = put(to, action_name(event->action));
    *to++ = ',';
    to = rmm__csv_pointer(to, event->pointer, "(nil)");
    *to++ = ',';
    to = rmm__csv_decimal(to, event->bytes);
    *to++ = ',';
    to = rmm__csv_pointer(to, event->stream, "0");
    *to++ = '\n';
    return (size_t)(to - row);
}
