/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the names of users in /etc/passwd; see user_names.h. */
#include "render/user_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "segment/clean_text.h"

static int compare(const void *a, const void *b)
{
    uid_t first = ((const user_name_t *)a)->uid, second = ((const user_name_t *)b)->uid;
    return (first > second) - (first < second);
}

/* Each uid once, sorted, without a name yet. */
static void take_users(user_names_t *names, const snapshot_t *snapshot)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        names->items[i].uid = snapshot->processes[i].uid;
    }
    qsort(names->items, snapshot->process_count, sizeof(names->items[0]), compare);
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        if (kept == 0 || names->items[kept - 1].uid != names->items[i].uid) {
            names->items[kept++] = names->items[i];
        }
    }
    names->count = kept;
}

static user_name_t *find(const user_names_t *names, uid_t uid)
{
    const user_name_t key = {.uid = uid};
    return names->count != 0
               ? bsearch(
                     &key, names->items, names->count, sizeof(names->items[0]), compare)
               : NULL;
}

/* A line of passwd(5), "name:password:uid:...", which it cuts. fgetpwent() has one buffer for all
 * threads, and readers of two pages are answered at once. */
static bool parse_line(char *line, const char **name_out, uid_t *uid_out)
{
    uint64_t uid;
    char *rest = line;
    *name_out = strsep(&rest, ":");
    (void)strsep(&rest, ":");
    const char *number = strsep(&rest, ":");
    if (rest == NULL ||
        rmm__number_parse(number, strlen(number), &uid) != RMM_NUMBER_OK ||
        uid > UINT32_MAX) {
        return false;
    }
    *uid_out = (uid_t)uid;
    return true;
}

/* The first name of a uid counts, as in getpwuid(). */
static void take_names(user_names_t *names, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) >= 0) {
        const char *name;
        uid_t uid;
        user_name_t *user = parse_line(line, &name, &uid) ? find(names, uid) : NULL;
        if (user != NULL && user->name[0] == '\0') {
            rmm__text_copy(user->name, sizeof(user->name), name);
        }
    }
    free(line);
}

size_t user_names_bytes(const snapshot_t *snapshot)
{
    return (snapshot->process_count + 1) * sizeof(user_name_t);
}

bool user_names_read(user_names_t *names, const snapshot_t *snapshot)
{
    names->count = 0;
    names->items = calloc(snapshot->process_count + 1, sizeof(names->items[0]));
    if (names->items == NULL) {
        return false;
    }
    take_users(names, snapshot);
    FILE *file = fopen("/etc/passwd", "re");
    if (file != NULL) {
        take_names(names, file);
        (void)fclose(file);
    }
    return true;
}

void user_names_free(user_names_t *names)
{
    free(names->items);
    *names = (user_names_t){.items = NULL};
}

const char *user_names_find(const user_names_t *names, uid_t uid)
{
    const user_name_t *user = find(names, uid);
    return user != NULL && user->name[0] != '\0' ? user->name : NULL;
}
