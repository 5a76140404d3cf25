/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/device_array.h
 *
 * An array of uninitialised elements in device memory [device_uvector]. There is a generic
 * one, which is told the size of an element, and a typed one:
 *
 *     RMM_DEVICE_ARRAY(float) xs = RMM_DEVICE_ARRAY_OF_INIT(float);
 *     if (rmm_device_array_float_init(&xs, 100, stream, NULL) == RMM_OK &&
 *         rmm_device_array_float_set_element(&xs, 3, 1.5f, stream) == RMM_OK) { ... }
 *     rmm_device_array_float_fini(&xs);
 *
 * Lifetime, failure, stream order, devices, threads and statuses: as rmm/device_buffer.h,
 * on which an array is built.
 *
 * Elements: get and set copy one element in the order of the given stream and wait for that
 * stream. The _async functions do not wait: the host memory must stay valid, and for a set
 * unchanged, until the stream has run the copy. An index that is not below the size is
 * RMM_ERR_OUT_OF_RANGE. If the copy or the wait fails (RMM_ERR_CUDA), the destination is
 * indeterminate: the element after a set, the host memory after a get.
 *
 * Units: elements, unless a name says bytes. A count whose bytes do not fit into a size_t
 * is RMM_ERR_INVALID_ARGUMENT.
 */
#ifndef RMM_DEVICE_ARRAY_H
#define RMM_DEVICE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/device_buffer.h>
#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All fields are private: use the functions. */
typedef struct rmm_device_array {
    rmm_device_buffer_t buffer;
    size_t element_bytes;
} rmm_device_array_t;

/** An empty array without a resource, as RMM_DEVICE_BUFFER_INIT. */
#define RMM_DEVICE_ARRAY_INIT(element_bytes)                                           \
    RMM_DEVICE_ARRAY_INIT_ALIGNED(element_bytes, 0)

/** The same with an alignment, as RMM_DEVICE_BUFFER_INIT_ALIGNED(). */
#define RMM_DEVICE_ARRAY_INIT_ALIGNED(element_bytes, align)                            \
    {                                                                                  \
        RMM_DEVICE_BUFFER_INIT_ALIGNED(align), (element_bytes)                         \
    }

/**
 * Initialise an array of @p count uninitialised elements.
 *
 * @param array          storage of the caller; what it holds is overwritten, not freed
 * @param element_bytes  0 is RMM_ERR_INVALID_ARGUMENT
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_init(
    rmm_device_array_t *array, size_t element_bytes, size_t count, rmm_stream_t stream,
    rmm_resource_t *mr);

/**
 * As rmm_device_array_init(), for elements that need an alignment.
 *
 * @param align  as rmm_device_buffer_init_aligned()
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_init_aligned(
    rmm_device_array_t *array, size_t element_bytes, size_t align, size_t count,
    rmm_stream_t stream, rmm_resource_t *mr);

/** End an array, as rmm_device_buffer_fini(); it keeps its element size and alignment. */
RMM_API void rmm_device_array_fini(rmm_device_array_t *array);

/** Make @p dst a copy of @p src and its element size, as rmm_device_buffer_copy(). */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_copy(
    rmm_device_array_t *dst, const rmm_device_array_t *src, rmm_stream_t stream,
    rmm_resource_t *mr);

/**
 * Move an array, as rmm_device_buffer_move(), with its element size. src keeps its element size
 * and alignment, so that it can grow again.
 */
RMM_API void rmm_device_array_move(rmm_device_array_t *dst, rmm_device_array_t *src);

/**
 * Move the memory into a buffer that was initialised, at least with RMM_DEVICE_BUFFER_INIT.
 * The array is empty afterwards, as after a move.
 */
RMM_API void
rmm_device_array_release(rmm_device_array_t *array, rmm_device_buffer_t *buffer_out);

/** Set the number of elements, as rmm_device_buffer_resize(). */
RMM_API RMM_NODISCARD rmm_status_t
rmm_device_array_resize(rmm_device_array_t *array, size_t count, rmm_stream_t stream);
/** Make room for at least @p capacity elements, as rmm_device_buffer_reserve(). */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_reserve(
    rmm_device_array_t *array, size_t capacity, rmm_stream_t stream);
/** Give back unused capacity, as rmm_device_buffer_shrink_to_fit(). */
RMM_API RMM_NODISCARD rmm_status_t
rmm_device_array_shrink_to_fit(rmm_device_array_t *array, rmm_stream_t stream);
/** Change the stream on which the array frees, as rmm_device_buffer_set_stream(). */
RMM_API void
rmm_device_array_set_stream(rmm_device_array_t *array, rmm_stream_t stream);

/** Copy one element to the device, and wait. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_set_element(
    rmm_device_array_t *array, size_t index, const void *value, rmm_stream_t stream);
/** As rmm_device_array_set_element(), without waiting. Copies the bytes of any value, -0.0 too. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_set_element_async(
    rmm_device_array_t *array, size_t index, const void *value, rmm_stream_t stream);
/** Fill one element with bytes of zero, without waiting. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_set_element_to_zero_async(
    rmm_device_array_t *array, size_t index, rmm_stream_t stream);

/** Copy one element to the host, and wait. */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_get_element(
    const rmm_device_array_t *array, size_t index, void *value_out,
    rmm_stream_t stream);
/** Copy the first element to the host, as rmm_device_array_get_element(). */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_front(
    const rmm_device_array_t *array, void *value_out, rmm_stream_t stream);
/** Copy the last element to the host, as rmm_device_array_get_element(). */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_back(
    const rmm_device_array_t *array, void *value_out, rmm_stream_t stream);

/**
 * Prefetch @p count elements from @p first on, as rmm_prefetch(), called on the array's device.
 *
 * @return also RMM_ERR_OUT_OF_RANGE if not all of them are in the array
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_device_array_prefetch(
    const rmm_device_array_t *array, size_t first, size_t count, int device,
    rmm_stream_t stream);

/** The address of an element. The index is not checked; the size gives the end's address. */
RMM_API void *rmm_device_array_element(const rmm_device_array_t *array, size_t index);
/** The address of the first element; NULL while the capacity is 0. */
RMM_API void *rmm_device_array_data(const rmm_device_array_t *array);
/** The number of elements. */
RMM_API size_t rmm_device_array_size(const rmm_device_array_t *array);
/** The number of elements that the memory has room for. */
RMM_API size_t rmm_device_array_capacity(const rmm_device_array_t *array);
/** True if there is no element. */
RMM_API bool rmm_device_array_is_empty(const rmm_device_array_t *array);
/** The stream on which the array frees. */
RMM_API rmm_stream_t rmm_device_array_stream(const rmm_device_array_t *array);
/** The resource of the array, borrowed; NULL if it has none yet. */
RMM_API rmm_resource_t *rmm_device_array_resource(const rmm_device_array_t *array);

#ifdef __cplusplus
}
#endif

/* --- typed ------------------------------------------------------------------------- */

#ifdef __cplusplus
#define RMM_ALIGN_OF(type) alignof(type)
#else
#define RMM_ALIGN_OF(type) _Alignof(type)
#endif

#ifdef __GNUC__
#define RMM_TYPED_INLINE __attribute__((unused)) static inline
#else
#define RMM_TYPED_INLINE static inline
#endif

/** The type that RMM_DEVICE_ARRAY_DEFINE() defined for @p name. */
#define RMM_DEVICE_ARRAY(name) rmm_device_array_##name##_t

/** An empty typed array without a resource, which aligns as its type asks. */
#define RMM_DEVICE_ARRAY_OF_INIT(type)                                                 \
    {                                                                                  \
        RMM_DEVICE_ARRAY_INIT_ALIGNED(sizeof(type), RMM_ALIGN_OF(type))                \
    }

/**
 * Define the type rmm_device_array_<name>_t and its functions, at file scope. Each works as
 * the generic function without <name>, on elements of @p type. set_element takes a value,
 * set_element_async an address. For all other generic functions pass the member `array`.
 *
 *     RMM_DEVICE_ARRAY_DEFINE(point, struct point);
 *     RMM_DEVICE_ARRAY(point) points = RMM_DEVICE_ARRAY_OF_INIT(struct point);
 */
#define RMM_DEVICE_ARRAY_DEFINE(name, type)                                            \
    typedef struct rmm_device_array_##name {                                           \
        rmm_device_array_t array;                                                      \
    } rmm_device_array_##name##_t;                                                     \
                                                                                       \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_init(        \
        rmm_device_array_##name##_t *a, size_t count, rmm_stream_t stream,             \
        rmm_resource_t *mr)                                                            \
    {                                                                                  \
        return rmm_device_array_init_aligned(                                          \
            &a->array, sizeof(type), RMM_ALIGN_OF(type), count, stream, mr);           \
    }                                                                                  \
    RMM_TYPED_INLINE void rmm_device_array_##name##_fini(                              \
        rmm_device_array_##name##_t *a)                                                \
    {                                                                                  \
        rmm_device_array_fini(a != NULL ? &a->array : NULL);                           \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_copy(        \
        rmm_device_array_##name##_t *dst, const rmm_device_array_##name##_t *src,      \
        rmm_stream_t stream, rmm_resource_t *mr)                                       \
    {                                                                                  \
        return rmm_device_array_copy(&dst->array, &src->array, stream, mr);            \
    }                                                                                  \
    RMM_TYPED_INLINE void rmm_device_array_##name##_move(                              \
        rmm_device_array_##name##_t *dst, rmm_device_array_##name##_t *src)            \
    {                                                                                  \
        rmm_device_array_move(&dst->array, &src->array);                               \
    }                                                                                  \
    RMM_TYPED_INLINE void rmm_device_array_##name##_release(                           \
        rmm_device_array_##name##_t *a, rmm_device_buffer_t *buffer_out)               \
    {                                                                                  \
        rmm_device_array_release(&a->array, buffer_out);                               \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_resize(      \
        rmm_device_array_##name##_t *a, size_t count, rmm_stream_t stream)             \
    {                                                                                  \
        return rmm_device_array_resize(&a->array, count, stream);                      \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_reserve(     \
        rmm_device_array_##name##_t *a, size_t capacity, rmm_stream_t stream)          \
    {                                                                                  \
        return rmm_device_array_reserve(&a->array, capacity, stream);                  \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t                                        \
        rmm_device_array_##name##_shrink_to_fit(                                       \
            rmm_device_array_##name##_t *a, rmm_stream_t stream)                       \
    {                                                                                  \
        return rmm_device_array_shrink_to_fit(&a->array, stream);                      \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_set_element( \
        rmm_device_array_##name##_t *a, size_t index, type value, rmm_stream_t stream) \
    {                                                                                  \
        return rmm_device_array_set_element(&a->array, index, &value, stream);         \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t                                        \
        rmm_device_array_##name##_set_element_async(                                   \
            rmm_device_array_##name##_t *a, size_t index, type const *value,           \
            rmm_stream_t stream)                                                       \
    {                                                                                  \
        return rmm_device_array_set_element_async(&a->array, index, value, stream);    \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t                                        \
        rmm_device_array_##name##_set_element_to_zero_async(                           \
            rmm_device_array_##name##_t *a, size_t index, rmm_stream_t stream)         \
    {                                                                                  \
        return rmm_device_array_set_element_to_zero_async(&a->array, index, stream);   \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_get_element( \
        const rmm_device_array_##name##_t *a, size_t index, type *value_out,           \
        rmm_stream_t stream)                                                           \
    {                                                                                  \
        return rmm_device_array_get_element(&a->array, index, value_out, stream);      \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_front(       \
        const rmm_device_array_##name##_t *a, type *value_out, rmm_stream_t stream)    \
    {                                                                                  \
        return rmm_device_array_front(&a->array, value_out, stream);                   \
    }                                                                                  \
    RMM_TYPED_INLINE RMM_NODISCARD rmm_status_t rmm_device_array_##name##_back(        \
        const rmm_device_array_##name##_t *a, type *value_out, rmm_stream_t stream)    \
    {                                                                                  \
        return rmm_device_array_back(&a->array, value_out, stream);                    \
    }                                                                                  \
    RMM_TYPED_INLINE type *rmm_device_array_##name##_element(                          \
        const rmm_device_array_##name##_t *a, size_t index)                            \
    {                                                                                  \
        return RMM_CAST(type *, rmm_device_array_element(&a->array, index));           \
    }                                                                                  \
    RMM_TYPED_INLINE type *rmm_device_array_##name##_data(                             \
        const rmm_device_array_##name##_t *a)                                          \
    {                                                                                  \
        return RMM_CAST(type *, rmm_device_array_data(&a->array));                     \
    }                                                                                  \
    RMM_TYPED_INLINE size_t rmm_device_array_##name##_size(                            \
        const rmm_device_array_##name##_t *a)                                          \
    {                                                                                  \
        return rmm_device_array_size(&a->array);                                       \
    }                                                                                  \
    RMM_TYPED_INLINE size_t rmm_device_array_##name##_capacity(                        \
        const rmm_device_array_##name##_t *a)                                          \
    {                                                                                  \
        return rmm_device_array_capacity(&a->array);                                   \
    }                                                                                  \
    RMM_TYPED_INLINE bool rmm_device_array_##name##_is_empty(                          \
        const rmm_device_array_##name##_t *a)                                          \
    {                                                                                  \
        return rmm_device_array_is_empty(&a->array);                                   \
    }                                                                                  \
    struct rmm_device_array_##name /* takes the semicolon */

/* Those that are there. */
RMM_DEVICE_ARRAY_DEFINE(float, float);
RMM_DEVICE_ARRAY_DEFINE(double, double);
RMM_DEVICE_ARRAY_DEFINE(bool, bool);
RMM_DEVICE_ARRAY_DEFINE(char, char);
RMM_DEVICE_ARRAY_DEFINE(int, int);
RMM_DEVICE_ARRAY_DEFINE(int8_t, int8_t);
RMM_DEVICE_ARRAY_DEFINE(int16_t, int16_t);
RMM_DEVICE_ARRAY_DEFINE(int32_t, int32_t);
RMM_DEVICE_ARRAY_DEFINE(int64_t, int64_t);
RMM_DEVICE_ARRAY_DEFINE(uint8_t, uint8_t);
RMM_DEVICE_ARRAY_DEFINE(uint16_t, uint16_t);
RMM_DEVICE_ARRAY_DEFINE(uint32_t, uint32_t);
RMM_DEVICE_ARRAY_DEFINE(uint64_t, uint64_t);

#endif /* RMM_DEVICE_ARRAY_H */
