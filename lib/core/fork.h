/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which fork handlers are installed, when the library is loaded: installed
 * with the first lock instead, a fork by another thread at that moment would leave the
 * child a lock that nobody holds any more.
 *
 * Handlers run before a fork in the reverse order (pthread_atfork), so this is from the
 * innermost lock to the outermost.
 */
#ifndef RMM_CORE_FORK_H
#define RMM_CORE_FORK_H

#define RMM_FORK_SIM 1001       /* the simulated GPU's lock and its fault plan's */
#define RMM_FORK_DRIVER 1002    /* who chooses the driver */
#define RMM_FORK_PUBLISHER 1003 /* the segment's */
#define RMM_FORK_REGISTRY 1004  /* of all resources */

/* Before a function without arguments: called at that place. */
#define RMM_AT_LOAD(place) __attribute__((constructor(place)))

#endif /* RMM_CORE_FORK_H */
