#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: docs_names.sh SOURCE
# The functions, macros and statuses that docs/from-rmm.md names are in the public headers, and
# every creator of the headers is named there.
set -euo pipefail
cd "$1"
missing=0
while read -r name; do
    grep -rqw -- "$name" include/rmm || { echo "docs/from-rmm.md names $name, which no header has" >&2; missing=1; }
done < <(grep -oE '\b(rmm_[a-z0-9_]+\(|RMM_ERR_[A-Z_]+|RMM_DEVICE_[A-Z_]+)' docs/from-rmm.md | tr -d '(' | sort -u)
while read -r name; do
    grep -qw -- "$name" docs/from-rmm.md || { echo "docs/from-rmm.md does not name $name" >&2; missing=1; }
done < <(grep -ohE '\brmm_[a-z_]+_(resource|adaptor|pool)_create\(' include/rmm/*.h | tr -d '(' | sort -u)
# Of C++: what the third column of its tables names.
while read -r name; do
    grep -rqw -- "$name" include/rmm/cxx || { echo "docs/from-rmm.md names rmmc::$name, which no header has" >&2; missing=1; }
done < <(awk -F'|' 'NF == 5 { print $4 }' docs/from-rmm.md | grep -oE '`[a-z_]+[`(<]' | tr -d '`(<' | grep -v '^rmmc$' | sort -u)
[ $missing = 0 ] || exit 1
echo "docs/from-rmm.md: names are right"
