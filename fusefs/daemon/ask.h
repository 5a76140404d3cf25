/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file of a mounted tree, whose daemon may hang. A process of its own reads: if the daemon
 * has taken its request, the kernel lets it end only with the daemon, so it is left behind.
 */
#ifndef RMM_FUSEFS_ASK_H
#define RMM_FUSEFS_ASK_H

#include <stddef.h>

#define ASK_SECONDS 3 /* a live daemon answers within milliseconds */

/*
 * Up to bytes - 1 bytes of the file, with a NUL behind them. 0 or an errno, then text is "":
 * ETIMEDOUT: no answer; ENOTCONN: its daemon was killed.
 */
int ask_tree(const char *path, char *text, size_t bytes);

#endif /* RMM_FUSEFS_ASK_H */
