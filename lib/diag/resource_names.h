/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the resources whose blocks are followed, in the side file: when a finding is shown, the
 * resource of its block may have ended, and another one may have its slot in the segment. A
 * resource has the entry whose index is its id modulo the number of entries. The first resource
 * keeps an entry, so the names of later ones with the same index are not known.
 *
 * Cost of an allocation: one comparison.
 */
#ifndef RMM_DIAG_RESOURCE_NAMES_H
#define RMM_DIAG_RESOURCE_NAMES_H

#include "diag/checker.h"

#define RMM_DIAG_RESOURCES_COUNT 1024u

#endif /* RMM_DIAG_RESOURCE_NAMES_H */
