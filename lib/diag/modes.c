/* SPDX-License-Identifier: Apache-2.0 */
/* Names of modes; see modes.h. */
#include "diag/modes.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t mode;
} names[] = {
    {"usage", RMM_DIAG_MODE_USAGE},
    {"bounds", RMM_DIAG_MODE_BOUNDS},
    {"order", RMM_DIAG_MODE_ORDER},
    {"driver", RMM_DIAG_MODE_DRIVER},
    {"guards", RMM_DIAG_MODE_GUARDS}};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* 0: there is none of that name. */
static uint32_t find_mode(const char *word, size_t length)
{
    for (int i = 0; i < NAMES; i++) {
        if (strlen(names[i].name) == length &&
            memcmp(names[i].name, word, length) == 0) {
            return names[i].mode;
        }
    }
    return 0;
}

uint32_t rmm__diag_modes_all(void)
{
    uint32_t modes = 0;

    for (int i = 0; i < NAMES; i++) {
        modes |= names[i].mode;
    }
    return modes;
}

bool rmm__diag_modes_parse(
    const char *text, uint32_t *modes_out, char word_out[RMM_DIAG_MODE_WORD_BYTES])
{
    *modes_out = 0;
    if (text == NULL || text[0] == '\0' || strcmp(text, "off") == 0) {
        return true;
    }
    for (;;) {
        size_t length = strcspn(text, ",");
        uint32_t mode = find_mode(text, length);

        if (mode == 0) {
            snprintf(word_out, RMM_DIAG_MODE_WORD_BYTES, "%.*s", (int)length, text);
            return false;
        }
        *modes_out |= mode;
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

void rmm__diag_modes_print(uint32_t modes, char text[RMM_DIAG_MODES_TEXT])
{
    size_t length = 0;

    snprintf(text, RMM_DIAG_MODES_TEXT, "off");
    for (int i = 0; i < NAMES; i++) {
        if ((modes & names[i].mode) != 0 && length < RMM_DIAG_MODES_TEXT) {
            length += (size_t)snprintf(
                text + length, RMM_DIAG_MODES_TEXT - length, "%s%s",
                length > 0 ? "," : "", names[i].name);
        }
    }
}
