/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as texts of at most seven characters; see figure_text.h. */
#include "top/figure_text.h"

#include <stdio.h>

#include "node/node.h"
#include "segment/segment_format.h"

/* units: one character each; the first one, a space, stands for none. */
static figure_text_t scaled(double value, double step, const char *units)
{
    figure_text_t figure;
    while (value >= step * 0.99995 && units[1] != '\0') {
        value /= step;
        units++;
    }
    int decimals = units[0] == 'B' || units[0] == ' ' ? 0 : 1;
    snprintf(
        figure.text, sizeof(figure.text), "%.*f%.*s", decimals, value,
        units[0] != ' ' ? 1 : 0, units);
    return figure;
}

static figure_text_t unknown(void)
{
    return (figure_text_t){"-"};
}

figure_text_t figure_bytes(uint64_t bytes)
{
    return bytes == FIGURE_UNKNOWN ? unknown() : scaled((double)bytes, 1024, "BKMGTPE");
}

figure_text_t figure_limit(uint64_t limit_bytes)
{
    return limit_bytes == RMM_SEGMENT_NO_LIMIT ? (figure_text_t){"max"}
                                               : figure_bytes(limit_bytes);
}

figure_text_t figure_count(uint64_t count)
{
    return count == FIGURE_UNKNOWN ? unknown() : scaled((double)count, 1000, " kMGTPE");
}

figure_text_t figure_rate(bool is_known, double per_second)
{
    return is_known ? scaled(per_second, 1000, " kMGTPE") : unknown();
}

figure_text_t figure_fragmentation(uint64_t free_bytes, uint64_t largest_free_bytes)
{
    figure_text_t figure;
    if (free_bytes == FIGURE_UNKNOWN || largest_free_bytes == FIGURE_UNKNOWN) {
        return unknown();
    }
    double share = free_bytes > largest_free_bytes
                       ? 1.0 - (double)largest_free_bytes / (double)free_bytes
                       : 0.0;
    snprintf(figure.text, sizeof(figure.text), "%.0f%%", share * 100.0);
    return figure;
}
