/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page is page.html with three things put in: page.css, the history as JSON, and page.js,
 * which draws it. All three are in the program (cmake/embed.cmake). The page's
 * Content-Security-Policy names page.js by its SHA-256, so a browser runs no other script, whatever
 * a kernel is called. Figures are computed here, so that what the page says does not depend on what
 * it draws.
 */
#include "timeline/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/json_text.h"
#include "timeline/page_calls.h"
#include "timeline/page_files.h"
#include "timeline/page_map.h"
#include "timeline/page_peak.h"

static void put_texts(FILE *out, const char *key, const history_texts_t *texts)
{
    fprintf(out, ",\n\"%s\":[", key);
    for (size_t i = 0; i < texts->count; i++) {
        fputs(i > 0 ? "," : "", out);
        json_text_put(out, texts->items[i]);
    }
    fputs("]", out);
}

static void put_head(const history_t *history, FILE *out)
{
    fputs("{\"title\":", out);
    json_text_put(out, history->title);
    fputs(",\"note\":", out);
    json_text_put(out, history->note);
    fprintf(
        out, ",\"span\":%" PRIu64 ",\"block_count\":%zu,\"call_count\":%zu",
        history->end_ns - history->begin_ns, history->block_count, history->call_count);
    put_texts(out, "names", &history->names);
    put_texts(out, "streams", &history->streams);
    put_texts(out, "resources", &history->resources);
}

static bool put_data(const history_t *history, FILE *out)
{
    put_head(history, out);
    bool good = page_put_peaks(history, out) && page_put_map(history, out) &&
                page_put_calls(history, out);
    fputs("}\n", out);
    return good;
}

/* Up to the marker, which is skipped; NULL: to the end, there is none. */
static const char *put_until(const char *text, const char *marker, FILE *out)
{
    const char *found = strstr(text, marker);
    if (found == NULL) {
        fputs(text, out);
        return "";
    }
    fwrite(text, 1, (size_t)(found - text), out);
    return found + strlen(marker);
}

bool page_write(const history_t *history, FILE *out)
{
    const char *rest = put_until((const char *)page_html, "@SCRIPT_HASH@", out);
    fputs(page_js_hash, out);
    rest = put_until(rest, "@STYLE@", out);
    fputs((const char *)page_css, out);
    rest = put_until(rest, "@DATA@", out);
    bool good = put_data(history, out);
    rest = put_until(rest, "@SCRIPT@", out);
    fputs((const char *)page_js, out);
    fputs(rest, out);
    return good;
}
