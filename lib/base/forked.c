/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See forked.h. Neither CUDA nor the locks of the parent's other threads survive a fork, so
 * nothing here calls the driver or takes a lock.
 */
#include "base/forked.h"

static rmm_status_t
forked_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    (void)request;
    (void)ptr_out;
    return rmm__error(
        RMM_ERR_UNSUPPORTED,
        "resource '%s' was created before fork(), which the GPU's driver does not "
        "survive: call exec, or create resources in the child only",
        mr->name);
}

static void forked_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    (void)mr;
    (void)ptr;
    (void)request;
}

static rmm_status_t forked_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)keep_bytes;
    return forked_alloc(mr, NULL, NULL);
}

/* The parent owns the memory: leave everything as it is. */
static void forked_destroy(rmm_resource_t *mr)
{
    (void)mr;
}

const rmm_resource_ops_t rmm__forked_ops = {
    .type_name = "forked",
    .alloc = forked_alloc,
    .dealloc = forked_dealloc,
    .trim = forked_trim,
    .destroy = forked_destroy,
};
