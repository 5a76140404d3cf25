/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory. Each device has one range of address space, and so have the memory pools of the
 * host, reserved at its first
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
#include <stdio.h>
#include <stdlib.h>
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

static sim_range_t ranges[SIM_DEVICE_MAX + 1]; /* the last one is the host's */
static sim_pattern_t fresh_pattern = {.value = RMM_SIM_POISON_ALLOC};
static sim_pattern_t freed_pattern = {.value = RMM_SIM_POISON_FREE};

/* Ranges that lie in files of other processes, too: they are filled, and never mapped anew. */
typedef struct sim_shared {
    struct sim_shared *next;
    char *begin;
    uint64_t bytes;
} sim_shared_t;

static sim_shared_t *shared_ranges;

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

static bool is_shared(const char *at)
{
    for (const sim_shared_t *one = shared_ranges; one != NULL; one = one->next) {
        if ((uintptr_t)at - (uintptr_t)one->begin < one->bytes) {
            return true;
        }
    }
    return false;
}

/* What begins there is no longer shared: its next poison is mapped over the file. */
static void end_sharing(const char *begin)
{
    for (sim_shared_t **link = &shared_ranges; *link != NULL; link = &(*link)->next) {
        sim_shared_t *gone = *link;

        if (gone->begin == begin) {
            *link = gone->next;
            free(gone);
            return;
        }
    }
}

bool rmm__sim_memory_share_locked(const sim_file_t *file, char *begin, uint64_t bytes)
{
    sim_shared_t *fresh = calloc(1, sizeof(*fresh));

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (fresh == NULL || !rmm__sim_file_map(file, begin, bytes, (uintptr_t)begin)) {
        free(fresh);
        return false;
    }
    *fresh = (sim_shared_t){shared_ranges, begin, bytes};
    shared_ranges = fresh;
    return true;
}

static void poison(char *at, uint64_t bytes, sim_pattern_t *pattern)
{
    char *end = at + bytes;
    char *inside_end = end - (uintptr_t)end % PAGE;
    char *inside = at + (PAGE - (uintptr_t)at % PAGE) % PAGE;

    if (bytes < MAP_BYTES || is_shared(at)) {
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

static bool is_in(const sim_range_t *range, const void *ptr)
{
    uintptr_t address = (uintptr_t)ptr, base = (uintptr_t)range->base;

    return base != 0 && address >= base && address - base < range->bytes;
}

/* The device whose range has this address, or SIM_HOST; -1: none. */
int rmm__sim_memory_device_locked(const void *ptr)
{
    for (int i = 0; i < rmm__sim_device_count(); i++) {
        if (is_in(&ranges[i], ptr)) {
            return i;
        }
    }
    return is_in(&ranges[SIM_HOST], ptr) ? SIM_HOST : -1;
}

bool rmm__sim_memory_is_device_locked(const void *ptr)
{
    int device = rmm__sim_memory_device_locked(ptr);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return device >= 0 && device != SIM_HOST;
}

bool rmm__sim_memory_find_locked(const void *ptr, sim_block_t *out)
{
    int device = rmm__sim_memory_device_locked(ptr);
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

uint64_t rmm__sim_memory_allocated_locked(int device)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    return ranges[device].allocated_bytes;
}

bool rmm__sim_memory_end_locked(int device, char *ptr)
{
    uint64_t bytes = rmm__sim_space_give(
        &ranges[device].space, (uint64_t)(ptr - ranges[device].base));

    if (bytes != 0) {
        rmm__sim_managed_forget_locked(ptr, bytes);
        end_sharing(ptr);
        poison(ptr, bytes, &freed_pattern);
        ranges[device].allocated_bytes -= bytes;
    }
    return bytes != 0;
}

void rmm__sim_memory_give_locked(char *begin)
{
    bool given =
        rmm__sim_memory_end_locked(rmm__sim_memory_device_locked(begin), begin);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    RMM_ASSERT(given);
    (void)given;
}
