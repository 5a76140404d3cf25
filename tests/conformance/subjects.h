/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources and adaptors that the suites of this folder go through: subjects.def.
 */
#ifndef RMM_TESTS_CONFORMANCE_SUBJECTS_H
#define RMM_TESTS_CONFORMANCE_SUBJECTS_H

#include <stddef.h>

#include <rmm/rmm.h>

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define PIB (GIB * MIB)
#define UNLIMITED ((size_t)PTRDIFF_MAX)

typedef struct subject {
    const char *name;
    const char *type;
    size_t largest; /* more is refused, whatever memory there is */
    rmm_status_t (*base)(rmm_resource_t **out);
    rmm_status_t (*build)(rmm_resource_t *upstream, rmm_resource_t **out); /* or NULL */
} subject_t;

extern const subject_t subjects[];
extern const size_t subject_count;

/* The one that the program's first argument names; names of cases may come behind it.
 * Otherwise ends the program: with --list it prints the names, else says what is wrong. */
const subject_t *subject_of_arguments(int argc, char **argv);

/* A fresh one, on the current device; it alone holds what it is built on. Leaves nothing
 * behind when it fails. */
rmm_status_t subject_make(const subject_t *subject, rmm_resource_t **out);

/* 0, or SUBJECT_SKIPPED with the reason printed: this machine has no GPU, or the subject is
 * not for it. */
#define SUBJECT_SKIPPED 77
int subject_look_at_machine(const subject_t *subject);

#endif /* RMM_TESTS_CONFORMANCE_SUBJECTS_H */
