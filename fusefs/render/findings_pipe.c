/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of findings as they come; see findings_pipe.h. */
#include "render/findings_pipe.h"

#include <stdlib.h>
#include <time.h>

#include "render/parts.h"

findings_pipe_t *findings_pipe_open(void)
{
    return calloc(1, sizeof(findings_pipe_t));
}

void findings_pipe_close(findings_pipe_t *pipe)
{
    if (pipe->is_open) {
        rmm__diag_close(&pipe->file);
    }
    free(pipe);
}

bool findings_pipe_attach(findings_pipe_t *pipe, const member_t *member)
{
    if (pipe->is_open || !member_counts(member)) {
        return false;
    }
    pipe->serial = member->serial;
    pipe->is_open = member_open_diag(member, &pipe->file);
    return pipe->is_open;
}

typedef struct fetch {
    findings_pipe_t *pipe;
    text_t *text;
    uint64_t now_ns;
} fetch_t;

static bool put_new(const rmm_diag_finding_info_t *finding, void *arg)
{
    const fetch_t *fetch = arg;
    uint64_t *sent = &fetch->pipe->counts[finding->index];
    if (finding->count != *sent) {
        *sent = finding->count;
        render_finding(finding, fetch->now_ns, fetch->text);
    }
    return true;
}

void findings_pipe_fetch(findings_pipe_t *pipe, text_t *text)
{
    fetch_t fetch = {pipe, text, rmm__clock_ns(CLOCK_MONOTONIC)};
    uint64_t total;
    if (!pipe->has_header) {
        pipe->has_header = true;
        render_findings_header(text);
    }
    if (pipe->is_open && rmm__diag_read_findings_total(&pipe->file, &total) &&
        total != pipe->total) {
        pipe->total = total;
        found_each(&pipe->file, put_new, &fetch);
    }
}
