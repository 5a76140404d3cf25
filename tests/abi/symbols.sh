#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: symbols.sh LIBRARY INCLUDE_FOLDER
# What the library exports is what the public headers declare RMM_API, no more and no less, and
# each symbol carries a version node. dlopen() can load it. Programs ask for it by the part of its
# version that stands for what it promises: 0.MINOR, from 1.0 on MAJOR. The nodes begin with that too:
# otherwise a copy of another soname that was loaded with RTLD_GLOBAL could take the calls of this one.
set -eu
version=$(basename "$(readlink -f "$1")" | sed 's/^librmm-c\.so\.//')
case $version in
    0.*.*) promised=${version%.*} ;;
    *) promised=${version%%.*} ;;
esac
soname=$(readelf -d "$1" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
if [ "$soname" != "librmm-c.so.$promised" ]; then
    echo "the soname of version $version is $soname, not librmm-c.so.$promised" >&2
    exit 1
fi
have=$(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
want=$(cat "$2"/rmm/*.h "$2"/rmm/sys/*.h | tr '\n' ' ' | grep -oE 'RMM_API [^;(]*\(' |
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
unversioned=$(nm -D --defined-only "$1" | awk '$2 != "A" && $3 !~ /@/ { print $3 }')
if [ -n "$unversioned" ]; then
    echo "exported without a version: $unversioned" >&2
    exit 1
fi
other=$(nm -D --defined-only "$1" | sed -n 's/.*@//p' | sort -u | grep -vE "^RMM_$(echo "$promised" | sed 's/\./\\./')(\.|\$)" || true)
if [ -n "$other" ]; then
    echo "lib/librmm.map: nodes of another soname than $soname:" $other >&2
    exit 1
fi
# With initial-exec thread-local memory dlopen() fails where the loader has little room left.
if readelf -d "$1" | grep -q STATIC_TLS; then
    echo "needs static thread-local memory: programs that use dlopen() could not load it" >&2
    exit 1
fi
echo "$have" | wc -l | sed 's/$/ symbols, as the headers declare/'
