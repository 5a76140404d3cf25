/* SPDX-License-Identifier: Apache-2.0 */
/* Names for people; see foreign_text.h. */
#include "common/foreign_text.h"

#include <limits.h>

#include "segment/clean_text.h"

void foreign_text_print(const char *text, FILE *out)
{
    char shown[PATH_MAX];
    rmm__text_copy(shown, sizeof shown, text);
    fputs(shown, out);
}
