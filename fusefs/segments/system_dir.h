/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of segments that all users share. All of them may write there, so it is a file
 * system of its own, of a bounded size, of which one user gets a part only (tmpfs with user
 * quotas, Linux 6.6): otherwise any user could fill /run. It stays mounted after the daemon,
 * because programs go on writing. A plain folder that holds something is left as it is, as a
 * mount would hide that.
 */
#ifndef RMM_FUSEFS_SYSTEM_DIR_H
#define RMM_FUSEFS_SYSTEM_DIR_H

/* Makes it if it is missing; what cannot be done is logged. As root only. */
void system_dir_make(void);

#endif /* RMM_FUSEFS_SYSTEM_DIR_H */
