/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a node; see attributes.h.
 */
#include "session/attributes.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "model/journal.h"

#define CACHE_SECONDS 1.0

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){
        .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

/* A file was modified now, so that rsync copies it again; but its ctime stays, from a change
 * of which tar concludes that the file changed while it was read. */
static void
fill_times(struct stat *attributes, const struct timespec modified, uint64_t since_ns)
{
    attributes->st_atim = modified;
    attributes->st_mtim = modified;
    attributes->st_ctim = timespec_of(since_ns);
}

/* With blocks: cp takes a file that has fewer than its size needs for a sparse one. */
static void fill_bytes(struct stat *attributes, uint64_t bytes)
{
    attributes->st_size = (off_t)bytes;
    attributes->st_blocks = (blkcnt_t)((bytes + 511) / 512);
}

/* The size and the times of the node's log are those of its reader's part. */
static void fill_spool(const model_t *model, node_t node, struct stat *attributes)
{
    journal_collect(model->journal, model);
    journal_extent_t extent = journal_extent(model->journal, node.id, node.serial);
    uint64_t changed_ns =
        extent.changed_ns != 0 ? extent.changed_ns : model->started_real_ns;
    fill_bytes(attributes, extent.bytes);
    fill_times(attributes, timespec_of(changed_ns), changed_ns);
}

double attributes_entry_seconds(const model_t *model, node_t node)
{
    bool is_hidden = node.dir == DIR_PROCESS && model->hiding.level == HIDING_INVISIBLE;
    return node_is_of_reader(node) || is_hidden ? 0.0 : CACHE_SECONDS;
}

double attributes_seconds(node_t node)
{
    return node_is_of_reader(node) || tree_is_text(node) ? 0.0 : CACHE_SECONDS;
}

static void fill_from(node_t node, const node_info_t *info, struct stat *attributes)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(attributes, 0, sizeof(*attributes));
    attributes->st_ino = node_to_inode(node);
    attributes->st_mode = info->mode;
    attributes->st_nlink = S_ISDIR(info->mode) ? 2 : 1;
    attributes->st_uid = info->uid;
    attributes->st_gid = info->gid;
    attributes->st_blksize = 4096;
    fill_times(
        attributes, S_ISDIR(info->mode) ? timespec_of(info->since_ns) : now,
        info->since_ns);
    if (S_ISREG(info->mode) && !tree_is_text(node)) {
        fill_bytes(attributes, TREE_VALUE_BYTES);
    } else if (S_ISREG(info->mode)) {
        /* The kernel also ends an asynchronous read at the size in the inode, which any process's
         * look-up may have set. Without blocks, so that du(1) does not count what is not there. */
        attributes->st_size = TEXT_NODE_BYTES_MAX;
    }
}

bool attributes_fill(const model_t *model, node_t node, struct stat *attributes)
{
    node_info_t info;
    if (!tree_info(model, node, &info)) {
        return false;
    }
    fill_from(node, &info, attributes);
    if (tree_kind(node) == KIND_LOG) {
        fill_spool(model, node, attributes);
    }
    return true;
}

void attributes_fill_listed(const model_t *model, node_t node, struct stat *attributes)
{
    node_info_t info;
    tree_info_listed(model, node, &info);
    fill_from(node, &info, attributes);
}

bool attributes_of(
    watch_t *watch, opened_list_t *list, node_t node, reader_t reader,
    struct stat *attributes)
{
    const opened_by_t by = {node_to_inode(node), reader.uid, reader.thread};
    const model_t *model = watch_begin(watch);
    bool found = attributes_fill(model, node, attributes);
    size_t bytes;
    watch_end(watch);
    if (found && tree_is_text(node) && opened_sizes_find(&list->sizes, &by, &bytes)) {
        fill_bytes(attributes, bytes);
    }
    return found;
}
