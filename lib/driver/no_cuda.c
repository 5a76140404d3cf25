/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cuda.c in a library that was built without a CUDA toolkit. */
#include "driver/driver.h"

#include "core/error.h"

const rmm_driver_t *rmm__driver_cuda_open(rmm_status_t *status_out)
{
    *status_out = rmm__error(
        RMM_ERR_NO_DEVICE,
        "this librmm-c was built without CUDA (RMM_CUDA=OFF or no toolkit found): "
        "build "
        "it with a CUDA toolkit, or set RMM_DRIVER=sim to use the simulated GPU");
    return NULL;
}
