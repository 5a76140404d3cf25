/* SPDX-License-Identifier: Apache-2.0 */
/* Reads snapshots from a file; see recording.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/json.h"
#include "top/node_json.h"
#include "top/recording.h"

/* --- a line ------------------------------------------------------------------------------- */

static bool take_ids(const json_t *ids, node_t *node)
{
    if (!json_is_array(ids) || json_array_size(ids) != node->process_count) {
        return false;
    }
    for (uint32_t i = 0; i < node->process_count; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id)) {
            return false;
        }
        node->processes[i].id = (uint64_t)json_integer_value(id);
    }
    return true;
}

/* NULL: it is a snapshot. */
static const char *parse(const char *line, node_t *node)
{
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    const json_t *version = json_object_get(object, "rmm_top_recording");
    const json_t *time_ns = json_object_get(object, "time_ns");
    const char *wrong = NULL;
    if (!json_is_integer(version)) {
        wrong = "is not a snapshot of rmm-top";
    } else if (json_integer_value(version) != RECORDING_VERSION) {
        wrong = "has a version that this rmm-top cannot read";
    } else if (
        !json_is_integer(time_ns) ||
        node_from_json(json_object_get(object, "node"), NULL, NULL, node) !=
            NODE_PARSED ||
        !take_ids(json_object_get(object, "ids"), node)) {
        wrong = "is damaged";
    } else {
        node->time_ns = (uint64_t)json_integer_value(time_ns);
    }
    json_decref(object);
    return wrong;
}

/* --- the file ----------------------------------------------------------------------------- */

/* False: the end, or a line that was not finished. A line that is too long comes without its end,
 * and is no JSON. */
static bool read_line(player_t *player)
{
    size_t used = 0;
    for (int byte; (byte = getc_unlocked(player->file)) != EOF;) {
        if (used + 2 > player->line_room) {
            size_t room = player->line_room == 0 ? 65536 : player->line_room * 2;
            char *larger = realloc(player->line, room);
            if (larger == NULL) {
                return false;
            }
            player->line = larger;
            player->line_room = room;
        }
        if (byte == '\n' || used == RECORDING_LINE_BYTES_MAX) {
            player->line[used] = '\0';
            return true;
        }
        player->line[used++] = (char)byte;
    }
    return false;
}

static bool
check_all(player_t *player, const char *path, char *message, size_t message_bytes)
{
    node_t node;
    const char *wrong = NULL;
    node_init(&node);
    while (wrong == NULL && read_line(player)) {
        wrong = parse(player->line, &node);
        player->count++;
    }
    node_fini(&node);
    if (wrong != NULL) {
        snprintf(
            message, message_bytes, "%.150s: line %llu %s", path,
            (unsigned long long)player->count, wrong);
    } else if (ferror(player->file)) {
        snprintf(message, message_bytes, "%.150s: %s", path, strerror(errno));
        wrong = message;
    } else if (player->count == 0) {
        snprintf(
            message, message_bytes, "%.150s contains no snapshot of rmm-top", path);
        wrong = message;
    }
    rewind(player->file);
    return wrong == NULL;
}

bool player_open(
    player_t *player, const char *path, char *message, size_t message_bytes)
{
    *player = (player_t){.file = input_open_stream(path)};
    if (player->file == NULL) {
        snprintf(
            message, message_bytes, "cannot read %.150s: %s", path, strerror(errno));
        return false;
    }
    if (fseek(player->file, 0, SEEK_SET) != 0) {
        snprintf(
            message, message_bytes,
            "%.150s: a pipe cannot be replayed: it is read twice", path);
        player_close(player);
        return false;
    }
    if (!check_all(player, path, message, message_bytes)) {
        player_close(player);
        return false;
    }
    return true;
}

bool player_take(player_t *player, node_t *node)
{
    if (!read_line(player) || parse(player->line, node) != NULL) {
        return false;
    }
    player->next++;
    return true;
}

bool player_is_over(const player_t *player)
{
    return player->next >= player->count;
}

bool player_take_last(player_t *player, node_t *node)
{
    bool is_good = true;
    while (is_good && !player_is_over(player)) {
        is_good = read_line(player);
        player->next++;
    }
    return is_good && parse(player->line, node) == NULL;
}

void player_close(player_t *player)
{
    if (player->file != NULL) {
        (void)fclose(player->file);
    }
    free(player->line);
    *player = (player_t){.file = NULL};
}
