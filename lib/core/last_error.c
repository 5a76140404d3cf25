/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread's last error, as the program asks for it. Apart from status.c, which librmm-sim has as
 * well: in a program that is linked with its objects the answer is that of librmm-c.
 */
#include <rmm/status.h>

#include "core/error.h"

const char *rmm_last_error_message(void)
{
    return rmm__error_message();
}

int rmm_last_cuda_error(void)
{
    return rmm__error_native();
}
