/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the control groups for their limits and usage; see memory.h. Version 2 of the hierarchies
 * has one for all controllers, version 1 one for memory. Where both are there, memory is in one of
 * them: in that of version 1 if /proc/self/cgroup names it there.
 */
#include "support/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 8192
#define RESERVE_PART 8 /* of a limit, that is never given away */

typedef struct names {
    const char *limit, *usage;
    const char *inactive, *active; /* page cache, in memory.stat */
} names_t;

static const names_t names_of[2] = {
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file ",
     "\ntotal_active_file "},
    {"memory.max", "memory.current", "\ninactive_file ", "\nactive_file "}};

/* --- files ---------------------------------------------------------------------------- */

static bool read_text(const char *path, char text[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[bytes > 0 ? (size_t)bytes : 0] = '\0';
    return bytes > 0;
}

static bool read_file(const char *group, const char *name, char text[TEXT_BYTES])
{
    char path[MEMORY_PATH_BYTES + 32];
    (void)snprintf(path, sizeof(path), "%s/%s", group, name);
    return read_text(path, text);
}

/* UINT64_MAX: there is none ("max"), or it cannot be read. */
static uint64_t read_number(const char *group, const char *name)
{
    char text[TEXT_BYTES];
    char *end = text;
    uint64_t number = read_file(group, name, text) ? strtoull(text, &end, 10) : 0;
    return end != text ? number : UINT64_MAX;
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* --- the group ------------------------------------------------------------------------ */

/* Whether a list of controllers, "cpu,memory:", has that of memory. */
static bool has_memory(const char *list)
{
    const size_t length = strlen("memory");
    while (strncmp(list, "memory", length) != 0 ||
           (list[length] != ',' && list[length] != ':')) {
        list += strcspn(list, ",:\n");
        if (*list != ',') {
            return false;
        }
        list++;
    }
    return true;
}

/* The path in the line of the hierarchy that has the memory; NULL: none. */
static const char *find_path(const char *groups, bool is_unified)
{
    const char *path = NULL;
    for (const char *line = groups; path == NULL && *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        const char *list = strchr(line, ':');
        const char *colon = list != NULL ? strchr(list + 1, ':') : NULL;
        bool is_wanted = is_unified ? strncmp(line, "0::", 3) == 0
                                    : list != NULL && has_memory(list + 1);
        path = colon != NULL && colon < end && is_wanted ? colon + 1 : NULL;
        line = end + (*end == '\n');
    }
    return path;
}

void memory_init(memory_t *memory)
{
    memset(memory, 0, sizeof(*memory));
    pthread_mutex_init(&memory->lock, NULL);
}

void memory_fini(memory_t *memory)
{
    pthread_mutex_destroy(&memory->lock);
}

void memory_find_group(memory_t *memory, const char *root, const char *groups)
{
    const char *path = find_path(groups, false);
    memory->is_unified = path == NULL;
    if (memory->is_unified) {
        path = find_path(groups, true);
    }
    if (path != NULL) {
        const char *mounted = memory->is_unified ? "" : "/memory";
        memory->root_length = strlen(root) + strlen(mounted);
        (void)snprintf(
            memory->group, sizeof(memory->group), "%s%s%.*s", root, mounted,
            (int)strcspn(path, "\n"), path);
    }
}

void memory_find_own_group(memory_t *memory)
{
    char groups[TEXT_BYTES];
    (void)read_text("/proc/self/cgroup", groups);
    memory_find_group(memory, MEMORY_GROUPS_ROOT, groups);
}

/* --- taking --------------------------------------------------------------------------- */

/* The free memory of one group, less the reserve. A group that does not exist has no limit. */
static uint64_t left_of_group(const char *group, const names_t *names)
{
    char stat[TEXT_BYTES];
    uint64_t limit = read_number(group, names->limit);
    uint64_t usage =
        limit != UINT64_MAX ? read_number(group, names->usage) : UINT64_MAX;
    if (usage == UINT64_MAX) {
        return UINT64_MAX;
    }
    if (read_file(group, "memory.stat", stat)) {
        uint64_t cache =
            number_after(stat, names->inactive) + number_after(stat, names->active);
        usage -= cache < usage ? cache : usage;
    }
    uint64_t part = limit / RESERVE_PART;
    uint64_t most = limit - (part < MEMORY_RESERVE_BYTES ? part : MEMORY_RESERVE_BYTES);
    return usage < most ? most - usage : 0;
}

/* The least of the group and all above it. In a container the path may be the one outside: then
 * only its last step, the root, is there. */
static uint64_t bytes_left(const memory_t *memory)
{
    uint64_t least = UINT64_MAX;
    char group[MEMORY_PATH_BYTES];
    memcpy(group, memory->group, sizeof(group));
    for (size_t length = strlen(group);;) {
        uint64_t left = left_of_group(group, &names_of[memory->is_unified]);
        least = left < least ? left : least;
        if (length <= memory->root_length) {
            return least;
        }
        do {
            length--;
        } while (length > memory->root_length && group[length] != '/');
        group[length] = '\0';
    }
}

bool memory_take(memory_t *memory, uint64_t bytes)
{
    if (memory->group[0] == '\0') {
        return true;
    }
    pthread_mutex_lock(&memory->lock);
    bool has_room = bytes <= memory->credit;
    uint64_t left = memory->credit;
    if (!has_room) {
        left = bytes_left(memory);
        has_room = bytes <= left;
    }
    left -= has_room ? bytes : 0;
    memory->credit = left < MEMORY_CREDIT_BYTES ? left : MEMORY_CREDIT_BYTES;
    pthread_mutex_unlock(&memory->lock);
    return has_room;
}
