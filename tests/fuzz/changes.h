/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of a fuzzer as a list of changes to a small valid file, so that what comes through
 * the first checks is common:
 *
 *   2 bytes position, 1 byte what, 8 bytes value: 1 << (what & 3) bytes of the value are
 *   written there; what & 0x80: the file ends there instead
 */
#ifndef RMM_TESTS_FUZZ_CHANGES_H
#define RMM_TESTS_FUZZ_CHANGES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHANGE_BYTES 11
#define CHANGES_MOST 24

/* One change of an image of image_bytes; the size of the file behind it. */
static inline size_t
change(unsigned char *image, size_t image_bytes, size_t size, const uint8_t *bytes)
{
    size_t at = (bytes[0] | (size_t)bytes[1] << 8) % image_bytes;
    size_t length = (size_t)1 << (bytes[2] & 3);

    if ((bytes[2] & 0x80) != 0) {
        return at;
    }
    if (at + length <= image_bytes) {
        memcpy(image + at, bytes + 3, length);
    }
    return size;
}

/* A file of the image as the input changes it. */
static inline int
changed_file(void *image, size_t image_bytes, const uint8_t *data, size_t bytes)
{
    size_t size = image_bytes;
    int fd = memfd_create("changed", MFD_CLOEXEC);

    for (size_t at = 0;
         at + CHANGE_BYTES <= bytes && at < CHANGES_MOST * (size_t)CHANGE_BYTES;
         at += CHANGE_BYTES) {
        size = change(image, image_bytes, size, data + at);
    }
    if (fd < 0 || pwrite(fd, image, size, 0) != (ssize_t)size) {
        abort();
    }
    return fd;
}

#endif /* RMM_TESTS_FUZZ_CHANGES_H */
