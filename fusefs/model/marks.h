/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of a device that outlive its processes: high-water marks, and the totals of
 * processes that have exited.
 *
 *   peak_bytes        max(last mark, sum of current bytes, largest mark of a process since the
 *                     reset): a lower bound of the true peak, exact for one process
 *   peak_upper_bytes  the highest sum of the processes' marks: an upper bound. The sum includes
 *                     those processes that the daemon saw alive at the same time, so processes
 *                     that never ran together do not add up. The daemon computes the sum once more
 *                     before it removes a process from it
 *
 * Threads: the caller holds the model lock, shared unless a function says otherwise.
 */
#ifndef RMM_FUSEFS_MARKS_H
#define RMM_FUSEFS_MARKS_H

#include "model/level_figures.h"

/*
 * A device as it is shown. Its marks are raised to the current sum (no peak is ever below
 * a current value that was shown), with FIGURES_MARKS to the processes' marks too; one
 * that no segment could tell again after a crash of the daemon is saved at once.
 */
void marks_show_device(model_t *model, uint32_t device, unsigned want, figures_t *out);

/* The same with all figures, from a sum whose parts were read one after the other while the
 * lock was given up: such a sum may never have been held at one moment, so no mark keeps it. */
void marks_show_parts(
    model_t *model, uint32_t device, const device_sum_t *sum, figures_t *out);

/* Take the marks of all devices, the peaks of jobs, and the counts of each location for
 * event_poll.h: one walk over all programs. By one thread only. */
void marks_take(model_t *model);

/* Before the totals of members are added: the sums with them. Lock held alone. */
void marks_note_upper(model_t *model);

/* Keep what a member leaves; it is live now, exited next. Lock held alone. */
void marks_add_totals(model_t *model, member_t *member);

/* The totals are those of the live processes again, and so is the lifetime's peak. Lock held
 * alone. */
void marks_reset_totals(model_t *model, uint32_t device);

/* The current sum becomes the marks. Lock held alone. */
void marks_reset_device(model_t *model, uint32_t device);

/* A step of the histories of devices and jobs (history.h), which the above fill, is over. Lock held
 * alone. */
void marks_step_histories(model_t *model);

#endif /* RMM_FUSEFS_MARKS_H */
