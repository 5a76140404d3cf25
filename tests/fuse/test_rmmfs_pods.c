/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of pods in kubelet's folders for logs.
 */
#include "harness/harness.h"

#include "programs/pods.h"

#define UID "4a163a05-439d-484b-8e53-2968bc15824f"

TEST_CASE(a_folder_names_namespace_and_pod)
{
    char pod[JOB_POD_BYTES];
    assert_true(pods_parse("team-a_train-0_" UID, UID, pod));
    assert_string_equal(pod, "team-a/train-0");
    assert_true(pods_parse("kube-system_etcd-node.example_" UID, UID, pod));
    assert_string_equal(pod, "kube-system/etcd-node.example");
}

TEST_CASE(another_name_is_none)
{
    static const char *const names[] = {
        "",
        "_",
        "__",
        UID,
        "team_" UID,
        "_train_" UID,
        "team__" UID,
        "team_train_",
        "team_train_" UID "0",
        "team\"_train_" UID,
        "team_tr/ain_" UID,
        "..",
        "team_train_x_" UID};
    char pod[JOB_POD_BYTES] = "before";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(pods_parse(names[i], UID, pod));
    }
    assert_string_equal(pod, "before");
}
