/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of names; see tree.h. Most of it is one table: the files of each kind of
 * directory. One function for each kind lists the entries that change (devices,
 * processes, resources). A lookup searches that list, so a name is found if and only if
 * it is listed.
 */
#include "model/tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model/journal.h"
#include "model/slots.h"
#include "support/text.h"

#define MODE_READ (S_IFREG | 0444)
#define MODE_OWNER (S_IFREG | 0400)
#define MODE_WRITE (S_IFREG | 0644)
#define MODE_EACH (S_IFREG | 0666)
#define MODE_WAIT MODE_WRITE
#define MODE_DIRECTORY (S_IFDIR | 0555)
#define MODE_LINK (S_IFLNK | 0777)
#define MODE_FIGURE(file) ((file) == FILE_peak_bytes ? MODE_WRITE : MODE_READ)
#define WAITS_READ false
#define WAITS_OWNER false
#define WAITS_WRITE false
#define WAITS_EACH false
#define WAITS_WAIT true

const node_t tree_root = {DIR_ROOT, FILE_SELF, 0, 0};

static const struct file_desc {
    const char *name;
    mode_t mode;
    file_kind_t kind;
    uint32_t where; /* IN_* */
    bool write_waits;
} files[FILE_ID_COUNT] = {
    [FILE_SELF] = {"", MODE_DIRECTORY, KIND_VALUE, 0, false},
    [FILE_LINK] = {"", MODE_LINK, KIND_VALUE, 0, false},
    [FILE_UPSTREAM] = {"upstream", MODE_LINK, KIND_VALUE, 0, false},
#define FILE_ROW(id, name, access, kind, where, collect)                               \
    [FILE_##id] = {name, MODE_##access, KIND_##kind, where, WAITS_##access},
#define PIPE_ROW(id, name, where)                                                      \
    [FILE_##id] = {name, MODE_OWNER, KIND_PIPE, where, false},
#define LOG_ROW(id, name) [FILE_##id] = {name, MODE_OWNER, KIND_LOG, 0, false},
#include "model/tree_files.def"
#define FIGURE_FILE(field, where)                                                      \
    [FILE_##field] = {#field, MODE_FIGURE(FILE_##field), KIND_VALUE, where, false},
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
_Static_assert(TREE_ID_MAX == SLOT_LOW_BITS, "a resource is found by its node");
_Static_assert(DEVICE_HOST <= TREE_ID_MAX, "an index of a device");

uint64_t node_to_inode(node_t node)
{
    return (uint64_t)node.file | (uint64_t)node.dir << 7 |
           (uint64_t)(node.id & TREE_ID_MAX) << 11 | (uint64_t)node.serial << 32;
}

bool node_from_inode(uint64_t inode, node_t *node_out)
{
    node_t node = {
        .file = inode & 0x7f,
        .dir = (inode >> 7) & 0xf,
        .id = (inode >> 11) & TREE_ID_MAX,
        .serial = (uint32_t)(inode >> 32)};
    if (node.file == FILE_NONE || node.file >= FILE_ID_COUNT ||
        node.dir >= DIR_KIND_COUNT) {
        return false;
    }
    *node_out = node;
    return true;
}

static node_t dir_node(dir_kind_t dir, uint64_t serial, uint32_t id)
{
    return (node_t){(uint8_t)dir, FILE_SELF, (uint32_t)serial, id & TREE_ID_MAX};
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

void tree_resource_name(const slot_view_t *view, char name[TREE_NAME_BYTES])
{
    const process_t *process = view->member->process;
    const rmm_segment_slot_t *slot = rmm__record_slot(&view->record);
    uint32_t nth = 0;
    while (nth < process->member_count && process->members[nth] != view->member) {
        nth++;
    }
    int length = snprintf(
        name, TREE_NAME_BYTES - 16, "%u.%s", slot->instance_id,
        slot->name[0] != '\0' ? slot->name : slot->type);
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '/' || *c == ' ' ? '_' : text_shown(*c, '_');
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
    return member_device_of(view->member, rmm__record_slot(&view->record)->location);
}

/* The process that a directory is of or below of; NULL: gone, or none. */
static const process_t *process_of(const model_t *model, node_t node)
{
    if (node_is_of_reader(node)) {
        return NULL;
    }
    if (node.dir != DIR_RESOURCE) {
        return model_process(model, node.serial);
    }
    member_t *member = model_member(model, node.serial);
    return member != NULL ? member->process : NULL;
}

static bool find_resource(const model_t *model, node_t node, slot_view_t *view)
{
    member_t *member = model_member(model, node.serial);
    return member != NULL && slots_identify_low(member, node.id, view);
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

/* Whose it is, and which generation, stands in the inode: a new one is another file. */
static void list_logs(const model_t *model, uid_t uid, tree_list_fn visit, void *arg)
{
    bool has_previous;
    if (model->journal == NULL) {
        return;
    }
    uint32_t generation = journal_generation(model->journal, uid, &has_previous);
    visit("log", (node_t){DIR_ROOT, FILE_log, uid, generation}, arg);
    if (has_previous) {
        visit("log.1", (node_t){DIR_ROOT, FILE_log_1, uid, generation - 1}, arg);
    }
}

static void list_root(const model_t *model, uid_t uid, tree_list_fn visit, void *arg)
{
    char name[16];
    list_logs(model, uid, visit, arg);
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
        if (model->gpus[i].gpu.uuid[0] != '\0') {
            visit(model->gpus[i].gpu.uuid, (node_t){DIR_BY_UUID, FILE_LINK, 0, i}, arg);
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
    if (process_readable_member(process) == NULL) {
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
        tree_resource_name(view, name);
        uint32_t id = rmm__record_slot(&view->record)->instance_id;
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
list_subdirs(const model_t *model, node_t dir, uid_t uid, tree_list_fn visit, void *arg)
{
    const process_t *process = process_of(model, dir);
    switch ((dir_kind_t)dir.dir) {
    case DIR_ROOT:
        list_root(model, uid, visit, arg);
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
        process_readable_member(model_process(model, dir.serial)) == NULL) {
        return IN_UNREADABLE;
    }
    uint32_t gpu = dir.dir == DIR_DEVICE && dir.id != DEVICE_HOST ? IN_GPU : 0;
    return 1u << dir.dir | gpu;
}

/* The report of a process that has ended describes memory that is gone. */
static bool has_blocks(const model_t *model, node_t dir)
{
    slot_view_t view;
    return dir.dir == DIR_RESOURCE && find_resource(model, dir, &view) &&
           view.member->state == MEMBER_LIVE &&
           (atomic_load_explicit(
                &rmm__record_slot(&view.record)->flags, memory_order_relaxed) &
            RMM_SLOT_HAS_BLOCKS) != 0;
}

/* `where`: the IN_* of the directory. */
static bool dir_has(const model_t *model, node_t dir, uint32_t where, uint8_t file)
{
    uint32_t in = files[file].where;
    return (in & where) != 0 || ((in & IN_BLOCKS) != 0 && has_blocks(model, dir));
}

bool tree_dir_has(dir_kind_t dir, uint8_t file)
{
    uint32_t of_some = dir == DIR_DEVICE ? IN_GPU : dir == DIR_RESOURCE ? IN_BLOCKS : 0;
    return (files[file].where & (1u << dir | of_some)) != 0;
}

bool node_is_of_reader(node_t node)
{
    return node.file == FILE_log || node.file == FILE_log_1 ||
           node.file == FILE_log_pipe || node.file == FILE_node_events_pipe;
}

file_kind_t tree_kind(node_t node)
{
    return files[node.file].kind;
}

static void list_fixed(const model_t *model, node_t dir, tree_list_fn visit, void *arg)
{
    uint32_t where = where_is(model, dir) | (has_blocks(model, dir) ? IN_BLOCKS : 0);
    for (uint8_t file = 0; file < FILE_ID_COUNT; file++) {
        if (files[file].kind != KIND_PIPE && (files[file].where & where) != 0) {
            visit(files[file].name, file_node(dir, file), arg);
        }
    }
}

/* Also of a file that is not listed. */
static bool
find_fixed(const model_t *model, node_t dir, const char *name, node_t *node_out)
{
    uint32_t where = where_is(model, dir);
    for (uint8_t file = 0; file < FILE_ID_COUNT; file++) {
        if (files[file].name != NULL && strcmp(files[file].name, name) == 0 &&
            dir_has(model, dir, where, file)) {
            *node_out = file_node(dir, file);
            return true;
        }
    }
    return false;
}

bool tree_list(
    const model_t *model, node_t dir, uid_t uid, tree_list_fn visit, void *arg)
{
    if (dir.file != FILE_SELF || !dir_exists(model, dir)) {
        return false;
    }
    list_fixed(model, dir, visit, arg);
    list_subdirs(model, dir, uid, visit, arg);
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

/* The pipes of the root are another file for each user. */
static bool find_pipe_of_node(const char *name, uid_t uid, node_t *node_out)
{
    static const uint8_t pipes[] = {FILE_log_pipe, FILE_node_events_pipe};
    for (size_t i = 0; i < sizeof(pipes); i++) {
        if (strcmp(name, files[pipes[i]].name) == 0) {
            *node_out = (node_t){DIR_ROOT, pipes[i], uid, 0};
            return true;
        }
    }
    return false;
}

bool tree_lookup(
    const model_t *model, node_t dir, uid_t uid, const char *name, node_t *node_out)
{
    search_t search = {.name = name};
    if (dir.file != FILE_SELF || !dir_exists(model, dir)) {
        return false;
    }
    if (find_fixed(model, dir, name, node_out)) {
        return true;
    }
    if (dir.dir == DIR_ROOT && find_pipe_of_node(name, uid, node_out)) {
        return true;
    }
    list_subdirs(model, dir, uid, compare, &search);
    if (search.found) {
        *node_out = search.node;
    }
    return search.found;
}

static bool node_exists(const model_t *model, node_t node)
{
    if (node_is_of_reader(node)) {
        return node.dir == DIR_ROOT &&
               (model->journal != NULL || tree_kind(node) == KIND_PIPE);
    }
    if (!dir_exists(model, node)) {
        return false;
    }
    char target[TREE_NAME_BYTES * 2];
    if (node.file == FILE_SELF) {
        return true;
    }
    return node.file == FILE_LINK || node.file == FILE_UPSTREAM
               ? tree_link(model, node, target)
               : dir_has(model, node, where_is(model, node), node.file);
}

bool tree_shows(const model_t *model, node_t node, uid_t uid, bool is_member)
{
    if (node.dir != DIR_PROCESS || model->hiding.level != HIDING_INVISIBLE) {
        return true;
    }
    const process_t *process = process_of(model, node);
    return process != NULL &&
           hiding_shows(&model->hiding, process->uid, uid, is_member);
}

/* Most do when processes are hidden; blocks are always only their owner's. */
bool tree_is_personal(const model_t *model, node_t node)
{
    if (model->hiding.level == HIDING_OFF) {
        return node.file == FILE_index_html;
    }
    return node.serial != 0 || files[node.file].kind == KIND_LONG;
}

/* Files of a process are for its owner, and for the group that sees everything. */
static void hide_process(const hiding_t *hiding, node_info_t *info)
{
    info->mode &= ~(mode_t)(hiding->has_group ? 0007 : 0077);
    if (hiding->has_group) {
        info->gid = hiding->group;
    }
}

/* Totals can be reset where the daemon keeps a part of them: at a device. */
static mode_t mode_of(node_t node)
{
    bool is_total = node.dir == DIR_DEVICE && node.file == FILE_total_bytes;
    return is_total ? S_IFREG | 0644 : files[node.file].mode;
}

bool tree_info(const model_t *model, node_t node, node_info_t *info_out)
{
    if (!node_exists(model, node)) {
        return false;
    }
    tree_info_listed(model, node, info_out);
    return true;
}

bool tree_is_in(node_t node, node_t dir)
{
    return node.dir == dir.dir && node.serial == dir.serial && node.id == dir.id &&
           !node_is_of_reader(node);
}

void tree_info_listed(const model_t *model, node_t node, node_info_t *info_out)
{
    const process_t *process = process_of(model, node);
    info_out->mode = mode_of(node);
    if (process != NULL && !process_is_live(process)) {
        info_out->mode &= ~(mode_t)0222; /* no program is left to obey */
    }
    info_out->uid = process != NULL           ? process->uid
                    : node_is_of_reader(node) ? node.serial
                                              : model->uid;
    info_out->gid = process != NULL ? process->gid : model->gid;
    if (process != NULL && model->hiding.level != HIDING_OFF &&
        !S_ISLNK(info_out->mode)) {
        hide_process(&model->hiding, info_out);
    }
    const member_t *readable =
        process != NULL ? process_readable_member(process) : NULL;
    info_out->since_ns = readable != NULL ? readable->segment.header.start_time_ns
                                          : model->started_real_ns;
}

bool tree_owner(const model_t *model, node_t node, node_owner_t *owner_out)
{
    node_owner_t owner = {0, model->uid};
    if (node_is_of_reader(node)) {
        owner.uid = node.serial;
    } else if (node.serial != 0) {
        const process_t *process = process_of(model, node);
        if (process == NULL) {
            return false;
        }
        owner.uid = process->uid;
        owner.serial = node.dir == DIR_RESOURCE
                           ? model_member(model, node.serial)->serial
                           : process->serial;
    }
    *owner_out = owner;
    return true;
}

bool tree_is_of(const model_t *model, node_t node, const node_owner_t *owner)
{
    node_owner_t now;
    return tree_owner(model, node, &now) && now.serial == owner->serial &&
           now.uid == owner->uid;
}

bool tree_may_read(node_t node, const node_owner_t *owner, uid_t uid)
{
    return (files[node.file].mode & S_IROTH) != 0 || uid == 0 || uid == owner->uid;
}

bool tree_is_long(node_t node)
{
    file_kind_t kind = tree_kind(node);
    return kind == KIND_LONG || kind == KIND_REPORT;
}

bool tree_is_text(node_t node)
{
    return tree_kind(node) == KIND_TEXT || tree_is_long(node);
}

bool tree_write_waits(node_t node)
{
    return files[node.file].write_waits;
}

bool tree_may_write(node_t node, const node_owner_t *owner, uid_t uid)
{
    mode_t mode = mode_of(node);
    return (mode & S_IWOTH) != 0 ||
           ((mode & S_IWUSR) != 0 && (uid == 0 || uid == owner->uid));
}

node_t tree_parent(const model_t *model, node_t node)
{
    if (node_is_of_reader(node)) {
        return tree_root;
    }
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
    uint32_t id = rmm__record_slot(&view.record)->upstream_id;
    if (!slots_identify(view.member, id, &upstream) ||
        device_of_slot(&upstream) == DEVICE_NONE) {
        return false;
    }
    tree_resource_name(&upstream, name);
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
