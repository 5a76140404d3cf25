/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginnings of log lines; see log_text.h.
 */
#include "segment/log_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void rmm__log_time(
    char text[RMM_LOG_TIME_BYTES], uint64_t time_ns, const struct tm *local)
{
    long offset_minutes = local->tm_gmtoff / 60;
    long east = labs(offset_minutes);

    snprintf(
        text, RMM_LOG_TIME_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%06u%c%02ld:%02ld",
        1900 + local->tm_year, 1 + local->tm_mon, local->tm_mday, local->tm_hour,
        local->tm_min, local->tm_sec, (unsigned)(time_ns % 1000000000u / 1000u),
        offset_minutes < 0 ? '-' : '+', east / 60, east % 60);
}

rmm_journal_t rmm__journal_parse(const char *journal_stream)
{
    rmm_journal_t journal = {0, 0};
    int end = 0;

    if (journal_stream == NULL ||
        sscanf(
            journal_stream, "%" SCNu64 ":%" SCNu64 "%n", &journal.device,
            &journal.inode, &end) != 2 ||
        journal_stream[end] != '\0') {
        return (rmm_journal_t){0, 0};
    }
    return journal;
}

bool rmm__journal_reads(const rmm_journal_t *journal, int fd)
{
    struct stat file;

    return journal->inode != 0 && fstat(fd, &file) == 0 &&
           (uint64_t)file.st_dev == journal->device &&
           (uint64_t)file.st_ino == journal->inode;
}
