/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures and names call stacks: see call_stack.h.
 *
 * Fork: libunwind takes a lock of its own with all signals blocked, and calls the dynamic loader,
 * which has locks too. A child forked while another thread captures a stack would wait for such a
 * lock for ever, and even an alarm could not end it. So the child of a process that has loaded
 * libunwind uses backtrace(). Only the first call of backtrace() enters the loader, and the parent
 * has made that one. A fork waits while a thread loads libunwind.
 */
#include "adaptors/call_stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "core/assert.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "log/log.h"

/* The frames of rmm__call_stack_capture() and of the function that it calls. */
#define OWN_FRAMES 2u

typedef int (*backtrace_fn)(void **frames, int size);
typedef char *(*demangle_fn)(
    const char *name, char *buffer, size_t *length, int *status);

static rmm_mutex_t loading = RMM_MUTEX_INITIALIZER;
static _Atomic(bool) is_loaded; /* written under `loading`, as are the next two */
static backtrace_fn capture_frames = backtrace;
static const char *method = "backtrace";

static void leave_libunwind_in_child(void)
{
    capture_frames = backtrace;
    method = "backtrace";
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_CALL_STACKS, &loading, leave_libunwind_in_child);
}

/* dlsym() returns an object pointer, which C does not convert to a function pointer. */
static backtrace_fn find_backtrace(void *library, const char *name)
{
    backtrace_fn function = NULL;
    void *symbol = dlsym(library, name);

    memcpy(&function, &symbol, sizeof(function));
    return function;
}

/* When a thread ends, libunwind takes a lock and frees its memory for that thread. The thread
 * sanitizer has dropped the thread by then, and crashes. */
static bool is_under_thread_sanitizer(void)
{
    return dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}

static void load_locked(void)
{
    void *libunwind = NULL;
    void *frames[1];
    backtrace_fn found = NULL;

    if (!is_under_thread_sanitizer()) {
        libunwind = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    }
    if (libunwind != NULL) {
        found = find_backtrace(libunwind, "unw_backtrace");
    }
    (void)backtrace(frames, 1); /* loads its library now, not in a child */
    if (found != NULL) {
        capture_frames = found;
        method = "libunwind";
        (void)capture_frames(frames, 1); /* for the same reason */
    }
}

static void load_once(void)
{
    RMM_UNCANCELLED;
    rmm__mutex_lock(&loading);
    if (!atomic_load_explicit(&is_loaded, memory_order_relaxed)) {
        load_locked();
        /* release: pairs with prepare() */
        atomic_store_explicit(&is_loaded, true, memory_order_release);
    }
    rmm__mutex_unlock(&loading);
}

/* Logs without the lock, because the log's callback may call this function. */
void rmm__call_stack_prepare(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    /* acquire: pairs with load_once() */
    if (!atomic_load_explicit(&is_loaded, memory_order_acquire)) {
        load_once();
    }
    if (!atomic_flag_test_and_set_explicit(&said, memory_order_relaxed)) {
        rmm__log_debug("capturing call stacks with %s", method);
    }
}

const char *rmm__call_stack_method(void)
{
    return method;
}

__attribute__((noinline)) rmm_call_stack_t *rmm__call_stack_capture(uint32_t depth)
{
    RMM_UNCANCELLED;
    void *frames[RMM_CALL_STACK_DEPTH + OWN_FRAMES];
    rmm_call_stack_t *stack;
    uint32_t skipped = 0;
    int count;

    RMM_ASSERT(depth <= RMM_CALL_STACK_DEPTH);
    count = capture_frames(frames, (int)(depth + OWN_FRAMES));
    count = count > 0 ? count : 0;
    /* some methods begin with their own frame, some with their caller's */
    while (skipped < OWN_FRAMES && skipped < (uint32_t)count &&
           frames[skipped] != __builtin_return_address(0)) {
        skipped++;
    }
    if (skipped == OWN_FRAMES) { /* not found: keep all that fits */
        skipped = 0;
    }
    count -= (int)skipped;
    count = count < (int)depth ? count : (int)depth;
    stack = rmm__calloc(1, sizeof(*stack) + (size_t)count * sizeof(stack->frames[0]));
    if (stack != NULL) {
        stack->count = (uint32_t)count;
        memcpy(
            stack->frames, &frames[skipped], (size_t)count * sizeof(stack->frames[0]));
    }
    return stack;
}

/* --- names -------------------------------------------------------------------------- */

/* A return address may be the first of another function: look up the call before it. */
static bool look_up(const void *frame, Dl_info *info)
{
    return dladdr((const char *)frame - 1, info) != 0;
}

static const void *base_of(const void *frame)
{
    Dl_info info;

    return look_up(frame, &info) ? info.dli_fbase : NULL;
}

static const char own_place = 0;

size_t rmm__call_stack_own_frames(void *const *frames, size_t count)
{
    const void *own = base_of(&own_place + 1);
    const void *program = base_of((const char *)getauxval(AT_ENTRY) + 1);
    size_t skipped = 0;

    if (own == NULL || own == program) {
        return 0;
    }
    while (skipped < count && base_of(frames[skipped]) == own) {
        skipped++;
    }
    return skipped < count ? skipped : 0;
}

/* A C++ program has the demangler; a C program has nothing to demangle. */
static char *demangled(const char *name)
{
    demangle_fn demangle = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    int status = 0;

    if (symbol == NULL || strncmp(name, "_Z", 2) != 0) {
        return NULL;
    }
    memcpy(&demangle, &symbol, sizeof(demangle));
    return demangle(name, NULL, NULL, &status);
}

void rmm__call_stack_describe(void *frame, char text[RMM_FRAME_BYTES])
{
    uintptr_t address = (uintptr_t)frame;
    Dl_info info;
    char *name;

    if (!look_up(frame, &info) || info.dli_fname == NULL) {
        snprintf(text, RMM_FRAME_BYTES, "%p", frame);
        return;
    }
    if (info.dli_sname == NULL) { /* what addr2line takes */
        snprintf(
            text, RMM_FRAME_BYTES, "%p from %.300s+0x%" PRIxPTR, frame, info.dli_fname,
            address - (uintptr_t)info.dli_fbase);
        return;
    }
    name = demangled(info.dli_sname);
    snprintf(
        text, RMM_FRAME_BYTES, "%.300s+0x%" PRIxPTR " from %.180s",
        name != NULL ? name : info.dli_sname, address - (uintptr_t)info.dli_saddr,
        info.dli_fname);
    free(name);
}
