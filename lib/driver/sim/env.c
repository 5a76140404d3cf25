/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables RMM_SIM_*. An empty one counts as unset; a malformed one is an error
 * that names the variable, its value and what it may be, because a test that runs with
 * another setting than it requested proves nothing.
 */
#include "driver/sim/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/numbers.h"

#define MEMORY_DEFAULT (UINT64_C(80) << 30)
#define MEMORY_MIN (UINT64_C(1) << 20)
#define MEMORY_MAX (UINT64_C(16) << 40)

/* " managed_memory pageable_memory_access ..." */
#define X(name, ours, cuda, value) " " #name
static const char attribute_names[] = SIM_ABILITY_MAP(X);
#undef X

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

static rmm_status_t malformed(const char *name, const char *value, const char *expected)
{
    return rmm__error(
        RMM_ERR_INVALID_ARGUMENT, "%s is \"%s\", expected %s", name, value, expected);
}

/* One word of a list: `length` bytes at `word`. */
static rmm_status_t malformed_word(
    const char *name, const char *value, const char *word, size_t length,
    const char *expected, const char *names)
{
    return rmm__error(
        RMM_ERR_INVALID_ARGUMENT, "%s is \"%s\": \"%.*s\" is not the expected %s%s",
        name, value, (int)length, word, expected, names);
}

static rmm_status_t read_devices(int *count)
{
    const char *text = variable("RMM_SIM_DEVICES");
    uint64_t number;

    if (text == NULL) {
        *count = 1;
        return RMM_OK;
    }
    if (!rmm__sim_parse_number(text, &number) || number < 1 ||
        number > SIM_DEVICE_MAX) {
        return malformed("RMM_SIM_DEVICES", text, "a number of devices from 1 to 32");
    }
    *count = (int)number;
    return RMM_OK;
}

static rmm_status_t read_memory(uint64_t *bytes)
{
    const char *text = variable("RMM_SIM_MEMORY");

    if (text == NULL) {
        *bytes = MEMORY_DEFAULT;
        return RMM_OK;
    }
    if (rmm__number_parse_bytes(text, strlen(text), bytes) != RMM_NUMBER_OK ||
        *bytes < MEMORY_MIN || *bytes > MEMORY_MAX) {
        return malformed(
            "RMM_SIM_MEMORY", text,
            "1MiB to 16TiB, as bytes or with a suffix KiB, MiB, GiB or TiB");
    }
    return RMM_OK;
}

static rmm_status_t read_seed(uint64_t *seed)
{
    const char *text = variable("RMM_SIM_SEED");

    if (text == NULL) {
        *seed = 1;
        return RMM_OK;
    }
    if (!rmm__sim_parse_number(text, seed)) {
        return malformed(
            "RMM_SIM_SEED", text, "a number from 0 to 18446744073709551615");
    }
    return RMM_OK;
}

/* The bit of NAME=0 or NAME=1; 0: neither. */
static uint64_t parse_attribute(const char *text, size_t length, bool *off_out)
{
    static const char *const names[] = {
#define X(name, ours, cuda, value) #name,
        SIM_ABILITY_MAP(X)
#undef X
    };

    if (length < 3 || text[length - 2] != '=' ||
        (text[length - 1] != '0' && text[length - 1] != '1')) {
        return 0;
    }
    *off_out = text[length - 1] == '0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == length - 2 && memcmp(names[i], text, length - 2) == 0) {
            return UINT64_C(1) << i;
        }
    }
    return 0;
}

/* Fabric handles need a service beside the driver, which few systems have. */
static uint64_t off_by_default(void)
{
    bool off;

    return parse_attribute("fabric_handles=0", strlen("fabric_handles=0"), &off);
}

static rmm_status_t read_attributes(uint64_t *attributes_off)
{
    const char *text = variable("RMM_SIM_ATTRIBUTES");

    *attributes_off = off_by_default();
    for (const char *one = text; one != NULL && *one != '\0';) {
        size_t length = strcspn(one, ",");
        bool off = false;
        uint64_t bit = parse_attribute(one, length, &off);

        if (bit == 0) {
            return malformed_word(
                "RMM_SIM_ATTRIBUTES", text, one, length,
                "NAME=0 or NAME=1, with NAME one of", attribute_names);
        }
        if (one[length] == ',' && one[length + 1] == '\0') {
            return malformed("RMM_SIM_ATTRIBUTES", text, "no comma at the end");
        }
        *attributes_off = off ? *attributes_off | bit : *attributes_off & ~bit;
        one += length + (one[length] == ',');
    }
    return RMM_OK;
}

static rmm_status_t read_on_violation(sim_on_violation_t *action)
{
    const char *text = variable("RMM_SIM_VIOLATION");

    *action = SIM_VIOLATION_PRINT;
    if (text != NULL && strcmp(text, "exit") == 0) {
        *action = SIM_VIOLATION_EXIT;
    } else if (text != NULL && strcmp(text, "abort") == 0) {
        *action = SIM_VIOLATION_ABORT;
    } else if (text != NULL) {
        return malformed("RMM_SIM_VIOLATION", text, "abort or exit");
    }
    return RMM_OK;
}

static rmm_status_t read_plan(void)
{
    const char *text = variable("RMM_SIM_FAIL");

    const char *wrong = NULL;

    if (text != NULL && !rmm__sim_fault_set(text, &wrong)) {
        return malformed_word(
            "RMM_SIM_FAIL", text, wrong, strcspn(wrong, ","),
            "FUNCTION:N[:ERROR] with a function of the driver such as mem_alloc, or "
            "any, "
            "N from 1 and a cudaError_t value; at most 32 of them",
            "");
    }
    return RMM_OK;
}

rmm_status_t rmm__sim_env_read(sim_config_t *config)
{
    rmm_status_t status = read_devices(&config->device_count);

    if (status == RMM_OK) {
        status = read_memory(&config->memory_bytes);
    }
    if (status == RMM_OK) {
        status = read_seed(&config->seed);
    }
    if (status == RMM_OK) {
        status = read_attributes(&config->attributes_off);
    }
    if (status == RMM_OK) {
        status = read_on_violation(&config->on_violation);
    }
    if (status == RMM_OK) {
        status = read_plan();
    }
    return status;
}
