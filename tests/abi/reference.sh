#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: reference.sh [--write] SOURCE LIBRARY
# The library has the ABI of its version: the functions, parameters and public types of
# librmm-c-VERSION.abi.gz beside this script, and the symbols of the Debian package. Whatever is
# added is recorded there with --write; what changes or goes needs another soname, and so a new
# reference (docs/packages.md).
set -euo pipefail
. "$(dirname "$0")/common.sh"
write=
[ "$1" != --write ] || { write=yes && shift; }
source=$1 library=$(readlink -f "$2")
soname=$(readelf -d "$library" | sed -n 's/.*Library soname: \[librmm-c\.so\.\(.*\)\]/\1/p')
reference=$source/tests/abi/librmm-c-$soname.abi.gz
symbols=$source/packaging/debian/librmm-c$soname.symbols
version=$(sed -n 's/^project(rmm-c VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")

for tool in abidiff dpkg-gensymbols; do
    command -v $tool >/dev/null || { echo "skipped: no $tool (Debian: abigail-tools, dpkg-dev)"; exit 77; }
done

abidw --headers-dir "$source/include" --drop-private-types --drop-undefined-syms --no-show-locs --no-corpus-path \
    --no-comp-dir-path --no-elf-needed "$library" >"$work/now.abi"
[ "$(grep -c '<function-decl' "$work/now.abi")" -gt 100 ] || die "$library has no debug information"

if [ -n "$write" ]; then
    gzip -9nc "$work/now.abi" >"$reference"
    dpkg-gensymbols -q -c0 -P"$work" -plibrmm-c"$soname" -v"$version" -e"$library" -I"$symbols" -O"$symbols" >/dev/null
    sed -i "1s/^\(librmm-c[^ ]* [^ ]*\) .*/\1 #MINVER#/" "$symbols"
    echo "written: $reference $symbols"
    exit 0
fi

[ -e "$reference" ] || die "no reference for $soname: tests/abi/reference.sh --write $source $library"
gunzip -c "$reference" >"$work/then.abi"
abidiff --fail-no-debug-info "$work/then.abi" "$work/now.abi" >"$work/differences" 2>&1 || {
    cat "$work/differences"
    die "not the ABI of $soname. If it only grew: tests/abi/reference.sh --write $source $library"
}
# a revision: what is as new as the version may still go
dpkg-gensymbols -c4 -P"$work" -plibrmm-c"$soname" -v"$version-1" -e"$library" -I"$symbols" -O/dev/null >"$work/symbols" 2>&1 || {
    cat "$work/symbols"
    die "${symbols##*/} names other symbols than the library"
}
echo "the ABI of $soname: $(grep -c '<function-decl' "$work/now.abi") functions"
