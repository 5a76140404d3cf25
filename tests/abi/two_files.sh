#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: two_files.sh INCLUDE_FOLDER LIBRARY
# Two files of the shared library in one process, as docs/defaults.md says: what asks for the soname
# gets the one that is there, whatever its folder. What names a file by its path gets that file, and
# so two copies, which one line says.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
soname=$(readelf -d "$2" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
for folder in first second; do
    mkdir "$work/$folder"
    cp "$2" "$work/$folder/$soname"
    cp "${2%/*}"/librmm-sim.so* "$work/$folder/"
done
ln -s "../first/$soname" "$work/second/link.so"
${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -I"$1" "$here/two_copies.c" -o "$work/two_copies" \
    "$work/first/$soname" "-Wl,-rpath,$work/first" -ldl
echo 'extern const char *rmm_version_string(void);
const char *plugin_version(void);
const char *plugin_version(void) { return rmm_version_string(); }' |
    ${CC:-cc} -shared -fPIC -x c - -o "$work/plugin.so" -x none "$work/second/$soname" "-Wl,-rpath,$work/second"

copies() { # FILE: how many copies there are once the file is loaded too
    RMM_DRIVER=sim RMM_PUBLISH=0 RMM_LOG_LEVEL=warn "$work/two_copies" "$1" linked loaded 2>"$work/err" ||
        { cat "$work/err"; die "two_copies $1 failed"; }
    echo $((1 + $(grep -c "two copies of librmm-c in this process" "$work/err" || true)))
}
[ "$(copies "$work/plugin.so")" = 1 ] || die "a plugin found by the soname: $(cat "$work/err")"
[ "$(copies "$soname")" = 1 ] || die "loaded by the soname: $(cat "$work/err")"
[ "$(copies "$work/second/link.so")" = 1 ] || die "loaded by a link to the same file: $(cat "$work/err")"
[ "$(copies "$work/second/$soname")" = 2 ] || die "loaded by the path of another file: not reported"
grep -q "$work/first/$soname and .*$work/second/$soname" "$work/err" || die "the files are not named: $(cat "$work/err")"
RMM_PUBLISH=0 RMM_LOG_LEVEL=off "$work/two_copies" "$work/second/$soname" apart || die "the two files share a default"
echo "one copy by the soname, two by the paths of two files"
