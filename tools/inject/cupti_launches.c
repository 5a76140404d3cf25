/* SPDX-License-Identifier: Apache-2.0 */
/* Launches; see cupti_launches.h. */
#include "inject/cupti_launches.h"

static const CUpti_CallbackId calls[] = {
    CBID(cuLaunchKernel),
    CBID(cuLaunchKernel_ptsz),
    CBID(cuLaunchKernelEx),
    CBID(cuLaunchKernelEx_ptsz),
    CBID(cuLaunchCooperativeKernel),
    CBID(cuLaunchCooperativeKernel_ptsz),
    CBID(cuGraphLaunch),
    CBID(cuGraphLaunch_ptsz)};

bool cupti_launch_call(size_t i, cupti_call_t *call_out)
{
    if (i >= sizeof(calls) / sizeof(calls[0])) {
        return false;
    }
    *call_out = (cupti_call_t){.id = calls[i]};
    return true;
}

/* --- which call it is -------------------------------------------------------------- */

bool cupti_launch_is_extended(CUpti_CallbackId call)
{
    return call == CBID(cuLaunchKernelEx) || call == CBID(cuLaunchKernelEx_ptsz);
}

static bool is_cooperative(CUpti_CallbackId call)
{
    return call == CBID(cuLaunchCooperativeKernel) ||
           call == CBID(cuLaunchCooperativeKernel_ptsz);
}

bool cupti_launch_is_kernel(CUpti_CallbackId call)
{
    return call == CBID(cuLaunchKernel) || call == CBID(cuLaunchKernel_ptsz) ||
           cupti_launch_is_extended(call) || is_cooperative(call);
}

bool cupti_launch_is_graph(CUpti_CallbackId call)
{
    return call == CBID(cuGraphLaunch) || call == CBID(cuGraphLaunch_ptsz);
}

/* --- what it is given -------------------------------------------------------------- */

/* The _ptsz twins have structs of their own with the same members. */
SAME_OFFSET(cuGraphLaunch, hStream);
SAME_OFFSET(cuLaunchKernel, f);
SAME_OFFSET(cuLaunchKernel, hStream);
SAME_OFFSET(cuLaunchKernel, kernelParams);
SAME_OFFSET(cuLaunchKernel, extra);
SAME_OFFSET(cuLaunchKernelEx, config);
SAME_OFFSET(cuLaunchKernelEx, f);
SAME_OFFSET(cuLaunchKernelEx, kernelParams);
SAME_OFFSET(cuLaunchKernelEx, extra);
SAME_OFFSET(cuLaunchCooperativeKernel, f);
SAME_OFFSET(cuLaunchCooperativeKernel, hStream);
SAME_OFFSET(cuLaunchCooperativeKernel, kernelParams);

static rmm_stream_t stream_of(CUstream given, bool is_twin)
{
    return cupti_stream((uint64_t)(uintptr_t)given, is_twin);
}

static cupti_launch_t read_extended(const cuLaunchKernelEx_params *call, bool is_twin)
{
    CUstream stream = call->config != NULL ? call->config->hStream : NULL;

    return (cupti_launch_t){
        {call->f, call->kernelParams, call->extra}, stream_of(stream, is_twin)};
}

static cupti_launch_t
read_cooperative(const cuLaunchCooperativeKernel_params *call, bool is_twin)
{
    return (cupti_launch_t){
        {call->f, call->kernelParams, NULL}, stream_of(call->hStream, is_twin)};
}

cupti_launch_t cupti_launch_read(CUpti_CallbackId call, const void *params)
{
    const cuLaunchKernel_params *launch = params;
    bool is_twin = call == CBID(cuLaunchKernel_ptsz) ||
                   call == CBID(cuLaunchKernelEx_ptsz) ||
                   call == CBID(cuLaunchCooperativeKernel_ptsz);

    if (cupti_launch_is_extended(call)) {
        return read_extended(params, is_twin);
    }
    if (is_cooperative(call)) {
        return read_cooperative(params, is_twin);
    }
    return (cupti_launch_t){
        {launch->f, launch->kernelParams, launch->extra},
        stream_of(launch->hStream, is_twin)};
}

rmm_stream_t cupti_launch_graph_stream(CUpti_CallbackId call, const void *params)
{
    const cuGraphLaunch_params *launch = params;

    return stream_of(launch->hStream, call == CBID(cuGraphLaunch_ptsz));
}
