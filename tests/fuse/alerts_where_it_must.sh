#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each alert rule fires where it must, and is silent where it must: two nodes, two scrapes of one node,
# restarts, a daemon that is gone, rejected segments; leaks of 40 MiB an hour beside what is no leak.
# The rules' queries match by all labels, so that none mixes nodes.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
command -v promtool >/dev/null || skip "no promtool (Debian: prometheus)"
source=${test_path%/tests/fuse/*}
rules=$source/fusefs/monitoring/rmm.rules.yml

cp "$rules" "$source/tests/fuse/rmm.rules_test.yml" "$work"
promtool check rules "$work/rmm.rules.yml" >"$work/check" 2>&1 || fail "rules: $(cat "$work/check")"
promtool test rules "$work/rmm.rules_test.yml" >"$work/result" 2>&1 || fail "rules: $(cat "$work/result")"
python3 "$source/tests/fuse/leak_shapes.py" rmm.rules.yml "$source/tests/data/resnet_train.csv.gz" >"$work/leaks.yml"
promtool test rules "$work/leaks.yml" >"$work/result" 2>&1 || fail "leaks: $(cat "$work/result")"

# `on (...)` or `by (...)` without the labels of the target would join figures of several nodes.
! grep -nE '\b(on|by) \(' "$rules" | grep -v '(cluster, instance, job,' || fail "a rule that matches across nodes"
