/* SPDX-License-Identifier: Apache-2.0 */
/* See copies.h. */
#include "base/copies.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rmm/version.h>

#include "core/assert.h"
#include "log/log.h"

#define NOTE_OWNER "rmm-c"
#define NOTE_TYPE 1

/* Of this copy; not static, because the note names it. */
extern rmm_copy_t rmm__this_copy;
rmm_copy_t rmm__this_copy = {
    .struct_bytes = sizeof(rmm_copy_t),
    .version = RMM_C_VERSION_MAJOR * 10000u + RMM_C_VERSION_MINOR * 100u +
               RMM_C_VERSION_PATCH};

/* A note of NOTE_OWNER, whose contents are the distance from themselves to rmm__this_copy: the
 * linker knows it, so the note needs no relocation. */
__asm__(".hidden rmm__this_copy\n"
        ".pushsection .note.rmm-c,\"a\",%note\n"
        ".balign 4\n"
        ".long 6, 8, 1\n"
        ".asciz \"rmm-c\"\n"
        ".balign 4\n"
        "0: .quad rmm__this_copy - 0b\n"
        ".popsection\n");

typedef struct search {
    rmm_copy_t *other;
    char path[512]; /* of the module; empty: the program itself */
    char own_path[512];
} search_t;

/* NULL: not ours. */
static rmm_copy_t *copy_of_note(const ElfW(Nhdr) * note, const char *end)
{
    const char *owner = (const char *)(note + 1);
    const char *contents = owner + ((sizeof(NOTE_OWNER) + 3) & ~(size_t)3);
    int64_t distance;

    if (note->n_type != NOTE_TYPE || note->n_namesz != sizeof(NOTE_OWNER) ||
        note->n_descsz != sizeof(distance) || contents + sizeof(distance) > end ||
        memcmp(owner, NOTE_OWNER, sizeof(NOTE_OWNER)) != 0) {
        return NULL;
    }
    memcpy(&distance, contents, sizeof(distance));
    return (rmm_copy_t *)((uintptr_t)contents + (uintptr_t)distance);
}

static void take_copy(search_t *search, rmm_copy_t *copy, const char *path)
{
    bool is_own = copy == &rmm__this_copy;

    if (is_own) {
        snprintf(search->own_path, sizeof(search->own_path), "%s", path);
    } else if (
        copy->struct_bytes >= sizeof(*copy) &&
        /* seq_cst: see rmm__copies_use() */
        atomic_load_explicit(&copy->is_in_use, memory_order_seq_cst) != 0) {
        search->other = copy;
        snprintf(search->path, sizeof(search->path), "%s", path);
    }
}

/* The notes between two addresses. */
static void
look_at_notes(search_t *search, const char *at, const char *end, const char *path)
{
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
        rmm_copy_t *copy = copy_of_note(note, end);

        if (copy != NULL) {
            take_copy(search, copy, path);
        }
        at += sizeof(*note) + (((size_t)note->n_namesz + 3) & ~(size_t)3) +
              (((size_t)note->n_descsz + 3) & ~(size_t)3);
    }
}

/* Under the loader's lock: nothing here may log or allocate. */
static int look_at_module(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);

        /* Notes aligned to 8 are the compiler's, and laid out differently. */
        if (header->p_type == PT_NOTE && header->p_align <= 4) {
            look_at_notes(arg, at, at + header->p_memsz, info->dlpi_name);
        }
    }
    return 0;
}

static const char *shown(const char *path)
{
    return path[0] != '\0' ? path : "the program itself";
}

RMM_COLD static void look_for_others(void)
{
    search_t search = {.other = NULL};

    (void)dl_iterate_phdr(look_at_module, &search);
    if (search.other != NULL) {
        uint32_t version = search.other->version;

        rmm__log_warn(
            "two copies of librmm-c in this process: version %u.%u.%u in %s and %s in "
            "%s; each has its own default resources and statistics, and a block must "
            "be freed by the copy that allocated it: link both parts with the shared "
            "library to have one",
            version / 10000, version / 100 % 100, version % 100, shown(search.path),
            rmm_version_string(), shown(search.own_path));
    }
}

void rmm__copies_use(void)
{
    _Atomic(uint32_t) *is_in_use = &rmm__this_copy.is_in_use;

    if (atomic_load_explicit(is_in_use, memory_order_relaxed) != 0) {
        return;
    }
    /* seq_cst, as the load in take_copy(): each copy stores its own word and then loads the
     * other's, so of two that begin at the same time at least one sees the other. */
    if (atomic_exchange_explicit(is_in_use, 1, memory_order_seq_cst) == 0) {
        look_for_others();
    }
}
