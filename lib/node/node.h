/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One snapshot of the node: GPUs, programs, and what each program uses on each device. Plain data
 * that refers to nothing outside, so that it can be shown, printed and made by a test.
 *
 * A snapshot may be that of several nodes: then `sites` has each of them, with its name, and the
 * devices of a node follow one another, host memory first.
 *
 * A figure that is not known is FIGURE_UNKNOWN, never 0 (node/figures.h). Texts come from other
 * programs and are clean: terminated UTF-8 without control characters.
 */
#ifndef RMM_NODE_NODE_H
#define RMM_NODE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/cgroup.h"
#include "node/figures.h"

#define NODE_NO_INDEX UINT32_MAX
#define NODE_HOST 0u /* index of host memory among the devices */

#define NODE_SITE_BYTES 64
#define NODE_REASON_BYTES 256

/* A node of several. */
typedef struct node_site {
    char name[NODE_SITE_BYTES];
    char reason[NODE_REASON_BYTES]; /* why there are no figures of it; "": there are */
    uint64_t time_ns;               /* CLOCK_MONOTONIC: when its figures came */
} node_site_t;

typedef struct node_device {
    char name[16]; /* "gpu0", "host" */
    uint32_t site; /* index; 0 where there is only one node */
    char uuid[48], pci_bus_id[24], model[64];
    bool is_host;
    uint64_t capacity_bytes;
    uint64_t device_free_bytes; /* the least that the driver reported to a program */
    device_sum_t sum;           /* while programs are being read */
    figures_t figures;  /* sums, 0 where no program is; of marks, FIGURE_UNKNOWN */
    uint32_t use_count; /* programs on it */
} node_device_t;

typedef struct node_process {
    uint64_t id; /* the same in each snapshot, and never that of another program */
    uint32_t site;
    pid_t pid; /* 0: not known */
    uid_t uid;
    bool is_live;
    char user[32]; /* the uid where there is no name */
    char comm[32], command[304];
    cgroup_t group; /* of a program that rmmfs shows without the path */
} node_process_t;

/* A program on a device: a row of the list. */
typedef struct node_use {
    uint32_t process, device; /* indexes */
    uint32_t location;        /* in the program's segment */
    figures_t figures;
} node_use_t;

typedef struct node_resource {
    uint32_t process, device;          /* indexes */
    uint32_t instance_id, upstream_id; /* 0: no upstream */
    uint32_t slot;                     /* in the program's segment */
    char name[64], type[24];
    figures_t figures;
} node_resource_t;

typedef struct node {
    node_device_t *devices; /* host memory, then GPUs by number */
    node_process_t *processes;
    node_use_t *uses;
    node_resource_t *resources; /* each program's together */
    node_site_t *sites;         /* none where the snapshot is of one node */
    uint32_t device_count, process_count, use_count, resource_count, site_count;
    uint32_t device_room, process_room, use_room, resource_room, site_room;
    uint32_t layout;    /* another number: indexes of devices mean others */
    uint64_t time_ns;   /* CLOCK_MONOTONIC */
    uint32_t forbidden; /* programs of other users that cannot be read */
    uint32_t refused; /* files that are no whole segment, or hold what cannot be true */
    uint32_t left_out; /* programs beyond the bound */
} node_t;

void node_init(node_t *node);
void node_fini(node_t *node);
/* Empties it and keeps its memory. */
void node_clear(node_t *node);

/* The new last one, all zero; NULL: no memory. */
node_device_t *node_add_device(node_t *node);
node_process_t *node_add_process(node_t *node);
node_use_t *node_add_use(node_t *node);
node_resource_t *node_add_resource(node_t *node);
node_site_t *node_add_site(node_t *node);

/* All of `one` but its sites, as figures of the last site. False: no memory. */
bool node_append(node_t *node, const node_t *one);

/* NODE_NO_INDEX: there is none of that name. */
uint32_t node_find_device(const node_t *node, const char *name);

/* The name of this user, cleaned and cut to fit; its number if it has none. */
void node_name_user(uid_t uid, char *name, size_t bytes);

/* The bytes of a GPU that others than the programs shown hold; FIGURE_UNKNOWN where no program
 * asked the driver. */
uint64_t node_others_bytes(const node_device_t *device);
/* The free bytes of a GPU: as the driver said, else capacity less reserved. */
uint64_t node_free_bytes(const node_device_t *device);

#endif /* RMM_NODE_NODE_H */
