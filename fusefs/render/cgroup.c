/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the control group of a process; see cgroup.h. A line is "<number>:<controllers>:<path>";
 * the unified hierarchy has the number 0 and no controllers.
 */
#include "render/cgroup.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 8192 /* some 14 lines */
#define CONTAINER_DIGITS (CGROUP_CONTAINER_BYTES - 1)

/* The path of a line; NULL: the line is none. */
static const char *path_of_line(const char *line)
{
    const char *end = line + strcspn(line, "\n");
    const char *colon = memchr(line, ':', (size_t)(end - line));
    colon = colon != NULL ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    return colon != NULL && colon + 1 < end ? colon + 1 : NULL;
}

static bool is_root(const char *path)
{
    return path[0] == '/' && (path[1] == '\n' || path[1] == '\0');
}

/* The first line whose path is not the root, the unified hierarchy's before all others. */
static const char *choose_path(const char *text)
{
    const char *root = NULL, *other = NULL;
    while (*text != '\0') {
        const char *path = path_of_line(text);
        if (path != NULL && is_root(path)) {
            root = path;
        } else if (path != NULL && strncmp(text, "0::", 3) == 0) {
            return path;
        } else if (path != NULL && other == NULL) {
            other = path;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return other != NULL ? other : root;
}

static bool splits_a_column(unsigned char c)
{
    return c <= ' ' || c >= 0x7f || c == '\\';
}

void cgroup_parse(const char *text, char path[CGROUP_PATH_BYTES])
{
    size_t length = 0;
    const char *from = choose_path(text);
    for (; from != NULL && *from != '\n' && *from != '\0'; from++) {
        unsigned char c = (unsigned char)*from;
        if (length + 5 > CGROUP_PATH_BYTES) {
            break;
        }
        if (splits_a_column(c)) {
            length += (size_t)snprintf(path + length, 5, "\\%03o", c);
        } else {
            path[length++] = (char)c;
        }
    }
    path[length] = '\0';
}

void cgroup_container(const char *path, char id[CGROUP_CONTAINER_BYTES])
{
    size_t digits = 0;
    id[0] = '\0';
    for (const char *c = path;; c++) {
        if (isdigit((unsigned char)*c) || (*c >= 'a' && *c <= 'f')) {
            digits++;
            continue;
        }
        if (digits == CONTAINER_DIGITS) { /* the last one: containers nest */
            memcpy(id, c - digits, CONTAINER_DIGITS);
            id[CONTAINER_DIGITS] = '\0';
        }
        digits = 0;
        if (*c == '\0') {
            return;
        }
    }
}

void cgroup_of(pid_t pid, char path[CGROUP_PATH_BYTES])
{
    char name[32], text[FILE_BYTES];
    path[0] = '\0';
    (void)snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
    int fd = pid > 0 ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    ssize_t bytes = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (bytes > 0) {
        text[bytes] = '\0';
        cgroup_parse(text, path);
    }
}
