/* SPDX-License-Identifier: Apache-2.0 */
/* Writes snapshots into a file; see recording.h. A line is written at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "top/node_json.h"
#include "top/recording.h"

bool recorder_open(
    recorder_t *recorder, const char *path, char *message, size_t message_bytes)
{
    *recorder = (recorder_t){.file = fopen(path, "we")};
    snprintf(recorder->path, sizeof(recorder->path), "%s", path);
    if (recorder->file == NULL) {
        snprintf(
            message, message_bytes, "cannot record to %.150s: %s", path,
            strerror(errno));
    }
    return recorder->file != NULL;
}

static json_t *id_json(const void *from, size_t i)
{
    const node_t *node = from;
    return json_count(node->processes[i].id);
}

/* The version comes first in each line. NULL: no memory. */
static char *make_line(const node_t *node)
{
    json_t *object = json_object();
    bool is_whole =
        object != NULL &&
        json_put(object, "rmm_top_recording", json_integer(RECORDING_VERSION)) &&
        json_put(object, "time_ns", json_count(node->time_ns)) &&
        json_put(object, "ids", json_array_of(node->process_count, id_json, node)) &&
        json_put(object, "node", node_json(node));
    char *line = is_whole ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return line;
}

static void end(recorder_t *recorder, const char *reason)
{
    snprintf(recorder->reason, sizeof(recorder->reason), "%s", reason);
    recorder_close(recorder);
}

/* Closing the stream would write what is still in its buffer; so the buffer is emptied first. */
static void take_back_line(recorder_t *recorder)
{
    __fpurge(recorder->file);
    (void)!ftruncate(fileno(recorder->file), (off_t)recorder->bytes);
}

void recorder_add(recorder_t *recorder, const node_t *node)
{
    if (recorder->file == NULL) {
        return;
    }
    char *line = make_line(node);
    size_t length = line != NULL ? strlen(line) : 0;
    if (line == NULL) {
        end(recorder, "no host memory");
    } else if (
        length > RECORDING_LINE_BYTES_MAX ||
        recorder->bytes + length >= RECORDING_BYTES_MAX) {
        end(recorder, "the file has reached 256 MiB");
    } else if (
        fputs(line, recorder->file) < 0 || fputc('\n', recorder->file) == EOF ||
        fflush(recorder->file) != 0) {
        const char *reason = strerror(errno);
        take_back_line(recorder);
        end(recorder, reason);
    }
    recorder->bytes += length + 1;
    free(line);
}

void recorder_close(recorder_t *recorder)
{
    if (recorder->file != NULL) {
        (void)fclose(recorder->file);
        recorder->file = NULL;
    }
}
