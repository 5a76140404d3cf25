/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_scalar.h
 *
 * One value in device memory: the result of a reduction, an argument that a kernel reads.
 *
 *     RMM_DEVICE_SCALAR(int) sum = RMM_DEVICE_SCALAR_OF_INIT(int);
 *     if (rmm_device_scalar_int_init(&sum, stream, NULL) == RMM_OK) {
 *         launch(rmm_device_scalar_int_data(&sum), stream);
 *         status = rmm_device_scalar_int_value(&sum, &on_host, stream);
 *     }
 *     rmm_device_scalar_int_fini(&sum);
 *
 * Lifetime, failure, stream order, host memory, devices, threads and statuses: as
 * rmm/device_array.h; a scalar is an array of one element. After a move the source has no
 * value: a function that needs the value returns RMM_ERR_OUT_OF_RANGE.
 */
#ifndef RMM_DEVICE_SCALAR_H
#define RMM_DEVICE_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/device_array.h>
#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The field is private: use the functions. */
typedef struct rmm_device_scalar {
    rmm_device_array_t array;
} rmm_device_scalar_t;

/** A scalar without a value and without a resource, as RMM_DEVICE_BUFFER_INIT. */
#define RMM_DEVICE_SCALAR_INIT(value_bytes)                                            \
    {                                                                                  \
        RMM_DEVICE_ARRAY_INIT(value_bytes)                                             \
    }

/**
 * Initialise a scalar with an uninitialised value.
 *
 * @param scalar       storage of the caller; what it holds is overwritten, not freed
 * @param value_bytes  0 is RMM_ERR_INVALID_ARGUMENT
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_init(
    rmm_device_scalar_t *scalar, size_t value_bytes, rmm_stream_t stream,
    rmm_resource_t *mr);

/** As rmm_device_scalar_init(), for a value that needs an alignment. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_init_aligned(
    rmm_device_scalar_t *scalar, size_t value_bytes, size_t align, rmm_stream_t stream,
    rmm_resource_t *mr);

/** Initialise a scalar with a value from host memory, which must stay valid and unchanged
 *  until the stream has run the copy. Does not wait. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_init_value(
    rmm_device_scalar_t *scalar, size_t value_bytes, const void *value,
    rmm_stream_t stream, rmm_resource_t *mr);

/** As rmm_device_scalar_init_value(), for a value that needs an alignment. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_init_value_aligned(
    rmm_device_scalar_t *scalar, size_t value_bytes, size_t align, const void *value,
    rmm_stream_t stream, rmm_resource_t *mr);

/** End a scalar, as rmm_device_buffer_fini(). */
RMM_API void rmm_device_scalar_fini(rmm_device_scalar_t *scalar);
/** Make @p dst a copy of @p src, as rmm_device_buffer_copy(). */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_copy(
    rmm_device_scalar_t *dst, const rmm_device_scalar_t *src, rmm_stream_t stream,
    rmm_resource_t *mr);
/** Move the value, as rmm_device_buffer_move(). */
RMM_API void rmm_device_scalar_move(rmm_device_scalar_t *dst, rmm_device_scalar_t *src);

/** Copy the value to the host in the order of the stream, and wait for that stream. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_value(
    const rmm_device_scalar_t *scalar, void *value_out, rmm_stream_t stream);

/** Copy a value from host memory, which must stay valid and unchanged until the stream has
 *  run the copy. Does not wait. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_set_value_async(
    rmm_device_scalar_t *scalar, const void *value, rmm_stream_t stream);

/** Set all bytes of the value to zero. Does not wait. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_scalar_set_value_to_zero_async(
    rmm_device_scalar_t *scalar, rmm_stream_t stream);

/** Change the stream on which the scalar frees. The caller orders it after every use. */
RMM_API void
rmm_device_scalar_set_stream(rmm_device_scalar_t *scalar, rmm_stream_t stream);

/** The address of the value; NULL after a move or the end. */
RMM_API void *rmm_device_scalar_data(const rmm_device_scalar_t *scalar);
/** The number of values: 1, or 0 after a move or the end. */
RMM_API size_t rmm_device_scalar_size(const rmm_device_scalar_t *scalar);
/** The stream on which the scalar frees. */
RMM_API rmm_stream_t rmm_device_scalar_stream(const rmm_device_scalar_t *scalar);
/** The resource of the scalar, borrowed; NULL if it has none yet. */
RMM_API rmm_resource_t *rmm_device_scalar_resource(const rmm_device_scalar_t *scalar);

#ifdef __cplusplus
}
#endif

/* --- typed ------------------------------------------------------------------------- */

/** The type that RMM_DEVICE_SCALAR_DEFINE() defined for @p name. */
#define RMM_DEVICE_SCALAR(name) rmm_device_scalar_##name##_t

/** RMM_DEVICE_SCALAR_INIT() of a typed scalar. */
#define RMM_DEVICE_SCALAR_OF_INIT(type)                                                \
    {                                                                                  \
        RMM_DEVICE_SCALAR_INIT(sizeof(type))                                           \
    }

/**
 * Define the type rmm_device_scalar_<name>_t and its functions, at file scope. Each works as
 * the generic function without <name>, on a value of @p type. For all other generic
 * functions pass the member `scalar`.
 */
#define RMM_DEVICE_SCALAR_DEFINE(name, type)                                           \
    typedef struct rmm_device_scalar_##name {                                          \
        rmm_device_scalar_t scalar;                                                    \
    } rmm_device_scalar_##name##_t;                                                    \
                                                                                       \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_scalar_##name##_init(       \
        rmm_device_scalar_##name##_t *s, rmm_stream_t stream, rmm_resource_t *mr)      \
    {                                                                                  \
        return rmm_device_scalar_init_aligned(                                         \
            &s->scalar, sizeof(type), RMM_ALIGN_OF(type), stream, mr);                 \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_scalar_##name##_init_value( \
        rmm_device_scalar_##name##_t *s, type const *value, rmm_stream_t stream,       \
        rmm_resource_t *mr)                                                            \
    {                                                                                  \
        return rmm_device_scalar_init_value_aligned(                                   \
            &s->scalar, sizeof(type), RMM_ALIGN_OF(type), value, stream, mr);          \
    }                                                                                  \
    RMM_TYPED_INLINE void rmm_device_scalar_##name##_fini(                             \
        rmm_device_scalar_##name##_t *s)                                               \
    {                                                                                  \
        rmm_device_scalar_fini(s != NULL ? &s->scalar : NULL);                         \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_scalar_##name##_copy(       \
        rmm_device_scalar_##name##_t *dst, const rmm_device_scalar_##name##_t *src,    \
        rmm_stream_t stream, rmm_resource_t *mr)                                       \
    {                                                                                  \
        return rmm_device_scalar_copy(&dst->scalar, &src->scalar, stream, mr);         \
    }                                                                                  \
    RMM_TYPED_INLINE void rmm_device_scalar_##name##_move(                             \
        rmm_device_scalar_##name##_t *dst, rmm_device_scalar_##name##_t *src)          \
    {                                                                                  \
        rmm_device_scalar_move(&dst->scalar, &src->scalar);                            \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_scalar_##name##_value(      \
        const rmm_device_scalar_##name##_t *s, type *value_out, rmm_stream_t stream)   \
    {                                                                                  \
        return rmm_device_scalar_value(&s->scalar, value_out, stream);                 \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t                                        \
        rmm_device_scalar_##name##_set_value_async(                                    \
            rmm_device_scalar_##name##_t *s, type const *value, rmm_stream_t stream)   \
    {                                                                                  \
        return rmm_device_scalar_set_value_async(&s->scalar, value, stream);           \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t                                        \
        rmm_device_scalar_##name##_set_value_to_zero_async(                            \
            rmm_device_scalar_##name##_t *s, rmm_stream_t stream)                      \
    {                                                                                  \
        return rmm_device_scalar_set_value_to_zero_async(&s->scalar, stream);          \
    }                                                                                  \
    RMM_TYPED_INLINE type *rmm_device_scalar_##name##_data(                            \
        const rmm_device_scalar_##name##_t *s)                                         \
    {                                                                                  \
        return RMM_CAST(type *, rmm_device_scalar_data(&s->scalar));                   \
    }                                                                                  \
    struct rmm_device_scalar_##name /* takes the semicolon */

/* The predefined types. */
RMM_DEVICE_SCALAR_DEFINE(float, float);
RMM_DEVICE_SCALAR_DEFINE(double, double);
RMM_DEVICE_SCALAR_DEFINE(bool, bool);
RMM_DEVICE_SCALAR_DEFINE(char, char);
RMM_DEVICE_SCALAR_DEFINE(int, int);
RMM_DEVICE_SCALAR_DEFINE(int8_t, int8_t);
RMM_DEVICE_SCALAR_DEFINE(int16_t, int16_t);
RMM_DEVICE_SCALAR_DEFINE(int32_t, int32_t);
RMM_DEVICE_SCALAR_DEFINE(int64_t, int64_t);
RMM_DEVICE_SCALAR_DEFINE(uint8_t, uint8_t);
RMM_DEVICE_SCALAR_DEFINE(uint16_t, uint16_t);
RMM_DEVICE_SCALAR_DEFINE(uint32_t, uint32_t);
RMM_DEVICE_SCALAR_DEFINE(uint64_t, uint64_t);

#endif /* RMM_DEVICE_SCALAR_H */
