/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes share a GPU, each with a share of its own: a request above the share fails in that
 * process only. The children are forked before anything uses the GPU, because CUDA does not survive
 * a fork(). From outside, for programs that cannot be changed: limit_job.sh.
 */
#include <rmm/rmm.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* The default resource of the process: a pool that never holds more than its share. */
static rmm_status_t take_share(size_t bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = NULL, *pool = NULL;
    options.maximum_bytes = bytes;
    rmm_status_t status = rmm_cuda_resource_create(&cuda);
    if (status == RMM_OK) {
        status = rmm_pool_resource_create(cuda, &options, &pool);
    }
    if (status == RMM_OK) {
        status = rmm_set_current_device_resource(pool, NULL);
    }
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return status;
}

static int job(const char *name, size_t share, size_t wanted)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_status_t status = take_share(share);
    if (status != RMM_OK) {
        fprintf(stderr, "%s: %s\n", name, rmm_last_error_message());
        return 1;
    }
    status = rmm_device_buffer_init(&buffer, wanted, RMM_STREAM_DEFAULT, NULL);
    printf(
        "%s wants %zu of %zu MiB: %s\n", name, wanted / MIB, share / MIB,
        rmm_status_name(status));
    fflush(stdout);
    rmm_device_buffer_fini(&buffer);
    return status == RMM_OK || status == RMM_ERR_OUT_OF_MEMORY ? 0 : 1;
}

/* The exit status of a job in a process of its own; the next one starts when it has ended. */
static int run(const char *name, size_t share, size_t wanted)
{
    int state = 1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(job(name, share, wanted));
    }
    return pid > 0 && waitpid(pid, &state, 0) == pid ? state : 1;
}

int main(void)
{
    return run("small", 64 * MIB, 50 * MIB) != 0 ||
           run("greedy", 64 * MIB, 100 * MIB) != 0;
}
