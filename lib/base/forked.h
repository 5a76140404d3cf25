/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of every inherited resource in a forked child: they refuse. resource.c puts
 * the table in place.
 */
#ifndef RMM_BASE_FORKED_H
#define RMM_BASE_FORKED_H

#include "base/resource_impl.h"

extern const rmm_resource_ops_t rmm__forked_ops;

#endif /* RMM_BASE_FORKED_H */
