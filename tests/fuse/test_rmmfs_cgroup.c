/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To whom a process belongs, from what the kernel writes on real systems: the forms of kubelet,
 * Slurm, docker, containerd, cri-o, podman, LXC and systemd, and those that somebody forged.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/cgroup.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "4a163a05-439d-484b-8e53-2968bc15824f"
#define POD_ "4a163a05_439d_484b_8e53_2968bc15824f"
#define HASH "b53dfa9e2dc9b890f7fadb2770857b03"

static void assert_path(const char *text, const char *expected)
{
    cgroup_t group;
    cgroup_parse(text, &group);
    assert_string_equal(group.path, expected);
}

TEST_CASE(the_unified_hierarchy_counts_unless_it_is_the_root)
{
    assert_path("0::/user.slice/a.scope\n", "/user.slice/a.scope");
    assert_path("4:memory:/a\n0::/b\n", "/b");
    assert_path("0::/b\n4:memory:/a\n", "/b");
    assert_path("4:memory:/a\n3:pids:/c\n0::/\n", "/a");
    assert_path("1:name=systemd:/\n0::/\n", "/");
    assert_path("0::/no/newline", "/no/newline");
}

TEST_CASE(a_malformed_line_is_not_a_path)
{
    assert_path("", "");
    assert_path("garbage\n:\n::\n", "");
    assert_path("0:", "");
}

TEST_CASE(a_path_is_one_column_and_is_cut)
{
    char text[2000];
    cgroup_t group;
    assert_path("0::/a b\\c\tz\n", "/a\\040b\\134c\\011z");
    assert_path("0::/a\x7f\n", "/a\\177");
    memset(text, ' ', sizeof(text));
    memcpy(text, "0::/", 4);
    text[sizeof(text) - 1] = '\0';
    cgroup_parse(text, &group);
    assert_in_range(strlen(group.path), CGROUP_PATH_BYTES - 8, CGROUP_PATH_BYTES - 1);
    assert_string_equal(group.path + strlen(group.path) - 4, "\\040");
    memset(text + 4, 'a', sizeof(text) - 5);
    cgroup_parse(text, &group);
    assert_int_equal(strlen(group.path), CGROUP_PATH_BYTES - 4);
}

typedef struct form {
    const char *path;
    const char *job, *step, *pod, *container, *unit; /* NULL: "" */
} form_t;

static void assert_word(const char *path, const char *word, const char *expected)
{
    if (strcmp(word, expected != NULL ? expected : "") != 0) {
        fail_msg("%s: '%s', not '%s'", path, word, expected != NULL ? expected : "");
    }
}

static void assert_form(const char *text, const form_t *form)
{
    cgroup_t group;
    cgroup_parse(text, &group);
    assert_word(text, group.job, form->job);
    assert_word(text, group.step, form->step);
    assert_word(text, group.pod, form->pod);
    assert_word(text, group.container, form->container);
    assert_word(text, group.unit, form->unit);
}

/* Each as the only line of version 2, and of version 1. */
static void assert_forms(const form_t *forms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[1024];
        snprintf(text, sizeof(text), "0::%s\n", forms[i].path);
        assert_form(text, &forms[i]);
        snprintf(text, sizeof(text), "7:cpu,cpuacct:%s\n0::/\n", forms[i].path);
        assert_form(text, &forms[i]);
    }
}
#define ASSERT_FORMS(forms) assert_forms(forms, sizeof(forms) / sizeof((forms)[0]))

TEST_CASE(slurm_names_job_and_step)
{
    static const form_t forms[] = {
        {.path = "/slurm/uid_1000/job_123/step_0", .job = "123", .step = "0"},
        {.path = "/slurm/uid_1000/job_123/step_0/task_0", .job = "123", .step = "0"},
        {.path = "/slurm/uid_1000/job_123/step_batch/task_0",
         .job = "123",
         .step = "batch"},
        {.path = "/slurm/uid_1000/job_123/step_extern/task_0",
         .job = "123",
         .step = "extern"},
        {.path = "/slurm/uid_1000/job_123", .job = "123"},
        {.path = "/slurm_node7/uid_1000/job_123/step_0/task_0",
         .job = "123",
         .step = "0"},
        {.path = "/slurm/uid_0/job_9/step_4294967290",
         .job = "9",
         .step = "interactive"},
        {"/system.slice/slurmstepd.scope/job_3385/step_0/user/task_0", .job = "3385",
         .step = "0"},
        {"/system.slice/slurmstepd.scope/job_3385/step_0/slurm", .job = "3385",
         .step = "0"},
        {"/system.slice/slurmstepd.scope/job_3385/step_interactive/user/task_0",
         .job = "3385", .step = "interactive"},
        {"/system.slice/slurmstepd.scope/job_3385/step_extern/user/task_special",
         .job = "3385", .step = "extern"},
        {"/system.slice/node-1_slurmstepd.scope/job_4749/step_0/user/task_0",
         .job = "4749", .step = "0"},
        {"/system.slice/slurmstepd.scope/job_12/step_0+1/user/task_0", .job = "12",
         .step = "0+1"},
        {"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0",
         .job = "s5K1KKYAYG5D00", .step = "0"},
        {"/system.slice/slurmstepd.scope/system", .job = NULL, .step = NULL,
         .pod = NULL, .container = NULL, .unit = "slurmstepd.scope"},
        {"/system.slice/slurmd.service", .job = NULL, .step = NULL, .pod = NULL,
         .container = NULL, .unit = "slurmd.service"},
        {"/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID
         ".scope/system.slice/slurmstepd.scope/job_7/step_1/user/task_0",
         .job = "7", .step = "1", .pod = POD, .container = ID},
    };
    ASSERT_FORMS(forms);
}

TEST_CASE(kubelet_names_pod_and_container)
{
    static const form_t forms[] = {
        {"/kubepods/burstable/pod" POD "/" ID, .job = NULL, .step = NULL, .pod = POD,
         .container = ID},
        {"/kubepods/besteffort/pod" POD "/" ID, .job = NULL, .step = NULL, .pod = POD,
         .container = ID},
        {"/kubepods/pod" POD "/" ID, .job = NULL, .step = NULL, .pod = POD,
         .container = ID},
        {"/kubepods/burstable/pod" HASH "/" ID, .job = NULL, .step = NULL, .pod = HASH,
         .container = ID},
        {"/kubepods/burstable/pod" POD, .job = NULL, .step = NULL, .pod = POD},
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
         ".slice/cri-containerd-" ID ".scope",
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH
         ".slice/cri-containerd-" ID ".scope",
         .job = NULL, .step = NULL, .pod = HASH, .container = ID},
        {"/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope", .job = NULL,
         .step = NULL, .pod = POD, .container = ID},
        {"/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope/container",
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" ID ".scope",
         .job = NULL, .step = NULL, .pod = POD},
        {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_
         ".slice/docker-" ID ".scope",
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
         "kubelet-kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID ".scope",
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/"
         "kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" POD_
         ".slice/cri-containerd-" ID ".scope",
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/docker/" OTHER "/kubelet/kubepods/burstable/pod" POD "/" ID, .job = NULL,
         .step = NULL, .pod = POD, .container = ID},
        {"/system.slice/containerd.service/kubepods-burstable-pod" POD_
         ".slice:cri-containerd:" ID,
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/../../kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID ".scope",
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
        {"/../cri-containerd-" ID ".scope", .job = NULL, .step = NULL, .pod = NULL,
         .container = ID},
        {"/../../../burstable/pod" POD "/" ID, .pod = POD, .container = ID},
        {"/../../pod" POD "/" ID, .pod = POD, .container = ID},
        /* docker in a pod */
        {"/kubepods/burstable/pod" POD "/" ID "/docker/" OTHER, .job = NULL,
         .step = NULL, .pod = POD, .container = ID},
        {"/kubepods/burstable/pod" POD "/" ID "/kubepods/burstable/pod" HASH "/" OTHER,
         .job = NULL, .step = NULL, .pod = POD, .container = ID},
    };
    ASSERT_FORMS(forms);
}

TEST_CASE(runtimes_name_containers)
{
    static const form_t forms[] = {
        {"/docker/" ID, .job = NULL, .step = NULL, .pod = NULL, .container = ID},
        {"/" ID, .job = NULL, .step = NULL, .pod = NULL, .container = ID},
        {"/system.slice/docker-" ID ".scope", .job = NULL, .step = NULL, .pod = NULL,
         .container = ID},
        {"/system.slice/docker-" ID ".scope/init", .job = NULL, .step = NULL,
         .pod = NULL, .container = ID},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope",
         .job = NULL, .step = NULL, .pod = NULL, .container = ID},
        {"/docker/" ID "/docker/" OTHER "/x", .job = NULL, .step = NULL, .pod = NULL,
         .container = OTHER},
        {"/docker/" ID "/system.slice/ssh.service", .job = NULL, .step = NULL,
         .pod = NULL, .container = ID},
        {"/default/" ID, .job = NULL, .step = NULL, .pod = NULL, .container = ID},
        {"/system.slice/nerdctl-" ID ".scope", .job = NULL, .step = NULL, .pod = NULL,
         .container = ID},
        {"/machine.slice/libpod-" ID ".scope", .job = NULL, .step = NULL, .pod = NULL,
         .container = ID},
        {"/machine.slice/libpod-" ID ".scope/container", .job = NULL, .step = NULL,
         .pod = NULL, .container = ID},
        {"/machine.slice/libpod-conmon-" ID ".scope", .job = NULL, .step = NULL,
         .pod = NULL, .container = NULL, .unit = "libpod-conmon-" ID ".scope"},
        {"/libpod_parent/libpod-" ID, .job = NULL, .step = NULL, .pod = NULL,
         .container = ID},
        {"/libpod_parent/" OTHER "/libpod-" ID, .job = NULL, .step = NULL, .pod = OTHER,
         .container = ID},
        {"/libpod_parent/" OTHER "/libpod-" ID "/docker/" OTHER, .job = NULL,
         .step = NULL, .pod = OTHER, .container = ID},
        {"/libpod_parent/" OTHER, .job = NULL, .step = NULL, .pod = OTHER,
         .container = NULL},
        {"/system.slice/web.service/libpod-payload-" ID, .job = NULL, .step = NULL,
         .pod = NULL, .container = ID},
        {"/machine.slice/machine-libpod_pod_" OTHER ".slice/libpod-" ID ".scope",
         .job = NULL, .step = NULL, .pod = OTHER, .container = ID},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/"
         "user-libpod_pod_" OTHER ".slice/libpod-" ID ".scope/container",
         .job = NULL, .step = NULL, .pod = OTHER, .container = ID},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
         ".scope/container",
         .job = NULL, .step = NULL, .pod = NULL, .container = ID},
        {.path = "/lxc/web",
         .job = NULL,
         .step = NULL,
         .pod = NULL,
         .container = "web"},
        {"/lxc.payload/web/init.scope", .job = NULL, .step = NULL, .pod = NULL,
         .container = "web"},
        {"/lxc.payload.focal/system.slice/avahi-daemon.service", .job = NULL,
         .step = NULL, .pod = NULL, .container = "focal"},
        {.path = "/lxc.monitor.focal"},
        {"/machine.slice/machine-web.scope/payload", .job = NULL, .step = NULL,
         .pod = NULL, .container = "web"},
        {"/machine.slice/systemd-nspawn@web.service/payload/system.slice", .job = NULL,
         .step = NULL, .pod = NULL, .container = "web"},
    };
    ASSERT_FORMS(forms);
}

TEST_CASE(systemd_names_a_unit)
{
    static const form_t forms[] = {
        {"/system.slice/ssh.service", .job = NULL, .step = NULL, .pod = NULL,
         .container = NULL, .unit = "ssh.service"},
        {"/system.slice/system-getty.slice/getty@tty1.service", .job = NULL,
         .step = NULL, .pod = NULL, .container = NULL, .unit = "getty@tty1.service"},
        {"/user.slice/user-1000.slice/session-3.scope", .job = NULL, .step = NULL,
         .pod = NULL, .container = NULL, .unit = "session-3.scope"},
        {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-a\\x2db-12.scope",
         .job = NULL, .step = NULL, .pod = NULL, .container = NULL,
         .unit = "app-a\\134x2db-12.scope"},
        {"/system.slice/run-r1.scope/below", .job = NULL, .step = NULL, .pod = NULL,
         .container = NULL, .unit = "run-r1.scope"},
        {.path = "/process_api/47bfc58e11f50ebbd70cb28cdf743726"},
        {.path = "/user.slice"},
        {.path = "/"},
    };
    ASSERT_FORMS(forms);
}

/* Slurm with version 1 or hybrid: the job is in some of the hierarchies. */
TEST_CASE(the_hierarchy_that_says_most_counts)
{
    static const form_t job = {"", .job = "5", .step = "0"},
                        container = {"", .container = ID},
                        unit = {"", .unit = "slurmd.service"};
    static const char of_job[] = "12:memory:/slurm/uid_1000/job_5/step_0\n"
                                 "11:freezer:/slurm/uid_1000/job_5\n"
                                 "3:pids:/system.slice/slurmd.service\n"
                                 "1:name=systemd:/system.slice/slurmd.service\n"
                                 "0::/system.slice/slurmd.service\n";
    assert_form(of_job, &job);
    assert_path(of_job, "/slurm/uid_1000/job_5/step_0");
    assert_form(
        "9:cpuset:/\n8:memory:/system.slice/slurmd.service\n7:freezer:/\n0::/\n",
        &unit);
    assert_form(
        "4:memory:/docker/" ID
        "\n1:name=systemd:/user.slice/user-0.slice/session-1.scope\n"
        "0::/user.slice/user-0.slice/session-1.scope\n",
        &container);
    assert_form(
        "4:memory:/a\n1:name=systemd:/system.slice/slurmd.service\n0::/\n", &unit);
}

TEST_CASE(what_only_looks_like_a_name_is_none)
{
    static const form_t forms[] = {
        {.path = "/job_5/step_0"},
        {.path = "/uid_x/job_5/step_0"},
        {.path = "/slurm/uid_1000/job_5x/step_0"},
        {.path = "/slurm/uid_1000/job_123456789012345678901234567890"},
        {.path = "/slurm/uid_1000/job_5/step_a b", .job = "5"},
        {"/slurm/uid_1000/job_5/step_\"}", .job = "5"},
        {"/pod" POD "/" ID, .job = NULL, .step = NULL, .pod = NULL, .container = ID},
        {.path = "/kubepods/pod1234"},
        {.path = "/docker/f" ID},
        {.path = "/docker/" ID "0"},
        {.path = "/lxc/a b"},
        {.path = "/lxc/a\"b"},
        {.path = "/x\nforged/slurm/uid_0/job_1"},
        {"/system.slice/a b.service", .job = NULL, .step = NULL, .pod = NULL,
         .container = NULL, .unit = "a\\040b.service"},
    };
    ASSERT_FORMS(forms);
}

TEST_CASE(long_parts_and_paths_end_where_their_buffers_do)
{
    enum { LONG = 6000 };
    static char text[LONG + 128];
    cgroup_t group;
    for (size_t length = 240; length < 270; length++) {
        memset(text, 0, sizeof(text));
        memcpy(text, "0::/", 4);
        memset(text + 4, 'u', length);
        strcat(text, ".service\n");
        cgroup_parse(text, &group);
        assert_true(strlen(group.unit) < CGROUP_UNIT_BYTES);
    }
    memcpy(text, "0::/", 4);
    for (size_t i = 4; i < LONG; i += 2) {
        memcpy(text + i, "a/", 2);
    }
    strcpy(text + LONG, "docker/" ID "\n");
    cgroup_parse(text, &group);
    assert_string_equal(group.container, ID); /* beyond the end of the path */
}

TEST_CASE(a_label_is_short)
{
    static const char *const labels[][2] = {
        {"/slurm/uid_1/job_5/step_batch", "slurm 5.batch"},
        {"/slurm/uid_1/job_5", "slurm 5"},
        {"/kubepods/pod" POD "/" ID, "pod 4a163a05"},
        {"/docker/" ID, "container 0123456789ab"},
        {"/lxc/web", "container web"},
        {"/system.slice/ssh.service", "ssh.service"},
        {"/", ""},
    };
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        char text[512], label[CGROUP_LABEL_BYTES];
        cgroup_t group;
        snprintf(text, sizeof(text), "0::%s\n", labels[i][0]);
        cgroup_parse(text, &group);
        cgroup_label(&group, label);
        assert_string_equal(label, labels[i][1]);
    }
}

TEST_CASE(the_groups_of_this_process_can_be_read)
{
    cgroup_t group;
    assert_true(cgroup_of(getpid(), &group));
    assert_int_equal(group.path[0], '/');
    assert_false(cgroup_of(0, &group));
    assert_string_equal(group.path, "");
}
