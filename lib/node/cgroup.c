/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads control groups; see cgroup.h. A line is "<number>:<controllers>:<path>"; the unified
 * hierarchy has the number 0 and no controllers.
 *
 * A path is read from the root, a part at a time, as each part means something only below its
 * parent. The forms below are those of kubelet and Slurm 20.11 to 26.05 with either version of
 * control groups, docker, containerd, cri-o, podman, LXC and systemd.
 */
#include "node/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 32768 /* what is longer is read as far as whole lines go */
#define PART_BYTES 256   /* NAME_MAX and a NUL */
#define CONTAINER_DIGITS 64u
#define DECIMAL "0123456789"
#define HEX DECIMAL "abcdef"

/* While a path is being read. */
typedef struct walk {
    cgroup_t *out;
    char part[PART_BYTES], parent[PART_BYTES];
    bool is_in_kubepods;
    bool is_of_pod; /* the container: those in it are its own affair */
} walk_t;

/* --- words ---------------------------------------------------------------------------- */

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static bool ends(const char *word, const char *with)
{
    size_t length = strlen(word), end = strlen(with);
    return length >= end && strcmp(word + length - end, with) == 0;
}

/* Copy so many bytes, none of them outside `allowed`. False: they are no such word, or do not
 * fit; nothing is written. */
static bool
take_word(char *to, size_t room, const char *from, size_t length, const char *allowed)
{
    if (length == 0 || length >= room || strspn(from, allowed) < length) {
        return false;
    }
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

static bool splits_a_column(unsigned char c)
{
    return c <= ' ' || c >= 0x7f || c == '\\';
}

/* Up to `end` (excluded). */
static void put_escaped(char *to, size_t room, const char *from, const char *end)
{
    size_t length = 0;
    for (; from < end && length + 5 <= room; from++) {
        unsigned char c = (unsigned char)*from;
        if (splits_a_column(c)) {
            length += (size_t)snprintf(to + length, 5, "\\%03o", c);
        } else {
            to[length++] = (char)c;
        }
    }
    to[length] = '\0';
}

/* --- Slurm ---------------------------------------------------------------------------- */

/* Version 1: [slurm|slurm_NODE]/uid_UID/job_ID. Version 2: [NODE_]slurmstepd.scope/job_ID, from
 * 26.05 also sSLUID, in capitals. */
static void take_job(walk_t *walk)
{
    cgroup_t *out = walk->out;
    bool is_of_user = begins(walk->parent, "uid_") &&
                      strspn(walk->parent + 4, DECIMAL) == strlen(walk->parent + 4);
    bool is_of_daemon = strcmp(walk->parent, "slurmstepd.scope") == 0 ||
                        ends(walk->parent, "_slurmstepd.scope");
    const char *part = walk->part;
    if ((is_of_user || is_of_daemon) && begins(part, "job_")) {
        (void)take_word(
            out->job, sizeof(out->job), part + 4, strlen(part + 4), DECIMAL);
    } else if (is_of_daemon && part[0] == 's' && strlen(part) >= 8) {
        (void)take_word(
            out->job, sizeof(out->job), part, strlen(part),
            "sABCDEFGHIJKLMNOPQRSTUVWXYZ" DECIMAL);
    }
}

/* Older versions write the step of a shell as a number. */
static void take_step(walk_t *walk)
{
    cgroup_t *out = walk->out;
    const char *step = walk->part + 5;
    if (!begins(walk->part, "step_") || out->job[0] == '\0' || out->step[0] != '\0') {
        return;
    }
    if (strcmp(step, "4294967290") == 0) {
        step = "interactive";
    }
    (void)take_word(
        out->step, sizeof(out->step), step, strlen(step),
        "abcdefghijklmnopqrstuvwxyz+.-" DECIMAL);
}

/* --- pods and containers ---------------------------------------------------------------- */

/* ".../podUID" below kubepods, or "kubepods-burstable-podUID.slice", where systemd has _ for -;
 * what follows may be ":cri-containerd:ID". The uid of a static pod is a hash without dashes. A
 * reader in a group namespace of its own sees others from there, "/../../burstable/podUID". */
static void take_kubernetes_pod(walk_t *walk)
{
    cgroup_t *out = walk->out;
    const char *pod = strstr(walk->part, "kubepods");
    walk->is_in_kubepods =
        walk->is_in_kubepods || pod != NULL || strcmp(walk->part, "..") == 0;
    pod = pod != NULL ? strstr(pod, "-pod") : NULL;
    pod = pod != NULL                                         ? pod + 4
          : walk->is_in_kubepods && begins(walk->part, "pod") ? walk->part + 3
                                                              : NULL;
    size_t length = pod != NULL ? strspn(pod, HEX "-_") : 0;
    if (length < 32 || length > 36 || out->pod[0] != '\0') {
        return;
    }
    (void)take_word(out->pod, sizeof(out->pod), pod, length, HEX "-_");
    for (char *c = out->pod; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    out->container[0] = '\0'; /* of the node, if that is a container itself */
}

/* "machine-libpod_pod_ID.slice", "user-libpod_pod_ID.slice"; with podman's driver cgroupfs
 * "libpod_parent/ID". True: the part is a pod. */
static bool take_podman_pod(walk_t *walk)
{
    cgroup_t *out = walk->out;
    const char *pod = strstr(walk->part, "libpod_pod_");
    pod = pod != NULL                                  ? pod + 11
          : strcmp(walk->parent, "libpod_parent") == 0 ? walk->part
                                                       : NULL;
    size_t length = pod != NULL ? strspn(pod, HEX) : 0;
    if (length != CONTAINER_DIGITS || out->pod[0] != '\0') {
        return false;
    }
    return take_word(out->pod, sizeof(out->pod), pod, length, HEX);
}

/* ID, PREFIX-ID or PREFIX:ID, with or without ".scope". NULL: none. */
static const char *id_in(const char *part)
{
    size_t length = strlen(part);
    length -= ends(part, ".scope") ? strlen(".scope") : 0;
    if (length < CONTAINER_DIGITS) {
        return NULL;
    }
    const char *id = part + length - CONTAINER_DIGITS;
    bool is_whole = id == part || id[-1] == '-' || id[-1] == ':';
    return is_whole && strspn(id, HEX) == CONTAINER_DIGITS ? id : NULL;
}

/* "lxc/NAME", "lxc.payload/NAME", "lxc.payload.NAME", "machine.slice/machine-NAME.scope",
 * "systemd-nspawn@NAME.service". NULL: none. */
static const char *name_in(const walk_t *walk, size_t *length_out)
{
    const char *part = walk->part;
    if (strcmp(walk->parent, "lxc") == 0 || strcmp(walk->parent, "lxc.payload") == 0) {
        *length_out = strlen(part);
        return part;
    }
    if (begins(part, "lxc.payload.")) {
        *length_out = strlen(part + 12);
        return part + 12;
    }
    if (strcmp(walk->parent, "machine.slice") == 0 && begins(part, "machine-") &&
        ends(part, ".scope")) {
        *length_out = strlen(part) - strlen("machine-") - strlen(".scope");
        return part + 8;
    }
    if (begins(part, "systemd-nspawn@") && ends(part, ".service")) {
        *length_out = strlen(part) - strlen("systemd-nspawn@") - strlen(".service");
        return part + 15;
    }
    return NULL;
}

/* The innermost counts, as containers nest, but in a pod that of the pod. conmon watches a
 * container from outside. */
static void take_container(walk_t *walk)
{
    cgroup_t *out = walk->out;
    size_t length = CONTAINER_DIGITS;
    const char *id = id_in(walk->part);
    if (walk->is_of_pod || strstr(walk->part, "conmon-") != NULL) {
        return;
    }
    if (id == NULL) {
        id = name_in(walk, &length);
    }
    bool is_taken =
        id != NULL && take_word(
                          out->container, sizeof(out->container), id, length,
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZghijklmnopqrstuvwxyz"
                          "._-" HEX);
    walk->is_of_pod = is_taken && out->pod[0] != '\0';
}

/* --- a path --------------------------------------------------------------------------- */

static void take_unit(walk_t *walk)
{
    const char *part = walk->part;
    if (ends(part, ".service") || ends(part, ".scope")) {
        put_escaped(
            walk->out->unit, sizeof(walk->out->unit), part, part + strlen(part));
    }
}

static void take_part(walk_t *walk)
{
    if (walk->out->job[0] == '\0') {
        take_job(walk);
    } else {
        take_step(walk);
    }
    take_kubernetes_pod(walk);
    if (!take_podman_pod(walk)) {
        take_container(walk);
    }
    take_unit(walk);
}

static void parse_path(const char *path, const char *end, cgroup_t *out)
{
    walk_t walk = {.out = out};
    *out = (cgroup_t){.path = ""};
    put_escaped(out->path, sizeof(out->path), path, end);
    while (path < end) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        size_t length = (size_t)((slash != NULL ? slash : end) - path);
        if (length > 0 && length < PART_BYTES) {
            memcpy(walk.parent, walk.part, sizeof(walk.parent));
            memcpy(walk.part, path, length);
            walk.part[length] = '\0';
            take_part(&walk);
        }
        path += length + 1;
    }
    if (out->job[0] != '\0' || out->pod[0] != '\0' || out->container[0] != '\0') {
        out->unit[0] = '\0'; /* of what manages it */
    }
}

/* --- all hierarchies -------------------------------------------------------------------- */

/* How much a group says; -1: it is the root. */
static int worth(const cgroup_t *group)
{
    if (strcmp(group->path, "/") == 0) {
        return -1;
    }
    return 4 * (group->job[0] != '\0') + (group->step[0] != '\0') +
           4 * (group->pod[0] != '\0') + 2 * (group->container[0] != '\0') +
           (group->unit[0] != '\0');
}

/* The path of a line; NULL: the line is none. */
static const char *path_of_line(const char *line, const char *end)
{
    const char *colon = memchr(line, ':', (size_t)(end - line));
    colon = colon != NULL ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    return colon != NULL && colon + 1 < end ? colon + 1 : NULL;
}

void cgroup_parse(const char *text, cgroup_t *out)
{
    *out = (cgroup_t){.path = ""};
    while (*text != '\0') {
        const char *end = text + strcspn(text, "\n");
        const char *path = path_of_line(text, end);
        cgroup_t group;
        if (path != NULL) {
            parse_path(path, end, &group);
            int more = out->path[0] == '\0' ? 1 : worth(&group) - worth(out);
            if (more > 0 || (more == 0 && strncmp(text, "0::", 3) == 0)) {
                *out = group;
            }
        }
        text = *end == '\n' ? end + 1 : end;
    }
}

void cgroup_label(const cgroup_t *group, char label[CGROUP_LABEL_BYTES])
{
    if (group->job[0] != '\0') {
        (void)snprintf(
            label, CGROUP_LABEL_BYTES, "slurm %s%s%s", group->job,
            group->step[0] != '\0' ? "." : "", group->step);
    } else if (group->pod[0] != '\0') {
        (void)snprintf(label, CGROUP_LABEL_BYTES, "pod %.8s", group->pod);
    } else if (group->container[0] != '\0') {
        bool is_id = strspn(group->container, HEX) == CONTAINER_DIGITS;
        (void)snprintf(
            label, CGROUP_LABEL_BYTES, "container %.*s", is_id ? 12 : 40,
            group->container);
    } else {
        (void)snprintf(label, CGROUP_LABEL_BYTES, "%.60s", group->unit);
    }
}

/* As far as it fits, in whole lines. False: nothing can be read. */
static bool read_lines(int fd, char text[FILE_BYTES])
{
    size_t length = 0;
    ssize_t bytes = 1;
    while (bytes > 0 && length < FILE_BYTES - 1) {
        bytes = read(fd, text + length, FILE_BYTES - 1 - length);
        length += bytes > 0 ? (size_t)bytes : 0;
    }
    text[length] = '\0';
    if (length == FILE_BYTES - 1) {
        char *last = strrchr(text, '\n');
        *(last != NULL ? last : text) = '\0';
    }
    return text[0] != '\0';
}

bool cgroup_of(pid_t pid, cgroup_t *out)
{
    char name[32], text[FILE_BYTES];
    *out = (cgroup_t){.path = ""};
    (void)snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
    int fd = pid > 0 ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    bool is_read = read_lines(fd, text);
    (void)close(fd);
    if (is_read) {
        cgroup_parse(text, out);
    }
    return is_read;
}
