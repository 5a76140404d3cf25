#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: installed_tree.sh SOURCE BUILD PREFIX BUILD_TYPE
# The installed tree has what it should have, nothing else, no path of the machine that
# built it, and its programs start.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 build=$2 stage=$3 build_type=$4

# Every public header is installed, and no other.
diff <(cd "$source/include" && find . -type f | sort) \
    <(cd "$stage/include" && find . -type f ! -path './rmm-c/*' | sort) || die "installed headers differ"
diff <(cd "$source/compat" && find . -name '*.h' -o -name '*.hpp' | sort) \
    <(cd "$stage/include/rmm-c/compat" && find . -type f | sort) || die "installed headers of compat differ"

libraries=$(library_folder "$stage")
for file in "$libraries/librmm-sim.so" "$libraries/pkgconfig/rmm-c.pc" "$libraries/pkgconfig/rmm-sim.pc" \
    "$libraries/cmake/rmm-c/rmm-c-config.cmake" \
    "$libraries/cmake/rmm-c/rmm-c-config-version.cmake" \
    "$libraries/cmake/rmm-c/rmm-c-targets.cmake"; do
    [ -s "$file" ] || die "not installed: $file"
done

# Kinds of files that have no place there.
if find "$stage" ! -path '*/examples/*' \( -name '*.o' -o -name '*_test*' -o -name 'test_*' -o -name '*.c' \
    -o -name '*.in' -o -name '*cmocka*' \) | grep .; then
    die "installed, but of no use to anybody"
fi

# The unit starts the program of the prefix that was named at the installation.
unit=$stage/lib/systemd/system/rmmfs.service
if [ -e "$stage/bin/rmmfs" ]; then
    grep -qx "ExecStart=$stage/bin/rmmfs -f /rmm" "$unit" || die "starts another: $(grep ExecStart= "$unit")"
    for kind in tmpfiles sysusers; do
        cmp "$source/fusefs/rmmfs.$kind.conf" "$stage/lib/$kind.d/rmmfs.conf" || die "no $kind.d/rmmfs.conf"
    done
fi

# No path of the build, in texts or in programs (debug information too, but in a debug build).
# RmmTargets.cmake puts /usr/src/rmm-c in the place of the clone's path: where that ends with
# the clone's path, as with /src/rmm-c, it is no path of the build.
mapped=/usr/src/rmm-c
binary=$([ "$build_type" = Debug ] && echo -I || true)
if [ "$source" = "$mapped" ]; then
    echo "paths of the build not looked for: they are those that $mapped gives to all builds"
else
    elsewhere=
    [[ $mapped != *"$source" ]] || elsewhere="(?<!\\Q${mapped%"$source"}\\E)"
    status=0
    # shellcheck disable=SC2086 # empty or one option
    LC_ALL=C grep -rlP $binary --exclude rmmfs.service --exclude rmm-exporter.service -e "$elsewhere\\Q$source/\\E|$elsewhere\\Q$build\\E" "$stage" || status=$?
    [ "$status" = 1 ] || die "these files name $source or the build folder (grep: $status)"
fi

# Each program answers --help and --version, whatever folder it was moved to.
cp -r "$stage" "$work/moved"
for program in "$work"/moved/bin/*; do
    [ -e "$program" ] || continue
    "$program" --help >"$work/help" 2>&1 </dev/null || die "${program##*/} --help failed: $(cat "$work/help")"
    [ -s "$work/help" ] || die "${program##*/} --help says nothing"
    "$program" --version >"$work/version" 2>&1 </dev/null || die "${program##*/} --version failed"
    grep -q '[0-9]\.[0-9]' "$work/version" || die "${program##*/} --version: $(cat "$work/version")"
    echo "starts: ${program##*/}"
done
