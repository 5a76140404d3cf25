/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that two processes share, over two real processes with a simulated GPU each: both see
 * the same bytes, whatever the other one does.
 */
#include "sim/driver/sim_harness.h"

#include <fcntl.h>
#include <string.h>

#include <rmm/rmm.h>

#include "driver/sim/control.h"
#include "harness/sharing_peer.h"

#define MIB ((size_t)1 << 20)

static rmm_resource_t *make_exportable(uint64_t initial_bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;

    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE;
    options.initial_bytes = initial_bytes;
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    return pool;
}

static char *take(rmm_resource_t *mr, size_t bytes)
{
    void *ptr;

    assert_ok(
        rmm_resource_alloc(mr, bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY, &ptr));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    return ptr;
}

static void give(rmm_resource_t *mr, void *ptr, size_t bytes)
{
    rmm_resource_dealloc(mr, ptr, bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY);
}

static rmm_pool_exported_t export_of(rmm_resource_t *mr, const void *ptr, size_t bytes)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;

    assert_ok(rmm_pool_export(mr, ptr, bytes, 0, &exported));
    return exported;
}

/* A peer that has imported the bytes; `count` descriptors went to it. */
static peer_t start_importer(
    int type, rmm_resource_t *mr, const void *ptr, size_t bytes, size_t count)
{
    peer_t peer = peer_start_over(type, "import", NULL, NULL);
    rmm_pool_exported_t exported = export_of(mr, ptr, bytes);

    assert_int_equal(exported.descriptor_count, count);
    assert_ok(rmm_pool_export_send(&exported, peer.socket));
    rmm_pool_export_release(&exported);
    assert_int_equal(peer_answer(&peer), RMM_OK);
    return peer;
}

static rmm_pool_imported_t *import_from(const peer_t *peer)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_imported_t *import;

    assert_ok(rmm_pool_export_receive(peer->socket, &exported));
    assert_ok(rmm_pool_import(&exported, &import));
    rmm_pool_export_release(&exported);
    return import;
}

static void assert_filled(const void *ptr, char byte, size_t bytes)
{
    const char *at = ptr;

    assert_int_equal(at[0], byte);
    assert_memory_equal(at, at + 1, bytes - 1);
}

TEST_CASE(what_one_process_writes_the_other_reads)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 1000);
    peer_t peer;

    memset(block, 3, 1000);
    peer = start_importer(SOCK_STREAM, pool, block, 0, 1);
    assert_int_equal(peer_ask(&peer, "s"), 3000);
    memset(block, 4, 1000);
    assert_int_equal(peer_ask(&peer, "s"), 4000);
    assert_int_equal(peer_ask(&peer, "w\5"), RMM_OK);
    assert_filled(block, 5, 1000);
    peer_quit(&peer);
    give(pool, block, 1000);
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(a_block_that_spans_pieces_arrives_in_one_range)
{
    rmm_resource_t *pool = make_exportable(2 * MIB);
    char *before = take(pool, MIB + 512);
    char *block = take(pool, 6 * MIB);
    const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

    for (int i = 0; i < 2; i++) {
        peer_t peer;

        for (size_t at = 0; at < 6 * MIB; at++) {
            block[at] = (char)(at / MIB + 1);
        }
        peer = start_importer(types[i], pool, block, 6 * MIB, 4);
        assert_int_equal(peer_ask(&peer, "s"), (1 + 2 + 3 + 4 + 5 + 6) * MIB);
        assert_int_equal(peer_ask(&peer, "w\2"), RMM_OK);
        assert_filled(block, 2, 6 * MIB);
        peer_quit(&peer);
    }
    give(pool, block, 6 * MIB);
    give(pool, before, MIB + 512);
    rmm_resource_release(pool);
}

TEST_CASE(any_byte_of_a_block_may_be_the_first)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 5 * MIB);
    peer_t peer;

    memset(block, 1, 5 * MIB);
    memset(block + 3 * MIB + 17, 9, 100);
    peer = start_importer(SOCK_STREAM, pool, block + 3 * MIB + 17, 100, 1);
    assert_int_equal(peer_ask(&peer, "s"), 900);
    peer_quit(&peer);
    give(pool, block, 5 * MIB);
    rmm_resource_release(pool);
}

TEST_CASE(memory_outlives_a_free_a_trim_and_the_end_of_its_pool)
{
    peer_t peer = peer_start("export", "pool_virtual:exportable", "5000000");
    rmm_pool_imported_t *import = import_from(&peer);

    assert_int_equal(import->bytes, 5000000);
    assert_int_equal(import->device, 0);
    assert_filled(import->ptr, 7, 5000000);
    assert_int_equal(peer_ask(&peer, "f"), RMM_OK);
    assert_int_equal(peer_ask(&peer, "t"), RMM_OK);
    assert_filled(import->ptr, 7, 5000000);
    peer_quit(&peer);
    assert_filled(import->ptr, 7, 5000000);
    rmm_pool_import_release(import);
    assert_int_equal(rmm__sim_address_bytes(), 0);
}

TEST_CASE(memory_outlives_an_exporter_that_is_killed)
{
    peer_t peer = peer_start("export", "pool_virtual:exportable", "5000000");
    rmm_pool_imported_t *import = import_from(&peer);

    peer_kill(&peer);
    assert_filled(import->ptr, 7, 5000000);
    memset(import->ptr, 8, 5000000);
    assert_filled(import->ptr, 8, 5000000);
    rmm_pool_import_release(import);
}

TEST_CASE(an_importer_that_is_killed_leaves_the_pool_as_it_was)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 3 * MIB);
    peer_t peer = start_importer(SOCK_STREAM, pool, block, 0, 2);

    assert_int_equal(peer_ask(&peer, "w\6"), RMM_OK);
    peer_kill(&peer);
    assert_filled(block, 6, 3 * MIB);
    give(pool, block, 3 * MIB);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(pool);
}

/* --- of CUDA's memory pools ------------------------------------------------------------- */

static rmm_resource_t *make_async(void)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.handle_types = RMM_ASYNC_HANDLE_POSIX_FD;
    assert_ok(rmm_async_resource_create(&options, &mr));
    return mr;
}

TEST_CASE(a_block_of_an_async_resource_is_shared)
{
    rmm_resource_t *mr = make_async();
    char *before = take(mr, 1000);
    char *block = take(mr, 3 * MIB);
    peer_t peer;

    memset(block, 3, 3 * MIB);
    peer = start_importer(SOCK_STREAM, mr, block + 5, 3 * MIB - 5, 1);
    assert_int_equal(peer_ask(&peer, "s"), 3 * (3 * MIB - 5));
    assert_int_equal(peer_ask(&peer, "w\5"), RMM_OK);
    assert_filled(block + 5, 5, 3 * MIB - 5);
    assert_int_equal(block[4], 3);
    peer_quit(&peer);
    give(mr, block, 3 * MIB);
    block = take(mr, 20 * MIB);
    assert_int_equal((unsigned char)block[20 * MIB - 1], RMM_SIM_POISON_ALLOC);
    give(mr, block, 20 * MIB);
    give(mr, before, 1000);
    assert_ok(rmm_resource_trim(mr, 0));
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

TEST_CASE(a_block_of_a_killed_async_resource_keeps_its_bytes)
{
    peer_t peer = peer_start("export", "async:exportable", "5000000");
    rmm_pool_imported_t *import = import_from(&peer);

    assert_filled(import->ptr, 7, 5000000);
    peer_kill(&peer);
    assert_filled(import->ptr, 7, 5000000);
    rmm_pool_import_release(import);
}

/* --- what else a pool does -------------------------------------------------------------- */

TEST_CASE(memory_that_was_exported_does_not_sleep)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 3 * MIB);
    rmm_pool_exported_t exported = export_of(pool, block, 0);

    rmm_pool_export_release(&exported);
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_IN_USE);
    give(pool, block, 3 * MIB);
    assert_ok(rmm_resource_trim(pool, 0));
    block = take(pool, 3 * MIB);
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_int_equal(rmm_pool_export(pool, block, 0, 0, &exported), RMM_ERR_ASLEEP);
    assert_ok(rmm_pool_wake(pool));
    give(pool, block, 3 * MIB);
    rmm_resource_release(pool);
}

int main(void)
{
    return harness_run_cases(NULL, NULL);
}
