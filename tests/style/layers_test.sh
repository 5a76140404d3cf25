#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plants one violation at a time in a small tree and expects tests/style/layers to name it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_tree() {
    rm -rf "$work/tree"
    mkdir -p "$work"/tree/{include/rmm,lib/core,lib/base,lib/driver/sim,lib/segment,lib/publish,lib/pool,lib/resources,fusefs/model,fusefs/session,tools/replay,tools/inject}
    cd "$work/tree"
    echo '#include <stdint.h>' >include/rmm/resource.h
    echo '#include <stdint.h>' | tee lib/driver/driver.h lib/driver/sim/internal.h lib/publish/accounting.h \
        lib/segment/segment_reader.h lib/pool/index.h lib/pool/blocks.h >/dev/null
    echo '#include "driver/driver.h"' >lib/base/resource.c
    echo '#include "pool/index.h"' >lib/pool/index.c
    printf '#include "%s"\n' pool/blocks.h pool/index.h >lib/pool/blocks.c
    printf '#include "%s"\n' pool/blocks.h driver/driver.h >lib/pool/engine.h
    echo '#include "pool/engine.h"' | tee lib/pool/engine.c lib/resources/pool.c >/dev/null
    printf '#include <fuse_lowlevel.h>\n' >fusefs/session/ll_session.h
    echo '#include <cupti.h>' >tools/inject/inject.c
    echo '#include <rmm/resource.h>' >tools/replay/main.c
    cd "$here"
}

expect_caught() { # FILE INCLUDE WHAT
    make_tree
    mkdir -p "$(dirname "$work/tree/$1")"
    echo "#include $2" >>"$work/tree/$1"
    if output=$("$here/layers" "$work/tree" 2>&1); then
        echo "not caught: $1 includes $2" >&2
        exit 1
    fi
    case "$output" in
    "$1":*"$3"*) ;;
    *)
        printf 'wrong complaint about %s including %s:\n%s\n' "$1" "$2" "$output" >&2
        exit 1
        ;;
    esac
}

make_tree
"$here/layers" "$work/tree" >/dev/null || {
    echo "a tree that follows the arrows was refused" >&2
    exit 1
}
expect_caught lib/pool/index.c '"pool/blocks.h"' lib/pool/blocks.h
expect_caught lib/pool/index.c '<stdio.h>' stdio.h
expect_caught lib/pool/blocks.c '"pool/engine.h"' lib/pool/engine.h
expect_caught lib/pool/blocks.c '"driver/driver.h"' lib/driver/driver.h
expect_caught lib/pool/blocks.c '<pthread.h>' pthread.h
expect_caught lib/pool/blocks.c '<rmm/resource.h>' rmm/resource.h
expect_caught lib/pool/engine.c '"driver/sim/internal.h"' lib/driver/sim/internal.h
expect_caught lib/pool/engine.c '"publish/accounting.h"' lib/publish/accounting.h
expect_caught lib/pool/engine.c '<stdio.h>' stdio.h
expect_caught lib/core/bits.c '"publish/accounting.h"' lib/publish/accounting.h
expect_caught lib/segment/segment_reader.c '"publish/accounting.h"' lib/publish/accounting.h
expect_caught fusefs/model/tree.c '"publish/accounting.h"' lib/publish/accounting.h
expect_caught fusefs/model/tree.c '<fuse_lowlevel.h>' fuse_lowlevel.h
expect_caught fusefs/model/tree.c '<rmm/resource.h>' include/rmm/resource.h
expect_caught tools/replay/main.c '"driver/driver.h"' lib/driver/driver.h
expect_caught tools/replay/main.c '<cupti.h>' cupti.h
expect_caught lib/resources/pool.c '<cuda_runtime.h>' cuda_runtime.h
expect_caught include/rmm/resource.h '<pthread.h>' pthread.h
expect_caught lib/resources/pool.c '"pool_inner.h"' 'no file of ours'
expect_caught lib/elsewhere/new.c '<stdint.h>' 'no line of'
echo "20 planted violations were caught"
