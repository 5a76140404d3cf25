/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C++ half of rmm_c.rapids: compiled on the user's machine (_build.py) against the RMM that is
 * installed there, and loaded by ctypes.
 *
 * A Python resource of RMM is a Cython object: PyObject_HEAD, the table of its methods, and then
 * what slot_t declares here, the only members of the class DeviceMemoryResource. as_rmm() makes
 * an object of that class in Python, whose members are empty then, and this file fills the slot.
 * The caller has compared the size of the class with that of the slot, and rmm_c_rapids_check()
 * compares its contents in an object of RMM's own.
 *
 * Nothing here needs Python.h or Cython. The functions of Python that are declared below belong
 * to its stable ABI.
 *
 * Exceptions end here: each function returns a status, and keeps the message for its thread.
 */
#include <rmm/cxx/rapids.hpp>
#include <rmm/rmm.hpp>

#if __has_include(<rmm/mr/cuda_memory_resource.hpp>)
#include <rmm/mr/cuda_memory_resource.hpp>
#else
#include <rmm/mr/device/cuda_memory_resource.hpp>
#endif

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

extern "C" {
int Py_IsInitialized(void);
void Py_DecRef(void *object);
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
}

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace
{

thread_local std::string last_message;

template <class Function> int status_of(Function &&function) noexcept
{
    try {
        function();
        return RMM_OK;
    } catch (const rmmc::error &error) {
        last_message = error.message();
        return error.status();
    } catch (const std::exception &error) {
        last_message = error.what();
        return RMM_ERR_BAD_ALLOC;
    }
}

[[noreturn]] void throw_not_initialised()
{
    throw rmmc::invalid_argument(
        RMM_ERR_INVALID_ARGUMENT, 0, "the resource of RMM was not initialised");
}

/* --- a resource of this library for RMM ----------------------------------------------- */

#if RMM_CXX_RAPIDS_BY_VALUE
using functions = rmmc::rapids_resource;
#else
using functions = rmmc::detail::rapids_functions;
#endif

/* What the next allocation of a handing_over returns: memory of a buffer that moves to RMM. */
thread_local void *next_block;

class handing_over : public functions
{
  public:
    using functions::functions;

#if RMM_CXX_RAPIDS_BY_VALUE
    void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t align)
    {
        void *ptr = std::exchange(next_block, nullptr);
        return ptr != nullptr ? ptr : functions::allocate(stream, bytes, align);
    }
    friend constexpr void
    get_property(const handing_over &, cuda::mr::device_accessible) noexcept
    {
    }
#else
  private:
    void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
    {
        void *ptr = std::exchange(next_block, nullptr);
        return ptr != nullptr ? ptr
                              : rmmc::detail::allocate_for_rapids(
                                    get().get(), bytes, RMM_ALIGN_DEFAULT, stream);
    }
#endif
};

#if RMM_CXX_RAPIDS_BY_VALUE

/* RMM's declarations for Cython wrap a reference so. */
struct optional_ref {
    std::optional<rmm::device_async_resource_ref> ref;
};
using slot_t = std::optional<optional_ref>;
using memory_t = cuda::mr::any_resource<cuda::mr::device_accessible>;

/* The slot only refers to the resource. */
template <class T> void *fill(slot_t &slot, rmm_resource_t *mr)
{
    auto owned = std::make_unique<std::shared_ptr<void>>();
    auto made = std::make_shared<T>(rmmc::resource::share(mr));

    slot = optional_ref{rmm::device_async_resource_ref(*made)};
    *owned = std::move(made);
    return owned.release();
}

std::size_t left_count()
{
    return 0; /* RMM's buffers own what they need */
}

memory_t memory_of(const slot_t &slot)
{
    if (!slot.has_value() || !slot->ref.has_value()) {
        throw_not_initialised();
    }
    return memory_t(*slot->ref);
}

bool is_cuda(const slot_t &slot)
{
    return slot.has_value() && slot->ref.has_value() &&
           slot->ref->type() == typeid(rmm::mr::cuda_memory_resource);
}

#else

using slot_t = std::shared_ptr<rmm::mr::device_memory_resource>;
using memory_t = slot_t;

/* Buffers of C++ code (libcudf) keep only the pointer, and may outlive the Python object. So an
 * object whose resource has live blocks stays, until it has none when another one ends. Not
 * destroyed at exit. */
struct left_t {
    std::mutex mutex; /* protects `objects` */
    std::vector<std::unique_ptr<functions>> objects;
};

left_t &left()
{
    static auto &kept = *new left_t;
    return kept;
}

void end_unused(functions *ended)
{
    std::vector<std::unique_ptr<functions>> unused; /* ends without the lock */
    std::lock_guard<std::mutex> lock(left().mutex);
    auto &objects = left().objects;

    objects.emplace_back(ended);
    const auto first =
        std::partition(objects.begin(), objects.end(), [](const auto &object) {
            return object->get().get_stats().current_count != 0;
        });
    std::move(first, objects.end(), std::back_inserter(unused));
    objects.erase(first, objects.end());
}

std::size_t left_count()
{
    std::lock_guard<std::mutex> lock(left().mutex);

    return left().objects.size();
}

/* The slot owns the resource. */
template <class T> void *fill(slot_t &slot, rmm_resource_t *mr)
{
    slot =
        slot_t(static_cast<functions *>(new T(rmmc::resource::share(mr))), end_unused);
    return nullptr;
}

memory_t memory_of(const slot_t &slot)
{
    if (slot == nullptr) {
        throw_not_initialised();
    }
    return slot;
}

bool is_cuda(const slot_t &slot)
{
    return dynamic_cast<rmm::mr::cuda_memory_resource *>(slot.get()) != nullptr;
}

#endif

/* --- a resource of RMM for this library ----------------------------------------------- */

/* A function of rmm_c._core: makes the exception the one that the call of this thread raises. */
using raise_fn = void (*)(int is_memory_error, const char *message);
raise_fn raise_in_call;

/* Drops a reference of a Python object, unless Python has ended. */
void drop_object(void *object)
{
    if (Py_IsInitialized()) {
        const int state = PyGILState_Ensure();
        Py_DecRef(object);
        PyGILState_Release(state);
    }
}

/* Keeps the Python object, because its C++ object may call or refer to others. After the end of
 * Python nothing is allocated or freed, as with functions of Python. */
struct python_memory {
    rmmc::detail::rapids_memory<memory_t> held;
    std::shared_ptr<void> object;

    void *allocate(rmm_stream_t stream, std::size_t bytes, std::size_t align)
    {
        if (!Py_IsInitialized()) {
            throw rmm::bad_alloc("Python has ended");
        }
        return held.allocate(stream, bytes, align);
    }
    void
    deallocate(rmm_stream_t stream, void *ptr, std::size_t bytes, std::size_t align)
    {
        if (Py_IsInitialized()) {
            held.deallocate(stream, ptr, bytes, align);
        }
    }
    friend bool operator==(const python_memory &a, const python_memory &b)
    {
        return a.held == b.held;
    }
    /* In a handler: the exception becomes what Cython makes of it, for a caller in Python. */
    static rmm_status_t exception_status() noexcept
    {
        try {
            throw;
        } catch (const std::bad_alloc &error) {
            raise_in_call(1, error.what());
        } catch (const std::exception &error) {
            raise_in_call(0, error.what());
        } catch (...) {
        }
        return rmmc::detail::rapids_memory<memory_t>::exception_status();
    }
};

slot_t &slot_at(void *address)
{
    return *static_cast<slot_t *>(address);
}

} /* namespace */

EXPORT const char *rmm_c_rapids_message(void)
{
    return last_message.c_str();
}

EXPORT std::size_t rmm_c_rapids_slot_bytes(void)
{
    return sizeof(slot_t);
}

/* Is the resource in this slot RMM's cuda_memory_resource? */
EXPORT int rmm_c_rapids_check(void *slot)
{
    return is_cuda(slot_at(slot));
}

EXPORT void rmm_c_rapids_begin(raise_fn raise)
{
    raise_in_call = raise;
}

/* Fill an empty slot. *owned_out: what the object has to end, or NULL. */
EXPORT int
rmm_c_rapids_fill(void *slot, rmm_resource_t *mr, int hands_over, void **owned_out)
{
    return status_of([&] {
        *owned_out = hands_over ? fill<handing_over>(slot_at(slot), mr)
                                : fill<functions>(slot_at(slot), mr);
    });
}

EXPORT void rmm_c_rapids_end(void *owned)
{
    delete static_cast<std::shared_ptr<void> *>(owned);
}

/* How many objects stay because their memory is in use. */
EXPORT std::size_t rmm_c_rapids_left_count(void)
{
    return left_count();
}

/* The next allocation of this thread from a slot that hands over returns this. */
EXPORT void rmm_c_rapids_hand_over(void *ptr)
{
    next_block = ptr;
}

/* A resource over that in a slot. Takes over a reference of its Python object. */
EXPORT int rmm_c_rapids_import(
    const void *slot, void *object, const char *name, rmm_resource_t **out)
{
    return status_of([&] {
        std::shared_ptr<void> reference(object, drop_object);
        memory_t memory = memory_of(slot_at(const_cast<void *>(slot)));
        rmmc::custom_resource<> made(
            python_memory{{std::move(memory)}, std::move(reference)}, name);
        *out = made.release();
    });
}
