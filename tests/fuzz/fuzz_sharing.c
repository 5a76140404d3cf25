/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of an export, which comes from another process: whatever is in it, an import is
 * refused with one line that says why, and leaves no addresses reserved, or gives memory that can
 * be read and written from the first byte to the last.
 *
 * The input: a byte. If it is odd, changes of a right record of 3 pieces, 3 bytes each: where, and
 * the new value. If it is even, a record, with as many descriptors as the byte's half says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>

#include "driver/sim/control.h"

#define BLOCK_BYTES ((size_t)5 << 20)
#define RECORD_MOST 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

/* An export of a pool that is there to the end. */
static const rmm_pool_exported_t *right_export(void)
{
    static rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;
    void *block;

    if (exported.record == NULL) {
        must(
            setenv("RMM_DRIVER", "sim", 1) == 0 && setenv("RMM_PUBLISH", "0", 1) == 0 &&
            setenv("RMM_LOG_LEVEL", "off", 1) == 0);
        options.flags = RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE;
        must(
            rmm_pool_resource_create(NULL, &options, &pool) == RMM_OK &&
            rmm_resource_alloc_sync(pool, BLOCK_BYTES, 256, &block) == RMM_OK &&
            rmm_pool_export(pool, block, 0, 0, &exported) == RMM_OK &&
            exported.descriptor_count == 3 && exported.record_bytes <= RECORD_MOST);
    }
    return &exported;
}

static void check_message(void)
{
    const char *message = rmm_last_error_message();

    must(message[0] != '\0');
    for (; *message != '\0'; message++) {
        must((unsigned char)*message >= ' ' && *message != 0x7f);
    }
}

/* Memory that was imported is there, all of it. */
static void use(const rmm_pool_imported_t *import)
{
    volatile char *ptr = import->ptr;

    must(import->bytes != 0 && import->device == 0);
    ptr[0] = ptr[import->bytes - 1];
    ptr[import->bytes - 1] = ptr[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const rmm_pool_exported_t *right = right_export();
    static uint64_t addresses;
    unsigned char record[RECORD_MOST];
    rmm_pool_exported_t changed = *right;
    rmm_pool_imported_t *import = NULL;

    addresses = addresses != 0 ? addresses : rmm__sim_address_bytes();
    if (bytes == 0 || bytes > RECORD_MOST) {
        return 0;
    }
    changed.record = record;
    if (data[0] % 2 == 1) {
        memcpy(record, right->record, right->record_bytes);
        for (size_t i = 1; i + 3 <= bytes; i += 3) {
            record[(data[i] | data[i + 1] << 8) % right->record_bytes] = data[i + 2];
        }
    } else {
        memcpy(record, data + 1, bytes - 1);
        changed.record_bytes = bytes - 1;
        changed.descriptor_count = data[0] / 2 % (right->descriptor_count + 1);
    }
    if (rmm_pool_import(&changed, &import) == RMM_OK) {
        use(import);
    } else {
        must(import == NULL);
        check_message();
    }
    rmm_pool_import_release(import);
    must(rmm__sim_address_bytes() == addresses);
    return 0;
}
