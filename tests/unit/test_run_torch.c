/* SPDX-License-Identifier: Apache-2.0 */
/* What rmm-run says of PyTorch, whose libraries are on the stacks that the test makes. */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/torch.h"

#define LIBRARY "/usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so"
#define COPY "_ZN2at4_ops5copy_4callERNS_6TensorERKS2_b"
#define ADD "_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_"

static char function_names[2][128];
static run_frame_t frames[3];
static const run_stack_t stack = {.frames = frames, .frame_count = 3};

static void lay_out(const char *library, const char *inner, const char *outer)
{
    memset(frames, 0, sizeof(frames));
    (void)snprintf(frames[1].module.path, sizeof(frames[1].module.path), "%s", library);
    (void)snprintf(function_names[0], sizeof(function_names[0]), "%s", inner);
    (void)snprintf(function_names[1], sizeof(function_names[1]), "%s", outer);
    frames[1].function = function_names[0];
    frames[2].function = function_names[1];
}

static void assert_printed(uint32_t kind, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    run_torch_print(kind, &stack, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
}

TEST_CASE(the_innermost_operator_is_named)
{
    char name[RUN_OPERATOR_BYTES];

    lay_out(LIBRARY, COPY, ADD);
    assert_true(run_torch_operator(&stack, name));
    assert_string_equal(name, "aten::copy_");
    lay_out(LIBRARY, "main", ADD);
    assert_true(run_torch_operator(&stack, name));
    assert_string_equal(name, "aten::add_Tensor");
    lay_out(LIBRARY, "_ZN2at4_ops4helpEv", "_ZN4user4_ops5copy_4callEv");
    assert_false(run_torch_operator(&stack, name));
}

TEST_CASE(findings_of_pytorch_have_a_remedy_in_its_words)
{
    lay_out(LIBRARY, COPY, "main");
    assert_printed(
        RMM_DIAG_FREE_UNORDERED,
        "    in PyTorch: x.record_stream(stream) for a tensor x that another stream "
        "uses\n    by the operator aten::copy_\n");
    assert_printed(RMM_DIAG_OUT_OF_BOUNDS, "    by the operator aten::copy_\n");
    assert_printed(UINT32_MAX, "    by the operator aten::copy_\n");
}

TEST_CASE(other_programs_have_neither)
{
    lay_out("/usr/lib/libtor.so", "main", "main");
    assert_printed(RMM_DIAG_FREE_UNORDERED, "");
    assert_printed(RMM_DIAG_USE_UNORDERED, "");
}
