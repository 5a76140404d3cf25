/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread's last error. The function that first decides that something is an error calls
 * rmm__error(); callers pass the status on unchanged.
 */
#ifndef RMM_CORE_ERROR_H
#define RMM_CORE_ERROR_H

#include <rmm/status.h>

/* Longest message kept, with its NUL. */
#define RMM_ERROR_BYTES 512

/* The results of rmm_last_error_message() and rmm_last_cuda_error(). */
const char *rmm__error_message(void);
int rmm__error_native(void);

/* Set the thread's last error; returns `status`. No allocation. */
__attribute__((cold, format(printf, 2, 3))) rmm_status_t
rmm__error(rmm_status_t status, const char *format, ...);

/* Reports a refused argument. Names `function` only if it is public: the name of a helper means
 * nothing to the caller. */
__attribute__((cold)) rmm_status_t
rmm__error_check(rmm_status_t status, const char *function, const char *sentence);

/* The same with the native code, kept for rmm_last_cuda_error(). */
__attribute__((cold, format(printf, 3, 4))) rmm_status_t
rmm__error_cuda(rmm_status_t status, int cuda_error, const char *format, ...);

/* Around a program's own function that is called on the way to reporting an error: what
 * fails in there is not what the caller is told. */
typedef struct rmm_error_kept {
    char message[RMM_ERROR_BYTES];
    int cuda_error;
} rmm_error_kept_t;

void rmm__error_keep(rmm_error_kept_t *kept);
void rmm__error_restore(const rmm_error_kept_t *kept);

#endif /* RMM_CORE_ERROR_H */
