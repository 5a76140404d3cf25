/* SPDX-License-Identifier: Apache-2.0 */
/* RMM_TEST_ENVIRONMENT is what rmm_test_program() of RmmTargets.cmake was given. */
#include "harness/environment.h"

const char *const harness_environment[] = {RMM_TEST_ENVIRONMENT 0};
