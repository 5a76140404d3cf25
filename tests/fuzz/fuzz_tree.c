/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole tree of rmmfs over a hostile segment: what the reader lets through is listed,
 * looked up and rendered to the last file. The input is a list of changes to a valid
 * segment:
 *
 *   3 bytes position, 1 byte what, 8 bytes value: 1 << (what & 3) bytes of the value are
 *   written there; what & 0x80: the file ends there, after it was opened
 */
#include <stdint.h>

#include "fuse/model_fixture.h"
#include "fuse/render_any.h"
#include "model/tree.h"
#include "render/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHANGE_BYTES 12
#define DEPTH_MAX 8

typedef struct walk {
    model_t *model;
    text_t text;
    uint32_t depth;
} walk_t;

static void walk_dir(walk_t *walk, node_t dir);

/* A log may be empty. */
static void check_text(const text_t *text, bool may_be_empty)
{
    if (text->length == 0 && may_be_empty) {
        return;
    }
    if (text->length == 0 || text->data[text->length - 1] != '\n') {
        abort();
    }
    for (size_t i = 0; i < text->length; i++) {
        unsigned char c = (unsigned char)text->data[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
            abort();
        }
    }
}

static void read_stream(walk_t *walk, node_t node)
{
    node_owner_t owner;
    if (!tree_owner(walk->model, node, &owner)) {
        abort();
    }
    stream_t *stream = stream_open(node, owner.serial, owner.uid, NULL);
    if (stream == NULL) {
        abort();
    }
    text_clear(&walk->text);
    if (stream_fetch(stream, walk->model) == STREAM_DATA) {
        stream_take(stream, SIZE_MAX, &walk->text);
        check_text(&walk->text, false);
    }
    stream_close(stream);
}

static void visit(const char *name, node_t node, void *arg)
{
    walk_t *walk = arg;
    node_info_t info;
    char target[TREE_NAME_BYTES * 2];
    if (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0) {
        abort();
    }
    (void)tree_info(walk->model, node, &info);
    (void)tree_parent(walk->model, node);
    (void)tree_link(walk->model, node, target);
    if (node.file == FILE_SELF) {
        walk_dir(walk, node);
    } else if (render_file(walk->model, node, &walk->text) == 0) {
        check_text(&walk->text, node.file == FILE_process_log);
    }
}

static void walk_dir(walk_t *walk, node_t dir)
{
    static const char *const pipes[] = {"log_pipe", "events_pipe"}; /* not listed */
    node_t pipe;
    if (++walk->depth > DEPTH_MAX) {
        abort();
    }
    (void)tree_list(walk->model, dir, 0, visit, walk);
    for (size_t i = 0; i < sizeof(pipes) / sizeof(pipes[0]); i++) {
        if (tree_lookup(walk->model, dir, 0, pipes[i], &pipe)) {
            read_stream(walk, pipe);
        }
    }
    walk->depth--;
}

static void change(rmm_segment_layout_t *layout, const uint8_t *bytes, size_t *end)
{
    size_t at =
        (bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16) % sizeof(*layout);
    size_t length = (size_t)1 << (bytes[3] & 3);
    if ((bytes[3] & 0x80) != 0) {
        *end = at;
    } else if (at + length <= sizeof(*layout)) {
        memcpy((unsigned char *)layout + at, bytes + 4, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static fixture_t fixture;
    char reason[RMM_SEGMENT_REASON_BYTES];
    size_t end = SIZE_MAX;
    fixture_open(&fixture);
    for (size_t at = 0; at + CHANGE_BYTES <= bytes && at < 24 * CHANGE_BYTES;
         at += CHANGE_BYTES) {
        change(&fixture.layout, data + at, &end);
    }
    rmm_segment_t segment;
    int fd = sample_file(&fixture.layout, sizeof(fixture.layout));
    rmm_segment_verdict_t verdict = rmm__segment_attach(&segment, fd, reason);
    (void)close(fd);
    if (verdict == RMM_SEGMENT_GOOD) {
        const member_t *member = fixture_process(&fixture, 4711);
        if (end != SIZE_MAX && ftruncate(member->segment.fd, (off_t)end) != 0) {
            abort();
        }
        walk_t walk = {.model = &fixture.model};
        text_init(&walk.text);
        walk_dir(&walk, tree_root);
        text_fini(&walk.text);
    }
    fixture_close(&fixture);
    return 0;
}
