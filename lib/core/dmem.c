/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads dmem.max, dmem.low and dmem.current; see dmem.h.
 *
 * In a container /proc/self/cgroup says "0::/", and the files of the container's group lie in the
 * root of the hierarchy that is mounted there. So the root is asked as well; that of the machine
 * has no such files.
 */
#include "core/dmem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/numbers.h"

#define TEXT_BYTES                                                                     \
    8192 /* some 200 lines; what is longer is read as far as whole lines go */

/* Where cgroup2 is mounted: alone, or beside version 1. */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

static bool read_text(const char *path, char text[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    text[bytes > 0 ? (size_t)bytes : 0] = '\0';
    return bytes >= 0;
}

static bool read_file(const char *path, const char *name, char text[TEXT_BYTES])
{
    char file[PATH_MAX + 64];
    bool is_read = false;

    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]) && !is_read; i++) {
        snprintf(file, sizeof(file), "%s%s/%s", mounts[i], path, name);
        is_read = read_text(file, text);
    }
    return is_read;
}

/* --- paths ---------------------------------------------------------------------------- */

bool rmm__dmem_group(const char *text, char path_out[PATH_MAX])
{
    const char *line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    const char *path = line != NULL ? strchr(line, '/') : NULL;
    size_t length = path != NULL ? strcspn(path, "\n") : 0;

    if (length == 0 || length >= PATH_MAX) {
        return false;
    }
    memcpy(path_out, path, length);
    path_out[length] = '\0';
    return strncmp(path_out, "/..", 3) != 0;
}

bool rmm__dmem_parent(char path[PATH_MAX])
{
    char *slash = strrchr(path, '/');

    if (slash == NULL || path[1] == '\0') {
        return false;
    }
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

/* --- files ---------------------------------------------------------------------------- */

/* Whether a line begins with a region of the GPU's video memory, "drm/0000:03:00.0/vram0 ". */
static bool is_video_memory(const char *line, const char *pci_bus_id)
{
    static const char before[] = "drm/", after[] = "/vram";
    const size_t id_bytes = strlen(pci_bus_id);

    return id_bytes > 0 && strncmp(line, before, strlen(before)) == 0 &&
           strncasecmp(line + strlen(before), pci_bus_id, id_bytes) == 0 &&
           strncmp(line + strlen(before) + id_bytes, after, strlen(after)) == 0;
}

/* False: it is no number. "max" is RMM_DMEM_UNLIMITED. */
static bool parse_value(const char *line, size_t length, uint64_t *bytes_out)
{
    const char *space = memchr(line, ' ', length);
    const char *value = space != NULL ? space + 1 : line + length;
    const size_t value_length = (size_t)(line + length - value);

    if (value_length == 3 && memcmp(value, "max", 3) == 0) {
        *bytes_out = RMM_DMEM_UNLIMITED;
        return true;
    }
    return rmm__number_parse(value, value_length, bytes_out) == RMM_NUMBER_OK;
}

static uint64_t add(uint64_t sum, uint64_t bytes)
{
    return bytes < RMM_DMEM_UNLIMITED - sum ? sum + bytes : RMM_DMEM_UNLIMITED;
}

bool rmm__dmem_parse(const char *text, const char *pci_bus_id, uint64_t *bytes_out)
{
    uint64_t sum = 0, bytes;
    bool is_named = false;

    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        if (is_video_memory(text, pci_bus_id) && parse_value(text, length, &bytes)) {
            sum = add(sum, bytes);
            is_named = true;
        }
    }
    if (is_named) {
        *bytes_out = sum;
    }
    return is_named;
}

static uint64_t
read_value(const char *path, const char *name, const char *pci_bus_id, uint64_t unknown)
{
    char text[TEXT_BYTES];
    uint64_t bytes = unknown;

    (void)(read_file(path, name, text) && rmm__dmem_parse(text, pci_bus_id, &bytes));
    return bytes;
}

bool rmm__dmem_read(const char *path, const char *pci_bus_id, rmm_dmem_t *out)
{
    out->max_bytes = read_value(path, "dmem.max", pci_bus_id, RMM_DMEM_UNLIMITED);
    out->low_bytes = read_value(path, "dmem.low", pci_bus_id, 0);
    out->current_bytes = 0;
    if (out->max_bytes == RMM_DMEM_UNLIMITED && out->low_bytes == 0) {
        return false;
    }
    out->current_bytes = read_value(path, "dmem.current", pci_bus_id, 0);
    return true;
}

/* --- this process --------------------------------------------------------------------- */

static bool own_group(char path_out[PATH_MAX])
{
    char text[TEXT_BYTES];

    return read_text("/proc/self/cgroup", text) && rmm__dmem_group(text, path_out);
}

bool rmm__dmem_is_on(void)
{
    char path[PATH_MAX], text[TEXT_BYTES];

    return own_group(path) && read_file(path, "dmem.max", text);
}

uint64_t rmm__dmem_room(const char *pci_bus_id)
{
    char path[PATH_MAX];
    uint64_t room = RMM_DMEM_UNLIMITED;
    rmm_dmem_t group;

    if (!own_group(path)) {
        return room;
    }
    do {
        if (rmm__dmem_read(path, pci_bus_id, &group) &&
            group.max_bytes != RMM_DMEM_UNLIMITED) {
            uint64_t left = group.max_bytes > group.current_bytes
                                ? group.max_bytes - group.current_bytes
                                : 0;
            room = left < room ? left : room;
        }
    } while (rmm__dmem_parent(path));
    return room;
}
