/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a program's test. It includes nothing: environment.c is compiled for
 * each program. */
#ifndef RMM_TESTS_HARNESS_ENVIRONMENT_H
#define RMM_TESTS_HARNESS_ENVIRONMENT_H

extern const char *const harness_environment[]; /* NAME=value, and NULL */

#endif /* RMM_TESTS_HARNESS_ENVIRONMENT_H */
