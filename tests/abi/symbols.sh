#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: symbols.sh rmm-c|rmm-sim LIBRARY INCLUDE_FOLDER
# What a library exports is what its public headers declare RMM_API, no more and no less, and
# each symbol carries a version node. dlopen() can load it. Programs ask for it by the part of its
# version that stands for what it promises: 0.MINOR, from 1.0 on MAJOR. The nodes begin with that too:
# otherwise a copy of another soname that was loaded with RTLD_GLOBAL could take the calls of this one.
set -eu
name=$1 library=$2 include=$3
version=$(basename "$(readlink -f "$library")" | sed "s/^lib$name\\.so\\.//")
case $version in
    0.*.*) promised=${version%.*} ;;
    *) promised=${version%%.*} ;;
esac
soname=$(readelf -d "$library" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
if [ "$soname" != "lib$name.so.$promised" ]; then
    echo "the soname of version $version is $soname, not lib$name.so.$promised" >&2
    exit 1
fi
case $name in
    rmm-c) node=RMM && headers=$(find "$include/rmm" -maxdepth 1 -name '*.h' ! -name sim.h; echo "$include"/rmm/sys/*.h) ;;
    rmm-sim) node=RMM_SIM && headers="$include/rmm/sim.h" ;;
esac
have=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    grep -vx rmm_sim_driver | sort) # the table of the simulated GPU, for librmm-c
# shellcheck disable=SC2086 # several words
want=$(cat $headers | tr '\n' ' ' | grep -oE 'RMM_API [^;(]*\(' |
    sed -n 's/.*[ *]\(rmm_[a-z0-9_]*\) *($/\1/p' | sort -u)
if [ "$have" != "$want" ]; then
    echo "exported and declared RMM_API in the headers differ (< library, > headers):" >&2
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    printf '%s\n' "$have" >"$temporary/have"
    printf '%s\n' "$want" >"$temporary/want"
    diff "$temporary/have" "$temporary/want" >&2 || true
    exit 1
fi
unversioned=$(nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /@/ { print $3 }')
if [ -n "$unversioned" ]; then
    echo "exported without a version: $unversioned" >&2
    exit 1
fi
other=$(nm -D --defined-only "$library" | sed -n 's/.*@//p' | sort -u | grep -vE "^${node}_$(echo "$promised" | sed 's/\./\\./')(\.|\$)" || true)
if [ -n "$other" ]; then
    echo "$name: nodes of another soname than $soname:" $other >&2
    exit 1
fi
# With initial-exec thread-local memory dlopen() fails where the loader has little room left.
if readelf -d "$library" | grep -q STATIC_TLS; then
    echo "needs static thread-local memory: programs that use dlopen() could not load it" >&2
    exit 1
fi
echo "$have" | wc -l | sed 's/$/ symbols, as the headers declare/'
