/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that made up the peak of live bytes, for each location (a GPU, or the host's
 * memory).
 *
 * While a program grows, nearly every allocation is a new peak, so recording one must be cheap:
 * only its time is stored. A block belongs to the peak if it was allocated before that time
 * (allocation times rise from block to block) and is live or was freed since; in the latter case
 * its free added it to a part. A new peak makes all parts stale, and a stale part can be reused.
 *
 * The parts of a location are a hash table of fixed size. A block for whose allocation site no
 * part is left is added to a part without a site; if that fails, it counts as not attributed.
 */
#ifndef RMM_DIAG_PEAK_H
#define RMM_DIAG_PEAK_H

#include "diag/checker.h"

#define RMM_DIAG_PARTS_COUNT 512u /* of each location; a power of two */

#endif /* RMM_DIAG_PEAK_H */
