/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what the diagnosis did not see; see unseen.h. */
#include "run/unseen.h"

#include <inttypes.h>

run_unseen_t run_unseen_read(const rmm_diag_file_t *file)
{
    return (run_unseen_t){
#define X(name, one, many, text)                                                       \
    .name = atomic_load_explicit(&file->header.name, memory_order_relaxed),
        RUN_UNSEEN_MAP(X)
#undef X
    };
}

static void print_count(
    uint64_t count, const char *counted, const char *text, bool *is_first, FILE *out)
{
    if (count == 0) {
        return;
    }
    if (*is_first) {
        fputs("  not seen, so findings may be missing:\n", out);
        *is_first = false;
    }
    fprintf(out, "    %12" PRIu64 " %s %s\n", count, counted, text);
}

void run_unseen_print(const run_unseen_t *unseen, FILE *out)
{
    bool is_first = true;
#define X(name, one, many, text)                                                       \
    print_count(unseen->name, unseen->name == 1 ? one : many, text, &is_first, out);
    RUN_UNSEEN_MAP(X)
#undef X
}

json_t *run_unseen_json(const run_unseen_t *unseen)
{
    json_t *object = json_object();
    bool good = object != NULL;
#define X(name, one, many, text)                                                       \
    good = good && json_put(object, #name, json_count(unseen->name));
    RUN_UNSEEN_MAP(X)
#undef X
    return json_whole_or_null(object, good);
}
