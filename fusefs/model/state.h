/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmmfs.state: the data that must survive the daemon. It contains the devices with their
 * marks, the totals of processes that have exited, and the names of the segments in these
 * totals, so that none is counted twice. The file is replaced as a whole, so a daemon that
 * is killed at any moment starts again with consistent figures.
 *
 * The file is in a folder of the daemon's own (state_dir.h): in a shared folder anybody can
 * take its name or that of the temporary file. Only one daemon writes a file. A second one
 * runs without it, logs that, and shows it in daemon/persistence.
 *
 * A write that fails is logged once with the reason, shown in daemon/persistence, and tried
 * again by state_keep() until it succeeds.
 *
 * Text, one record on each line:
 *   rmmfs-state 1
 *   gpu <uuid> <pci_bus_id or -> <capacity_bytes> <name>
 *   reported_gpu <uid> <as gpu>      a GPU that the driver does not list
 *   mark <uuid or host> <statistic> <value>
 *   exited <uuid or host> <statistic> <value>
 *   folded <segment> <nanoseconds since boot> <directory under proc/> <uid>
 *   ended <uid> <pid> <start in ticks> <nanoseconds since 1970>     identity.h
 *   end
 */
#ifndef RMM_FUSEFS_STATE_H
#define RMM_FUSEFS_STATE_H

#include <stdbool.h>

#include "model/model.h"
#include "support/text.h"

typedef struct state state_t;

/* Take the state file for this daemon. runtime_dir: where its own programs write;
 * is_wanted: $RMM_RUNTIME_DIR says so. NULL: out of memory, logged. */
state_t *state_open(const char *runtime_dir, bool is_wanted);
void state_close(state_t *state);

/* Fill the model; its GPUs from the driver are numbered already. False: there was no file, or
 * it was damaged (logged, moved aside). */
bool state_load(state_t *state, model_t *model);

/*
 * Writing takes milliseconds on a busy machine, and never holds the model's lock: a look that
 * changed what must not be lost says so by state_want(), and its thread calls state_settle()
 * after the look, before any reader is answered. It returns when the file has the change, whichever
 * thread wrote it. The caller of state_want() holds the model's lock, shared is enough; that of the
 * other three does not.
 */
void state_want(const model_t *model);
void state_settle(model_t *model);

/* Write model->state, if it has one. */
void state_save(model_t *model);

/* Write again if the last write failed or the file is gone. */
void state_keep(model_t *model);

/* "ok", "failing: REASON" (it is tried again) or "off: REASON", and a newline. */
void state_tell(state_t *state, text_t *text);

#endif /* RMM_FUSEFS_STATE_H */
