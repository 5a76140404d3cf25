#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ten seconds of tests/fuse/soak: hostile files, killed programs and every tool, all at once.
# In a cgroup of 128 MiB where one can be made.
exec "$(dirname "$0")/soak" --any-memory 10
