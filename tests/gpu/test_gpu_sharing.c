/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that two processes share on a real GPU: of a virtual pool and of an async resource. Every
 * byte is checked, in both directions, also after the exporter has trimmed, ended or was killed.
 */
#include "gpu/gpu_harness.h"

#include <fcntl.h>
#include <string.h>

#include "harness/sharing_peer.h"

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr;

    assert_real_gpu();
    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    return mr;
}

static void *take_filled(rmm_resource_t *mr, size_t bytes, int value)
{
    void *ptr;

    assert_ok(rmm_resource_alloc_sync(mr, bytes, RMM_ALIGN_DEFAULT, &ptr));
    assert_ok(rmm_memset_async(ptr, value, bytes, RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    return ptr;
}

static void share_with_an_importer(const char *spec, size_t bytes)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *mr = make(spec);
    void *before = take_filled(mr, 100000, 1);
    void *block = take_filled(mr, bytes, 3);
    peer_t peer = peer_start("import", NULL, NULL);

    assert_ok(rmm_pool_export(mr, block, bytes, 0, &exported));
    print_message(
        "fact: %s: %zu bytes in %zu descriptors\n", spec, bytes,
        exported.descriptor_count);
    assert_ok(rmm_pool_export_send(&exported, peer.socket));
    rmm_pool_export_release(&exported);
    assert_int_equal(peer_answer(&peer), RMM_OK);
    assert_int_equal(peer_ask(&peer, "s"), 3 * (int64_t)bytes);
    assert_int_equal(peer_ask(&peer, "w\5"), RMM_OK);
    assert_filled(block, 5, bytes);
    assert_filled(before, 1, 100000);
    peer_quit(&peer);
    rmm_resource_dealloc(mr, block, bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY);
    rmm_resource_dealloc(mr, before, 100000, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY);
    rmm_resource_release(mr);
}

TEST_CASE(a_pool_and_an_async_resource_share_blocks_with_another_process)
{
    share_with_an_importer("pool_virtual:exportable", 1000);
    share_with_an_importer("pool_virtual:exportable", 37 * MIB + 5);
    share_with_an_importer("async:exportable", 1000);
    share_with_an_importer("async:exportable", 37 * MIB + 5);
}

static rmm_pool_imported_t *import_from(const peer_t *peer)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_imported_t *import;

    assert_ok(rmm_pool_export_receive(peer->socket, &exported));
    assert_ok(rmm_pool_import(&exported, &import));
    rmm_pool_export_release(&exported);
    assert_filled(import->ptr, 7, (size_t)import->bytes);
    return import;
}

TEST_CASE(mapped_memory_outlives_a_free_a_trim_and_the_exporter)
{
    peer_t peer = peer_start("export", "pool_virtual:exportable", "5000000");
    rmm_pool_imported_t *import = import_from(&peer);

    assert_int_equal(peer_ask(&peer, "f"), RMM_OK);
    assert_int_equal(peer_ask(&peer, "t"), RMM_OK);
    assert_filled(import->ptr, 7, 5000000);
    peer_quit(&peer);
    assert_filled(import->ptr, 7, 5000000);
    rmm_pool_import_release(import);
}

TEST_CASE(memory_outlives_an_exporter_that_is_killed)
{
    static const char *const specs[] = {"pool_virtual:exportable", "async:exportable"};

    for (int i = 0; i < 2; i++) {
        peer_t peer = peer_start("export", specs[i], "5000000");
        rmm_pool_imported_t *import = import_from(&peer);

        peer_kill(&peer);
        assert_filled(import->ptr, 7, 5000000);
        rmm_pool_import_release(import);
    }
}

TEST_CASE(what_is_no_memory_is_refused)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *mr = make("pool_virtual:exportable");
    void *block = take_filled(mr, MIB, 1);
    rmm_pool_imported_t *import = NULL;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int right;

    assert_ok(rmm_pool_export(mr, block, 0, 0, &exported));
    right = exported.descriptors[0];
    exported.descriptors[0] = null;
    assert_int_equal(rmm_pool_import(&exported, &import), RMM_ERR_CUDA);
    print_message("fact: /dev/null: %s\n", rmm_last_error_message());
    exported.descriptors[0] = right;
    close(null);
    rmm_pool_export_release(&exported);
    rmm_resource_dealloc(mr, block, MIB, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY);
    rmm_resource_release(mr);
}

int main(int argc, char **argv)
{
    int status;

    if (sharing_peer_runs(argc, argv, &status)) {
        return status;
    }
    return gpu_is_missing() ? SKIPPED : harness_run_cases(NULL, NULL);
}
