/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a history; see pictures.h. */
#include "timeline/pictures.h"

#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "timeline/page.h"
#include "timeline/trace.h"

static bool open_one(output_t *output, const char *option, const char *path)
{
    *output = (output_t){.file = NULL};
    if (path == NULL || output_open(output, path)) {
        return true;
    }
    tool_error("%s: cannot write %s: %s", option, path, strerror(errno));
    return false;
}

bool pictures_open(pictures_t *pictures, const char *page_path, const char *trace_path)
{
    *pictures = (pictures_t){.page.file = NULL};
    if (open_one(&pictures->page, "--timeline", page_path) &&
        open_one(&pictures->trace, "--trace", trace_path)) {
        return true;
    }
    pictures_discard(pictures);
    return false;
}

static bool commit_one(output_t *output, const char *option)
{
    bool good = output_commit(output);
    if (!good) {
        tool_error("%s: cannot write %s: %s", option, output->path, strerror(errno));
    }
    return good;
}

bool pictures_write(pictures_t *pictures, const history_t *history)
{
    bool good = true;
    if (pictures->page.file != NULL) {
        if (!page_write(history, pictures->page.file)) {
            tool_error("--timeline: no memory for the page");
            pictures_discard(pictures);
            return false;
        }
        good = commit_one(&pictures->page, "--timeline");
    }
    if (pictures->trace.file != NULL) {
        trace_write(history, pictures->trace.file);
        good = commit_one(&pictures->trace, "--trace") && good;
    }
    return good;
}

void pictures_discard(pictures_t *pictures)
{
    output_discard(&pictures->page);
    output_discard(&pictures->trace);
}
