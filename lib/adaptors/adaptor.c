/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the adaptors' base that is not in every allocation: see adaptor.h. */
#include "adaptors/adaptor.h"

#include <inttypes.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/round.h"
#include "driver/driver.h"

RMM_COLD rmm_status_t rmm__adaptor_failed(rmm_adaptor_t *self, rmm_status_t status)
{
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__accounting_oom(&self->base.accounting);
    }
    return status;
}

RMM_COLD void rmm__adaptor_refused(rmm_adaptor_t *self, const rmm_request_t *request)
{
    /* the slot's only: upstream has counted it at the location */
    rmm__figure_add(&self->base.accounting.slot->invalid_free_count, 1);
    if (request->refused != NULL) {
        *request->refused = true;
    }
}

bool rmm__adaptor_free(rmm_adaptor_t *self, void *ptr, const rmm_request_t *request)
{
    rmm__adaptor_count_free(self, request->bytes, 1);
    if (!rmm__adaptor_pass_free(self, ptr, request)) {
        rmm__adaptor_count_free(self, request->bytes, -1);
        rmm__adaptor_refused(self, request);
        return false;
    }
    return true;
}

rmm_status_t
rmm__adaptor_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    rmm_adaptor_t *self = rmm__adaptor_from_base(mr);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, ptr_out);

    if (status != RMM_OK) {
        return rmm__adaptor_failed(self, status);
    }
    rmm__adaptor_count_alloc(self, request->bytes);
    return RMM_OK;
}

bool rmm__adaptor_may_wait(const rmm_resource_t *mr, const rmm_request_t *request)
{
    rmm_status_t status;
    const rmm_driver_t *driver = mr->device >= 0 ? rmm__driver(&status) : NULL;
    rmm_stream_key_t key = {0};

    return driver == NULL ||
           driver->stream_key(request->stream, &key) != RMM_DRIVER_OK ||
           key.capture_id == 0;
}

/* A memory pool of CUDA reuses what was freed only when a stream was synchronised since: the
 * barrier alone does not show it that the work is over. */
bool rmm__adaptor_finish_work(const rmm_resource_t *mr, const rmm_request_t *request)
{
    rmm_status_t status;
    const rmm_driver_t *driver = mr->device >= 0 ? rmm__driver(&status) : NULL;

    if (driver == NULL || rmm__driver_wait_device(driver, mr->device) != RMM_OK) {
        return false;
    }
    return rmm_stream_is_default(request->stream)
               ? rmm__driver_wait_default_stream(mr->device) == RMM_OK
               : rmm__driver_wait_stream(driver, request->stream) == RMM_DRIVER_OK;
}

void rmm__adaptor_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    (void)rmm__adaptor_free(rmm__adaptor_from_base(mr), ptr, request);
}

rmm_status_t rmm__adaptor_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    return rmm_resource_trim(mr->upstream, keep_bytes);
}

void rmm__adaptor_destroy(rmm_resource_t *mr)
{
    rmm_adaptor_t *self = rmm__adaptor_from_base(mr);

    rmm__resource_fini(mr);
    rmm__mutex_fini(&self->lock);
    rmm__free(self);
}

rmm_status_t rmm__adaptor_create(
    const rmm_adaptor_plan_t *plan, rmm_resource_t *upstream, rmm_adaptor_t **out)
{
    rmm_adaptor_t *self = rmm__calloc(1, plan->bytes);
    const rmm_resource_ops_t *below =
        atomic_load_explicit(&upstream->ops, memory_order_relaxed);
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__resource_init_over(
        &self->base, &plan->ops[below->ready_on_all_streams ? 1 : 0], plan->name,
        upstream);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    rmm__mutex_init(&self->lock);
    *out = self;
    return RMM_OK;
}

rmm_status_t rmm__adaptor_check(
    const rmm_resource_t *mr, const rmm_resource_ops_t *ops, const char *what)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    return rmm__adaptor_is(mr, ops)
               ? RMM_OK
               : rmm__error(RMM_ERR_INVALID_ARGUMENT, "the resource is not %s", what);
}

rmm_status_t rmm__adaptor_check_alignment(uint64_t alignment, uint64_t most)
{
    return (alignment == 0 || rmm__is_power_of_two(alignment)) && alignment <= most
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_INVALID_ALIGNMENT,
                     "alignment_bytes %" PRIu64 " is not a power of two up to %" PRIu64,
                     alignment, most);
}
