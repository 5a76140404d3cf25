/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs that a member uses: what its segment calls locations, and which device of the model each
 * of them is.
 */
#ifndef RMM_FUSEFS_LOCATIONS_H
#define RMM_FUSEFS_LOCATIONS_H

#include "model/model.h"

/*
 * Adds what the program has opened since the last time. Programs open locations as they go: one
 * pread shows whether there are new ones, a further one which. With the model's lock, alone. False:
 * the file was cut.
 */
bool locations_find(model_t *model, member_t *member);

#endif
