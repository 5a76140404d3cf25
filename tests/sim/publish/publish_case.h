/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of publishing share: a runtime directory per case, accounting on device 0. */
#ifndef RMM_TESTS_SIM_PUBLISH_CASE_H
#define RMM_TESTS_SIM_PUBLISH_CASE_H

#include "harness/location_writer.h"
#include "harness/runtime.h"

#include "publish/accounting.h"

static runtime_t runtime;
static char log_path[192];

/* The log goes beside the runtime directory's segments: "log" in it. */
static inline int set_up(void **state)
{
    (void)state;
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DRIVER", "sim", 1);
    runtime_open(&runtime);
    snprintf(log_path, sizeof(log_path), "%s/log", runtime.path);
    setenv("RMM_DEBUG_LOG_FILE", log_path, 1);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* What was logged so far, "" for nothing. */
static inline const char *logged(void)
{
    static char text[4096];
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
    return text;
}

/* Start a child, and open its segment when it pauses with this word. */
static inline void start_and_read(
    child_t *child, child_fn body, void *argument, char word, rmm_segment_t *segment)
{
    child_start_until(child, body, argument, word);
    runtime_segment(&runtime, segment);
}

/* Let it end, and close its segment. */
static inline void end_and_close(child_t *child, rmm_segment_t *segment)
{
    assert_int_equal(child_wait(child), 0);
    rmm__segment_close(segment);
}

/* In a child: a resource's accounting on device 0, publishing when first called. */
static inline rmm_status_t
open_accounting(rmm_accounting_t *accounting, const char *name, uint32_t instance_id)
{
    rmm__publish_open("sim");
    rmm__location_open(
        0, &(rmm_location_identity_t){
               .uuid = "SIM-0",
               .pci_bus_id = "0000:00:00.0",
               .name = "Simulated",
               .capacity_bytes = 80});
    return rmm__accounting_open(
        accounting,
        &(rmm_accounting_desc_t){
            .type = "test", .name = name, .instance_id = instance_id, .location = 0});
}

static inline void count_alloc(rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__accounting_alloc_shared(accounting, bytes);
    location_alloc(accounting->location, bytes);
}

static inline void count_free(rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__accounting_free_shared(accounting, bytes);
    location_free(accounting->location, bytes);
}

#endif /* RMM_TESTS_SIM_PUBLISH_CASE_H */
