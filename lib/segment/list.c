/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles an array; see list.h. */
#include "segment/list.h"

#include <stdlib.h>

#define ROOM_LEAST 16u

void *
rmm__list_make_room(void *items, uint32_t count, uint32_t *room, size_t item_bytes)
{
    uint32_t wanted = *room == 0 ? ROOM_LEAST : *room * 2;
    void *larger;

    if (count < *room) {
        return items;
    }
    larger = reallocarray(items, wanted, item_bytes);
    if (larger != NULL) {
        *room = wanted;
    }
    return larger;
}
