#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: wheel.sh SOURCE STAGE PYTHON TOOLS
#
# The wheel of packaging/build-wheel, of the tree that is installed in STAGE: one for every Python
# from 3.9 on, with all that it needs. In an empty environment, where nothing leads to the build,
# its package and its programs run. Beside an installed library of the same soname it takes the one
# that is there, and says so if that is older.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
source=$1 stage=$2 python=$3
unset PYTHONPATH LD_LIBRARY_PATH RMM_C_LIBRARY
export RMM_LOG_LEVEL=critical

wheel=$(CFLAGS=-O0 PYTHON=$python RMM_WHEEL_TOOLS=$4 "$source/packaging/build-wheel" "$work/out" "$stage")
version=$(sed -nE 's/^#define RMM_C_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' \
    "$source/include/rmm/version.h" | paste -sd .)
[[ ${wheel##*/} == "rmm_c-$version-cp39-abi3-manylinux_2_"[0-9]*"_$(uname -m).whl" ]] || die "the name: $wheel"
"$python" -m zipfile -e "$wheel" "$work/unpacked"
"$python" -m zipfile -l "$wheel" | awk 'NR > 1 { print $1 }' >"$work/list"
soname=$(basename "$(find "$work/unpacked/rmm_c" -name 'librmm-c.so.*')")
for file in rmm_c/_core.abi3.so rmm_c/_segments.abi3.so rmm_c/"$soname" rmm_c/"${soname/rmm-c/rmm-sim}" \
    rmm_c/bin/rmm-{bench,replay,run,timeline,top} rmm_c/lib/rmm-c/librmm-inject.so rmm_c/include/rmm/rmm.h \
    rmm_c/licenses/libjansson4 rmm_c-"$version".dist-info/licenses/LICENSE; do
    grep -qxF "$file" "$work/list" || die "the wheel lacks $file: $(cat "$work/list")"
done
! grep -E '^tests/|\.c$|benchmarks|python3' "$work/list" || die "the wheel has more than it should"
# nothing but folders of the wheel is searched, and of the interpreter only what 3.9 has
while read -r file; do
    ! readelf -d "$file" 2>/dev/null | grep -E 'R(UN)?PATH' | grep -vE '\[\$ORIGIN[^:]*(:\$ORIGIN[^:]*)*\]' ||
        die "$file is looked for elsewhere"
done < <(find "$work/unpacked" -type f ! -name '*.py' ! -name '*.h*')
! nm -D "$work/unpacked/rmm_c/_core.abi3.so" | grep -E ' U _?Py(Interpreter.*Main|Mem_Raw|Object_(CallOneArg|Vectorcall)|Weakref_GetRef|Type_GetName)' ||
    die "the extension needs what the limited API of 3.9 does not have"

"$python" -m venv --without-pip "$work/venv"
"$python" -m pip --python "$work/venv/bin/python" install --quiet --no-index --no-deps --disable-pip-version-check "$wheel"
bin=$work/venv/bin
cat >"$work/program.py" <<'END'
import rmm_c as rmm

pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), "1MiB")
buffer = rmm.DeviceBuffer.to_device(b"from a wheel", mr=pool)
staging = rmm.DeviceBuffer(size=3, mr=rmm.mr.PinnedHostMemoryResource())
memoryview(staging)[:] = b"abc"
assert staging.tobytes() == b"abc"
print(buffer.tobytes().decode(), rmm._core.library_path())
END
cd "$work"
expect() { # LIBRARY COMMAND...
    local output
    output=$("${@:2}") || die "$output"
    [[ $output == *"from a wheel $1"* ]] || die "expected $1, got: $output"
}
own=$(echo "$work"/venv/lib/python3.*/site-packages/rmm_c/"$soname")
expect "$own" "$bin/python" program.py
for program in rmm-bench rmm-replay rmm-run rmm-timeline rmm-top; do
    [ "$("$bin/$program" --version)" = "$program $version" ] || die "$program --version"
done
"$bin/rmm-top" --once >top.txt || die "rmm-top --once"
"$bin/rmm-run" -- "$bin/python" program.py >out.txt 2>&1 || die "rmm-run: $(cat out.txt)"
grep -q "program.py:4 in <module>" out.txt || die "rmm-run names no line: $(cat out.txt)"
"$bin/rmm-replay" "$source/tests/data/resnet_train.csv.gz" >replay.txt || die "rmm-replay: $(cat replay.txt)"

# Another file of the soname, as of a system's package, is in the process already.
system=$(realpath "$(library_folder "$stage")/$soname")
load="import ctypes, runpy, sys; ctypes.CDLL(sys.argv[1]); runpy.run_path('program.py')"
expect "$system" "$bin/python" -c "$load" "$system"
refuses() { # LIBRARY PATTERN [VARIABLE...]
    local output
    output=$(env "${@:3}" "$bin/python" -c "$load" "$1" 2>&1) && die "it runs with $1: $output"
    # shellcheck disable=SC2053
    [[ $output == *"ImportError: "$2 ]] || die "unclear: $output"
}
echo '#include <stdint.h>
uint32_t rmm_version(void);
uint32_t rmm_version(void) { return 1; }' >old.c
${CC:-cc} -shared -fPIC "-Wl,-soname,$soname" old.c -o librmm-c.so.old
refuses "$work/librmm-c.so.old" "$work/librmm-c.so.old is older than this rmm_c needs (*undefined symbol: rmm_*). *"
${CC:-cc} -shared -fPIC old.c -o old.so
refuses "$system" "$system is older than this rmm_c needs (its version is *). *" LD_PRELOAD="$work/old.so"
echo "${wheel##*/}, $(stat -c %s "$wheel") bytes"
