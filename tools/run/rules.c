/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of reports; see rules.h. */
#include "run/rules.h"

#include <string.h>

#include "diag/diag_format.h"
#include "diag/diag_names.h"
#include "diag/modes.h"

typedef struct rule_text {
    uint32_t kind;
    uint32_t modes;
    const char *title, *why;
} rule_text_t;

static const rule_text_t texts[] = {
    {RMM_DIAG_OUT_OF_BOUNDS, RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_GUARDS,
     "GPU memory is accessed outside of its block",
     "A copy, fill, prefetch or kernel goes past the end of the block that it uses, "
     "or begins outside of it. It reads or overwrites the data of another block."},
    {RMM_DIAG_USE_UNORDERED, RMM_DIAG_MODE_ORDER,
     "A use of GPU memory is not ordered after earlier work",
     "A launch, copy or fill uses a block on a stream that does not wait for the "
     "block's allocation, or for a copy or fill of it, on another stream."},
    {RMM_DIAG_FREE_UNORDERED, RMM_DIAG_MODE_ORDER,
     "GPU memory is freed while another stream may use it",
     "A block is freed on a stream that does not wait for the use of the block on "
     "another stream. Its memory may be reused too early."},
    {RMM_DIAG_USE_AFTER_FREE, RMM_DIAG_MODE_BOUNDS, "Freed GPU memory is used",
     "A call or launch gets a pointer into a block that was freed before. It may "
     "read or overwrite the data of the block that has the memory next."},
    {RMM_DIAG_FREE_UNDER_GRAPH, RMM_DIAG_MODE_ORDER,
     "GPU memory is freed that a captured graph uses",
     "A block is freed while a graph that uses it can be launched. It is an error "
     "only if the program launches the graph again."},
    {RMM_DIAG_DOUBLE_FREE, RMM_DIAG_MODE_BOUNDS, "GPU memory is freed twice",
     "A block is freed that was freed before. The second free was refused."},
    {RMM_DIAG_WRONG_SIZE_FREE, RMM_DIAG_MODE_BOUNDS,
     "GPU memory is freed with a wrong size",
     "A free names another size than the allocation. Unless a tracking adaptor mends "
     "the size, it is refused, and the block stays allocated."},
    {RMM_DIAG_INVALID_FREE, RMM_DIAG_MODE_BOUNDS,
     "A pointer is freed that is no block of its resource",
     "No block of the resource begins at the pointer that is freed: it is a foreign "
     "pointer, one into a block, or a block of another resource. The free was "
     "refused."},
};

static run_rule_t rule_of_class(uint32_t kind)
{
    const char *name = rmm__diag_finding_name(kind);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].kind == kind) {
            return (run_rule_t){name, texts[i].title, texts[i].why, texts[i].modes};
        }
    }
    return (run_rule_t){
        name, "A finding of a class that this rmm-run does not know",
        "The program has a newer library. Use the rmm-run of that version.", 0};
}

static uint32_t class_count(void)
{
    const rmm_diag_finding_class_t *unknown = rmm__diag_finding_class(0);
    uint32_t count = 1;
    while (count < RUN_RULES_MAX - 1 && rmm__diag_finding_class(count) != unknown) {
        count++;
    }
    return count;
}

uint32_t run_rules(run_rule_t rules[RUN_RULES_MAX])
{
    uint32_t count = class_count();
    for (uint32_t kind = 0; kind < count; kind++) {
        rules[kind] = rule_of_class(kind);
    }
    rules[count] = (run_rule_t){
        RUN_RULE_LEAKED, "GPU memory is never freed",
        "A block was not freed when the program, or the block's resource, ended.", 0};
    return count + 1;
}

uint32_t run_rule_of(uint32_t kind)
{
    return kind < class_count() ? kind : 0;
}
