#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: static_library.sh SOURCE RMM_CUDA SHARED_LIBRARY
# Builds and installs librmm-c.a, and the C consumer against it both ways. A program that is
# linked with it and loads SHARED_LIBRARY has two copies of the library, which one line says.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

"$cmake" -S "$1" -B "$work/build" -G Ninja -DBUILD_SHARED_LIBS=OFF -DRMM_CUDA="$2" \
    -DRMM_BUILD_TESTS=OFF -DRMM_BUILD_TOOLS=OFF -DRMM_BUILD_FUSEFS=OFF -DRMM_BUILD_INJECT=OFF \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O0 -DNDEBUG" >"$work/log" 2>&1 || { cat "$work/log"; die "configure failed"; }
"$cmake" --build "$work/build" -j 2 >"$work/log" 2>&1 || { tail -n 40 "$work/log"; die "build failed"; }
"$cmake" --install "$work/build" --prefix "$work/stage" >/dev/null
[ -z "$(find "$work/stage" -name '*.so*' ! -name 'librmm-sim.so*')" ] || die "a static build installed a shared library"

"$here/consumer.sh" c find_package "$work/stage"
"$here/consumer.sh" c pkg_config "$work/stage"

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(library_folder "$work/stage")/pkgconfig
# shellcheck disable=SC2046 # flags are words
${CC:-cc} -std=gnu11 -Wall -Wextra -Werror "$here/two_copies.c" -o "$work/two_copies" \
    $(pkg-config --static --cflags --libs rmm-c) -ldl

warnings() { # USE...: how often two copies are named when they are used in this order
    "$work/two_copies" "$@" 2>"$work/err" || { cat "$work/err"; die "two_copies $* failed"; }
    grep -c "two copies of librmm-c in this process" "$work/err" || true
}
for order in "linked loaded" "loaded linked" "loaded linked loaded linked"; do
    # shellcheck disable=SC2086 # a list
    [ "$(warnings "$3" $order)" = 1 ] || { cat "$work/err"; die "$order: not exactly one warning"; }
done
grep -q "in the program itself" "$work/err" || die "the warning does not name the program"
grep -q "librmm-c.so" "$work/err" || die "the warning does not name the library"
[ "$(warnings "$3" linked linked)" = 0 ] || die "a copy that is loaded, but not used, was reported"
[ "$(warnings "$3" loaded loaded)" = 0 ] || die "a copy that is linked, but not used, was reported"

# A plugin with the archive stays when it is closed: threads that end call it.
plugin='#include <rmm/rmm.h>
RMM_API int use(void);
int use(void) {
    void *ptr = NULL;
    rmm_resource_t *mr = NULL;
    if (rmm_cuda_resource_create(&mr) != RMM_OK ||
        rmm_resource_alloc(mr, 1000, 0, RMM_STREAM_PER_THREAD, &ptr) != RMM_OK) return 1;
    rmm_resource_dealloc(mr, ptr, 1000, 0, RMM_STREAM_PER_THREAD);
    rmm_resource_release(mr);
    return 0;
}'
host='#include <dlfcn.h>
#include <pthread.h>
static pthread_barrier_t at;
static void *run(void *use) {
    int failed = ((int (*)(void))use)();
    pthread_barrier_wait(&at);
    pthread_barrier_wait(&at);
    return failed ? use : 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    void *failed = 0, *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!plugin || pthread_barrier_init(&at, 0, 2) ||
        pthread_create(&thread, 0, run, dlsym(plugin, "use"))) return 1;
    pthread_barrier_wait(&at);
    dlclose(plugin);
    pthread_barrier_wait(&at);
    pthread_join(thread, &failed);
    return failed != 0;
}'
# shellcheck disable=SC2046 # flags are words
${CC:-cc} -shared -fPIC -x c - -x none -o "$work/plugin.so" $(pkg-config --static --cflags --libs rmm-c) <<<"$plugin"
${CC:-cc} -x c - -o "$work/host" -pthread -ldl <<<"$host"
LD_LIBRARY_PATH=$(library_folder "$work/stage") "$work/host" "$work/plugin.so" || die "a thread that used a closed plugin with the archive could not end"
