/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes of diagnoses; see diag_mode.h.
 */
#include "control/diag_mode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diag/diag_reader.h"
#include "diag/modes.h"
#include "programs/found.h"
#include "segments/dirs.h"
#include "support/daemon_log.h"

void diag_mode_refused(
    const model_t *model, node_t node, uid_t uid,
    const char unknown[DIAG_MODE_WORD_BYTES])
{
    const process_t *process = model_process(model, node.serial);
    log_of_user(
        uid, LOG_LEVEL_WARN,
        "process %s: diag/mode: \"%s\" is not a mode; write off, or a comma-separated "
        "list of " RMM_DIAG_MODE_WORDS,
        process != NULL ? process->name : "(gone)", unknown);
}

static int refuse(const member_t *member, const char *why, const char *what)
{
    log_of_user(
        member->segment.uid, LOG_LEVEL_WARN, "process %s: diag/mode: %s%s",
        member->process->name, why, what);
    return -EOPNOTSUPP;
}

static int ask(const member_t *member, const rmm_diag_file_t *file, uint32_t modes)
{
    if (strcmp(file->header.source, "active") != 0) {
        return refuse(member, "the diagnosis is not active: ", file->header.source);
    }
    if (!rmm__diag_has_switch(file)) {
        return refuse(
            member, "the program's diagnosis library is too old to be switched", "");
    }
    return rmm__diag_want_modes(file, modes)
               ? 0
               : refuse(member, "cannot write the program's side file", "");
}

int diag_mode_ask(model_t *model, node_t node, uint32_t modes, uint64_t *serial_out)
{
    const process_t *process = model_process(model, node.serial);
    const member_t *live = NULL;
    rmm_diag_file_t file;
    if (process == NULL) {
        return -ENOENT;
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        if (member->state != MEMBER_LIVE || member->dir == NULL) {
            continue;
        }
        live = member;
        if (rmm__diag_open_to_switch(
                &file, member->dir->fd, member->segment.name, member->segment.uid) ==
            0) {
            int error = ask(member, &file, modes);
            rmm__diag_close(&file);
            *serial_out = member->serial;
            return error;
        }
    }
    return live == NULL
               ? -ESRCH
               : refuse(
                     live, "the program is not diagnosed: start it with rmm-run", "");
}

static int refuse_modes(const member_t *member, uint32_t wanted, uint32_t on)
{
    uint32_t missing = wanted & ~on;
    char words[RMM_DIAG_MODES_TEXT];
    char what[RMM_DIAG_MODES_TEXT + 96];
    if (missing == 0) {
        rmm__diag_modes_print(on & ~wanted & ~RMM_DIAG_MODE_DRIVER, words);
        return refuse(member, "still in force: ", words);
    }
    rmm__diag_modes_print(missing, words);
    (void)snprintf(
        what, sizeof(what),
        "%s (order and guards can only be on from the start; driver is fixed at the "
        "start)",
        words);
    return refuse(member, "not available: ", what);
}

int diag_mode_answer(const member_t *member)
{
    rmm_diag_file_t file;
    if (!member_open_diag(member, &file)) {
        return refuse(member, "cannot read the program's side file any more", "");
    }
    uint32_t wanted = rmm__diag_modes_wanted(&file);
    uint32_t on = rmm__diag_modes_on(&file);
    bool is_applied = rmm__diag_modes_are_applied(&file);
    rmm__diag_close(&file);
    if (!is_applied) {
        return -EAGAIN;
    }
    bool is_in_force =
        (wanted & ~on) == 0 && (on & ~wanted & ~RMM_DIAG_MODE_DRIVER) == 0;
    return is_in_force ? 0 : refuse_modes(member, wanted, on);
}
