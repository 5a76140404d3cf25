/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that two processes share, over two real processes with a simulated GPU each: both see
 * the same bytes, whatever the other one does.
 */
#include "sim/driver/sim_harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <rmm/rmm.h>

#include "driver/sim/control.h"
#include "harness/sharing_peer.h"
#include "resources/sharing.h"

#define MIB ((size_t)1 << 20)

static uint64_t pool_addresses; /* what pools have reserved, and imports have not */

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

/* --- what goes wrong -------------------------------------------------------------------- */

static void assert_not_imported(
    const rmm_pool_exported_t *exported, rmm_status_t expected, const char *reason)
{
    rmm_pool_imported_t *import = NULL;

    assert_int_equal(rmm_pool_import(exported, &import), expected);
    assert_null(import);
    if (strstr(rmm_last_error_message(), reason) == NULL) {
        fail_msg("%s: not about %s", rmm_last_error_message(), reason);
    }
    assert_int_equal(rmm__sim_address_bytes(), pool_addresses);
}

static rmm_sharing_header_t *header_of(rmm_pool_exported_t *exported)
{
    return exported->record;
}

TEST_CASE(a_record_that_was_changed_is_refused_with_the_reason)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 3 * MIB);
    rmm_pool_exported_t exported = export_of(pool, block, 0);
    rmm_sharing_header_t *header = header_of(&exported);
    rmm_sharing_header_t right = *header;

    pool_addresses = rmm__sim_address_bytes();
    snprintf(header->uuid, sizeof(header->uuid), "SIM-9");
    assert_not_imported(&exported, RMM_ERR_UNSUPPORTED, "device SIM-9");
    *header = right;
    header->major = 2;
    assert_not_imported(&exported, RMM_ERR_UNSUPPORTED, "version 2");
    *header = right;
    header->magic[0] = 'X';
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "RMMSHARE");
    *header = right;
    header->offset = 2 * MIB;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "begin");
    *header = right;
    header->bytes = 5 * MIB;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "larger than its parts");
    *header = right;
    header->bytes = UINT64_MAX;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "size");
    *header = right;
    memset(header->uuid, 'x', sizeof(header->uuid));
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "name of its device");
    *header = right;
    exported.descriptor_count--;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "1 came with it");
    exported.descriptor_count++;
    exported.record_bytes--;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "size");
    exported.record_bytes = 10;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "too short");
    rmm_pool_export_release(&exported);
    rmm_pool_export_release(&exported);
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "too short");
    give(pool, block, 3 * MIB);
    rmm_resource_release(pool);
}

TEST_CASE(a_descriptor_that_is_not_the_memory_is_refused)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 3 * MIB);
    rmm_pool_exported_t exported = export_of(pool, block, 0);
    rmm_sharing_part_t *parts =
        (void *)((char *)exported.record + sizeof(rmm_sharing_header_t));
    int right = exported.descriptors[1];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    pool_addresses = rmm__sim_address_bytes();
    exported.descriptors[1] = null;
    assert_not_imported(&exported, RMM_ERR_CUDA, "is not that memory");
    exported.descriptors[1] = -1;
    assert_not_imported(&exported, RMM_ERR_CUDA, "is not that memory");
    exported.descriptors[1] = right;
    parts[1].bytes *= 2;
    assert_not_imported(&exported, RMM_ERR_CUDA, "is not that memory");
    parts[1].bytes = 2 * MIB + 1;
    assert_not_imported(&exported, RMM_ERR_INVALID_ARGUMENT, "whole granules");
    close(null);
    rmm_pool_export_release(&exported);
    give(pool, block, 3 * MIB);
    rmm_resource_release(pool);
}

TEST_CASE(what_is_not_shared_is_not_exported)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *pool = make_exportable(0);
    rmm_resource_t *cuda;
    char *block = take(pool, 1000);
    char *plain;

    assert_ok(rmm_cuda_resource_create(&cuda));
    plain = take(cuda, 1000);
    assert_int_equal(
        rmm_pool_export(cuda, plain, 0, 0, &exported), RMM_ERR_UNSUPPORTED);
    assert_non_null(strstr(rmm_last_error_message(), "RMM_POOL_EXPORTABLE"));
    assert_int_equal(
        rmm_pool_export(pool, plain, 0, 0, &exported), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_pool_export(pool, block + 1000, 0, 0, &exported), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_pool_export(pool, block, 1001, 0, &exported), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_pool_export(pool, block, 0, 2, &exported), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_pool_export(pool, block, 0, RMM_POOL_EXPORT_FABRIC, &exported),
        RMM_ERR_UNSUPPORTED);
    give(cuda, plain, 1000);
    give(pool, block, 1000);
    assert_int_equal(
        rmm_pool_export(pool, block, 0, 0, &exported), RMM_ERR_INVALID_ARGUMENT);
    assert_null(exported.record);
    rmm_resource_release(cuda);
    rmm_resource_release(pool);
}

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* So many more descriptors may be opened; the limit of before. */
static struct rlimit leave_descriptors(int more)
{
    struct rlimit before, few;
    int lowest = dup(STDIN_FILENO);

    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)(lowest + more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return before;
}

TEST_CASE(a_full_descriptor_table_is_named_and_leaves_nothing_open)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_exported_t received = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 20 * MIB);
    struct rlimit before;
    int pair[2], open_before;

    assert_ok(rmm_pool_export(pool, block, 0, 0, &exported)); /* the files are there */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_ok(rmm_pool_export_send(&exported, pair[0]));
    rmm_pool_export_release(&exported);
    open_before = open_descriptors();
    for (int more = 0; more < 10; more++) {
        before = leave_descriptors(more);
        assert_int_equal(rmm_pool_export(pool, block, 0, 0, &exported), RMM_ERR_IO);
        assert_non_null(strstr(rmm_last_error_message(), "RLIMIT_NOFILE"));
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(open_descriptors(), open_before);
    }
    before = leave_descriptors(4);
    assert_int_equal(rmm_pool_export_receive(pair[1], &received), RMM_ERR_IO);
    assert_non_null(strstr(rmm_last_error_message(), "RLIMIT_NOFILE"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(open_descriptors(), open_before);
    close(pair[0]);
    close(pair[1]);
    give(pool, block, 20 * MIB);
    rmm_resource_release(pool);
}

TEST_CASE(an_export_that_fails_does_not_keep_the_pool_awake)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 20 * MIB);
    struct rlimit before = leave_descriptors(4);

    assert_int_equal(rmm_pool_export(pool, block, 0, 0, &exported), RMM_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_ok(rmm_pool_wake(pool));
    exported = export_of(pool, block, 0);
    rmm_pool_export_release(&exported);
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_IN_USE);
    give(pool, block, 20 * MIB);
    rmm_resource_release(pool);
}

/* Its block lies in one of the pool's, with others. */
TEST_CASE(a_resource_that_divides_the_memory_of_a_pool_exports_none)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *pool = make_exportable(0);
    rmm_resource_t *arena;
    char *block;

    options.arena_bytes = 16 * MIB;
    assert_ok(rmm_arena_resource_create(pool, &options, &arena));
    block = take(arena, 1000);
    assert_int_equal(
        rmm_pool_export(arena, block, 0, 0, &exported), RMM_ERR_UNSUPPORTED);
    give(arena, block, 1000);
    rmm_resource_release(arena);
    rmm_resource_release(pool);
}

/* All of them in several messages, to a socket that asks for the sender's credentials. */
TEST_CASE(more_descriptors_than_a_message_carries_arrive)
{
    const int on = 1;

    rmm_resource_t *pool = make_exportable(0);
    size_t bytes = 600 * MIB;
    char *block = take(pool, bytes);
    rmm_pool_exported_t exported = export_of(pool, block, 0);
    rmm_pool_exported_t received = RMM_POOL_EXPORTED_INIT;
    rmm_pool_imported_t *import;
    int pair[2];

    assert_true(exported.descriptor_count > 253);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
    assert_ok(rmm_pool_export_send(&exported, pair[0]));
    assert_ok(rmm_pool_export_receive(pair[1], &received));
    assert_int_equal(received.descriptor_count, exported.descriptor_count);
    assert_memory_equal(received.record, exported.record, exported.record_bytes);
    assert_ok(rmm_pool_import(&received, &import));
    block[bytes - 1] = 77;
    assert_int_equal(((char *)import->ptr)[bytes - 1], 77);
    rmm_pool_import_release(import);
    rmm_pool_export_release(&received);
    rmm_pool_export_release(&exported);
    close(pair[0]);
    close(pair[1]);
    give(pool, block, bytes);
    rmm_resource_release(pool);
}

/* 0: a process without privileges learns which limit more exports than somebody receives reach. */
static int send_until_refused(const rmm_pool_exported_t *exported, int socket)
{
    const struct rlimit few = {16, 16};
    rmm_status_t status = RMM_OK;

    alarm(60); /* a socket that is full waits */
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) {
        return 2;
    }
    (void)!setuid(65534); /* root has no such limit; whoever cannot change has it */
    for (int i = 0; i < 100 && status == RMM_OK; i++) {
        status = rmm_pool_export_send(exported, socket);
    }
    return status == RMM_ERR_IO &&
                   strstr(rmm_last_error_message(), "RLIMIT_NOFILE") != NULL
               ? 0
               : 1;
}

TEST_CASE(descriptors_that_nobody_receives_have_a_limit)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 20 * MIB);
    rmm_pool_exported_t exported = export_of(pool, block, 0);
    int pair[2], status;
    pid_t child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(send_until_refused(&exported, pair[0]));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(pair[0]);
    close(pair[1]);
    rmm_pool_export_release(&exported);
    give(pool, block, 20 * MIB);
    rmm_resource_release(pool);
}

static void assert_not_received(int type, const void *bytes, size_t count, int fd)
{
    rmm_pool_exported_t received = RMM_POOL_EXPORTED_INIT;
    struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    int open_before = open_descriptors();
    int pair[2];
    rmm_status_t status;

    assert_int_equal(socketpair(AF_UNIX, type, 0, pair), 0);
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        control.head = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
            .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
    }
    assert_int_equal(sendmsg(pair[0], &message, 0), count);
    close(pair[0]);
    status = rmm_pool_export_receive(pair[1], &received);
    assert_true(status == RMM_ERR_IO || status == RMM_ERR_INVALID_ARGUMENT);
    assert_null(received.record);
    close(pair[1]);
    assert_int_equal(open_descriptors(), open_before);
}

TEST_CASE(what_is_no_export_is_not_received)
{
    rmm_resource_t *pool = make_exportable(0);
    char *block = take(pool, 3 * MIB);
    rmm_pool_exported_t exported = export_of(pool, block, 0);
    char zeros[4096] = {0};
    size_t header = sizeof(rmm_sharing_header_t);

    assert_not_received(SOCK_STREAM, zeros, sizeof(zeros), -1);
    assert_not_received(SOCK_STREAM, zeros, 3, -1);
    assert_not_received(SOCK_STREAM, exported.record, header, -1);
    assert_not_received(SOCK_STREAM, exported.record, header, STDIN_FILENO);
    assert_not_received(SOCK_STREAM, exported.record, exported.record_bytes, -1);
    assert_not_received(SOCK_SEQPACKET, exported.record, exported.record_bytes, -1);
    assert_not_received(SOCK_SEQPACKET, zeros, sizeof(zeros), STDIN_FILENO);
    rmm_pool_export_release(&exported);
    give(pool, block, 3 * MIB);
    rmm_resource_release(pool);
}

/* One more call of the driver fails each time, until none is left to fail. */
static void sweep(rmm_resource_t *mr, const void *block)
{
    uint64_t addresses = rmm__sim_address_bytes();
    int open_before = open_descriptors();
    bool struck = true;

    for (int call = 1; struck; call++) {
        rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
        rmm_pool_imported_t *import = NULL;
        char plan[32];
        rmm_status_t status;

        snprintf(plan, sizeof(plan), "any:%d:999", call);
        assert_true(rmm_sim_fail(plan));
        status = rmm_pool_export(mr, block, 0, 0, &exported);
        status = status == RMM_OK ? rmm_pool_import(&exported, &import) : status;
        struck = rmm__sim_fault_has_struck();
        assert_true(rmm_sim_fail(""));
        assert_true(struck || status == RMM_OK);
        rmm_pool_import_release(import);
        rmm_pool_export_release(&exported);
        assert_int_equal(rmm__sim_address_bytes(), addresses);
        /* of a handle that the driver would not release */
        assert_in_range(open_descriptors(), open_before, open_before + 1);
        open_before = open_descriptors();
    }
}

TEST_CASE(any_driver_call_of_an_export_and_an_import_may_fail)
{
    rmm_resource_t *pool = make_exportable(0);
    rmm_resource_t *mr = make_async();
    char *block = take(pool, 3 * MIB);
    char *other = take(mr, 1000);
    rmm_pool_exported_t first = export_of(mr, other, 0); /* the pool has a file */

    rmm_pool_export_release(&first);
    first = export_of(pool, block, 0);
    rmm_pool_export_release(&first);
    sweep(pool, block);
    sweep(mr, other);
    give(mr, other, 1000);
    give(pool, block, 3 * MIB);
    rmm_resource_release(mr);
    rmm_resource_release(pool);
}

TEST_CASE(any_driver_call_of_the_creation_of_a_pool_may_fail)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    uint64_t addresses = rmm__sim_address_bytes();
    bool struck = true;

    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE;
    options.initial_bytes = 4 * MIB;
    for (int call = 1; struck; call++) {
        rmm_resource_t *pool = NULL;
        char plan[32];
        rmm_status_t status;

        snprintf(plan, sizeof(plan), "any:%d:999", call);
        assert_true(rmm_sim_fail(plan));
        status = rmm_pool_resource_create(NULL, &options, &pool);
        struck = rmm__sim_fault_has_struck();
        assert_true(rmm_sim_fail(""));
        assert_true(struck || status == RMM_OK);
        rmm_resource_release(pool);
        assert_int_equal(rmm__sim_address_bytes(), addresses);
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    }
}

/* Also of a pool that is not shared. */
TEST_CASE(every_piece_is_made_for_network_cards)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *plain;
    rmm_resource_t *pool = make_exportable(0);
    char *ptr, *block = take(pool, 3 * MIB);

    options.flags = RMM_POOL_VIRTUAL;
    assert_ok(rmm_pool_resource_create(NULL, &options, &plain));
    ptr = take(plain, 3 * MIB);
    assert_int_equal(rmm__sim_physical_flags(ptr), RMM_DRIVER_RDMA);
    assert_int_equal(rmm__sim_physical_flags(ptr + 2 * MIB), RMM_DRIVER_RDMA);
    assert_int_equal(
        rmm__sim_physical_flags(block), RMM_DRIVER_RDMA | RMM_DRIVER_HANDLE_POSIX);
    give(plain, ptr, 3 * MIB);
    give(pool, block, 3 * MIB);
    rmm_resource_release(plain);
    rmm_resource_release(pool);
}

TEST_CASE(a_process_that_cannot_map_memory_imports_none)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_resource_t *pool;
    void *block;
    peer_t peer;

    if (getenv("RMM_SIM_ATTRIBUTES") != NULL) {
        return; /* sim.sharing has it */
    }
    pool = make_exportable(0);
    block = take(pool, 1000);
    assert_int_equal(setenv("RMM_SIM_ATTRIBUTES", "virtual_memory=0", 1), 0);
    peer = peer_start("import", NULL, NULL);
    assert_int_equal(unsetenv("RMM_SIM_ATTRIBUTES"), 0);
    exported = export_of(pool, block, 0);
    assert_ok(rmm_pool_export_send(&exported, peer.socket));
    rmm_pool_export_release(&exported);
    assert_int_equal(peer_answer(&peer), RMM_ERR_UNSUPPORTED);
    assert_true(WIFEXITED(peer_wait(&peer)));
    give(pool, block, 1000);
    rmm_resource_release(pool);
}

/* --- fabric handles --------------------------------------------------------------------- */

/* In a process of its own, whose device has them. */
TEST_CASE(a_fabric_handle_is_of_use_while_the_exporter_is_there)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    peer_t peer;

    if (getenv("RMM_SIM_ATTRIBUTES") == NULL) {
        return; /* sim.sharing_fabric has it */
    }
    peer = peer_start("export-fabric", "pool_virtual:exportable", "5000000");
    assert_ok(rmm_pool_export_receive(peer.socket, &exported));
    assert_int_equal(exported.descriptor_count, 0);
    {
        rmm_pool_imported_t *import;

        assert_ok(rmm_pool_import(&exported, &import));
        assert_filled(import->ptr, 7, 5000000);
        peer_kill(&peer);
        assert_filled(import->ptr, 7, 5000000);
        rmm_pool_import_release(import);
    }
    pool_addresses = rmm__sim_address_bytes();
    assert_not_imported(&exported, RMM_ERR_CUDA, "has ended");
    rmm_pool_export_release(&exported);
}

int main(int argc, char **argv)
{
    int status;

    return sharing_peer_runs(argc, argv, &status) ? status
                                                  : harness_run_cases(NULL, NULL);
}
