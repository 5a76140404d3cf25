/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots in a file, to be looked at later or elsewhere: a line of JSON each, with the figures
 * that --json prints, when they were taken, and which programs are the same from one to the next.
 *
 * A line begins with its version; one of a later version is refused, and so is a file that holds
 * anything else. What a writer that was killed has not finished is left out. Nothing in a file
 * is trusted: texts are cleaned, sizes bounded.
 */
#ifndef RMM_TOP_RECORDING_H
#define RMM_TOP_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "node/node.h"

#define RECORDING_VERSION 1
#define RECORDING_BYTES_MAX (UINT64_C(256) << 20)
#define RECORDING_LINE_BYTES_MAX (UINT64_C(32) << 20)

/* --- writing ------------------------------------------------------------------------------ */

typedef struct recorder {
    FILE *file; /* NULL: nothing is recorded (any more) */
    uint64_t bytes;
    char path[256];
    char reason[128]; /* why it has ended; "": it has not */
} recorder_t;

/* Begins the file anew. False with one line in message. */
bool recorder_open(
    recorder_t *recorder, const char *path, char *message, size_t message_bytes);
/* At the end of the disk, or of RECORDING_BYTES_MAX, it ends, and keeps what it has. */
void recorder_add(recorder_t *recorder, const node_t *node);
void recorder_close(recorder_t *recorder);

/* --- reading ------------------------------------------------------------------------------ */

typedef struct player {
    FILE *file;
    char *line;
    size_t line_room;
    uint64_t count, next; /* snapshots */
} player_t;

/* Reads all of it once. False with one line in message: it cannot be read, or is damaged. */
bool player_open(
    player_t *player, const char *path, char *message, size_t message_bytes);
/* The next snapshot. False: no memory, or the file has changed. */
bool player_take(player_t *player, node_t *node);
/* True: the last one was taken. */
bool player_is_over(const player_t *player);
/* The last one. */
bool player_take_last(player_t *player, node_t *node);
void player_close(player_t *player);

#endif /* RMM_TOP_RECORDING_H */
