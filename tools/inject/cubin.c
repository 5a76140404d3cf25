/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a module's code, which is an ELF file of 64 bits; see cubin.h. */
#include "inject/cubin.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

typedef struct file {
    const unsigned char *bytes;
    uint64_t size;
    Elf64_Ehdr head;
} file_t;

static bool holds(const file_t *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->size && bytes <= file->size - offset;
}

static bool read_section(const file_t *file, uint32_t index, Elf64_Shdr *section)
{
    uint64_t at = (uint64_t)index * sizeof(*section);

    if (!holds(file, file->head.e_shoff, at + sizeof(*section))) {
        return false;
    }
    memcpy(section, file->bytes + file->head.e_shoff + at, sizeof(*section));
    return true;
}

static bool open_file(file_t *file, Elf64_Shdr *names)
{
    if (file->bytes == NULL || !holds(file, 0, sizeof(file->head))) {
        return false;
    }
    memcpy(&file->head, file->bytes, sizeof(file->head));
    return memcmp(file->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           file->head.e_ident[EI_CLASS] == ELFCLASS64 &&
           file->head.e_shentsize == sizeof(*names) && file->head.e_shnum > 0 &&
           read_section(file, file->head.e_shstrndx, names) &&
           holds(file, names->sh_offset, names->sh_size);
}

/* .nv.global and .nv.global.init are those of __device__, the other one those of __constant__. */
static bool is_of_variables(const char *name, size_t room)
{
    static const char *const prefixes[] = {".nv.global", ".nv.constant3"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t length = strlen(prefixes[i]);

        if (length <= room && memcmp(name, prefixes[i], length) == 0) {
            return true;
        }
    }
    return false;
}

bool inject_cubin_has_variables(const void *cubin, size_t bytes)
{
    file_t file = {.bytes = cubin, .size = bytes};
    Elf64_Shdr names, section;

    if (!open_file(&file, &names)) {
        return true;
    }
    for (uint32_t i = 0; i < file.head.e_shnum; i++) {
        if (!read_section(&file, i, &section) || section.sh_name > names.sh_size) {
            return true;
        }
        if (section.sh_size > 0 &&
            is_of_variables(
                (const char *)file.bytes + names.sh_offset + section.sh_name,
                names.sh_size - section.sh_name)) {
            return true;
        }
    }
    return false;
}
