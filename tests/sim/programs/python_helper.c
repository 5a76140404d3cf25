/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program of Python (python_program.py) does in C: threads that Python does not know, and
 * one that works on when the interpreter ends. Py_GetVersion() is preloaded by a test: it says that
 * the interpreter is of another version than it is.
 */
#include <pthread.h>
#include <stdlib.h>

#include <rmm/rmm.h>

const char *Py_GetVersion(void);
int overrun_in_thread(rmm_resource_t *resource);
void work_on(rmm_resource_t *resource);

#ifdef PYTHON_VERSION
const char *Py_GetVersion(void)
{
    return getenv("RMM_TEST_VERSION");
}
#endif

static void *overrun(void *resource)
{
    void *block = NULL;

    if (rmm_resource_alloc(resource, 90, 0, RMM_STREAM_DEFAULT, &block) != RMM_OK ||
        rmm_memset_async(block, 0, 91, RMM_STREAM_DEFAULT) != RMM_OK) {
        return NULL;
    }
    return block;
}

int overrun_in_thread(rmm_resource_t *resource)
{
    pthread_t thread;
    void *block = NULL;

    return pthread_create(&thread, NULL, overrun, resource) == 0 &&
                   pthread_join(thread, &block) == 0 && block != NULL
               ? 0
               : 1;
}

void work_on(rmm_resource_t *resource)
{
    for (;;) {
        void *block = NULL;

        if (rmm_resource_alloc(resource, 90, 0, RMM_STREAM_DEFAULT, &block) == RMM_OK) {
            rmm_resource_dealloc(resource, block, 90, 0, RMM_STREAM_DEFAULT);
        }
    }
}
