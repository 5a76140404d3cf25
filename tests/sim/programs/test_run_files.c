/* SPDX-License-Identifier: Apache-2.0 */
/* The files of rmm-run on disks that are full, or that have no unnamed files. */
#include "harness/program.h"
#include "harness/runtime.h"
#include "harness/tmpfs.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

static runtime_t runtime;
static program_t program;
static char folder[sizeof(runtime.path) + 8];

static int set_up(void **state)
{
    runtime_open(&runtime);
    snprintf(folder, sizeof(folder), "%s/files", runtime.path);
    assert_int_equal(mkdir(folder, 0700), 0);
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(rmdir(folder), 0);
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* On a disk with room for a part of it. */
static void run_on_full_disk(child_t *self, void *argument)
{
    char options[512], path[sizeof(folder) + 8];

    mount_tmpfs(folder, 0, "size=4k");
    snprintf(path, sizeof(path), "%s/report", folder);
    snprintf(
        options, sizeof(options), RUN " --summary --report %s -- " PROGRAM " overrun",
        path);
    program_run(&program, options);
    CHECK(program.status == 125);
    CHECK(strstr(program.err, "No space left on device") != NULL);
    CHECK(strstr(program.err, "out_of_bounds") != NULL); /* the summary */
    CHECK(access(path, F_OK) != 0);
}

CASE(a_report_that_does_not_fit_is_left_out)
{
    tmpfs_or_skip();
    child_run(run_on_full_disk, NULL);
}

/* As on file systems where each file has a name. */
static void forget_unnamed_files(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {sizeof(rules) / sizeof(rules[0]), rules};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    CHECK(open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) < 0);
}

/* The report is opened first, and removed where the program does not run. */
static void run_with_named_files(child_t *self, void *argument)
{
    static const struct {
        const char *options, *program;
        int status, left;
    } cases[] = {
        {"", "/proc/nowhere", 127, 0},
        {"--timeline /proc/nowhere/page", PROGRAM, 125, 0},
        {"", PROGRAM, 0, 1}};
    char command[512];

    forget_unnamed_files();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(
            command, sizeof(command), RUN " --report %s/report %s -- %s", folder,
            cases[i].options, cases[i].program);
        program_run(&program, command);
        CHECK(program.status == cases[i].status);
        CHECK(entries_in(folder) == cases[i].left);
    }
}

CASE(a_report_with_a_temporary_name_is_removed)
{
    char path[sizeof(folder) + 8];

    child_run(run_with_named_files, NULL);
    snprintf(path, sizeof(path), "%s/report", folder);
    assert_int_equal(unlink(path), 0);
}
