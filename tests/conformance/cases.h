/* SPDX-License-Identifier: Apache-2.0 */
/* RMM's matrix of cases that every resource and adaptor goes through. */
#ifndef RMM_TESTS_CONFORMANCE_CASES_H
#define RMM_TESTS_CONFORMANCE_CASES_H

#include "conformance/worker.h"

typedef void (*work_fn)(worker_t *worker);

typedef struct conformance_case {
    const char *name; /* its number in the matrix, and RMM's name */
    void (*run)(const subject_t *subject, const struct conformance_case *self);
    work_fn work; /* the rest is for run_work(): */
    order_t order;
    int threads;
} conformance_case_t;

extern const conformance_case_t conformance_cases[];
extern const size_t conformance_case_count;

/* cases_default.c */
void set_current_resource(const subject_t *subject, const conformance_case_t *self);
void set_current_resource_on_threads(
    const subject_t *subject, const conformance_case_t *self);
void set_current_resource_per_thread(
    const subject_t *subject, const conformance_case_t *self);

#endif /* RMM_TESTS_CONFORMANCE_CASES_H */
