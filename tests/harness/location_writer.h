/* SPDX-License-Identifier: Apache-2.0 */
/* Counts at a location as a resource without a lock does, for tests of what readers see. */
#ifndef RMM_TESTS_HARNESS_LOCATION_WRITER_H
#define RMM_TESTS_HARNESS_LOCATION_WRITER_H

#include <stdint.h>

#include "publish/accounting.h"

/* Of no resource: it has no slot. The location is open. */
static inline rmm_accounting_t location_writer(uint32_t location)
{
    rmm_accounting_t writer = {.location = location};

    rmm__location_begin(&writer);
    return writer;
}

static inline void location_alloc(uint32_t location, uint64_t bytes)
{
    rmm_accounting_t writer = location_writer(location);

    rmm__location_alloc_striped(&writer, rmm__stripe_here(), bytes, 0);
}

static inline void location_free(uint32_t location, uint64_t bytes)
{
    const rmm_accounting_t writer = location_writer(location);

    rmm__location_free_striped(&writer, rmm__stripe_here(), bytes, 0);
}

static inline void location_pad(uint32_t location, uint64_t bytes)
{
    const rmm_accounting_t writer = location_writer(location);

    rmm__location_padding_striped(&writer, rmm__stripe_here(), bytes, 0);
}

#endif /* RMM_TESTS_HARNESS_LOCATION_WRITER_H */
