/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom resources of another type, over functions with other parameters.
 */
#ifndef RMM_RESOURCES_CUSTOM_IMPL_H
#define RMM_RESOURCES_CUSTOM_IMPL_H

#include <rmm/custom_resource.h>

/* The types that this implementation serves. */
typedef enum rmm_custom_type { RMM_CUSTOM_OWN, RMM_CUSTOM_CALLBACK } rmm_custom_type_t;

/* As rmm_custom_resource_create(); the arguments are in order, but for properties and flags,
 * which are checked here. On failure the payload stays the caller's. */
rmm_status_t rmm__custom_create(
    rmm_custom_type_t type, const rmm_custom_resource_ops_t *ops, void *payload,
    rmm_resource_t **out);

#endif /* RMM_RESOURCES_CUSTOM_IMPL_H */
