/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of logs; see log_line.h.
 */
#include "support/log_line.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "segment/log_text.h"

#define LEVEL_OFF 6u

uint32_t log_line_error_level(void)
{
    uint32_t level = 0;
    (void)log_line_level_parse("error", &level);
    return level;
}

bool log_line_level_parse(const char *name, uint32_t *level_out)
{
    for (uint32_t i = 0; i <= LEVEL_OFF; i++) {
        if (strcmp(name, rmm__segment_log_level_name(i)) == 0) {
            *level_out = i;
            return true;
        }
    }
    return false;
}

void log_line_append(
    text_t *text, const char *process, const rmm_log_message_t *message)
{
    time_t seconds = (time_t)(message->time_ns / 1000000000u);
    char time_text[RMM_LOG_TIME_BYTES];
    struct tm local = {0};
    (void)localtime_r(&seconds, &local);
    rmm__log_time(time_text, message->time_ns, &local);
    if (process != NULL) {
        text_printf(text, "[%s]", process);
    }
    text_printf(
        text, "[%u][%s][%s] ", message->thread, time_text,
        rmm__segment_log_level_name(message->level));
    text_put_foreign(text, message->text);
    text_puts(text, "\n");
}

void log_line_append_lost(text_t *text, const char *process, uint64_t count)
{
    if (count != 0) {
        text_printf(text, "# lost %" PRIu64 " messages of %s\n", count, process);
    }
}
