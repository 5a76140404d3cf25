/* SPDX-License-Identifier: Apache-2.0 */
/* Devices over HIP: their number, identity and attributes. */
#include "driver/hip_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int rmm__hip_device_count(int *count)
{
    int answer;
    int error = CALL(rmm__hip.hipGetDeviceCount(&answer));

    if (error == RMM_DRIVER_OK) {
        *count = answer;
    }
    return error;
}

int rmm__hip_device_get(int *device)
{
    int answer;
    int error = CALL(rmm__hip.hipGetDevice(&answer));

    if (error == RMM_DRIVER_OK) {
        *device = answer;
    }
    return error;
}

int rmm__hip_device_set(int device)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipSetDevice(device)));
}

static bool is_hexadecimal(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isxdigit((unsigned char)text[i])) {
            return false;
        }
    }
    return true;
}

/*
 * As ROCm's tools print it: the 16 bytes are characters, hexadecimal digits. Devices without a
 * unique number have "XX" or zeros there, and HIP before 5.1 has no UUID: the PCI bus id, which is
 * unique in a machine too, takes its place.
 */
static void format_uuid(char out[48], const hip_uuid_t *uuid, const char *bus_id)
{
    static const char zeros[] = "0000000000000000";
    bool is_known = is_hexadecimal(uuid->bytes, sizeof(uuid->bytes)) &&
                    memcmp(uuid->bytes, zeros, sizeof(uuid->bytes)) != 0;

    if (is_known) {
        snprintf(out, 48, "GPU-%.16s", uuid->bytes);
        return;
    }
    snprintf(out, 48, "PCI-%.40s", bus_id);
    for (char *c = out; *c != '\0'; c++) {
        *c = *c == ':' ? '-' : *c; /* it becomes the name of a file */
    }
}

int rmm__hip_device_info(int device, rmm_device_info_t *info)
{
    rmm_device_info_t answer = {.uuid = ""};
    hip_uuid_t uuid = {.bytes = ""};
    char name[256] = "";
    size_t bytes;
    int error = RMM_DRIVER_WAITS(
        CALL(rmm__hip.hipDeviceGetName(name, (int)sizeof(name), device)));

    if (error == RMM_DRIVER_OK) {
        error = CALL(rmm__hip.hipDeviceGetPCIBusId(
            answer.pci_bus_id, (int)sizeof(answer.pci_bus_id), device));
    }
    if (error == RMM_DRIVER_OK) {
        error = CALL(rmm__hip.hipDeviceTotalMem(&bytes, device));
    }
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    (void)CALL_IF(UUID, rmm__hip.hipDeviceGetUuid(&uuid, device));
    format_uuid(answer.uuid, &uuid, answer.pci_bus_id);
    snprintf(
        answer.name, sizeof(answer.name), "%.63s", name[0] != '\0' ? name : "AMD GPU");
    answer.capacity_bytes = bytes;
    *info = answer;
    return RMM_DRIVER_OK;
}

/* 0 for an attribute that this version of HIP does not know: it lacks that ability too. */
static int
ask_attribute(hip_attribute_t attribute, bool may_be_unknown, int device, int *value)
{
    int answer;
    int error = CALL(rmm__hip.hipDeviceGetAttribute(&answer, attribute, device));

    if (error == RMM_DRIVER_INVALID_VALUE && may_be_unknown) {
        error = RMM_DRIVER_OK;
        answer = 0;
    }
    if (error == RMM_DRIVER_OK) {
        *value = answer;
    }
    return error;
}

int rmm__hip_device_attribute(rmm_driver_attribute_t attribute, int device, int *value)
{
    bool has_pools = rmm__hip.has[HIP_GROUP_POOLS];
    bool is_missing = false;

    if (rmm__hip_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (device < 0 || device >= rmm__hip.device_count) { /* HIP: an invalid value */
        return RMM_DRIVER_INVALID_DEVICE;
    }
    switch (attribute) {
    case RMM_ATTRIBUTE_MANAGED_MEMORY:
        return ask_attribute(HIP_ATTRIBUTE_MANAGED_MEMORY, false, device, value);
    case RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        return ask_attribute(
            HIP_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, false, device, value);
    case RMM_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        return ask_attribute(
            HIP_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, false, device, value);
    case RMM_ATTRIBUTE_VIRTUAL_MEMORY:
        is_missing = !rmm__hip.has[HIP_GROUP_VIRTUAL];
        break;
    case RMM_ATTRIBUTE_MEMORY_POOLS:
    case RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES:
        is_missing = !has_pools;
        break;
    case RMM_ATTRIBUTE_HOST_NUMA_ID:
        *value = -1;
        return RMM_DRIVER_OK;
    case RMM_ATTRIBUTE_POSIX_HANDLES:
    case RMM_ATTRIBUTE_RDMA:
    case RMM_ATTRIBUTE_FABRIC_HANDLES:
    case RMM_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS:
    case RMM_ATTRIBUTE_HOST_MEMORY_POOLS:
        is_missing = true;
        break;
    }
    if (is_missing) {
        *value = 0;
        return RMM_DRIVER_OK;
    }
    return ask_attribute(
        attribute == RMM_ATTRIBUTE_VIRTUAL_MEMORY ? HIP_ATTRIBUTE_VIRTUAL_MEMORY
        : attribute == RMM_ATTRIBUTE_MEMORY_POOLS
            ? HIP_ATTRIBUTE_MEMORY_POOLS
            : HIP_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES,
        true, device, value);
}

/* Always active: HIP has no contexts in CUDA's sense, and hipDevicePrimaryCtxGetState is
 * deprecated. */
int rmm__hip_device_active(int device, int *active)
{
    if (device < 0 || device >= rmm__hip.device_count) {
        return RMM_DRIVER_INVALID_DEVICE;
    }
    *active = 1;
    return RMM_DRIVER_OK;
}

int rmm__hip_device_synchronize(void)
{
    return RMM_DRIVER_WAITS(CALL(rmm__hip.hipDeviceSynchronize()));
}

/* As with CUDA, a device is a peer of itself. */
int rmm__hip_peer_can_access(int device, int peer, int *can)
{
    int answer;
    int error = CALL(rmm__hip.hipDeviceCanAccessPeer(&answer, device, peer));

    if (error == RMM_DRIVER_OK) {
        *can = answer != 0 || device == peer;
    }
    return error;
}
