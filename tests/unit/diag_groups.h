/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What readers of the side file of a diag_fixture_t put together, in `groups`.
 */
#ifndef RMM_TESTS_UNIT_DIAG_GROUPS_H
#define RMM_TESTS_UNIT_DIAG_GROUPS_H

#include <sys/mman.h>
#include <unistd.h>

#include "diag/diag_reader.h"
#include "unit/diag_fixture.h"
#include "unit/groups_fixture.h"

/* The side file as a reader finds it now. */
static rmm_diag_file_t file_now(const diag_fixture_t *diag)
{
    int fd = memfd_create("diag", MFD_CLOEXEC);
    rmm_diag_file_t file;

    rmm__diag_engine_publish(diag->engine, "active");
    assert_true(fd >= 0);
    assert_int_equal(
        write(fd, diag->header, diag->header->file_bytes),
        (ssize_t)diag->header->file_bytes);
    assert_int_equal(rmm__diag_attach(&file, fd), 0);
    return file;
}

#define GROUPS_CASE(name) TEST_CASE_WITH(name, make_groups, drop_groups)

#endif /* RMM_TESTS_UNIT_DIAG_GROUPS_H */
