/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory of the simulated GPU: reserved addresses, which cannot be accessed until
 * physical memory is mapped there, and physical memory, which counts against its device
 * and needs no contiguous room in it.
 *
 * A call that no correct program makes is refused and counted as a violation: a size that is
 * no multiple of the granularity, mapping what is mapped, unmapping what is not or only a
 * part of it, freeing addresses with memory behind them, anything twice.
 *
 * Unmapping waits for nothing. A queued copy or fill that uses the range is a violation at
 * once, and one again when it runs, which it then does not: a real GPU would end the
 * program's context. A kernel that touches the range crashes.
 *
 * Memory that is mapped stays out of reach until a device is let in, and is poisoned then.
 * CUDA keeps what was in it; a program that relies on that is not served here. Memory that was
 * exported to another process lies in a file from then on, which keeps its bytes.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "core/assert.h"

#define GRANULARITY (UINT64_C(2) << 20)
#define FILE_KIND "memory"
#define PHYSICAL_TAG 0x5048u /* "PH" */

typedef struct sim_mapping sim_mapping_t;

typedef struct sim_physical {
    int device;
    uint64_t bytes;
    uint32_t flags;
    bool is_released;       /* goes when it is unmapped */
    bool is_imported;       /* counted in the process that made it */
    sim_mapping_t *mapping; /* NULL: none */
    sim_file_t file;        /* that processes share; none before the first export */
} sim_physical_t;

struct sim_mapping {
    char *begin;
    uint64_t bytes;
    uint32_t access; /* a bit for each device */
    sim_physical_t *physical;
};

typedef struct sim_reservation {
    struct sim_reservation *next;
    char *begin;
    uint64_t bytes;
    uint64_t mapping_count;
    sim_mapping_t **mappings; /* for each GRANULARITY of it; NULL: nothing there */
} sim_reservation_t;

static sim_table_t physicals = {.what = "physical memory", .tag = PHYSICAL_TAG};
static sim_reservation_t *reservations;

static_assert(SIM_DEVICE_MAX <= 32, "access has a bit for each device");

/* ---- what calls share ---- */

/* Begin a call that no capture forbids. */
static int begin_safe(const char *call)
{
    return rmm__sim_attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY) == 0
               ? RMM_DRIVER_NOT_SUPPORTED
               : rmm__sim_enter(call);
}

/* Begin another that changes something. CUDA may forbid fewer: that was not measured. */
static int begin(const char *call)
{
    return rmm__sim_attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY) == 0
               ? RMM_DRIVER_NOT_SUPPORTED
               : rmm__sim_enter_unsafe(call);
}

static int refuse(const char *call, const char *why, const void *ptr, uint64_t bytes)
{
    rmm__sim_violation_locked(
        "%s: %s: address %p bytes %llu", call, why, ptr, (unsigned long long)bytes);
    return RMM_DRIVER_INVALID_VALUE;
}

static bool size_is_right(uint64_t bytes)
{
    return bytes != 0 && bytes % GRANULARITY == 0;
}

static sim_reservation_t *reservation_of(const void *ptr)
{
    uintptr_t address = (uintptr_t)ptr;

    for (sim_reservation_t *one = reservations; one != NULL; one = one->next) {
        if (address - (uintptr_t)one->begin < one->bytes) {
            return one;
        }
    }
    return NULL;
}

static sim_mapping_t **
mapping_entry(const sim_reservation_t *reservation, const char *ptr)
{
    return &reservation->mappings[(uint64_t)(ptr - reservation->begin) / GRANULARITY];
}

/* The reservation that holds all of the range, which is of whole granules. */
static sim_reservation_t *reservation_around(const char *ptr, uint64_t bytes)
{
    sim_reservation_t *found = reservation_of(ptr);

    return found != NULL && size_is_right(bytes) &&
                   (uint64_t)(ptr - found->begin) % GRANULARITY == 0 &&
                   bytes <= found->bytes - (uint64_t)(ptr - found->begin)
               ? found
               : NULL;
}

int rmm__sim_virtual_granularity(size_t *bytes)
{
    if (rmm__sim_attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY) == 0) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    *bytes = GRANULARITY;
    return RMM_DRIVER_OK;
}

/* ---- addresses ---- */

static char *reserve_aligned(uint64_t bytes)
{
    char *memory = mmap(
        NULL, bytes + GRANULARITY, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t lost;

    if (memory == MAP_FAILED) {
        return NULL;
    }
    lost = (GRANULARITY - (uintptr_t)memory % GRANULARITY) % GRANULARITY;
    if (lost != 0) {
        munmap(memory, lost);
    }
    munmap(memory + lost + bytes, GRANULARITY - lost);
    return memory + lost;
}

static sim_reservation_t *reservation_create(uint64_t bytes)
{
    sim_reservation_t *fresh = calloc(1, sizeof(*fresh));

    if (fresh == NULL) {
        return NULL;
    }
    fresh->bytes = bytes;
    fresh->mappings = calloc(bytes / GRANULARITY, sizeof(sim_mapping_t *));
    fresh->begin = fresh->mappings != NULL ? reserve_aligned(bytes) : NULL;
    if (fresh->begin == NULL) {
        free(fresh->mappings);
        free(fresh);
        return NULL;
    }
    fresh->next = reservations;
    reservations = fresh;
    return fresh;
}

int rmm__sim_address_reserve(void **ptr_out, size_t bytes)
{
    int error = begin("address_reserve");
    sim_reservation_t *fresh = NULL;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (!size_is_right(bytes)) {
        error = refuse("address_reserve", "not whole granules", NULL, bytes);
    } else if (bytes <= SIZE_MAX / 2) {
        fresh = reservation_create(bytes);
    }
    if (fresh != NULL) {
        *ptr_out = fresh->begin;
    } else if (error == RMM_DRIVER_OK) {
        error = RMM_DRIVER_MEMORY_ALLOCATION;
    }
    rmm__sim_leave();
    return error;
}

static int address_free_locked(char *ptr, uint64_t bytes)
{
    sim_reservation_t **link = &reservations;
    sim_reservation_t *gone;

    while (*link != NULL && (*link)->begin != ptr) {
        link = &(*link)->next;
    }
    gone = *link;
    if (gone == NULL || gone->bytes != bytes) {
        return refuse("address_free", "no such reservation: freed twice?", ptr, bytes);
    }
    if (gone->mapping_count != 0) {
        return refuse("address_free", "memory is mapped there", ptr, bytes);
    }
    *link = gone->next;
    munmap(gone->begin, gone->bytes);
    free(gone->mappings);
    free(gone);
    return RMM_DRIVER_OK;
}

int rmm__sim_address_free(void *ptr, size_t bytes)
{
    int error = begin("address_free");

    if (error == RMM_DRIVER_OK) {
        error = address_free_locked(ptr, bytes);
        rmm__sim_leave();
    }
    return error;
}

uint64_t rmm__sim_address_bytes_locked(void)
{
    uint64_t bytes = 0;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    for (const sim_reservation_t *one = reservations; one != NULL; one = one->next) {
        bytes += one->bytes;
    }
    return bytes;
}

/* ---- physical memory ---- */

/* Can memory of the device be made for this? */
static int check_flags(uint32_t flags)
{
    static const struct {
        uint32_t flag;
        int ability;
    } needs[] = {
        {RMM_DRIVER_HANDLE_POSIX, RMM_ATTRIBUTE_POSIX_HANDLES},
        {RMM_DRIVER_HANDLE_FABRIC, RMM_ATTRIBUTE_FABRIC_HANDLES},
        {RMM_DRIVER_RDMA, RMM_ATTRIBUTE_RDMA}};

    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        if ((flags & needs[i].flag) != 0 && rmm__sim_attribute(needs[i].ability) == 0) {
            return RMM_DRIVER_NOT_SUPPORTED;
        }
        flags &= ~needs[i].flag;
    }
    return flags == 0 ? RMM_DRIVER_OK : RMM_DRIVER_INVALID_VALUE;
}

/* A copy of `model` with a handle. */
static int physical_add(const sim_physical_t *model, rmm_driver_physical_t *out)
{
    sim_physical_t *physical = calloc(1, sizeof(*physical));
    sim_entry_t *entry =
        physical != NULL ? rmm__sim_entry_take_locked(&physicals, physical) : NULL;

    if (entry == NULL) {
        free(physical);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    *physical = *model;
    *out = (rmm_driver_physical_t)(uintptr_t)rmm__sim_entry_handle(&physicals, entry);
    return RMM_DRIVER_OK;
}

static int create_locked(uint64_t bytes, uint32_t flags, rmm_driver_physical_t *out)
{
    const sim_physical_t model = {
        .device = rmm__sim_thread.device, .bytes = bytes, .flags = flags};
    int error = check_flags(flags);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (!size_is_right(bytes)) {
        return refuse("physical_create", "not whole granules", NULL, bytes);
    }
    if (!rmm__sim_memory_charge_locked(model.device, bytes)) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    error = physical_add(&model, out);
    if (error != RMM_DRIVER_OK) {
        rmm__sim_memory_uncharge_locked(model.device, bytes);
    }
    return error;
}

int rmm__sim_physical_create(
    size_t bytes, uint32_t flags, rmm_driver_physical_t *physical_out)
{
    int error = begin_safe("physical_create");

    if (error == RMM_DRIVER_OK) {
        error = create_locked(bytes, flags, physical_out);
        rmm__sim_leave();
    }
    return error;
}

static void physical_free_if_unused(sim_physical_t *physical)
{
    if (physical->is_released && physical->mapping == NULL) {
        if (!physical->is_imported) {
            rmm__sim_memory_uncharge_locked(physical->device, physical->bytes);
        }
        rmm__sim_file_close(&physical->file);
        free(physical);
    }
}

int rmm__sim_physical_release(rmm_driver_physical_t handle)
{
    int error = begin("physical_release");
    void *value = (void *)(uintptr_t)handle;
    sim_physical_t *physical;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    physical = rmm__sim_find_locked(&physicals, value, "physical_release", &error);
    if (physical != NULL) {
        rmm__sim_entry_give_locked(&physicals, rmm__sim_entry(&physicals, value));
        physical->is_released = true;
        physical_free_if_unused(physical);
    }
    rmm__sim_leave();
    return error;
}

/* ---- between processes ---- */

/* The memory moves into a file, with what is in it, and stays where it is mapped. */
static int move_to_file(sim_physical_t *physical)
{
    const sim_mapping_t *mapping = physical->mapping;
    bool is_in_use = mapping != NULL && mapping->access != 0;
    sim_file_t file;
    int error;

    if (physical->file.bytes != 0) {
        return RMM_DRIVER_OK;
    }
    error = rmm__sim_file_create(FILE_KIND, physical->device, physical->bytes, &file);
    if (error == RMM_DRIVER_OK && is_in_use &&
        (!rmm__sim_file_fill(&file, mapping->begin, mapping->bytes, 0) ||
         !rmm__sim_file_map(&file, mapping->begin, mapping->bytes, 0))) {
        rmm__sim_file_close(&file);
        error = SIM_ERROR_OPERATING_SYSTEM;
    }
    if (error == RMM_DRIVER_OK) {
        physical->file = file;
    }
    return error;
}

static int export_locked(
    rmm_driver_physical_t handle, uint32_t type, rmm_driver_handle_t *handle_out)
{
    int error = RMM_DRIVER_OK;
    sim_physical_t *physical = rmm__sim_find_locked(
        &physicals, (void *)(uintptr_t)handle, "physical_export", &error);

    if (physical == NULL) {
        return error;
    }
    if ((type != RMM_DRIVER_HANDLE_POSIX && type != RMM_DRIVER_HANDLE_FABRIC) ||
        (physical->flags & type) == 0) {
        return refuse(
            "physical_export", "not made for such a handle", NULL, physical->bytes);
    }
    error = move_to_file(physical);
    return error == RMM_DRIVER_OK
               ? rmm__sim_file_give(&physical->file, type, handle_out)
               : error;
}

int rmm__sim_physical_export(
    rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle_out)
{
    int error = begin("physical_export");

    if (error == RMM_DRIVER_OK) {
        error = export_locked(physical, type, handle_out);
        rmm__sim_leave();
    }
    return error;
}

static int
import_locked(const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical_out)
{
    sim_physical_t model = {.is_imported = true, .flags = handle->type};
    int error = check_flags(handle->type);

    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_file_take(handle, FILE_KIND, &model.file, &model.device);
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    model.bytes = model.file.bytes;
    error = physical_add(&model, physical_out);
    if (error != RMM_DRIVER_OK) {
        rmm__sim_file_close(&model.file);
    }
    return error;
}

int rmm__sim_physical_import(
    const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical_out)
{
    int error = begin("physical_import");

    if (error == RMM_DRIVER_OK) {
        error = import_locked(handle, physical_out);
        rmm__sim_leave();
    }
    return error;
}

/* ---- mapping ---- */

static bool is_free(const sim_reservation_t *reservation, char *ptr, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += GRANULARITY) {
        if (*mapping_entry(reservation, ptr + at) != NULL) {
            return false;
        }
    }
    return true;
}

static void place(sim_reservation_t *reservation, sim_mapping_t *mapping, bool there)
{
    for (uint64_t at = 0; at < mapping->bytes; at += GRANULARITY) {
        *mapping_entry(reservation, mapping->begin + at) = there ? mapping : NULL;
    }
    mapping->physical->mapping = there ? mapping : NULL;
    reservation->mapping_count += there ? 1 : (uint64_t)-1;
}

static int map_locked(char *ptr, uint64_t bytes, rmm_driver_physical_t handle)
{
    sim_reservation_t *reservation = reservation_around(ptr, bytes);
    int error = RMM_DRIVER_OK;
    sim_physical_t *physical = rmm__sim_find_locked(
        &physicals, (void *)(uintptr_t)handle, "address_map", &error);
    sim_mapping_t *mapping;

    if (physical == NULL) {
        return error;
    }
    if (reservation == NULL) {
        return refuse("address_map", "not whole granules of a reservation", ptr, bytes);
    }
    if (bytes != physical->bytes && physical->is_imported) {
        return RMM_DRIVER_INVALID_VALUE; /* another process said what it has */
    }
    if (bytes != physical->bytes) {
        return refuse("address_map", "not the size of the memory", ptr, bytes);
    }
    if (physical->mapping != NULL || !is_free(reservation, ptr, bytes)) {
        return refuse("address_map", "mapped already", ptr, bytes);
    }
    mapping = calloc(1, sizeof(*mapping));
    if (mapping == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    *mapping = (sim_mapping_t){.begin = ptr, .bytes = bytes, .physical = physical};
    place(reservation, mapping, true);
    return RMM_DRIVER_OK;
}

int rmm__sim_address_map(void *ptr, size_t bytes, rmm_driver_physical_t physical)
{
    int error = begin("address_map");

    if (error == RMM_DRIVER_OK) {
        error = map_locked(ptr, bytes, physical);
        rmm__sim_leave();
    }
    return error;
}

static int unmap_locked(char *ptr, uint64_t bytes)
{
    sim_reservation_t *reservation = reservation_around(ptr, bytes);
    sim_mapping_t *mapping =
        reservation != NULL ? *mapping_entry(reservation, ptr) : NULL;

    if (mapping == NULL || mapping->begin != ptr || mapping->bytes != bytes) {
        return refuse("address_unmap", "not what was mapped in one call", ptr, bytes);
    }
    if (rmm__sim_queue_uses_locked(ptr, bytes)) {
        rmm__sim_violation_locked(
            "address_unmap: a queued copy or fill uses address %p bytes %llu: wait for "
            "it first",
            (void *)ptr, (unsigned long long)bytes);
    }
    /* a fresh mapping drops the pages too */
    if (mmap(
            ptr, bytes, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
            0) == MAP_FAILED) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    place(reservation, mapping, false);
    physical_free_if_unused(mapping->physical);
    free(mapping);
    return RMM_DRIVER_OK;
}

int rmm__sim_address_unmap(void *ptr, size_t bytes)
{
    int error = begin("address_unmap");

    if (error == RMM_DRIVER_OK) {
        error = unmap_locked(ptr, bytes);
        rmm__sim_leave();
    }
    return error;
}

/* ---- access ---- */

/* Every mapping of the range is whole in it; false also if something is not mapped. */
static bool is_whole(const sim_reservation_t *reservation, char *ptr, uint64_t bytes)
{
    char *end = ptr + bytes;

    while (ptr < end) {
        const sim_mapping_t *mapping = *mapping_entry(reservation, ptr);

        if (mapping == NULL || mapping->begin != ptr ||
            mapping->bytes > (uint64_t)(end - ptr)) {
            return false;
        }
        ptr += mapping->bytes;
    }
    return true;
}

/* The host stands for all devices: what one may use, it can touch. */
static int let_in(sim_mapping_t *mapping, uint32_t devices)
{
    if (mapping->access == 0 && mapping->physical->file.bytes != 0) {
        if (!rmm__sim_file_map(
                &mapping->physical->file, mapping->begin, mapping->bytes, 0)) {
            return RMM_DRIVER_MEMORY_ALLOCATION;
        }
    } else if (mapping->access == 0) {
        if (mprotect(mapping->begin, mapping->bytes, PROT_READ | PROT_WRITE) != 0) {
            return RMM_DRIVER_MEMORY_ALLOCATION;
        }
        rmm__sim_poison_locked(mapping->begin, mapping->bytes, RMM_SIM_POISON_ALLOC);
    }
    mapping->access |= devices;
    return RMM_DRIVER_OK;
}

static int access_locked(char *ptr, uint64_t bytes, uint32_t devices)
{
    sim_reservation_t *reservation = reservation_around(ptr, bytes);
    int error = RMM_DRIVER_OK;

    if (devices == 0) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    if (reservation == NULL || !is_whole(reservation, ptr, bytes)) {
        return refuse("address_access", "not whole mappings", ptr, bytes);
    }
    for (uint64_t at = 0; at < bytes; at += GRANULARITY) {
        const sim_mapping_t *mapping = *mapping_entry(reservation, ptr + at);

        if (!rmm__sim_are_peers(devices, mapping->physical->device)) {
            return RMM_DRIVER_INVALID_DEVICE;
        }
    }
    for (uint64_t at = 0; at < bytes && error == RMM_DRIVER_OK;) {
        sim_mapping_t *mapping = *mapping_entry(reservation, ptr + at);

        error = let_in(mapping, devices);
        at += mapping->bytes;
    }
    return error;
}

int rmm__sim_address_access(void *ptr, size_t bytes, uint32_t devices)
{
    int error = begin("address_access");

    if (error == RMM_DRIVER_OK) {
        error = access_locked(ptr, bytes, devices);
        rmm__sim_leave();
    }
    return error;
}

uint32_t rmm__sim_physical_flags_locked(const void *ptr)
{
    const sim_reservation_t *reservation = reservation_of(ptr);
    const sim_mapping_t *mapping =
        reservation != NULL ? *mapping_entry(reservation, ptr) : NULL;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return mapping != NULL ? mapping->physical->flags : 0;
}

bool rmm__sim_virtual_holds_locked(const void *ptr)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return reservation_of(ptr) != NULL;
}

bool rmm__sim_virtual_allows_locked(const void *ptr, size_t bytes, int device)
{
    const sim_reservation_t *reservation = reservation_of(ptr);
    const char *at = ptr;
    const char *end = at + bytes;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (reservation == NULL) {
        return true;
    }
    while (at < end) {
        const sim_mapping_t *mapping = at < reservation->begin + reservation->bytes
                                           ? *mapping_entry(reservation, at)
                                           : NULL;

        if (mapping == NULL || mapping->access == 0 ||
            (device != SIM_ANY_DEVICE && (mapping->access >> device & 1) == 0)) {
            rmm__sim_violation_locked(
                "a copy or fill of %zu bytes at %p on device %d: %s at %p", bytes, ptr,
                device, mapping == NULL ? "nothing is mapped" : "no access",
                (const void *)at);
            return false;
        }
        at = mapping->begin + mapping->bytes;
    }
    return true;
}

bool rmm__sim_virtual_reaches_locked(const char *what, const void *ptr, int device)
{
    const sim_reservation_t *reservation = reservation_of(ptr);
    const sim_mapping_t *mapping =
        reservation != NULL ? *mapping_entry(reservation, ptr) : NULL;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (mapping != NULL && (mapping->access >> device & 1) == 0) {
        rmm__sim_violation_locked(
            "%s on device %d: no access to what device %d has mapped at %p", what,
            device, mapping->physical->device, ptr);
        return false;
    }
    return true;
}
