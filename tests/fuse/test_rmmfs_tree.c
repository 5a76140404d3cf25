/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, inode numbers, owners: the tree without a mount.
 */
#include "model_fixture.h"

#include <sys/stat.h>

#include "model/tree.h"
#include "render_any.h"

TEST_CASE(inode_numbers_carry_the_node_and_come_back)
{
    assert_int_equal(node_to_inode(tree_root), 1);
    for (uint32_t i = 0; i < 100000; i++) {
        node_t node = {
            (uint8_t)(i % DIR_KIND_COUNT), (uint8_t)(1 + i % (FILE_ID_COUNT - 1)),
            i * 40503u * 65537u, (i * 2654435761u) & TREE_ID_MAX};
        node_t back;
        assert_true(node_from_inode(node_to_inode(node), &back));
        assert_int_equal(back.dir, node.dir);
        assert_int_equal(back.file, node.file);
        assert_int_equal(back.serial, node.serial);
        assert_int_equal(back.id, node.id);
    }
}

TEST_CASE(numbers_that_are_not_an_inode_are_refused)
{
    node_t node;
    assert_false(node_from_inode(0, &node));
    assert_false(node_from_inode(FILE_ID_COUNT, &node));
    assert_false(node_from_inode(1 | (uint64_t)DIR_KIND_COUNT << 7, &node));
}

/* --- the whole tree --------------------------------------------------------------- */

#define NODES_MAX 1000

typedef struct walk {
    model_t *model;
    node_t dir;
    uint64_t inodes[NODES_MAX];
    const char *names[64];
    size_t count, names_in_dir, listed;
} walk_t;

static void visit(const char *name, node_t node, void *arg)
{
    walk_t *walk = arg;
    node_t found;
    node_info_t info, listed;
    assert_true(tree_lookup(walk->model, walk->dir, 0, name, &found));
    assert_int_equal(node_to_inode(found), node_to_inode(node));
    assert_true(tree_info(walk->model, node, &info));
    if (tree_is_in(node, walk->dir)) { /* is told the same of it */
        memset(&listed, 0xff, sizeof(listed));
        tree_info_listed(walk->model, node, &listed);
        assert_int_equal(listed.mode, info.mode);
        assert_int_equal(listed.uid, info.uid);
        assert_int_equal(listed.gid, info.gid);
        assert_int_equal(listed.since_ns, info.since_ns);
        walk->listed++;
    }
    node_t parent = tree_parent(walk->model, node);
    if (S_ISDIR(info.mode)) {
        assert_int_equal(node_to_inode(parent), node_to_inode(walk->dir));
    }
    assert_int_equal(node.file == FILE_SELF, S_ISDIR(info.mode));
    if (S_ISREG(info.mode) && tree_kind(node) == KIND_VALUE) {
        text_t text;
        text_init(&text);
        assert_int_equal(render_file(walk->model, node, &text), 0);
        assert_in_range(text.length, 1, TREE_VALUE_BYTES - 1);
        text_fini(&text);
    }
    for (size_t i = 0; i < walk->count; i++) {
        assert_int_not_equal(walk->inodes[i], node_to_inode(node));
    }
    assert_true(walk->count < NODES_MAX);
    walk->inodes[walk->count++] = node_to_inode(node);
}

TEST_CASE(every_name_listed_is_found_and_no_inode_is_given_twice)
{
    static walk_t walk;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    fixture_open(fixture);
    (void)fixture_process(fixture, 4711);
    (void)fixture_process(fixture, 4712);
    (void)fixture_process(fixture, 4712); /* two segments */
    walk.model = &fixture->model;
    walk.inodes[walk.count++] = node_to_inode(tree_root);
    for (size_t i = 0; i < walk.count; i++) {
        assert_true(node_from_inode(walk.inodes[i], &walk.dir));
        if (walk.dir.file == FILE_SELF) {
            assert_true(tree_list(walk.model, walk.dir, 0, visit, &walk));
        }
    }
    assert_true(walk.count > 200);
    assert_true(walk.listed > 150); /* most are files of their directory */
    fixture_close(fixture);
    free(fixture);
}

static bool find(const model_t *model, const char *path, node_t *node_out)
{
    char copy[256], *rest = copy, *name;
    node_t node = tree_root;
    snprintf(copy, sizeof(copy), "%s", path);
    while ((name = strsep(&rest, "/")) != NULL) {
        if (!tree_lookup(model, node, 0, name, &node)) {
            return false;
        }
    }
    *node_out = node;
    return true;
}

static void visit_no_pipe(const char *name, node_t node, void *arg)
{
    size_t *count = arg;
    assert_null(strstr(name, "_pipe"));
    assert_int_not_equal(tree_kind(node), KIND_PIPE);
    ++*count;
}

TEST_CASE(a_pipe_is_found_but_not_listed)
{
    (void)state;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    node_t node;
    size_t count = 0;
    fixture_open(fixture);
    (void)fixture_process(fixture, 4711);
    assert_true(find(&fixture->model, "proc/4711", &node));
    assert_true(tree_list(&fixture->model, node, 0, visit_no_pipe, &count));
    assert_true(tree_list(&fixture->model, tree_root, 0, visit_no_pipe, &count));
    assert_true(count > 20);
    for (int i = 0; i < 3; i++) {
        static const char *const pipes[] = {
            "log_pipe", "proc/4711/log_pipe", "proc/4711/events_pipe"};
        assert_true(find(&fixture->model, pipes[i], &node));
        assert_int_equal(tree_kind(node), KIND_PIPE);
    }
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(an_ended_process_is_not_in_the_tree)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    node_t file, dir, resource;
    node_info_t info;
    char target[TREE_NAME_BYTES * 2];
    fixture_open(fixture);
    member_t *member = fixture_process(fixture, 4711);
    const uint32_t serial = (uint32_t)member->process->serial;
    assert_true(find(&fixture->model, "proc/4711/gpu0/current_bytes", &file));
    assert_true(find(&fixture->model, "proc/4711/gpu0", &dir));
    assert_true(find(&fixture->model, "proc/4711/gpu0/mr/1.a_pool", &resource));
    model_remove_member(&fixture->model, member);
    assert_false(find(&fixture->model, "proc/4711", &file));
    assert_false(tree_info(&fixture->model, file, &info));
    assert_false(tree_info(&fixture->model, dir, &info));
    assert_false(tree_info(&fixture->model, resource, &info));
    assert_false(tree_list(&fixture->model, dir, 0, visit, NULL));
    assert_false(tree_link(&fixture->model, file, target));
    /* Another process of that pid is another inode. */
    (void)fixture_process(fixture, 4711);
    node_t again;
    assert_true(find(&fixture->model, "proc/4711/gpu0", &again));
    assert_int_not_equal(node_to_inode(again), node_to_inode(dir));
    assert_int_equal(fixture->model.vanished_count, 1);
    assert_int_equal(fixture->model.vanished[0], serial);
    fixture_close(fixture);
    free(fixture);
}

/* As a process that keeps a descriptor while 2^32 others come and go. */
TEST_CASE(a_node_whose_number_went_to_another_is_of_that)
{
    (void)state;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    model_t *model = &fixture->model;
    node_t before, after;
    node_owner_t owner, other;
    fixture_open(fixture);
    member_t *member = fixture_process(fixture, 4711);
    member->process->uid = 1234;
    assert_true(find(model, "proc/4711/log", &before));
    assert_true(tree_owner(model, before, &owner));
    assert_int_equal(owner.uid, 1234);
    assert_true(tree_is_of(model, before, &owner));
    uint64_t serial = owner.serial;
    model_remove_member(model, member);
    assert_false(tree_is_of(model, before, &owner));
    assert_false(tree_owner(model, before, &other));
    model->last_serial = serial + UINT32_MAX; /* one less than the number again */
    fixture_process(fixture, 4712)->process->uid = 1235;
    assert_true(find(model, "proc/4712/log", &after));
    assert_int_equal(node_to_inode(after), node_to_inode(before));
    assert_false(tree_is_of(model, before, &owner));
    assert_true(tree_owner(model, after, &other));
    assert_int_equal(other.uid, 1235);
    assert_true(other.serial > UINT32_MAX);
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(a_serials_low_half_is_not_given_twice_at_once)
{
    (void)state;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    model_t *model = &fixture->model;
    fixture_open(fixture);
    member_t *first = fixture_process(fixture, 1);
    model->last_serial =
        UINT32_MAX; /* then comes 0, which is none, and what is in use */
    member_t *second = fixture_process(fixture, 2);
    assert_int_not_equal((uint32_t)second->process->serial, 0);
    assert_true(second->process->serial > UINT32_MAX);
    assert_ptr_equal(
        model_process(model, (uint32_t)first->process->serial), first->process);
    assert_ptr_equal(
        model_process(model, (uint32_t)second->process->serial), second->process);
    assert_ptr_equal(model_member(model, (uint32_t)first->serial), first);
    assert_ptr_equal(model_member(model, (uint32_t)second->serial), second);
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(only_the_owner_and_root_read_what_is_one_users)
{
    (void)state;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    node_t log, uid, peak;
    node_owner_t owner;
    fixture_open(fixture);
    fixture_process(fixture, 4711)->process->uid = 1234;
    assert_true(find(&fixture->model, "proc/4711/log", &log));
    assert_true(find(&fixture->model, "proc/4711/uid", &uid));
    assert_true(find(&fixture->model, "proc/4711/gpu0/peak_bytes", &peak));
    assert_true(tree_owner(&fixture->model, log, &owner));
    assert_true(tree_may_read(log, &owner, 1234) && tree_may_read(log, &owner, 0));
    assert_false(tree_may_read(log, &owner, 1235));
    assert_true(tree_may_read(uid, &owner, 1235) && tree_may_read(peak, &owner, 1235));
    assert_true(tree_may_write(peak, &owner, 1234) && tree_may_write(peak, &owner, 0));
    assert_false(tree_may_write(peak, &owner, 1235));
    assert_false(tree_may_write(uid, &owner, 0));
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(a_file_has_its_process_as_owner_and_the_right_mode)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    node_t node;
    node_info_t info;
    fixture_open(fixture);
    fixture_process(fixture, 4711)->process->uid = 1234;
    const struct {
        const char *path;
        mode_t mode;
        bool owned;
    } files[] = {
        {"version", S_IFREG | 0444, false},
        {"gpu0/peak_bytes", S_IFREG | 0644, false},
        {"host", S_IFDIR | 0555, false},
        {"daemon/log_level", S_IFREG | 0644, false},
        {"by-uuid/GPU-00000000", S_IFLNK | 0777, false},
        {"proc/4711", S_IFDIR | 0555, true},
        {"proc/4711/host/peak_bytes", S_IFREG | 0644, true},
        {"proc/4711/diag/usage", S_IFREG | 0400, true},
        {"proc/4711/leaks", S_IFREG | 0400, true},
        {"proc/4711/gpu0/mr/3.a_pool/peak_bytes", S_IFREG | 0644, true},
        {"proc/4711/gpu0/mr/3.a_pool/type", S_IFREG | 0444, true},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        assert_true(find(&fixture->model, files[i].path, &node));
        assert_true(tree_info(&fixture->model, node, &info));
        assert_int_equal(info.mode, files[i].mode);
        assert_int_equal(info.uid, files[i].owned ? 1234 : geteuid());
    }
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(names_of_resources_are_names_of_files)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    node_t node;
    fixture_open(fixture);
    strcpy(fixture->layout.slots[0].name, "../..\nup\xe2\x80\xae"); /* U+202E */
    strcpy(fixture->layout.slots[2].name, "");
    fixture->layout.slots[2].upstream_id = 1;
    (void)fixture_process(fixture, 1);
    assert_true(
        find(&fixture->model, "proc/1/gpu0/mr/1..._..?up___", &node) ||
        find(&fixture->model, "proc/1/gpu0/mr/1..._.._up___", &node));
    assert_true(find(&fixture->model, "proc/1/gpu0/mr/3.pool", &node));
    node.file = FILE_UPSTREAM;
    char target[TREE_NAME_BYTES * 2];
    assert_true(tree_link(&fixture->model, node, target));
    assert_memory_equal(target, "../1..._..", 10);
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(a_foreign_string_is_printable_ascii)
{
    (void)state;
    text_t text;
    text_init(&text);
    text_put_foreign(
        &text, "a\nb\x7f"
               "c\xe2\x80\xae"
               "d \x1b[31m~");
    assert_int_equal(text.length, 16);
    assert_memory_equal(text.data, "a?b?c???d ?[31m~", 16);
    text_fini(&text);
}
