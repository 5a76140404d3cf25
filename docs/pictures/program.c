/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program to look at, for the pictures in the docs: on each of its devices it takes weights of
 * 60 % from a pool, then blocks of random sizes come and go. With a last argument it then asks for
 * more than the device has, once.
 *
 *   program FIRST_DEVICE DEVICES MIB_OF_EACH SEED NAME [too-much]
 */
#include <rmm/rmm.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCKS 160

static rmm_resource_t *pools[32];
static void *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static int take_weights(rmm_resource_t **pool, int device, size_t mib, const char *name)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *memory;
    void *weights;
    options.name = name;
    if (rmm_device_set(device) != RMM_OK ||
        rmm_cuda_resource_create(&memory) != RMM_OK ||
        rmm_pool_resource_create(memory, &options, pool) != RMM_OK) {
        return 1;
    }
    for (int i = 0; i < 6; i++) {
        if (rmm_resource_alloc(
                *pool, (mib << 20) / 10, 0, RMM_STREAM_DEFAULT, &weights) != RMM_OK) {
            return 1;
        }
    }
    return 0;
}

int main(int count, char **values)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int first = atoi(values[1]), devices = atoi(values[2]);
    size_t mib = (size_t)atol(values[3]);
    srand((unsigned)atoi(values[4]));
    for (int i = 0; i < devices; i++) {
        if (take_weights(&pools[i], first + i, mib, values[5]) != 0) {
            return 1;
        }
    }
    if (count > 6) {
        void *none;
        if (rmm_resource_alloc(pools[0], mib << 22, 0, RMM_STREAM_DEFAULT, &none) ==
            RMM_OK) {
            return 1;
        }
    }
    for (unsigned step = 0;; step++) {
        int i = rand() % BLOCKS;
        rmm_resource_t *pool = pools[i % devices];
        if (rmm_device_set(first + i % devices) != RMM_OK) {
            return 1;
        }
        if (blocks[i] == NULL && step % 1600 > 1200) {
            (void)nanosleep(&pause, NULL);
            continue; /* an evaluation between two epochs: blocks only go */
        }
        if (blocks[i] != NULL) {
            rmm_resource_dealloc(pool, blocks[i], sizes[i], 0, RMM_STREAM_DEFAULT);
            blocks[i] = NULL;
        } else {
            sizes[i] = (mib << 20) / 900 * (size_t)devices * (size_t)(1 + rand() % 4) +
                       (size_t)rand() % 50000;
            if (sizes[i] > (mib << 20) / 40 ||
                rmm_resource_alloc(pool, sizes[i], 0, RMM_STREAM_DEFAULT, &blocks[i]) !=
                    RMM_OK) {
                blocks[i] = NULL;
            }
        }
        (void)nanosleep(&pause, NULL);
    }
}
