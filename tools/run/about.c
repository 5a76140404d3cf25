/* SPDX-License-Identifier: Apache-2.0 */
/* A command as the files of a run name it; see about.h. */
#include "run/about.h"

#include <stdio.h>
#include <string.h>

#include "segment/clean_text.h"

void run_about_command(char **argv, char command[RUN_COMMAND_BYTES])
{
    char text[RUN_COMMAND_BYTES + 4]; /* room for a character that the copy cuts */
    const char *slash = strrchr(argv[0], '/');
    size_t length = 0;
    for (uint32_t i = 0; argv[i] != NULL && length < sizeof(text); i++) {
        const char *word = i == 0 && slash != NULL ? slash + 1 : argv[i];
        int written = snprintf(
            text + length, sizeof(text) - length, "%s%s", i == 0 ? "" : " ", word);
        length += written > 0 ? (size_t)written : 0;
    }
    rmm__text_copy(command, RUN_COMMAND_BYTES, text);
}
