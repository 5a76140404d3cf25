/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every resource has to do: RMM's cases (cases.c), over each line of subjects.def, on
 * the simulated GPU (RMM_DRIVER=sim) or a real one (RMM_DRIVER=cuda).
 *
 * Exit 77 if there is no GPU, or if this machine does not support the subject, with the
 * reason; on the simulated GPU everything must be.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases.h"
#include "driver/driver.h"

#define SKIPPED 77

typedef struct run {
    const subject_t *subject;
    const conformance_case_t *which;
} run_t;

static void run_case(void **state)
{
    const run_t *run = *state;

    run->which->run(run->subject, run->which);
}

static int run_subject(const subject_t *subject)
{
    size_t count = conformance_case_count;
    struct CMUnitTest *tests = calloc(count, sizeof(*tests));
    run_t *runs = calloc(count, sizeof(*runs));
    char(*names)[100] = calloc(count, sizeof(*names));
    int failed = -1;

    if (tests != NULL && runs != NULL && names != NULL) {
        for (size_t i = 0; i < count; i++) {
            runs[i] = (run_t){subject, &conformance_cases[i]};
            snprintf(
                names[i], sizeof(names[i]), "%s %s", subject->name,
                conformance_cases[i].name);
            tests[i] = (struct CMUnitTest){names[i], run_case, NULL, NULL, &runs[i]};
        }
        failed = harness_run_group(subject->name, tests, count, NULL, NULL);
    }
    free(tests);
    free(runs);
    free(names);
    return failed;
}

/* How many cases failed, or SKIPPED. */
static int check_subject(const char *driver, const subject_t *subject)
{
    rmm_resource_t *mr = NULL;
    rmm_status_t status = subject_make(subject, &mr);

    rmm_resource_release(mr);
    if (status == RMM_ERR_UNSUPPORTED && strcmp(driver, "sim") != 0) {
        printf(
            "conformance %s %s: not supported here: %s\n", driver, subject->name,
            rmm_last_error_message());
        return SKIPPED;
    }
    return run_subject(subject); /* whose cases tell any other failure */
}

/* The driver that was requested, or NULL with the exit status in *status_out. */
static const char *open_driver(int *status_out)
{
    const char *wanted = getenv("RMM_DRIVER");
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    if (driver == NULL) {
        printf("conformance: %s\n", rmm_last_error_message());
        *status_out = status == RMM_ERR_NO_DEVICE ? SKIPPED : EXIT_FAILURE;
        return NULL;
    }
    if (wanted == NULL || strcmp(driver->name, wanted) != 0) {
        printf("conformance: RMM_DRIVER does not say %s\n", driver->name);
        *status_out = EXIT_FAILURE;
        return NULL;
    }
    return driver->name;
}

int main(int argc, char **argv)
{
    const subject_t *subject = subject_of_arguments(argc, argv);
    int result = SKIPPED;
    const char *driver = open_driver(&result);

    return driver == NULL ? result : check_subject(driver, subject);
}
