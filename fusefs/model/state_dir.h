/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of the daemon's state: only the daemon's user may write there.
 *
 *   with RMM_RUNTIME_DIR   that folder, if it is this user's and no other user may write to
 *                          it; else rmmfs.<uid> in it
 *   as root                /run/rmmfs
 *   as a user              rmmfs in $XDG_RUNTIME_DIR or /run/user/<uid>, if that is the
 *                          user's own; else /dev/shm/rmmfs-<uid>
 *
 * Figures are those since boot, and segments end with the machine: so /run, which ends with
 * it too, and not /var/lib, from which a daemon would add the totals of an earlier boot.
 */
#ifndef RMM_FUSEFS_STATE_DIR_H
#define RMM_FUSEFS_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define STATE_DIR_BYTES 320

typedef struct state_dir {
    char path[STATE_DIR_BYTES];
    bool
        is_given; /* it is $RMM_RUNTIME_DIR: perhaps a link or a mount, and never made here */
} state_dir_t;

/* wanted: $RMM_RUNTIME_DIR, or NULL. */
void state_dir_choose(const char *wanted, state_dir_t *dir);

/*
 * A descriptor of the folder, which is made (mode 0700) if it is missing. -1 with a reason:
 * one line. Root moves aside what another user put in its place.
 */
int state_dir_open(const state_dir_t *dir, char *reason, size_t reason_bytes);

#endif /* RMM_FUSEFS_STATE_DIR_H */
