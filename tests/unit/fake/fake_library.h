/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A librmm-c of which only what counts the program's memory is there (rmm_diag_driver_*): it
 * reports each block to the hooks that the test gives it, on device 3. Loaded with RTLD_GLOBAL,
 * librmm-inject takes it for the program's own.
 */
#ifndef RMM_TESTS_UNIT_FAKE_LIBRARY_H
#define RMM_TESTS_UNIT_FAKE_LIBRARY_H

#include <stdbool.h>

#include <rmm/sys/diag.h>

typedef struct fake_library_control {
    const rmm_diag_hooks_v1_t *hooks;
    bool is_in_library; /* the calls of the driver are the library's own */
} fake_library_control_t;

/* By dlsym(). */
RMM_API fake_library_control_t *fake_library_control(void);

#endif /* RMM_TESTS_UNIT_FAKE_LIBRARY_H */
