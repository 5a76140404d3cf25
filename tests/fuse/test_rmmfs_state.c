/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon keeps over a restart, GPUs by number, the command line.
 */
#include "model_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "daemon/options.h"
#include "harness/runtime.h"
#include "model/newer_stats.h"
#include "model/state.h"

static void write_state(const runtime_t *runtime, const char *text)
{
    int fd = openat(runtime->fd, "rmmfs.state", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void what_is_saved_is_loaded(void **unused)
{
    (void)unused;
    runtime_t runtime;
    fixture_t *before = calloc(1, sizeof(*before)), *after = calloc(1, sizeof(*after));
    runtime_open(&runtime);
    fixture_open(before);
    fixture_open(after);
    (void)fixture_gpu(before, "GPU-a");
    (void)fixture_gpu(before, "SIM-0");
    before->model.gpus[1].gpu.name[0] = '\0';
    before->model.gpus[1].gpu.pci_bus_id[0] = '\0';
    before->model.gpus[0].peak_bytes = 123;
    before->model.gpus[0].lifetime_peak_bytes = 1234;
    before->model.gpus[1].peak_upper_bytes = 77;
    before->model.gpus[1].exited[RMM_LOCATION_STAT_total_count] = 9;
    before->model.host.exited[RMM_LOCATION_STAT_oom_count] = 3;
    newer_add(&before->model.gpus[0].newer, "new_count", RMM_KIND_COUNTER, 42);
    const totalled_t ended = {"0.0123456789abcdef", 7, "4711", 99};
    assert_true(model_add_totalled(&before->model, &ended));
    identity_add(&before->model.ended, &(identity_t){1000, 42, 5, UINT64_MAX});
    before->model.state = state_open(runtime.path, true);
    assert_non_null(before->model.state);
    assert_false(state_load(before->model.state, &after->model)); /* there is none */
    state_save(&before->model);
    assert_true(state_load(before->model.state, &after->model));
    assert_int_equal(after->model.gpu_count, 2);
    assert_string_equal(after->model.gpus[0].gpu.uuid, "GPU-a");
    assert_string_equal(after->model.gpus[0].gpu.name, "Sample");
    assert_int_equal(after->model.gpus[0].gpu.capacity_bytes, 1 << 20);
    assert_string_equal(after->model.gpus[1].gpu.uuid, "SIM-0");
    assert_string_equal(after->model.gpus[1].gpu.name, "");
    assert_string_equal(after->model.gpus[1].gpu.pci_bus_id, "");
    assert_int_equal(after->model.gpus[0].peak_bytes, 123);
    assert_int_equal(after->model.gpus[0].lifetime_peak_bytes, 1234);
    assert_int_equal(after->model.gpus[1].peak_upper_bytes, 77);
    assert_int_equal(after->model.gpus[1].exited[RMM_LOCATION_STAT_total_count], 9);
    assert_int_equal(after->model.host.exited[RMM_LOCATION_STAT_oom_count], 3);
    assert_int_equal(after->model.gpus[0].newer.count, 1);
    assert_int_equal(after->model.gpus[0].newer.items[0].value, 42);
    const totalled_t *totalled = model_totalled(&after->model, ended.name, 7);
    assert_null(model_totalled(&after->model, ended.name, 0));
    assert_non_null(totalled);
    assert_string_equal(totalled->process, "4711");
    assert_int_equal(totalled->exited_ns, 99);
    assert_int_equal(after->model.ended.count, 1);
    assert_memory_equal(
        &after->model.ended, &before->model.ended, offsetof(identities_t, items[1]));
    state_close(before->model.state);
    fixture_close(before);
    fixture_close(after);
    free(before);
    free(after);
    runtime_close(&runtime);
}

/* What a thread that saves shares with one that wants the model's lock. */
typedef struct saving {
    model_t *model;
    atomic_uint saves; /* odd: one is under way */
    atomic_bool done;
} saving_t;

static void *save_again_and_again(void *arg)
{
    saving_t *saving = arg;
    while (!atomic_load(&saving->done)) {
        atomic_fetch_add(&saving->saves, 1);
        state_save(saving->model);
        atomic_fetch_add(&saving->saves, 1);
    }
    return NULL;
}

/* The model's lock is to be had before a save has ended, and after it began. */
static bool get_lock_while_saving(saving_t *saving)
{
    unsigned before = atomic_load(&saving->saves);
    if (before % 2 == 0 || pthread_rwlock_trywrlock(&saving->model->lock) != 0) {
        return false;
    }
    bool is_same = atomic_load(&saving->saves) == before;
    pthread_rwlock_unlock(&saving->model->lock);
    return is_same;
}

static void a_write_keeps_nobody_from_the_model(void **unused)
{
    (void)unused;
    enum { TOTALLED = 20000, ENOUGH = 1000 };
    runtime_t runtime;
    pthread_t thread;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    runtime_open(&runtime);
    fixture_open(fixture);
    for (unsigned i = 0; i < TOTALLED; i++) {
        totalled_t totalled = {.exited_ns = i, .process = "4711", .uid = 99};
        (void)snprintf(totalled.name, sizeof(totalled.name), "0.%016x", i);
        assert_true(model_add_totalled(&fixture->model, &totalled));
    }
    fixture->model.state = state_open(runtime.path, true);
    saving_t saving = {.model = &fixture->model};
    assert_int_equal(pthread_create(&thread, NULL, save_again_and_again, &saving), 0);
    unsigned got = 0; /* of a save that holds the lock: only just before and after it */
    while (got < ENOUGH && atomic_load(&saving.saves) < 100 * 2) {
        got += get_lock_while_saving(&saving);
    }
    atomic_store(&saving.done, true);
    (void)pthread_join(thread, NULL);
    assert_int_equal(got, ENOUGH);
    state_close(fixture->model.state);
    fixture_close(fixture);
    free(fixture);
    runtime_close(&runtime);
}

static bool is_saved(const runtime_t *runtime, const char *line)
{
    static char text[1 << 16];
    int fd = openat(runtime->fd, "rmmfs.state", O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
    return strstr(text, line) != NULL;
}

static void a_save_requested_by_a_reader_is_made_after_the_read(void **unused)
{
    (void)unused;
    runtime_t runtime;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    runtime_open(&runtime);
    fixture_open(fixture);
    fixture->model.state = state_open(runtime.path, true);
    state_settle(&fixture->model); /* nothing is wanted */
    assert_false(is_saved(&runtime, "end"));
    for (unsigned i = 1; i < 4; i++) {
        char line[64];
        pthread_rwlock_rdlock(&fixture->model.lock);
        atomic_store(&fixture->model.host.peak_bytes, 100 + i);
        state_want(&fixture->model);
        pthread_rwlock_unlock(&fixture->model.lock);
        state_settle(&fixture->model);
        (void)snprintf(line, sizeof(line), "mark host peak_bytes %u\n", 100 + i);
        assert_true(is_saved(&runtime, line));
    }
    atomic_store(&fixture->model.host.peak_bytes, 7);
    state_settle(&fixture->model); /* wanted once, written once */
    assert_true(is_saved(&runtime, "mark host peak_bytes 103\n"));
    state_close(fixture->model.state);
    fixture_close(fixture);
    free(fixture);
    runtime_close(&runtime);
}

static void a_damaged_file_changes_nothing_and_is_put_aside(void **unused)
{
    (void)unused;
    static const char *const damaged[] = {
        "",
        "rmmfs-state 1\n",
        "rmmfs-state 2\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\n",
        "rmmfs-state 1\nmark host peak_bytes 5\nend",
        "rmmfs-state 1\nmark host peak_bytes five\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\nfolded ../etc 5 x\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\nfolded 0.0123456789abcdef 5 a/b\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\nended 1 2 x\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\ngpu\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\nbeep\nend\n",
    };
    runtime_t runtime;
    runtime_open(&runtime);
    state_t *state = state_open(runtime.path, true);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        fixture_t *fixture = calloc(1, sizeof(*fixture));
        struct stat status;
        fixture_open(fixture);
        write_state(&runtime, damaged[i]);
        bool is_end_cut = i == 4; /* the last line's newline: nothing is missing */
        assert_int_equal(state_load(state, &fixture->model), is_end_cut);
        assert_int_equal(fixture->model.host.peak_bytes, is_end_cut ? 5 : 0);
        assert_int_equal(fixture->model.totalled_count, 0);
        if (!is_end_cut) {
            assert_int_equal(fstatat(runtime.fd, "rmmfs.state.bad", &status, 0), 0);
            assert_int_equal(unlinkat(runtime.fd, "rmmfs.state.bad", 0), 0);
        }
        fixture_close(fixture);
        free(fixture);
    }
    state_close(state);
    runtime_close(&runtime);
}

static void a_state_that_is_a_link_is_not_followed(void **unused)
{
    (void)unused;
    runtime_t runtime;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    runtime_open(&runtime);
    fixture_open(fixture);
    write_state(&runtime, "rmmfs-state 1\nmark host peak_bytes 5\nend\n");
    assert_int_equal(renameat(runtime.fd, "rmmfs.state", runtime.fd, "elsewhere"), 0);
    assert_int_equal(symlinkat("elsewhere", runtime.fd, "rmmfs.state"), 0);
    state_t *state = state_open(runtime.path, true);
    assert_false(state_load(state, &fixture->model));
    assert_int_equal(fixture->model.host.peak_bytes, 0);
    state_close(state);
    fixture_close(fixture);
    free(fixture);
    runtime_close(&runtime);
}

/* The next save would replace it, and a daemon that has no descriptors ends soon. */
static void a_state_that_cannot_be_read_is_put_aside(void **unused)
{
    (void)unused;
    struct rlimit before, none;
    struct stat status;
    runtime_t runtime;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    runtime_open(&runtime);
    fixture_open(fixture);
    write_state(&runtime, "rmmfs-state 1\nmark host peak_bytes 5\nend\n");
    state_t *state = state_open(runtime.path, true);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool is_loaded = state_load(state, &fixture->model);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(is_loaded);
    assert_int_equal(fixture->model.host.peak_bytes, 0);
    fixture->model.state = state;
    state_save(&fixture->model);
    assert_int_equal(fstatat(runtime.fd, "rmmfs.state", &status, 0), 0);
    assert_int_equal(
        renameat(runtime.fd, "rmmfs.state.bad", runtime.fd, "rmmfs.state"), 0);
    assert_true(state_load(state, &fixture->model));
    assert_int_equal(fixture->model.host.peak_bytes, 5);
    state_close(state);
    fixture_close(fixture);
    free(fixture);
    runtime_close(&runtime);
}

static void gpus_keep_their_numbers_and_clean_names(void **unused)
{
    (void)unused;
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    fixture_open(fixture);
    const gpu_identity_t nasty = {"../GPU x\n", "nonsense", "a\nb", 5, 0};
    const gpu_identity_t empty = {"", "0000:01:00.0", "x", 5, 0};
    const gpu_identity_t host = {"host", "0000:01:00.0", "x", 5, 0};
    assert_int_equal(fixture_gpu(fixture, "GPU-a"), 0);
    assert_int_equal(fixture_gpu(fixture, "GPU-b"), 1);
    assert_int_equal(fixture_gpu(fixture, "GPU-a"), 0);
    assert_int_equal(gpus_number(&fixture->model, &nasty), 2);
    assert_string_equal(fixture->model.gpus[2].gpu.uuid, "_._GPU_x_");
    assert_string_equal(fixture->model.gpus[2].gpu.pci_bus_id, "");
    assert_string_equal(fixture->model.gpus[2].gpu.name, "a?b");
    assert_int_equal(gpus_number(&fixture->model, &empty), DEVICE_NONE);
    assert_int_equal(gpus_number(&fixture->model, &host), DEVICE_NONE);
    fixture_close(fixture);
    free(fixture);
}

/* How many GPUs a user's programs get. */
static uint32_t report_gpus(fixture_t *fixture, uid_t uid, uint32_t tries)
{
    uint32_t before = fixture->model.gpu_count;
    for (uint32_t i = 0; i < tries; i++) {
        char uuid[48];
        snprintf(uuid, sizeof(uuid), "GPU-%u-%u", (unsigned)uid, i);
        const gpu_identity_t identity = {uuid, "0000:01:00.0", "False", 5, uid};
        (void)gpus_number(&fixture->model, &identity);
        (void)gpus_number(&fixture->model, &identity);
    }
    return fixture->model.gpu_count - before;
}

static void however_many_gpus_users_invent_root_and_others_have_room(void **unused)
{
    (void)unused;
    runtime_t runtime;
    fixture_t *before = calloc(1, sizeof(*before)), *after = calloc(1, sizeof(*after));
    runtime_open(&runtime);
    fixture_open(before);
    fixture_open(after);
    assert_int_equal(report_gpus(before, 1000, 500), 16);
    assert_int_equal(report_gpus(before, 1001, 1), 1);
    for (uid_t uid = 1002; uid < 1100; uid++) {
        (void)report_gpus(before, uid, 500);
    }
    assert_true(before->model.gpu_count < GPUS_MAX);
    assert_int_equal(report_gpus(before, 0, 500), 32);
    /* And over a restart. */
    before->model.state = state_open(runtime.path, true);
    state_save(&before->model);
    assert_true(state_load(before->model.state, &after->model));
    assert_int_equal(after->model.gpu_count, before->model.gpu_count);
    assert_int_equal(after->model.gpus[0].uid, 1000);
    assert_int_equal(report_gpus(after, 1000, 500), 0);
    state_close(before->model.state);
    fixture_close(before);
    fixture_close(after);
    free(before);
    free(after);
    runtime_close(&runtime);
}

static uint32_t
report(fixture_t *fixture, const char *uuid, uint64_t capacity, uid_t uid)
{
    const gpu_identity_t identity = {uuid, "0000:3b:00.0", "Lie", capacity, uid};
    return gpus_number(&fixture->model, &identity);
}

static void what_the_driver_lists_stays_and_root_tells_the_capacity(void **unused)
{
    (void)unused;
    runtime_t runtime;
    char folder[300], path[400];
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    const device_t *gpu = fixture->model.gpus;
    fixture_open(fixture);
    runtime_open(&runtime);
    snprintf(folder, sizeof(folder), "%s/0000:3B:00.0", runtime.path);
    snprintf(path, sizeof(path), "%s/information", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    FILE *file = fopen(path, "w");
    fputs("Model: \t Real\nGPU UUID: \t GPU-????\n", file);
    fclose(file);
    gpus_scan_driver(&fixture->model, runtime.path);
    assert_int_equal(fixture->model.gpu_count, 1);
    assert_string_equal(gpu->gpu.uuid, "");
    /* When a program uses it the driver knows the uuid, whatever the program says. */
    file = fopen(path, "w");
    fputs("Model: \t Other\nGPU UUID: \t GPU-real\n", file);
    fclose(file);
    assert_int_equal(report(fixture, "GPU-fake", 1, 1000), 1);
    assert_string_equal(gpu->gpu.uuid, "GPU-real");
    assert_string_equal(gpu->gpu.name, "Real");
    assert_int_equal(gpu->gpu.capacity_bytes, 0);
    assert_int_equal(report(fixture, "GPU-real", UINT64_MAX, 1000), 0);
    assert_int_equal(gpu->gpu.capacity_bytes, 0);
    assert_int_equal(report(fixture, "GPU-real", 7, 1000), 0);
    assert_int_equal(report(fixture, "GPU-real", 8, 1001), 0);
    assert_int_equal(gpu->gpu.capacity_bytes, 7);
    assert_int_equal(report(fixture, "GPU-real", 9, 0), 0);
    assert_int_equal(report(fixture, "GPU-real", 10, 1000), 0);
    assert_int_equal(gpu->gpu.capacity_bytes, 9);
    assert_string_equal(gpu->gpu.name, "Real");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    fixture_close(fixture);
    free(fixture);
    runtime_close(&runtime);
}

static bool parse(options_t *options, const char *a, const char *b, const char *c)
{
    static char name[] = "rmmfs", first[64], second[64], third[64];
    snprintf(first, sizeof(first), "%s", a);
    snprintf(second, sizeof(second), "%s", b);
    snprintf(third, sizeof(third), "%s", c);
    char *argv[] = {name, first, second, third, NULL};
    return options_parse(options, argv);
}

static void the_command_line_is_understood_or_refused(void **unused)
{
    (void)unused;
    options_t options;
    assert_true(parse(&options, "-f", "-oallow_other,noexec,no_inotify", "/mnt"));
    assert_true(options.foreground && options.allow_other && options.no_inotify);
    assert_string_equal(options.mount_options, ",noexec");
    assert_string_equal(options.mountpoint, "/mnt");
    assert_true(parse(&options, "--options", "noatime,,nonempty", "--help"));
    assert_string_equal(options.mount_options, ",noatime");
    assert_true(options.nonempty && options.help && options.mountpoint == NULL);
    assert_true(parse(&options, "-cfo", "ro,rw,ro,noatime,atime", "--"));
    assert_true(options.clear && options.foreground);
    assert_string_equal(options.mount_options, ",rw,ro");
    assert_false(parse(&options, "-o", "fsname=x", "/mnt"));
    assert_false(parse(&options, "-o", "nonempty=1", "/mnt"));
    assert_false(parse(&options, "-o", "gid", "/mnt"));
    assert_false(parse(&options, "-f", "/mnt", "/more"));
    assert_false(parse(&options, "-x", "/mnt", "-f"));
}

/* (gid_t)-1 is no group: to chown(2) it means that the group stays. */
static void who_sees_what_is_understood_or_refused(void **unused)
{
    (void)unused;
    options_t options;
    assert_true(parse(&options, "-ohidepid=2,gid=4294967294", "/mnt", "-f"));
    assert_int_equal(options.hiding.level, HIDING_INVISIBLE);
    assert_true(options.hiding.has_group);
    assert_int_equal(options.hiding.group, UINT32_MAX - 1);
    assert_true(parse(&options, "-ohidepid=noaccess", "/mnt", "-f"));
    assert_int_equal(options.hiding.level, HIDING_NOACCESS);
    assert_false(options.hiding.has_group);
    assert_true(parse(&options, "-ohidepid=invisible,hidepid=off", "/mnt", "-f"));
    assert_int_equal(options.hiding.level, HIDING_OFF);
    assert_false(parse(&options, "-ogid=4294967295", "/mnt", "-f"));
    assert_false(parse(&options, "-ogid=18446744073709551616", "/mnt", "-f"));
    assert_false(parse(&options, "-ogid=100x", "/mnt", "-f"));
    assert_false(parse(&options, "-ogid=-1", "/mnt", "-f"));
    assert_false(parse(&options, "-ogid=", "/mnt", "-f"));
    assert_false(parse(&options, "-ohidepid=3", "/mnt", "-f"));
    assert_false(parse(&options, "-ohidepid=", "/mnt", "-f"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(a_write_keeps_nobody_from_the_model),
        cmocka_unit_test(a_save_requested_by_a_reader_is_made_after_the_read),
        cmocka_unit_test(a_damaged_file_changes_nothing_and_is_put_aside),
        cmocka_unit_test(a_state_that_is_a_link_is_not_followed),
        cmocka_unit_test(a_state_that_cannot_be_read_is_put_aside),
        cmocka_unit_test(gpus_keep_their_numbers_and_clean_names),
        cmocka_unit_test(however_many_gpus_users_invent_root_and_others_have_room),
        cmocka_unit_test(what_the_driver_lists_stays_and_root_tells_the_capacity),
        cmocka_unit_test(the_command_line_is_understood_or_refused),
        cmocka_unit_test(who_sees_what_is_understood_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
