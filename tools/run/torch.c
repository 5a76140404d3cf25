/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch in stacks; see torch.h. */
#include "run/torch.h"

#include <stdlib.h>
#include <string.h>

#include "diag/diag_format.h"
#include "run/names.h"

/* Each operator of ATen is called through at::_ops::NAME::call(), or redispatch(). */
static bool take_operator(const char *function, char out[RUN_OPERATOR_BYTES])
{
    static const char begin[] = "at::_ops::";
    const char *name = strstr(function, begin);
    if (name == NULL) {
        return false;
    }
    name += strlen(begin);
    size_t length = strcspn(name, ":(<");
    bool is_one = length > 0 && strncmp(name + length, "::", 2) == 0;
    if (is_one) {
        (void)snprintf(out, RUN_OPERATOR_BYTES, "aten::%.*s", (int)length, name);
    }
    return is_one;
}

bool run_torch_operator(const run_stack_t *stack, char out[RUN_OPERATOR_BYTES])
{
    bool found = false;
    for (uint32_t i = 0; !found && i < stack->frame_count; i++) {
        const char *function = stack->frames[i].function;
        char *demangled = function != NULL ? run_demangle(function) : NULL;
        found = demangled != NULL && take_operator(demangled, out);
        free(demangled);
    }
    return found;
}

static bool has_torch(const run_stack_t *stack)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < stack->frame_count; i++) {
        const char *path = stack->frames[i].module.path;
        const char *slash = strrchr(path, '/');
        const char *name = slash != NULL ? slash + 1 : path;
        found = strncmp(name, "libtorch", strlen("libtorch")) == 0 ||
                strncmp(name, "libc10", strlen("libc10")) == 0;
    }
    return found;
}

void run_torch_print(uint32_t kind, const run_stack_t *stack, FILE *out)
{
    static const char *const remedies[] = {
        [RMM_DIAG_USE_UNORDERED] =
            "stream.wait_stream(other) before the use, where `other` wrote the tensor",
        [RMM_DIAG_FREE_UNORDERED] =
            "x.record_stream(stream) for a tensor x that another stream uses",
        [RMM_DIAG_USE_AFTER_FREE] =
            "keep the tensor until the work on it is done, or call "
            "x.record_stream(stream) before it is dropped"};
    char name[RUN_OPERATOR_BYTES];
    bool has_remedy = kind < sizeof(remedies) / sizeof(remedies[0]) &&
                      remedies[kind] != NULL && has_torch(stack);
    if (has_remedy) {
        fprintf(out, "    in PyTorch: %s\n", remedies[kind]);
    }
    if (run_torch_operator(stack, name)) {
        fprintf(out, "    by the operator %s\n", name);
    }
}
