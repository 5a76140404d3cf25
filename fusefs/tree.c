/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of names; see tree.h. Most of it is one table: the files of each kind of
 * directory. One function for each kind lists the entries that change (devices,
 * processes, resources). A lookup searches that list, so a name is found if and only if
 * it is listed.
 */
#include "tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "journal.h"
#include "slots.h"

#define MODE_r (S_IFREG | 0444)
#define MODE_w (S_IFREG | 0644)
#define MODE_o (S_IFREG | 0440)
#define MODE_DIRECTORY (S_IFDIR | 0555)
#define MODE_LINK (S_IFLNK | 0777)

const node_t tree_root = {DIR_ROOT, FILE_SELF, 0, 0};

static const struct file_desc {
    const char *name;
    mode_t mode;
    uint32_t where; /* IN_* */
} files[FILE_ID_COUNT] = {
    [FILE_SELF] = {"", MODE_DIRECTORY, 0},
    [FILE_LINK] = {"", MODE_LINK, 0},
    [FILE_UPSTREAM] = {"upstream", MODE_LINK, 0},
#define X(id, name, mode, where) [FILE_##id] = {name, MODE_##mode, where},
    TREE_FILE_MAP(X)
#undef X
#define FIGURE_FILE(field, where)                                                      \
    [FILE_##field] = {#field, FILE_##field == FILE_peak_bytes ? MODE_w : MODE_r, where},
#define X(field, kind, unit, help) FIGURE_FILE(field, IN_EACH_LEVEL)
        RMM_COMMON_STATS(X) RMM_SLOT_FREE_STATS(X)
#undef X
#define X(field, kind, unit, help) FIGURE_FILE(field, IN_EACH_LOCATION)
            RMM_LOCATION_ONLY_STATS(X)
#undef X
#define X(field, kind, unit, help) FIGURE_FILE(field, IN(RESOURCE))
                RMM_SLOT_ONLY_STATS(X)
#undef X
};

/* --- inode numbers -------------------------------------------------------------------- */

_Static_assert(FILE_ID_COUNT <= 128, "7 bits of an inode number");
_Static_assert(DIR_KIND_COUNT <= 16, "4 bits of an inode number");

uint64_t node_to_inode(node_t node)
{
    return (uint64_t)node.file | (uint64_t)node.dir << 7 | (uint64_t)node.serial << 11 |
           (uint64_t)node.id << 32;
}

bool node_from_inode(uint64_t inode, node_t *node_out)
{
    node_t node = {
        .file = inode & 0x7f,
        .dir = (inode >> 7) & 0xf,
        .serial = (inode >> 11) & MODEL_SERIAL_MAX,
        .id = (uint32_t)(inode >> 32)};
    if (node.file == FILE_NONE || node.file >= FILE_ID_COUNT ||
        node.dir >= DIR_KIND_COUNT) {
        return false;
    }
    *node_out = node;
    return true;
}

static node_t dir_node(dir_kind_t dir, uint32_t serial, uint32_t id)
{
    return (node_t){(uint8_t)dir, FILE_SELF, serial, id};
}

static node_t file_node(node_t dir, uint8_t file)
{
    dir.file = file;
    return dir;
}

/* --- names ---------------------------------------------------------------------------- */

void tree_device_name(uint32_t device, char name[16])
{
    if (device == DEVICE_HOST) {
        (void)snprintf(name, 16, "host");
    } else {
        (void)snprintf(name, 16, "gpu%u", device);
    }
}

/* "3.pool"; two segments of one process may both have it: the second's is "3.pool~1". */
static void resource_name(const slot_view_t *view, char name[TREE_NAME_BYTES])
{
    const process_t *process = view->member->process;
    const rmm_segment_slot_t *slot = rmm_record_slot(&view->record);
    uint32_t nth = 0;
    while (nth < process->member_count && process->members[nth] != view->member) {
        nth++;
    }
    int length = snprintf(
        name, TREE_NAME_BYTES - 16, "%u.%s", slot->instance_id,
        slot->name[0] != '\0' ? slot->name : slot->type);
    for (char *c = name; *c != '\0'; c++) {
        bool bad = *c == '/' || *c == ' ' || (unsigned char)*c < 0x20 || *c == 0x7f;
        *c = bad ? '_' : *c;
    }
    if (nth > 0) {
        (void)snprintf(name + length, 16, "~%u", nth);
    }
}

/* --- what there is -------------------------------------------------------------------- */

static bool process_has_device(const process_t *process, uint32_t device)
{
    uint32_t location;
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (member_location_on(process->members[i], device, &location)) {
            return true;
        }
    }
    return false;
}

static uint32_t device_of_slot(const slot_view_t *view)
{
    uint32_t location = rmm_record_slot(&view->record)->location;
    for (uint32_t i = 0; i < view->member->location_count; i++) {
        if (view->member->locations[i].location == location) {
            return view->member->locations[i].device;
        }
    }
    return DEVICE_NONE;
}

/* The process that a directory is of or below of; NULL: gone, or none. */
static const process_t *process_of(const model_t *model, node_t node)
{
    if (node.dir != DIR_RESOURCE) {
        return model_process(model, node.serial);
    }
    member_t *member = model_member(model, node.serial);
    return member != NULL ? member->process : NULL;
}

static bool find_resource(const model_t *model, node_t node, slot_view_t *view)
{
    member_t *member = model_member(model, node.serial);
    return member != NULL && slots_find(member, node.id, view);
}

static bool dir_exists(const model_t *model, node_t node)
{
    const process_t *process;
    slot_view_t view;
    switch ((dir_kind_t)node.dir) {
    case DIR_ROOT:
    case DIR_BY_UUID:
    case DIR_DAEMON:
    case DIR_PROCESSES:
        return node.serial == 0;
    case DIR_DEVICE:
        return model_device_const(model, node.id) != NULL;
    case DIR_PROCESS:
    case DIR_DIAG:
    case DIR_TRACE:
        return model_process(model, node.serial) != NULL;
    case DIR_PROCESS_DEVICE:
    case DIR_RESOURCES:
        process = model_process(model, node.serial);
        return process != NULL && process_has_device(process, node.id);
    case DIR_RESOURCE:
        return find_resource(model, node, &view);
    case DIR_KIND_COUNT:
        break;
    }
    return false;
}

/* --- listing -------------------------------------------------------------------------- */

/* Which generation it is stands in the inode: a new one is another file. */
static void list_logs(const model_t *model, tree_list_fn visit, void *arg)
{
    if (model->journal == NULL) {
        return;
    }
    uint32_t generation = journal_generation(model->journal);
    visit("log", (node_t){DIR_ROOT, FILE_LOG, 0, generation}, arg);
    if (generation > 1) {
        visit("log.1", (node_t){DIR_ROOT, FILE_LOG_1, 0, generation - 1}, arg);
    }
}

static void list_root(const model_t *model, tree_list_fn visit, void *arg)
{
    char name[16];
    list_logs(model, visit, arg);
    visit("by-uuid", dir_node(DIR_BY_UUID, 0, 0), arg);
    visit("daemon", dir_node(DIR_DAEMON, 0, 0), arg);
    visit("host", dir_node(DIR_DEVICE, 0, DEVICE_HOST), arg);
    visit("proc", dir_node(DIR_PROCESSES, 0, 0), arg);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        tree_device_name(i, name);
        visit(name, dir_node(DIR_DEVICE, 0, i), arg);
    }
}

static void list_by_uuid(const model_t *model, tree_list_fn visit, void *arg)
{
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        if (model->gpus[i].uuid[0] != '\0') {
            visit(model->gpus[i].uuid, (node_t){DIR_BY_UUID, FILE_LINK, 0, i}, arg);
        }
    }
}

static void list_processes(const model_t *model, tree_list_fn visit, void *arg)
{
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        visit(process->name, dir_node(DIR_PROCESS, process->serial, 0), arg);
    }
}

static void list_process(
    const model_t *model, const process_t *process, tree_list_fn visit, void *arg)
{
    char name[16];
    if (process_speaker(process) == NULL) {
        return; /* unreadable: nothing but its state */
    }
    visit("diag", dir_node(DIR_DIAG, process->serial, 0), arg);
    visit("trace", dir_node(DIR_TRACE, process->serial, 0), arg);
    if (process_has_device(process, DEVICE_HOST)) {
        visit("host", dir_node(DIR_PROCESS_DEVICE, process->serial, DEVICE_HOST), arg);
    }
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        if (process_has_device(process, i)) {
            tree_device_name(i, name);
            visit(name, dir_node(DIR_PROCESS_DEVICE, process->serial, i), arg);
        }
    }
}

typedef struct resource_list {
    uint32_t device;
    tree_list_fn visit;
    void *arg;
} resource_list_t;

static bool list_resource(const slot_view_t *view, void *arg)
{
    const resource_list_t *list = arg;
    char name[TREE_NAME_BYTES];
    if (device_of_slot(view) == list->device) {
        resource_name(view, name);
        uint32_t id = rmm_record_slot(&view->record)->instance_id;
        list->visit(name, dir_node(DIR_RESOURCE, view->member->serial, id), list->arg);
    }
    return true;
}

static void
list_resources(const process_t *process, uint32_t device, tree_list_fn visit, void *arg)
{
    resource_list_t list = {device, visit, arg};
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (member_counts(process->members[i])) {
            slots_each(process->members[i], list_resource, &list);
        }
    }
}

static bool has_upstream(const model_t *model, node_t dir)
{
    char target[TREE_NAME_BYTES * 2];
    return tree_link(model, file_node(dir, FILE_UPSTREAM), target);
}

static void
list_subdirs(const model_t *model, node_t dir, tree_list_fn visit, void *arg)
{
    const process_t *process = process_of(model, dir);
    switch ((dir_kind_t)dir.dir) {
    case DIR_ROOT:
        list_root(model, visit, arg);
        break;
    case DIR_BY_UUID:
        list_by_uuid(model, visit, arg);
        break;
    case DIR_PROCESSES:
        list_processes(model, visit, arg);
        break;
    case DIR_PROCESS:
        list_process(model, process, visit, arg);
        break;
    case DIR_PROCESS_DEVICE:
        visit("mr", dir_node(DIR_RESOURCES, dir.serial, dir.id), arg);
        break;
    case DIR_RESOURCES:
        list_resources(process, dir.id, visit, arg);
        break;
    case DIR_RESOURCE:
        if (has_upstream(model, dir)) {
            visit("upstream", file_node(dir, FILE_UPSTREAM), arg);
        }
        break;
    case DIR_DAEMON:
    case DIR_DEVICE:
    case DIR_DIAG:
    case DIR_TRACE:
    case DIR_KIND_COUNT:
        break;
    }
}

/* The IN_* of a directory. */
static uint32_t where_is(const model_t *model, node_t dir)
{
    if (dir.dir == DIR_PROCESS &&
        process_speaker(model_process(model, dir.serial)) == NULL) {
        return IN_UNREADABLE;
    }
    uint32_t gpu = dir.dir == DIR_DEVICE && dir.id != DEVICE_HOST ? IN_GPU : 0;
    return 1u << dir.dir | gpu;
}

bool tree_dir_has(dir_kind_t dir, uint8_t file)
{
    return (files[file].where & 1u << dir) != 0;
}

static void list_fixed(const model_t *model, node_t dir, tree_list_fn visit, void *arg)
{
    uint32_t where = where_is(model, dir);
    for (uint8_t file = 0; file < FILE_ID_COUNT; file++) {
        if ((files[file].where & where) != 0) {
            visit(files[file].name, file_node(dir, file), arg);
        }
    }
}

bool tree_list(const model_t *model, node_t dir, tree_list_fn visit, void *arg)
{
    if (dir.file != FILE_SELF || !dir_exists(model, dir)) {
        return false;
    }
    list_fixed(model, dir, visit, arg);
    list_subdirs(model, dir, visit, arg);
    return true;
}

/* --- looking up ----------------------------------------------------------------------- */

typedef struct search {
    const char *name;
    node_t node;
    bool found;
} search_t;

static void compare(const char *name, node_t node, void *arg)
{
    search_t *search = arg;
    if (!search->found && strcmp(name, search->name) == 0) {
        search->node = node;
        search->found = true;
    }
}

bool tree_lookup(const model_t *model, node_t dir, const char *name, node_t *node_out)
{
    search_t search = {.name = name};
    if (dir.file != FILE_SELF || !dir_exists(model, dir)) {
        return false;
    }
    list_fixed(model, dir, compare, &search);
    if (!search.found) {
        list_subdirs(model, dir, compare, &search);
    }
    if (search.found) {
        *node_out = search.node;
    }
    return search.found;
}

static bool node_exists(const model_t *model, node_t node)
{
    if (!dir_exists(model, node)) {
        return false;
    }
    char target[TREE_NAME_BYTES * 2];
    switch (node.file) {
    case FILE_SELF:
        return true;
    case FILE_LINK:
    case FILE_UPSTREAM:
        return tree_link(model, node, target);
    case FILE_LOG:
    case FILE_LOG_1:
        return node.dir == DIR_ROOT && model->journal != NULL;
    default:
        return (files[node.file].where & where_is(model, node)) != 0;
    }
}

bool tree_info(const model_t *model, node_t node, node_info_t *info_out)
{
    if (!node_exists(model, node)) {
        return false;
    }
    const process_t *process = process_of(model, node);
    info_out->mode = files[node.file].mode;
    info_out->uid = process != NULL ? process->uid : model->uid;
    info_out->gid = process != NULL ? process->gid : model->gid;
    info_out->changed_ns = 0;
    if (node.file == FILE_SELF) {
        const member_t *speaker = process != NULL ? process_speaker(process) : NULL;
        info_out->changed_ns = speaker != NULL ? speaker->segment.header.start_time_ns
                                               : model->started_real_ns;
    }
    return true;
}

node_t tree_parent(const model_t *model, node_t node)
{
    if (node.file != FILE_SELF) {
        return file_node(node, FILE_SELF);
    }
    slot_view_t view;
    switch ((dir_kind_t)node.dir) {
    case DIR_PROCESS:
        return dir_node(DIR_PROCESSES, 0, 0);
    case DIR_PROCESS_DEVICE:
    case DIR_DIAG:
    case DIR_TRACE:
        return dir_node(DIR_PROCESS, node.serial, 0);
    case DIR_RESOURCES:
        return dir_node(DIR_PROCESS_DEVICE, node.serial, node.id);
    case DIR_RESOURCE:
        if (find_resource(model, node, &view)) {
            return dir_node(
                DIR_RESOURCES, view.member->process->serial, device_of_slot(&view));
        }
        return tree_root;
    case DIR_ROOT:
    case DIR_BY_UUID:
    case DIR_DAEMON:
    case DIR_DEVICE:
    case DIR_PROCESSES:
    case DIR_KIND_COUNT:
        break;
    }
    return tree_root;
}

/* --- links ---------------------------------------------------------------------------- */

static bool
link_to_upstream(const model_t *model, node_t node, char *target, size_t bytes)
{
    slot_view_t view, upstream;
    char name[TREE_NAME_BYTES], device[16];
    if (!find_resource(model, node, &view)) {
        return false;
    }
    uint32_t id = rmm_record_slot(&view.record)->upstream_id;
    if (!slots_find(view.member, id, &upstream) ||
        device_of_slot(&upstream) == DEVICE_NONE) {
        return false;
    }
    resource_name(&upstream, name);
    if (device_of_slot(&upstream) == device_of_slot(&view)) {
        (void)snprintf(target, bytes, "../%s", name);
    } else {
        tree_device_name(device_of_slot(&upstream), device);
        (void)snprintf(target, bytes, "../../../%s/mr/%s", device, name);
    }
    return true;
}

bool tree_link(const model_t *model, node_t node, char target[TREE_NAME_BYTES * 2])
{
    if (node.file == FILE_UPSTREAM && node.dir == DIR_RESOURCE) {
        return link_to_upstream(model, node, target, (size_t)TREE_NAME_BYTES * 2);
    }
    if (node.file == FILE_LINK && node.dir == DIR_BY_UUID &&
        node.id < model->gpu_count) {
        (void)snprintf(target, (size_t)TREE_NAME_BYTES * 2, "../gpu%u", node.id);
        return true;
    }
    return false;
}
