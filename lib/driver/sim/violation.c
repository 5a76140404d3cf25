/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Violations: what a correct program never does. Each is printed and counted when it is found;
 * RMM_SIM_VIOLATION says what happens then. The simulated GPU is the only part of the library
 * that may end the process, and only if that variable asks for it.
 *
 * At exit a destructor prints the number. It runs after the program's own exit handlers, so it
 * counts their violations too. A process that ends by a signal or by _exit() prints no number.
 */
#include "driver/sim/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/output.h"

/* EX_SOFTWARE of sysexits.h; documented in rmm/sim.h */
#define EXIT_STATUS 70

static sim_on_violation_t on_violation; /* written when the driver is opened */
static char last_text[256];             /* protected by rmm__sim_lock */
/* Atomic, because a thread may hold the lock for ever when the destructor reads it. */
static _Atomic(uint64_t) count;
static uint64_t inherited; /* in a forked child: the violations of its parent */

void rmm__sim_violations_open(sim_on_violation_t action)
{
    on_violation = action;
}

void rmm__sim_violations_in_child(void)
{
    inherited = atomic_load_explicit(&count, memory_order_relaxed);
}

/* Prints a line for each violation, but none if it is the same as the last one. */
void rmm__sim_violation_locked(const char *format, ...)
{
    char text[sizeof(last_text)];
    va_list arguments;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    if (strcmp(text, last_text) != 0) {
        memcpy(last_text, text, sizeof(text));
        rmm__output_print("rmm-sim: %s\n", text);
    }
    if (on_violation == SIM_VIOLATION_ABORT) {
        rmm__output_print("rmm-sim: aborting, as RMM_SIM_VIOLATION=abort says\n");
        abort();
    }
}

uint64_t rmm__sim_violation_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

const char *rmm__sim_violation_text(void)
{
    return last_text;
}

__attribute__((destructor)) static void tell_at_exit(void)
{
    uint64_t found = rmm__sim_violation_count() - inherited;

    if (found == 0) {
        return;
    }
    rmm__output_print(
        "rmm-sim: %" PRIu64 " violation%s found%s\n", found, found == 1 ? "" : "s",
        on_violation == SIM_VIOLATION_EXIT
            ? "; exit status 70, as RMM_SIM_VIOLATION=exit says"
            : "");
    if (on_violation == SIM_VIOLATION_EXIT) {
        fflush(NULL); /* _exit() would drop what is buffered */
        _exit(EXIT_STATUS);
    }
}
