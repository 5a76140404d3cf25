/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon keeps over a restart, GPUs by number, the command line.
 */
#include "model_fixture.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>

#include "extras.h"
#include "harness/runtime.h"
#include "options.h"
#include "state.h"

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
    before->model.gpus[1].name[0] = '\0';
    before->model.gpus[1].pci_bus_id[0] = '\0';
    before->model.gpus[0].peak_bytes = 123;
    before->model.gpus[0].lifetime_peak_bytes = 1234;
    before->model.gpus[1].peak_upper_bytes = 77;
    before->model.gpus[1].exited[RMM_LOCATION_STAT_total_count] = 9;
    before->model.host.exited[RMM_LOCATION_STAT_oom_count] = 3;
    extras_add(&before->model.gpus[0].extras, "new_count", RMM_KIND_COUNTER, 42);
    assert_true(model_add_folded(&before->model, "0.0123456789abcdef", "4711", 99));
    before->model.state = state_open(runtime.fd, runtime.path);
    assert_non_null(before->model.state);
    assert_false(state_load(before->model.state, &after->model)); /* there is none */
    state_save(&before->model);
    assert_true(state_load(before->model.state, &after->model));
    assert_int_equal(after->model.gpu_count, 2);
    assert_string_equal(after->model.gpus[0].uuid, "GPU-a");
    assert_string_equal(after->model.gpus[0].name, "Sample");
    assert_int_equal(after->model.gpus[0].capacity_bytes, 1 << 20);
    assert_string_equal(after->model.gpus[1].uuid, "SIM-0");
    assert_string_equal(after->model.gpus[1].name, "");
    assert_string_equal(after->model.gpus[1].pci_bus_id, "");
    assert_int_equal(after->model.gpus[0].peak_bytes, 123);
    assert_int_equal(after->model.gpus[0].lifetime_peak_bytes, 1234);
    assert_int_equal(after->model.gpus[1].peak_upper_bytes, 77);
    assert_int_equal(after->model.gpus[1].exited[RMM_LOCATION_STAT_total_count], 9);
    assert_int_equal(after->model.host.exited[RMM_LOCATION_STAT_oom_count], 3);
    assert_int_equal(after->model.gpus[0].extras.count, 1);
    assert_int_equal(after->model.gpus[0].extras.items[0].value, 42);
    const folded_t *folded = model_folded(&after->model, "0.0123456789abcdef");
    assert_non_null(folded);
    assert_string_equal(folded->process, "4711");
    assert_int_equal(folded->exited_ns, 99);
    state_close(before->model.state);
    fixture_close(before);
    fixture_close(after);
    free(before);
    free(after);
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
        "rmmfs-state 1\nmark host peak_bytes 5\ngpu\nend\n",
        "rmmfs-state 1\nmark host peak_bytes 5\nbeep\nend\n",
    };
    runtime_t runtime;
    runtime_open(&runtime);
    state_t *state = state_open(runtime.fd, runtime.path);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        fixture_t *fixture = calloc(1, sizeof(*fixture));
        struct stat status;
        fixture_open(fixture);
        write_state(&runtime, damaged[i]);
        bool is_end_cut = i == 4; /* the last line's newline: nothing is missing */
        assert_int_equal(state_load(state, &fixture->model), is_end_cut);
        assert_int_equal(fixture->model.host.peak_bytes, is_end_cut ? 5 : 0);
        assert_int_equal(fixture->model.folded_count, 0);
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
    state_t *state = state_open(runtime.fd, runtime.path);
    assert_false(state_load(state, &fixture->model));
    assert_int_equal(fixture->model.host.peak_bytes, 0);
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
    const gpu_identity_t nasty = {"../GPU x\n", "nonsense", "a\nb", 5};
    const gpu_identity_t empty = {"", "0000:01:00.0", "x", 5};
    assert_int_equal(fixture_gpu(fixture, "GPU-a"), 0);
    assert_int_equal(fixture_gpu(fixture, "GPU-b"), 1);
    assert_int_equal(fixture_gpu(fixture, "GPU-a"), 0);
    assert_int_equal(gpus_number(&fixture->model, &nasty), 2);
    assert_string_equal(fixture->model.gpus[2].uuid, "_._GPU_x_");
    assert_string_equal(fixture->model.gpus[2].pci_bus_id, "");
    assert_string_equal(fixture->model.gpus[2].name, "a?b");
    assert_int_equal(gpus_number(&fixture->model, &empty), DEVICE_NONE);
    for (unsigned i = 3; i < DEVICE_GPUS_MAX + 10; i++) {
        char uuid[32];
        snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        assert_int_equal(
            fixture_gpu(fixture, uuid), i < DEVICE_GPUS_MAX ? i : DEVICE_NONE);
    }
    fixture_close(fixture);
    free(fixture);
}

static bool parse(options_t *options, const char *a, const char *b, const char *c)
{
    static char name[] = "rmmfs", first[64], second[64], third[64];
    snprintf(first, sizeof(first), "%s", a);
    snprintf(second, sizeof(second), "%s", b);
    snprintf(third, sizeof(third), "%s", c);
    char *argv[] = {name, first, second, third, NULL};
    optind = 0; /* getopt begins anew */
    return options_parse(options, 4, argv);
}

static void the_command_line_is_understood_or_refused(void **unused)
{
    (void)unused;
    options_t options;
    assert_true(parse(&options, "-f", "-oallow_other,noexec,no_inotify", "/mnt"));
    assert_true(options.foreground && options.allow_other && options.no_inotify);
    assert_string_equal(options.mount_options, ",noexec");
    assert_string_equal(options.mountpoint, "/mnt");
    assert_true(parse(&options, "--options", "max_read=4096,,nonempty", "--help"));
    assert_string_equal(options.mount_options, ",max_read=4096");
    assert_true(options.nonempty && options.help && options.mountpoint == NULL);
    assert_false(parse(&options, "-o", "fsname=x", "/mnt"));
    assert_false(parse(&options, "-f", "/mnt", "/more"));
    assert_false(parse(&options, "-x", "/mnt", "-f"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(a_damaged_file_changes_nothing_and_is_put_aside),
        cmocka_unit_test(a_state_that_is_a_link_is_not_followed),
        cmocka_unit_test(gpus_keep_their_numbers_and_clean_names),
        cmocka_unit_test(the_command_line_is_understood_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
