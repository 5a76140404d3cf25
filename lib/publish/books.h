/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a resource keeps its books: the counters that /rmm shows, always on. A resource
 * owns one slot; the place (its GPU, or host memory) is shared by all resources there.
 *
 * Two ways to write a slot, chosen by the resource:
 *   *_shared     no lock held: atomic adds (cuda resource)
 *   *_exclusive  the resource's own lock held: plain stores inside a sequence lock
 * The place is always shared.
 *
 * Order: count down before a block can be handed out again, count up after it was
 * obtained. So no figure ever exceeds what was true.
 *
 * Memory: the slot is in the segment, or in private memory when nothing is published
 * (RMM_PUBLISH=0, no place to write, slot table full). Users of this header cannot tell.
 *
 * Marks: reset by generation. The daemon raises a number in the control page; the next
 * allocation that sees it differ from the one last obeyed sets the mark to the current
 * value. Readers show the current value until then.
 */
#ifndef RMM_PUBLISH_BOOKS_H
#define RMM_PUBLISH_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/resource.h>

#include "publish/segment_format.h"

typedef struct rmm_books {
    rmm_segment_slot_t *slot;           /* never NULL once open */
    const rmm_control_slot_t *wishes;   /* of this slot; never NULL once open */
    uint32_t place;                     /* index */
    bool slot_is_private;               /* malloc'ed: freed at close */
} rmm_books_t;

typedef struct rmm_books_desc {
    const char *type;     /* copied, cut to fit */
    const char *name;     /* copied, cut to fit */
    uint32_t instance_id;
    uint32_t upstream_id; /* 0: none */
    uint32_t place;       /* from rmm__place_of_device() or RMM_SEGMENT_HOST_PLACE */
} rmm_books_desc_t;

/* What a place is called; rmm__place_open copies it. */
typedef struct rmm_place_identity {
    const char *uuid, *pci_bus_id, *name;
    uint64_t capacity_bytes;
} rmm_place_identity_t;

/* The mapped records, valid in every process state (see segment_writer.c). Set once by
 * rmm__publish_open(); until then they point at static private memory. */
extern rmm_segment_place_t *rmm__places;
extern const rmm_control_place_t *rmm__place_wishes;

/*
 * Make this process's segment, once; any failure warns once and leaves private memory.
 * driver: "cuda", "sim" or "none". Thread-safe.
 */
void rmm__publish_open(const char *driver);

/* Fill a place's identity, once per place. Thread-safe. */
void rmm__place_open(uint32_t place, const rmm_place_identity_t *identity);

/* RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY. Calls rmm__publish_open() must precede. */
rmm_status_t rmm__books_open(rmm_books_t *books, const rmm_books_desc_t *desc);
void rmm__books_close(rmm_books_t *books);

/* Whole of rmm_resource_get_stats() but for the argument checks. */
void rmm__books_stats(const rmm_books_t *books, rmm_stats_t *out);

/* Map "<segment>.<suffix>", zeroed, or private memory when not publishing. */
rmm_status_t rmm__publish_side_file(const char *suffix, size_t bytes, void **memory_out);

/* --- a slot, resource's lock not needed ---------------------------------------- */

void rmm__books_alloc_shared(rmm_books_t *books, uint64_t bytes);
void rmm__books_free_shared(rmm_books_t *books, uint64_t bytes);
void rmm__books_reserve_shared(rmm_books_t *books, uint64_t bytes);
void rmm__books_unreserve_shared(rmm_books_t *books, uint64_t bytes);
void rmm__books_oom(rmm_books_t *books);          /* slot only */
void rmm__books_invalid_free(rmm_books_t *books); /* slot and place */

/* --- a slot, resource's lock held ----------------------------------------------- */

void rmm__books_begin_exclusive(rmm_books_t *books);
void rmm__books_end_exclusive(rmm_books_t *books);
/* Between begin and end: */
void rmm__books_alloc_exclusive(rmm_books_t *books, uint64_t bytes, uint64_t padding);
void rmm__books_free_exclusive(rmm_books_t *books, uint64_t bytes, uint64_t padding);

/* Any figure of the slot, in either way of writing, e.g. SET(books, free_bytes, n). */
#define RMM_BOOKS_SET(books, field, value)                                             \
    atomic_store_explicit(&(books)->slot->field, (value), memory_order_relaxed)
#define RMM_BOOKS_ADD_EXCLUSIVE(books, field, value)                                   \
    RMM_BOOKS_SET(                                                                     \
        books, field,                                                                  \
        atomic_load_explicit(&(books)->slot->field, memory_order_relaxed) + (value))

/* --- a place: what users hold, what base resources hold from the driver ----------- */

void rmm__place_alloc(uint32_t place, uint64_t bytes);
void rmm__place_free(uint32_t place, uint64_t bytes);
/* A resource ends with blocks still out: they leave with it. */
void rmm__place_forget(uint32_t place, uint64_t bytes, uint64_t count);
void rmm__place_reserve(uint32_t place, uint64_t bytes);
void rmm__place_unreserve(uint32_t place, uint64_t bytes);
void rmm__place_padding_add(uint32_t place, uint64_t bytes);
void rmm__place_padding_sub(uint32_t place, uint64_t bytes);
void rmm__place_oom(uint32_t place);
void rmm__place_device_free(uint32_t place, uint64_t device_free_bytes);

#endif /* RMM_PUBLISH_BOOKS_H */
