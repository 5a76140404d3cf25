/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as short texts: "79.6G", "1.2M/s", "-" for what is not known. */
#ifndef RMM_TOP_FIGURE_TEXT_H
#define RMM_TOP_FIGURE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct figure_text {
    char text[16];
} figure_text_t;

/* In units of 1024: "1023B", "1.5K", "79.6G". */
figure_text_t figure_bytes(uint64_t bytes);
/* The same; "max": none. */
figure_text_t figure_limit(uint64_t limit_bytes);
/* In units of 1000: "999", "1.5k", "79.6M". */
figure_text_t figure_count(uint64_t count);
/* The same each second. */
figure_text_t figure_rate(bool is_known, double per_second);
/* "12%": of how much is free, what no single allocation can have. */
figure_text_t figure_fragmentation(uint64_t free_bytes, uint64_t largest_free_bytes);

#endif /* RMM_TOP_FIGURE_TEXT_H */
