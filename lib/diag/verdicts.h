/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts on blocks that were freed, in the side file: sums over blocks that have verdict,
 * resource, location, first user, size class and allocation site in common. A table of fixed size:
 * a block that finds no entry for its site adds to one without a site, and what finds no entry at
 * all is counted. (Of a block that is live a reader judges itself.)
 */
#ifndef RMM_DIAG_VERDICTS_H
#define RMM_DIAG_VERDICTS_H

#include "diag/checker.h"

#define RMM_DIAG_VERDICTS_COUNT 2048u /* a power of two */

#endif /* RMM_DIAG_VERDICTS_H */
