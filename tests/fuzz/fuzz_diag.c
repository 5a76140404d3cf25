/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of the diagnosis side file on hostile files. The input is a list of changes
 * to a small valid file, so that what comes through the first checks is common:
 *
 *   2 bytes position, 1 byte what, 8 bytes value: 1 << (what & 3) bytes of the value are
 *   written there; what & 0x80: the file ends there instead
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/diag_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHANGE_BYTES 11
#define KERNELS 2
#define ROWS 70

typedef struct sample {
    rmm_diag_header_t header;
    rmm_diag_kernel_t kernels[KERNELS];
    rmm_diag_row_t rows[ROWS];
} sample_t;

static void make(sample_t *sample)
{
    rmm_diag_header_t *header = &sample->header;
    memset(sample, 0, sizeof(*sample));
    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(*sample);
    header->kernels_offset = offsetof(sample_t, kernels);
    header->kernels_stride = sizeof(rmm_diag_kernel_t);
    header->kernels_count = KERNELS;
    header->rows_offset = offsetof(sample_t, rows);
    header->rows_stride = sizeof(rmm_diag_row_t);
    header->rows_count = ROWS;
    header->ready = 1;
    header->kernels_used = KERNELS;
    header->rows_used = ROWS;
    memset(sample->kernels[0].name, 'k', sizeof(sample->kernels[0].name));
    for (uint32_t i = 0; i < ROWS; i++) {
        sample->rows[i].live = 1;
    }
}

static size_t change(unsigned char *image, size_t size, const uint8_t *change_bytes)
{
    size_t at = (change_bytes[0] | (size_t)change_bytes[1] << 8) % sizeof(sample_t);
    size_t length = (size_t)1 << (change_bytes[2] & 3);
    if ((change_bytes[2] & 0x80) != 0) {
        return at;
    }
    if (at + length <= sizeof(sample_t)) {
        memcpy(image + at, change_bytes + 3, length);
    }
    return size;
}

static bool see(const rmm_diag_row_info_t *row, void *arg)
{
    uint64_t *sum = arg;
    *sum += row->bytes + row->first_kernel;
    return true;
}

static void exercise(const rmm_diag_file_t *file)
{
    rmm_diag_kernel_info_t kernel;
    uint64_t sum = 0;
    (void)rmm_diag_each_row(file, see, &sum);
    for (uint32_t i = 0; i < 4; i++) {
        if (rmm_diag_read_kernel(file, i, &kernel) &&
            strlen(kernel.name) >= sizeof(kernel.name)) {
            abort();
        }
    }
    if (strnlen(file->header.source, sizeof(file->header.source)) ==
        sizeof(file->header.source)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sample_t sample;
    rmm_diag_file_t file;
    size_t size = sizeof(sample);
    make(&sample);
    for (size_t at = 0; at + CHANGE_BYTES <= bytes && at < 24 * CHANGE_BYTES;
         at += CHANGE_BYTES) {
        size = change((unsigned char *)&sample, size, data + at);
    }
    int fd = memfd_create("diag", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, &sample, size, 0) != (ssize_t)size) {
        abort();
    }
    if (rmm_diag_attach(&file, fd) == 0) {
        exercise(&file);
    }
    (void)close(fd);
    return 0;
}
