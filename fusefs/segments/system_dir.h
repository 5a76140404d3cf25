/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of segments that all users share. All of them may write there, so it is a file
 * system of its own, of a bounded size, of which one user gets a part only (tmpfs with user
 * quotas, Linux 6.6): otherwise any user could fill /run. It stays mounted after the daemon,
 * because programs go on writing. A plain folder that holds something is left as it is, as a
 * mount would hide that; so is one that the programs would not see covered (reach.h).
 *
 * A container that was started before the mount keeps the folder below it, and writes there: the
 * daemon looks there too.
 */
#ifndef RMM_FUSEFS_SYSTEM_DIR_H
#define RMM_FUSEFS_SYSTEM_DIR_H

#define SYSTEM_PARENT "/run" /* of RMM_SYSTEM_RUNTIME_DIR */
#define SYSTEM_DIR_MODE 01777

/* Makes it if it is missing, for root alone: so no program writes below a mount that follows.
 * What cannot be done is logged. As root only. */
void system_dir_make(void);

/* Let all users write to that folder, if root owns it and nobody has chosen its mode; logged. */
void system_dir_open_to_all(int dirfd, const char *path);

/*
 * The folder below what is mounted on /run/rmm, or the same one if nothing is. -1: there is none,
 * or it cannot be reached (Linux before 5.2, no CAP_SYS_ADMIN). The caller knows that /run may be
 * touched.
 */
int system_dir_open_below(void);

#endif /* RMM_FUSEFS_SYSTEM_DIR_H */
