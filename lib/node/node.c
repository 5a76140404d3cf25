/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the lists of a snapshot, and what follows from its figures; see node.h. */
#include "node/node.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/clean_text.h"
#include "segment/list.h"

void node_init(node_t *node)
{
    memset(node, 0, sizeof(*node));
}

void node_fini(node_t *node)
{
    free(node->devices);
    free(node->processes);
    free(node->uses);
    free(node->resources);
    free(node->sites);
    node_init(node);
}

void node_clear(node_t *node)
{
    node->device_count = node->process_count = 0;
    node->use_count = node->resource_count = node->site_count = 0;
    node->forbidden = node->refused = node->left_out = 0;
}

/* --- lists -------------------------------------------------------------------------------- */

#define ADD(node, list, count, room)                                                   \
    do {                                                                               \
        void *larger = rmm__list_make_room(                                            \
            (node)->list, (node)->count, &(node)->room, sizeof(*(node)->list));        \
        if (larger == NULL) {                                                          \
            return NULL;                                                               \
        }                                                                              \
        (node)->list = larger;                                                         \
        memset(&(node)->list[(node)->count], 0, sizeof(*(node)->list));                \
        return &(node)->list[(node)->count++];                                         \
    } while (0)

node_device_t *node_add_device(node_t *node)
{
    ADD(node, devices, device_count, device_room);
}

node_process_t *node_add_process(node_t *node)
{
    ADD(node, processes, process_count, process_room);
}

node_use_t *node_add_use(node_t *node)
{
    ADD(node, uses, use_count, use_room);
}

node_resource_t *node_add_resource(node_t *node)
{
    ADD(node, resources, resource_count, resource_room);
}

node_site_t *node_add_site(node_t *node)
{
    ADD(node, sites, site_count, site_room);
}

/* --- several nodes ------------------------------------------------------------------------ */

static bool
append_uses(node_t *node, const node_t *one, uint32_t process, uint32_t device)
{
    for (uint32_t i = 0; i < one->use_count; i++) {
        node_use_t *use = node_add_use(node);
        if (use == NULL) {
            return false;
        }
        *use = one->uses[i];
        use->process += process;
        use->device += device;
    }
    for (uint32_t i = 0; i < one->resource_count; i++) {
        node_resource_t *resource = node_add_resource(node);
        if (resource == NULL) {
            return false;
        }
        *resource = one->resources[i];
        resource->process += process;
        resource->device += device;
    }
    return true;
}

bool node_append(node_t *node, const node_t *one)
{
    uint32_t site = node->site_count - 1;
    uint32_t first_process = node->process_count, first_device = node->device_count;
    for (uint32_t i = 0; i < one->device_count; i++) {
        node_device_t *device = node_add_device(node);
        if (device == NULL) {
            return false;
        }
        *device = one->devices[i];
        device->site = site;
    }
    for (uint32_t i = 0; i < one->process_count; i++) {
        node_process_t *process = node_add_process(node);
        if (process == NULL) {
            return false;
        }
        *process = one->processes[i];
        process->site = site;
    }
    node->forbidden += one->forbidden;
    node->refused += one->refused;
    node->left_out += one->left_out;
    return append_uses(node, one, first_process, first_device);
}

uint32_t node_find_device(const node_t *node, const char *name)
{
    for (uint32_t i = 0; i < node->device_count; i++) {
        if (strcmp(node->devices[i].name, name) == 0) {
            return i;
        }
    }
    return NODE_NO_INDEX;
}

/* --- figures ------------------------------------------------------------------------------ */

void node_name_user(uid_t uid, char *name, size_t bytes)
{
    const struct passwd *user = getpwuid(uid);
    char number[16];

    snprintf(number, sizeof(number), "%u", (unsigned)uid);
    rmm__text_copy(name, bytes, user != NULL ? user->pw_name : number);
}

uint64_t node_others_bytes(const node_device_t *device)
{
    uint64_t used = figure_subtract(device->capacity_bytes, device->device_free_bytes);

    return figure_subtract(used, device->figures.reserved_bytes);
}

uint64_t node_free_bytes(const node_device_t *device)
{
    uint64_t of_ours =
        figure_subtract(device->capacity_bytes, device->figures.reserved_bytes);
    uint64_t of_all = figure_subtract(of_ours, node_others_bytes(device));
    return of_all != FIGURE_UNKNOWN ? of_all : of_ours;
}
