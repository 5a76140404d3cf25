#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bridge.sh SOURCE LIBRARY VERSION FOLDER PYTHON PACKAGE
#
# With RAPIDS RMM of this version, real headers and library, over the simulated GPU: the bridge in
# C++ and in Python, and what docs/rapids.md shows. FOLDER keeps RMM. PACKAGE: where rmm_c is.
set -euo pipefail
source=$(cd "$1" && pwd) library=$(realpath "$2") version=$3 folder=$4 python=$5 package=$6
here=$source/tests/rapids
. "$source/tests/abi/common.sh"
environment=$folder/$version
status=0
"$here/environment" "$version" "$environment" "$python" || status=$?
if [ $status -eq 75 ] && [ -z "${CI:-}" ]; then
    exit 77
fi
[ $status -eq 0 ] || exit 1

python=$environment/bin/python
site=$(echo "$environment"/lib/python3*/site-packages)
cuda=$site/nvidia/cu13
flags=(-Wall -Wextra -Wshadow -Werror "-I$source/include" -DNDEBUG) # of RMM: its debug build needs CUDA
for part in "$site/librmm/include/rapids" "$site/librmm/include" "$site/rapids_logger/include" "$cuda/include"; do
    flags+=(-isystem "$part")
done
libraries=("$library" "$site/librmm/lib64/librmm.so" "$site/rapids_logger/lib64/librapids_logger.so" "$cuda/lib/libcudart.so.13")
standards=(20)
[[ $version > 26 ]] || standards+=(17)
rpath=$(printf '%s:' "$(dirname "$library")" "$site/librmm/lib64" "$site/rapids_logger/lib64" "$cuda/lib")

compile() { # SOURCE PROGRAM FLAG...
    ${CXX:-c++} "${flags[@]}" "${@:3}" "$1" -o "$2" "${libraries[@]}" -pthread "-Wl,-rpath,$rpath"
}
for standard in "${standards[@]}"; do
    compile "$here/bridge.cpp" "$work/bridge" "-std=c++$standard"
    RMM_SIM_DEVICES=2 RMM_SIM_VIOLATION=abort RMM_LOG_LEVEL=critical "$work/bridge"
done
# clang before 15 or so refuses RMM's own headers: an attribute of a namespace
if clang++ "${flags[@]}" -std=c++20 -fsyntax-only -x c++ - <<<'#include <rmm/error.hpp>' 2>/dev/null; then
    clang++ "${flags[@]}" "-std=c++${standards[0]}" -fsyntax-only "$here/bridge.cpp"
fi

# What the page shows. The current device is CUDA's business, so here it is device 0 by name.
page=$source/docs/rapids.md
era=by-pointer
[[ $version < 26.06 ]] || era=by-value
{
    page_block "$page" "cpp $era"
    echo 'int main() { use_our_pool(); }'
} | sed 's/set_current_device_resource(/set_per_device_resource(rmm::cuda_device_id{0}, /' >"$work/page.cpp"
grep -q set_per_device "$work/page.cpp" || die "docs/rapids.md has no block of cpp $era"
compile "$work/page.cpp" "$work/page" -std=c++20
"$work/page"

export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 RMM_C_CACHE=$work/cache
"$python" -m pytest -q -p no:cacheprovider --basetemp="$work/pytest" "$here/test_bridge.py"
page_block "$page" python >"$work/page.py"
"$python" - "$work/page.py" <<'END'
import doctest, sys
import rmm
rmm.mr.set_current_device_resource = lambda mr: rmm.mr.set_per_device_resource(0, mr)
rmm.mr.get_current_device_resource = lambda: rmm.mr.get_per_device_resource(0)
text = open(sys.argv[1]).read()
examples = doctest.DocTestParser().get_doctest(text, {}, "docs/rapids.md", None, 0)
assert len(examples.examples) > 5
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
sys.exit(doctest.DocTestRunner(optionflags=flags).run(examples).failed != 0)
END
echo "RMM $version: C++${standards[*]}, Python and docs/rapids.md"
