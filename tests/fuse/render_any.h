/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of any file, made in one step under the model's lock.
 */
#ifndef RMM_TESTS_FUSE_RENDER_ANY_H
#define RMM_TESTS_FUSE_RENDER_ANY_H

#include <errno.h>

#include "model/snapshot.h"
#include "render/render.h"

static inline int render_file_of_node(model_t *model, node_t node, text_t *text)
{
    snapshot_t *snapshot = snapshot_begin(model, &model->budget.memory);
    while (snapshot != NULL && snapshot_continue(snapshot, model)) {
    }
    int error = snapshot == NULL || snapshot->failed
                    ? -ENOMEM
                    : render_snapshot(snapshot, model, node, text);
    snapshot_release(snapshot);
    return error;
}

static inline int render_file(model_t *model, node_t node, text_t *text)
{
    subject_t subject;
    if (render_is_of_node(node)) {
        return render_file_of_node(model, node, text);
    }
    int error = render_begin(model, node, text, &subject);
    return error != 0 ? error : render_end(&subject, text);
}

#endif /* RMM_TESTS_FUSE_RENDER_ANY_H */
