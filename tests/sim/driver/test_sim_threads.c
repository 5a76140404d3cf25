/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU used by many threads at once, and copied by a fork while they do.
 */
#include "sim/driver/sim_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "driver/sim/control.h"
#include "harness/in_child.h"

#define THREADS 4
#define ROUNDS 300

typedef struct worker {
    pthread_t thread;
    int index;
    int errors; /* calls that failed, bytes that are wrong */
} worker_t;

static atomic_bool stop;

/* Every call of the table that a resource makes, on memory and streams of its own. */
static void work_once(worker_t *self, rmm_stream_t stream, rmm_driver_event_t event)
{
    const rmm_driver_t *driver = sim_driver();
    rmm_stream_key_t key = {.stream_id = 0};
    char value = (char)(self->index + 1);
    char seen[64];
    void *ptr = NULL;

    self->errors += driver->mem_alloc(&ptr, 64 + 512 * (size_t)self->index) != 0;
    self->errors += rmm_sim_memset_async(ptr, value, 64, stream) != 0;
    self->errors += rmm_sim_memcpy_async(seen, ptr, 64, stream) != 0;
    self->errors += driver->event_record(event, stream) != 0;
    self->errors += driver->stream_wait_event(RMM_STREAM_PER_THREAD, event) != 0;
    self->errors += driver->stream_key(RMM_STREAM_PER_THREAD, &key) != 0;
    self->errors += key.stream_id == 0;
    while (driver->event_query(event) == RMM_DRIVER_NOT_READY) {
    }
    self->errors += seen[0] != value || seen[63] != value;
    self->errors += driver->stream_synchronize(RMM_STREAM_PER_THREAD) != 0;
    self->errors += driver->mem_free(ptr) != 0;
}

/* A block of a pool, which another stream may have next. */
static void pool_once(worker_t *self, rmm_driver_mempool_t pool, rmm_stream_t stream)
{
    const rmm_driver_t *driver = sim_driver();
    char value = (char)(self->index + 1);
    char seen[64];
    void *ptr = NULL;

    self->errors += driver->mempool_alloc(pool, &ptr, 4096, stream) != 0;
    self->errors += driver->memset_async(ptr, value, 64, stream) != 0;
    self->errors += driver->memcpy_async(seen, ptr, 64, stream) != 0;
    self->errors += driver->mempool_free(ptr, stream) != 0;
    self->errors += driver->stream_synchronize(stream) != 0;
    self->errors += seen[0] != value || seen[63] != value;
}

/* Addresses with memory behind them, and gone again. */
static void virtual_once(worker_t *self, rmm_stream_t stream)
{
    const rmm_driver_t *driver = sim_driver();
    size_t granule = 2 << 20;
    rmm_driver_physical_t physical = 0;
    void *ptr = NULL;

    self->errors += driver->address_reserve(&ptr, 2 * granule) != 0;
    self->errors += driver->physical_create(granule, 0, &physical) != 0;
    self->errors += driver->address_map(ptr, granule, physical) != 0;
    self->errors +=
        driver->address_access(ptr, granule, RMM_DRIVER_DEVICE(self->index % 2)) != 0;
    self->errors += driver->physical_release(physical) != 0;
    self->errors += driver->memset_async(ptr, 1, 64, stream) != 0;
    self->errors += driver->stream_synchronize(stream) != 0;
    self->errors += *(const char *)ptr != 1;
    self->errors += driver->address_unmap(ptr, granule) != 0;
    self->errors += driver->address_free(ptr, 2 * granule) != 0;
}

static void *work(void *argument)
{
    worker_t *self = argument;
    const rmm_driver_t *driver = sim_driver();
    rmm_driver_mempool_t pool = NULL;
    rmm_driver_event_t event;
    rmm_stream_t stream;

    self->errors += driver->device_set(self->index % 2) != 0;
    self->errors += driver->event_create(&event) != 0;
    for (int i = 0; i < ROUNDS && !atomic_load(&stop); i++) {
        self->errors += driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream) != 0;
        work_once(self, stream, event);
        self->errors += driver->mempool_managed(&pool) != 0; /* all threads' */
        pool_once(self, pool, stream);
        if (i % 8 == 0) {
            virtual_once(self, stream);
        }
        self->errors += driver->stream_destroy(stream) != 0;
    }
    self->errors += driver->event_destroy(event) != 0;
    return NULL;
}

static void start(worker_t *workers)
{
    atomic_store(&stop, false);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.index = i};
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
}

static void join(worker_t *workers)
{
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].errors, 0);
    }
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(keeps_threads_apart)
{
    worker_t workers[THREADS];

    for (uint64_t seed = 0; seed < 8; seed++) {
        rmm__sim_reseed(seed);
        start(workers);
        join(workers);
    }
}

#ifndef __SANITIZE_ADDRESS__ /* whose own locks do not survive such a fork */
/* In a child: the simulator still answers, with the memory of the parent. */
static bool works_in_the_child(const rmm_driver_t *driver, const char *inherited)
{
    void *ptr;
    char seen = 0;

    return inherited[0] == 42 && driver->mem_alloc(&ptr, 4096) == 0 &&
           rmm_sim_memset_async(ptr, 7, 4096, NULL) == 0 &&
           rmm_sim_memcpy_async(&seen, ptr, 1, NULL) == 0 &&
           rmm_sim_device_synchronize() == 0 && seen == 7 && driver->mem_free(ptr) == 0;
}

TEST_CASE(forks_while_threads_use_it)
{
    const rmm_driver_t *driver = sim_driver(); /* the library is refused it there */
    worker_t workers[THREADS];
    void *inherited;

    rmm__sim_reseed(3);
    start(workers);
    assert_cuda(sim_driver()->mem_alloc(&inherited, 1 << 20));
    memset(inherited, 42, 1 << 20);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork_child();

        if (child == 0) {
            alarm(100); /* a deadlock must not hang the test */
            _exit(works_in_the_child(driver, inherited) ? 0 : 1);
        }
        assert_int_equal(exit_status_of(child), 0);
    }
    atomic_store(&stop, true);
    assert_cuda(sim_driver()->mem_free(inherited));
    join(workers);
}

#endif

static atomic_int opened;

static void *open_driver(void *argument)
{
    rmm_status_t status;

    atomic_fetch_add(&opened, rmm__driver(&status) == sim_driver());
    return NULL;
}

TEST_CASE(opens_once_for_threads_that_come_together)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_driver, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&opened), THREADS);
}
