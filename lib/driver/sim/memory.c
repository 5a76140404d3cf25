/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory. Each device has one range of address space, reserved at its first
 * allocation and backed where touched; addresses in it are given out lowest first, so
 * that freed ones come back soon. There are more addresses than memory, because a GPU maps
 * pages: what lies between allocations is no reason to refuse one.
 *
 * Memory is poisoned when it is allocated and when it is freed. Small blocks are filled;
 * large ones get a file of the pattern mapped over them, privately, which takes neither
 * time nor memory whatever their size. A piece of the file lies at the address modulo
 * the file's size, so that neighbours of one pattern join into one mapping and the
 * kernel's limit (vm.max_map_count, 65530) is far: a full 80 GiB is 5120 mappings.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/descriptor.h"
#include "core/output.h"
#include "core/uncancelled.h"

#define SMALL_ALIGN UINT64_C(512) /* as cudaMalloc */
#define LARGE_ALIGN (UINT64_C(2) << 20)
#define LARGE_BYTES (UINT64_C(1) << 20) /* from here on at LARGE_ALIGN */
#define MAP_BYTES (UINT64_C(256) << 10) /* from here on poisoned by mapping */
#define FILL_MAX (UINT64_C(1) << 20)    /* filled where mapping fails */
#define PAGE UINT64_C(4096)
#define ADDRESSES 4 /* times the device's memory */
#define PATTERN_BYTES (UINT64_C(16) << 20)
#define PATTERN_STEP (PATTERN_BYTES / 64) /* filled when first needed: one bit each */

typedef struct sim_range {
    char *base;               /* NULL: not reserved yet */
    uint64_t bytes;           /* of addresses */
    uint64_t allocated_bytes; /* of the device's memory, also what is not in space */
    sim_space_t space;
} sim_range_t;

typedef struct sim_pattern {
    int fd;
    dev_t device;
    ino_t inode; /* a program that becomes a daemon closes all descriptors */
    bool ready;
    unsigned char value;
    uint64_t filled; /* a bit for each PATTERN_STEP of the file */
} sim_pattern_t;

static sim_range_t ranges[SIM_DEVICE_MAX];
static sim_pattern_t fresh_pattern = {.value = RMM_SIM_POISON_ALLOC};
static sim_pattern_t freed_pattern = {.value = RMM_SIM_POISON_FREE};

static char *reserve(uint64_t bytes)
{
    char *memory = mmap(
        NULL, bytes + LARGE_ALIGN, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

static bool range_reserve(sim_range_t *range, int device)
{
    uint64_t device_bytes = rmm__sim_device_bytes() & ~(SMALL_ALIGN - 1);
    uint64_t bytes = device_bytes;
    char *memory = NULL;
    uintptr_t lost;

    if (device_bytes < UINT64_MAX / (2 * ADDRESSES)) {
        bytes = device_bytes * ADDRESSES;
        memory = reserve(bytes);
    }
    if (memory == NULL) { /* the process has a limit: as many addresses as memory */
        bytes = device_bytes;
        memory = reserve(bytes);
    }
    if (memory == NULL) {
        rmm__output_print(
            "rmm-sim: no address space for the %llu bytes of device %d: %s; "
            "set RMM_SIM_MEMORY lower\n",
            (unsigned long long)bytes, device, strerror(errno));
        return false;
    }
    if (!rmm__sim_space_init(&range->space, bytes)) {
        munmap(memory, bytes + LARGE_ALIGN);
        return false;
    }
    lost = (LARGE_ALIGN - (uintptr_t)memory % LARGE_ALIGN) % LARGE_ALIGN;
    range->base = memory + lost;
    range->bytes = bytes;
    return true;
}

static bool pattern_open(sim_pattern_t *pattern)
{
    int fd =
        rmm__descriptor_above_standard(memfd_create("rmm-sim-poison", MFD_CLOEXEC));
    struct stat file;

    if (fd < 0) {
        return false;
    }
    if (ftruncate(fd, (off_t)PATTERN_BYTES) != 0 || fstat(fd, &file) != 0) {
        close(fd);
        return false;
    }
    pattern->fd = fd;
    pattern->inode = file.st_ino;
    pattern->device = file.st_dev;
    pattern->filled = 0;
    pattern->ready = true;
    return true;
}

/* False: not yet, or the descriptor is closed, or a file of the program's now. */
static bool pattern_is_open(const sim_pattern_t *pattern)
{
    struct stat file;

    return pattern->ready && fstat(pattern->fd, &file) == 0 &&
           file.st_ino == pattern->inode && file.st_dev == pattern->device;
}

/* Written, because a page that is mapped costs a fault: half the time. */
static bool pattern_fill_step(sim_pattern_t *pattern, uint64_t step)
{
    static char page[PAGE]; /* under the simulation's lock */
    struct iovec pages[PATTERN_STEP / PAGE];

    memset(page, pattern->value, PAGE);
    for (size_t i = 0; i < PATTERN_STEP / PAGE; i++) {
        pages[i] = (struct iovec){.iov_base = page, .iov_len = PAGE};
    }
    if (pwritev(
            pattern->fd, pages, PATTERN_STEP / PAGE, (off_t)(step * PATTERN_STEP)) !=
        (ssize_t)PATTERN_STEP) {
        return false;
    }
    pattern->filled |= UINT64_C(1) << step;
    return true;
}

/* Filling all of it would cost every short process 10 ms. */
static bool pattern_fill(sim_pattern_t *pattern, uint64_t offset, uint64_t bytes)
{
    if (!pattern_is_open(pattern) && !pattern_open(pattern)) {
        return false;
    }
    for (uint64_t step = offset / PATTERN_STEP; step * PATTERN_STEP < offset + bytes;
         step++) {
        if ((pattern->filled >> step & 1) == 0 && !pattern_fill_step(pattern, step)) {
            return false;
        }
    }
    return true;
}

/* Whole pages, of one mapping. Where that fails, which takes more than a terabyte in use
 * or no file descriptor left, only small pieces are worth memory of their own. */
static void poison_piece(char *at, size_t bytes, sim_pattern_t *pattern)
{
    RMM_UNCANCELLED;
    static bool warned;
    uint64_t offset = (uintptr_t)at % PATTERN_BYTES;

    if (pattern_fill(pattern, offset, bytes) &&
        mmap(
            at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
            pattern->fd, (off_t)offset) != MAP_FAILED) {
        return;
    }
    if (bytes <= FILL_MAX) {
        memset(at, pattern->value, bytes);
    } else if (!warned) {
        warned = true;
        rmm__output_print(
            "rmm-sim: large blocks are not poisoned from here on: %s; raise "
            "vm.max_map_count or use less memory\n",
            strerror(errno));
    }
}

static void poison(char *at, uint64_t bytes, sim_pattern_t *pattern)
{
    char *end = at + bytes;
    char *inside_end = end - (uintptr_t)end % PAGE;
    char *inside = at + (PAGE - (uintptr_t)at % PAGE) % PAGE;

    if (bytes < MAP_BYTES) {
        memset(at, pattern->value, bytes);
        return;
    }
    memset(at, pattern->value, (size_t)(inside - at));
    memset(inside_end, pattern->value, (size_t)(end - inside_end));
    while (inside < inside_end) {
        size_t left = (size_t)(inside_end - inside);
        size_t piece = PATTERN_BYTES - (uintptr_t)inside % PATTERN_BYTES;

        piece = piece < left ? piece : left;
        poison_piece(inside, piece, pattern);
        inside += piece;
    }
}

void rmm__sim_poison_locked(char *begin, uint64_t bytes, int value)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    poison(
        begin, bytes, value == RMM_SIM_POISON_ALLOC ? &fresh_pattern : &freed_pattern);
}

int rmm__sim_memory_take_locked(int device, uint64_t bytes, sim_use_t use, char **out)
{
    sim_range_t *range = &ranges[device];
    uint64_t align = bytes >= LARGE_BYTES ? LARGE_ALIGN : SMALL_ALIGN;
    uint64_t offset;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (bytes > rmm__sim_device_bytes()) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    bytes = (bytes + SMALL_ALIGN - 1) & ~(SMALL_ALIGN - 1);
    if (bytes > rmm__sim_device_bytes() - range->allocated_bytes ||
        (range->base == NULL && !range_reserve(range, device)) ||
        !rmm__sim_space_take(&range->space, bytes, align, use, &offset)) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    poison(range->base + offset, bytes, &fresh_pattern);
    range->allocated_bytes += bytes;
    *out = range->base + offset;
    return RMM_DRIVER_OK;
}

bool rmm__sim_memory_charge_locked(int device, uint64_t bytes)
{
    bool fits = bytes <= rmm__sim_device_bytes() - ranges[device].allocated_bytes;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (fits) {
        ranges[device].allocated_bytes += bytes;
    }
    return fits;
}

void rmm__sim_memory_uncharge_locked(int device, uint64_t bytes)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    RMM_ASSERT(ranges[device].allocated_bytes >= bytes);
    ranges[device].allocated_bytes -= bytes;
}

static int alloc_locked(void **ptr_out, uint64_t bytes, sim_use_t use)
{
    char *fresh;
    int error = rmm__sim_memory_take_locked(rmm__sim_thread.device, bytes, use, &fresh);

    if (error == RMM_DRIVER_OK) {
        *ptr_out = fresh;
    }
    return error;
}

int rmm__sim_memory_take(const char *call, void **ptr_out, size_t bytes, sim_use_t use)
{
    int error = rmm__sim_enter_unsafe(call);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (bytes == 0) {
        *ptr_out = NULL;
    } else {
        error = alloc_locked(ptr_out, bytes, use);
    }
    rmm__sim_leave();
    return error;
}

int rmm__sim_mem_alloc(void **ptr_out, size_t bytes)
{
    return rmm__sim_memory_take("mem_alloc", ptr_out, bytes, SIM_USE_PLAIN);
}

/* The device whose range has this address; -1: none. */
static int device_of_locked(const void *ptr)
{
    uintptr_t address = (uintptr_t)ptr;

    for (int i = 0; i < rmm__sim_device_count(); i++) {
        uintptr_t base = (uintptr_t)ranges[i].base;

        if (base != 0 && address >= base && address - base < ranges[i].bytes) {
            return i;
        }
    }
    return -1;
}

bool rmm__sim_memory_is_device_locked(const void *ptr)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return device_of_locked(ptr) >= 0;
}

bool rmm__sim_memory_find_locked(const void *ptr, sim_block_t *out)
{
    int device = device_of_locked(ptr);
    sim_found_t found;

    if (device < 0 ||
        !rmm__sim_space_find(
            &ranges[device].space, (uint64_t)((const char *)ptr - ranges[device].base),
            &found)) {
        return false;
    }
    *out = (sim_block_t){
        .device = device,
        .use = (sim_use_t)found.use,
        .begin = ranges[device].base + found.offset,
        .bytes = found.bytes};
    return true;
}

/* May the device use the block? Copies reach plain memory of every device, through the host. */
static bool is_open_to(const sim_block_t *block, int device)
{
    if (block->device == device || device == SIM_ANY_DEVICE) {
        return true;
    }
    switch (block->use) {
    case SIM_USE_POOL:
        return (rmm__sim_mempool_access_locked(block->begin) >> device & 1) != 0;
    case SIM_USE_GRAPH:
        return (rmm__sim_async_access_locked(block->begin) >> device & 1) != 0;
    case SIM_USE_PLAIN:
    case SIM_USE_MANAGED:
    case SIM_USE_MANAGED_POOL:
        break;
    }
    return true;
}

bool rmm__sim_memory_allows_locked(const void *ptr, size_t bytes, int device)
{
    int owner = device_of_locked(ptr);
    sim_block_t block;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (owner < 0) {
        return true;
    }
    if (!rmm__sim_memory_find_locked(ptr, &block) ||
        bytes > (uint64_t)(block.begin + block.bytes - (const char *)ptr)) {
        rmm__sim_violation_locked(
            "a copy or fill of %zu bytes at %p: not within one allocation of device %d",
            bytes, ptr, owner);
        return false;
    }
    if (!is_open_to(&block, device)) {
        rmm__sim_violation_locked(
            "a copy or fill of %zu bytes at %p on device %d: no access to this memory "
            "pool of device %d",
            bytes, ptr, device, owner);
        return false;
    }
    return true;
}

bool rmm__sim_memory_reaches_locked(const char *what, const void *ptr, int device)
{
    sim_block_t block;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (!rmm__sim_memory_find_locked(ptr, &block) || is_open_to(&block, device)) {
        return true;
    }
    rmm__sim_violation_locked(
        "%s on device %d: no access to the memory pool of device %d at %p", what,
        device, block.device, ptr);
    return false;
}

/* False if no allocation begins there. */
static bool give_locked(int device, char *ptr)
{
    uint64_t bytes = rmm__sim_space_give(
        &ranges[device].space, (uint64_t)(ptr - ranges[device].base));

    if (bytes != 0) {
        rmm__sim_managed_forget_locked(ptr, bytes);
        poison(ptr, bytes, &freed_pattern);
        ranges[device].allocated_bytes -= bytes;
    }
    return bytes != 0;
}

void rmm__sim_memory_give_locked(char *begin)
{
    bool given = give_locked(device_of_locked(begin), begin);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    RMM_ASSERT(given);
    (void)given;
}

static bool is_pooled(const void *ptr)
{
    sim_block_t block;

    return rmm__sim_memory_find_locked(ptr, &block) &&
           (block.use == SIM_USE_POOL || block.use == SIM_USE_MANAGED_POOL ||
            block.use == SIM_USE_GRAPH);
}

/* As cudaFree: it waits for the device before the poison, which work that uses the block must not
 * see. Not for memory of a pool. */
static int free_locked(char *ptr, bool *has_waited)
{
    int device = device_of_locked(ptr);

    if (device < 0) {
        rmm__sim_violation_locked(
            "mem_free: %p is not an address of any device", (void *)ptr);
        return RMM_DRIVER_INVALID_VALUE;
    }
    if (is_pooled(ptr)) {
        return rmm__sim_async_free_now_locked(ptr, device);
    }
    *has_waited = true;
    rmm__sim_finish_device_locked(device);
    if (!give_locked(device, ptr)) {
        rmm__sim_violation_locked(
            "mem_free: no allocation begins at %p of device %d: freed twice?",
            (void *)ptr, device);
        return RMM_DRIVER_INVALID_VALUE;
    }
    return RMM_DRIVER_OK;
}

int rmm__sim_mem_free(void *ptr)
{
    int error = rmm__sim_enter_unsafe("mem_free");
    bool has_waited = false;

    if (error == RMM_DRIVER_OK) {
        error = ptr != NULL ? free_locked(ptr, &has_waited) : RMM_DRIVER_OK;
        rmm__sim_leave();
    }
    if (error == RMM_DRIVER_OK && has_waited) {
        rmm__sim_tell(&(sim_observation_t){
            .kind = RMM_DIAG_DEVICE_SYNC, .device = -1}); /* as librmm-inject */
    }
    return error;
}

int rmm__sim_memory_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
    int error = rmm__sim_enter("memory_info");

    if (error == RMM_DRIVER_OK) {
        *total_bytes = rmm__sim_device_bytes();
        *free_bytes =
            *total_bytes - rmm__sim_memory_allocated_locked(rmm__sim_thread.device);
        rmm__sim_leave();
    }
    return error;
}

uint64_t rmm__sim_memory_allocated_locked(int device)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return ranges[device].allocated_bytes;
}
