/* SPDX-License-Identifier: Apache-2.0 */
/* Modules in memory; see loaded_module.h. */
#include "core/loaded_module.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

void rmm__module_span(
    const struct dl_phdr_info *info, uintptr_t *begin_out, uintptr_t *end_out)
{
    *begin_out = UINTPTR_MAX;
    *end_out = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD) {
            *begin_out = begin < *begin_out ? begin : *begin_out;
            *end_out =
                begin + part->p_memsz > *end_out ? begin + part->p_memsz : *end_out;
        }
    }
}

static size_t round_up(size_t bytes, size_t align)
{
    return (bytes + align - 1) / align * align;
}

/* Notes as they are in memory: a head, a name, and what they say. */
static size_t find_build_id(
    const unsigned char *notes, const ElfW(Phdr) * part, unsigned char *id, size_t room)
{
    const size_t align = part->p_align == 8 ? 8 : 4;
    size_t at = 0;

    while (at + sizeof(ElfW(Nhdr)) <= part->p_memsz) {
        ElfW(Nhdr) note;
        size_t name_at = at + sizeof(note), text_at, end;

        memcpy(&note, notes + at, sizeof(note));
        text_at = round_up(name_at + note.n_namesz, align);
        end = text_at + note.n_descsz;
        if (end > part->p_memsz || end < at) {
            return 0;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name_at, "GNU", 4) == 0) {
            size_t bytes = note.n_descsz < room ? note.n_descsz : room;

            memcpy(id, notes + text_at, bytes);
            return bytes;
        }
        at = round_up(end, align);
    }
    return 0;
}

size_t
rmm__module_build_id(const struct dl_phdr_info *info, unsigned char *id, size_t room)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        size_t bytes = 0;

        if (part->p_type == PT_NOTE) {
            const uintptr_t address = info->dlpi_addr + part->p_vaddr;

            bytes = find_build_id((const unsigned char *)address, part, id, room);
        }
        if (bytes > 0) {
            return bytes;
        }
    }
    return 0;
}

void rmm__program_path(char *path, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);

    path[length > 0 ? length : 0] = '\0';
}

void *rmm__loaded_symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}
