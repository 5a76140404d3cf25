/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that grow: an array, how many items it has, and for how many it has room. */
#ifndef RMM_SEGMENT_LIST_H
#define RMM_SEGMENT_LIST_H

#include <stddef.h>
#include <stdint.h>

/* The array, which may have moved, with room for one more item of so many bytes, and *room brought
 * up to date. NULL: no memory, and the array is as it was. */
void *
rmm__list_make_room(void *items, uint32_t count, uint32_t *room, size_t item_bytes);

#endif /* RMM_SEGMENT_LIST_H */
