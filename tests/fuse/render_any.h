/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of any file, made in one step under the model's lock.
 */
#ifndef RMM_TESTS_FUSE_RENDER_ANY_H
#define RMM_TESTS_FUSE_RENDER_ANY_H

#include <errno.h>

#include "render.h"
#include "snapshot.h"

static inline int render_file_of_node(model_t *model, node_t node, text_t *text)
{
    snapshot_t *snapshot = snapshot_begin(model, &model->budget.memory);
    while (snapshot != NULL && snapshot_continue(snapshot, model)) {
    }
    const render_means_t means = {&model->budget, render_open_blocks, model};
    int error = snapshot == NULL || snapshot->failed
                    ? -ENOMEM
                    : render_snapshot(snapshot, &means, node, text);
    snapshot_release(snapshot);
    return error;
}

static inline int render_file(model_t *model, node_t node, text_t *text)
{
    render_rest_t rest;
    if (render_is_of_node(node)) {
        return render_file_of_node(model, node, text);
    }
    int error = render_begin(model, node, text, &rest);
    return error != 0 ? error : render_end(&rest, text);
}

#endif /* RMM_TESTS_FUSE_RENDER_ANY_H */
