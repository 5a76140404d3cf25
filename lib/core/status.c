/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and texts of the statuses, and each thread's last error: a fixed buffer, so
 * that reporting "out of host memory" needs none.
 */
#include <rmm/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

static _Thread_local char last_message[RMM_ERROR_BYTES];
static _Thread_local int last_cuda_error;

const char *rmm_status_name(rmm_status_t status)
{
    switch (status) {
#define X(name, value, text)                                                           \
    case RMM_##name:                                                                   \
        return "RMM_" #name;
        RMM_STATUS_MAP(X)
#undef X
    }
    return "RMM_ERR_UNKNOWN";
}

const char *rmm_status_text(rmm_status_t status)
{
    switch (status) {
#define X(name, value, text)                                                           \
    case RMM_##name:                                                                   \
        return text;
        RMM_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

bool rmm_status_is_alloc_failure(rmm_status_t status)
{
    return status == RMM_ERR_OUT_OF_MEMORY || status == RMM_ERR_BAD_ALLOC;
}

const char *rmm__error_message(void)
{
    return last_message;
}

int rmm__error_native(void)
{
    return last_cuda_error;
}

/*
 * Formatted beside the old message first: callers may pass rmm_last_error_message()
 * itself as an argument.
 */
__attribute__((format(printf, 2, 0))) static void
record(int cuda_error, const char *format, va_list arguments)
{
    char fresh[RMM_ERROR_BYTES];

    vsnprintf(fresh, sizeof(fresh), format, arguments);
    snprintf(last_message, sizeof(last_message), "%s", fresh);
    last_cuda_error = cuda_error;
}

rmm_status_t rmm__error(rmm_status_t status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    record(0, format, arguments);
    va_end(arguments);
    return status;
}

rmm_status_t
rmm__error_check(rmm_status_t status, const char *function, const char *sentence)
{
    bool is_public = strncmp(function, "rmm_", 4) == 0 && function[4] != '_';

    return is_public ? rmm__error(status, "%s: %s", function, sentence)
                     : rmm__error(status, "%s", sentence);
}

rmm_status_t
rmm__error_cuda(rmm_status_t status, int cuda_error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    record(cuda_error, format, arguments);
    va_end(arguments);
    return status;
}

void rmm__error_keep(rmm_error_kept_t *kept)
{
    memcpy(kept->message, last_message, sizeof(last_message));
    kept->cuda_error = last_cuda_error;
}

void rmm__error_restore(const rmm_error_kept_t *kept)
{
    memcpy(last_message, kept->message, sizeof(last_message));
    last_cuda_error = kept->cuda_error;
}
