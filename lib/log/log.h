/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the library logs: rmm__log_info("..."), a printf. A message below the level in force costs
 * two loads, one below the compile-time level nothing; the arguments of both are not evaluated.
 *
 * Message style: lower case, values after their names without "=", native code always.
 *
 * Never call with a lock held: a sink may block, or be the program's own function.
 */
#ifndef RMM_LOG_LOG_H
#define RMM_LOG_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/log.h>

/* Messages below this are compiled out; from the CMake option RMM_LOGGING_LEVEL. */
#ifndef RMM_LOG_FLOOR
#define RMM_LOG_FLOOR 1 /* RMM_LEVEL_DEBUG */
#endif

#define RMM_LOG_MESSAGE_BYTES 1024 /* longer ones are cut */
#define RMM_LOG_UNDECIDED (-1)     /* the environment was not read yet */

/* A message as every sink gets it. */
typedef struct rmm_log_record {
    rmm_log_level_t level;
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint32_t thread;  /* gettid() */
    const char *message;
} rmm_log_record_t;

/* A message of this moment and thread. */
rmm_log_record_t rmm__log_record(rmm_log_level_t level, const char *message);

/* The least severe level that stderr shows as a sink. */
rmm_log_level_t rmm__log_stderr_level(void);

/* The program's own level, an rmm_log_level_t or RMM_LOG_UNDECIDED. */
extern _Atomic(int) rmm__log_level;
/* The level that an operator requests: 1 + level; anything else: none. Never NULL. */
extern const _Atomic(uint32_t) *_Atomic rmm__log_request;

/* The level in force. */
static inline int rmm__log_level_in_force(void)
{
    /* acquire: the page that the pointer names was filled before it was stored */
    uint32_t request = atomic_load_explicit(
        atomic_load_explicit(&rmm__log_request, memory_order_acquire),
        memory_order_relaxed);

    return request >= 1 && request <= 1 + RMM_LEVEL_OFF
               ? (int)request - 1
               : atomic_load_explicit(&rmm__log_level, memory_order_relaxed);
}

static inline bool rmm__log_is_on(rmm_log_level_t level)
{
    return (int)level >= rmm__log_level_in_force();
}

__attribute__((cold, format(printf, 2, 3))) void
rmm__log(rmm_log_level_t level, const char *format, ...);

#define RMM_LOG_AT(level, ...)                                                         \
    do {                                                                               \
        if ((int)(level) >= RMM_LOG_FLOOR && rmm__log_is_on(level)) {                  \
            rmm__log(level, __VA_ARGS__);                                              \
        }                                                                              \
    } while (0)

#define rmm__log_error(...) RMM_LOG_AT(RMM_LEVEL_ERROR, __VA_ARGS__)
#define rmm__log_warn(...) RMM_LOG_AT(RMM_LEVEL_WARN, __VA_ARGS__)
#define rmm__log_info(...) RMM_LOG_AT(RMM_LEVEL_INFO, __VA_ARGS__)
#define rmm__log_debug(...) RMM_LOG_AT(RMM_LEVEL_DEBUG, __VA_ARGS__)
#define rmm__log_trace(...) RMM_LOG_AT(RMM_LEVEL_TRACE, __VA_ARGS__)

/*
 * Where the process publishes: each record is also given to `publish`, `request` is watched,
 * and the program's own level shown as 1 + level. They stay valid for the rest of the
 * process.
 */
typedef void (*rmm_log_publish_fn)(const rmm_log_record_t *record);
void rmm__log_attach(
    rmm_log_publish_fn publish, const _Atomic(uint32_t) *request,
    _Atomic(uint32_t) *level_shown);

/* --- sink.c ------------------------------------------------------------------------- */

/* Choose the first sink, from the environment. Answers why RMM_DEBUG_LOG_FILE cannot be
 * had, in a line, or "". */
void rmm__log_sink_open(char *complaint, size_t complaint_bytes);
/* `stderr_level`: what stderr shows; other sinks get all that comes here. */
void rmm__log_sink_write(const rmm_log_record_t *record, rmm_log_level_t stderr_level);

#endif /* RMM_LOG_LOG_H */
