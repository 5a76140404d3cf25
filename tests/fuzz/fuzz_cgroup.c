/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a container writes into names of control groups: each name that is shown is one word
 * that can be printed, in its buffer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "node/cgroup.h"

#define REQUIRE(condition)                                                             \
    do {                                                                               \
        if (!(condition)) {                                                            \
            abort();                                                                   \
        }                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_word(const char *word, size_t bytes, const char *blank)
{
    REQUIRE(memchr(word, '\0', bytes) != NULL);
    for (; *word != '\0'; word++) {
        REQUIRE((*word > ' ' && *word < 0x7f) || *word == *blank);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char label[CGROUP_LABEL_BYTES];
    cgroup_t group;
    REQUIRE(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    cgroup_parse(text, &group);
    require_word(group.path, sizeof(group.path), "");
    require_word(group.job, sizeof(group.job), "");
    require_word(group.step, sizeof(group.step), "");
    require_word(group.pod, sizeof(group.pod), "");
    require_word(group.container, sizeof(group.container), "");
    require_word(group.unit, sizeof(group.unit), "");
    REQUIRE(group.step[0] == '\0' || group.job[0] != '\0');
    REQUIRE(group.unit[0] == '\0' || (group.job[0] == '\0' && group.pod[0] == '\0'));
    cgroup_label(&group, label);
    require_word(label, sizeof(label), " ");
    free(text);
    return 0;
}
