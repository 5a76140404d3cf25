#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: python_wheel.sh SOURCE LIBRARY PYTHON STAGE
#
# Builds the wheel as docs/python.md says, from a copy of the sources, installs it into an empty
# virtual environment without a network, and runs a program there: with the library that the wheel
# carries, and with the installed one that RMM_C_LIBRARY names; and as rmm in the ways of that page.
# Then builds over the installed library, without a copy in the wheel; and once more from a source
# distribution.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
source=$1 library=$(realpath "$2") python=$3 stage=$4
unset PYTHONPATH
export CFLAGS=-O0 # the quickest: it is built three times

mkdir -p "$work/tree/lib"
cp -r "$source/python" "$source/include" "$source/LICENSE" "$work/tree/"
cp -r "$source/lib/node" "$source/lib/segment" "$work/tree/lib/"
command=$(page_block "$source/docs/python.md" "sh wheel" | sed -n '/pip wheel/s/^[^ ]* pip/pip/p')
[ -n "$command" ] || die "docs/python.md has no command that builds the wheel"

build() { # FOLDER [VARIABLE...]: a wheel in it
    mkdir "$work/$1"
    (cd "$work/tree" && env "${@:2}" "$python" -m ${command/.\/python/--quiet -w $work/$1 ./python}) \
        >"$work/$1.log" 2>&1 || die "$(cat "$work/$1.log")"
    rm -rf "$work/tree/python/build" "$work/tree/python/"*.egg-info
}

install() { # WHEEL...: into a new environment, $work/venv, that has nothing but Python
    rm -rf "$work/venv"
    "$python" -m venv --without-pip "$work/venv" # the pip that is there will do
    "$python" -m pip --python "$work/venv/bin/python" install --quiet --no-index --disable-pip-version-check "$@"
}

cat >"$work/program.py" <<'END'
import rmm_c as rmm

pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), "1MiB")
rmm.mr.set_current_device_resource(pool)
buffer = rmm.DeviceBuffer.to_device(b"from a wheel")
assert rmm.open_tree().process().devices[0].current_bytes == 12
print(buffer.tobytes().decode(), rmm.__version__, rmm._core.library_path(), rmm.__file__)
END

expect() { # PATTERN [VARIABLE...]: the program runs with a library of such a path
    local output
    output=$(cd "$work" && env "${@:2}" "$work/venv/bin/python" "$work/program.py") || die "$output"
    # shellcheck disable=SC2053
    [[ $output == "from a wheel "*" "$1" $work/venv/"* ]] || die "expected $1, got: $output"
    echo "$output"
}

version=$(sed -nE 's/^#define RMM_C_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' \
    "$source/include/rmm/version.h" | paste -sd .)
build carries RMM_C_LIBRARY="$library"
[ -e "$work/carries/rmm_c-$version"-*.whl ] || die "no wheel of version $version: $(ls "$work/carries")"
"$python" -m zipfile -l "$work"/carries/*.whl >"$work/list"
for file in rmm_c/py.typed rmm_c/_core.pyi rmm_c/librmm-c.so rmm_c/librmm-sim.so rmm_c/mr/__init__.py rmm_c/rapids/bridge.cpp \
    rmm_c/include/rmm/rmm.h rmm_c/include/rmm/cxx/rapids.hpp rmm_c/_lib/memory_resource.py \
    rmm_c/alias/path/rmm/__init__.py; do
    grep -q "^$file" "$work/list" || die "the wheel lacks $file: $(cat "$work/list")"
done
! grep -E '^rmm/|as_rmm|tests/|benchmarks/|\.c ' "$work/list" || die "the wheel has more than the package"
install "$work"/carries/*.whl
expect "$work/venv/lib/*/rmm_c/librmm-c.so."*
installed=$(realpath "$(library_folder "$stage")/librmm-c.so")
expect "$installed" RMM_C_LIBRARY="$installed"

as_rmm() { # [VARIABLE...]: import rmm is the package of the environment
    local output
    output=$(cd "$work" && env "$@" "$work/venv/bin/python" -c "import rmm.mr; print(rmm.mr.__file__)" 2>&1)
    [[ $output == "$work/venv/"*/rmm_c/mr/__init__.py ]] || { echo "$output"; return 1; }
}
output=$(as_rmm) && die "the wheel alone has a package rmm"
[[ $output == *"No module named 'rmm'"* ]] || die "unclear: $output"
folder=$("$work/venv/bin/python" -m rmm_c.alias)
as_rmm PYTHONPATH="$folder" || die "$folder does not make it rmm"
"$python" -m pip wheel --quiet --no-deps --no-build-isolation -w "$work/as_rmm" "$work/tree/python/as_rmm" \
    >"$work/as_rmm.log" 2>&1 || die "$(cat "$work/as_rmm.log")"
"$python" -m zipfile -l "$work"/as_rmm/*.whl | grep -v dist-info | grep -q '^rmm/__init__.py' ||
    die "rmm-c-as-rmm lacks its file"
install "$work"/carries/*.whl "$work"/as_rmm/*.whl
as_rmm || die "rmm-c-as-rmm does not make it rmm"

build bare PKG_CONFIG_PATH="$(library_folder "$stage")/pkgconfig"
"$python" -m zipfile -l "$work"/bare/*.whl | grep -q 'librmm-c.so' && die "the wheel carries a library"
install "$work"/bare/*.whl
expect "$(library_folder "$stage")/librmm-c.so.*" LD_LIBRARY_PATH="$(library_folder "$stage")"
output=$("$work/venv/bin/python" -c "import rmm_c" 2>&1) && die "it ran without a library: $output"
[[ $output == *"ImportError: librmm-c was not found"*RMM_C_LIBRARY* ]] || die "unclear: $output"

# From the source distribution alone: the clone is gone.
(cd "$work/tree/python" && "$python" -W ignore setup.py --quiet sdist --dist-dir "$work/sdist") \
    >"$work/sdist.log" 2>&1 || die "$(cat "$work/sdist.log")"
rm -rf "$work/tree"
tar -tzf "$work"/sdist/*.tar.gz >"$work/list"
for file in LICENSE tree/include/rmm/rmm.h tree/lib/segment/segment_reader.c src/module.h rmm_c/rapids/bridge.cpp; do
    grep -q "^[^/]*/$file$" "$work/list" || die "the source distribution lacks $file: $(cat "$work/list")"
done
env RMM_C_LIBRARY="$library" "$python" -m pip wheel --quiet --no-deps --no-build-isolation \
    -w "$work/again" "$work"/sdist/*.tar.gz >"$work/again.log" 2>&1 || die "$(cat "$work/again.log")"
install "$work"/again/*.whl
expect "$work/venv/lib/*/rmm_c/librmm-c.so."*
tar -xzf "$work"/sdist/*.tar.gz -C "$work"
(cd "$work"/rmm*-"$version" && "$python" -W ignore setup.py --quiet sdist --dist-dir "$work/second") \
    >"$work/second.log" 2>&1 || die "$(cat "$work/second.log")"
diff <(tar -tzf "$work"/sdist/*.tar.gz | sort) <(tar -tzf "$work"/second/*.tar.gz | sort) ||
    die "a source distribution of the source distribution is another one"
