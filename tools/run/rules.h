/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of findings, and leaks, as the rules and test cases of reports that other programs
 * read. A class without a text here has its word.
 */
#ifndef RMM_TOOLS_RUN_RULES_H
#define RMM_TOOLS_RUN_RULES_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_RULES_MAX 64u
#define RUN_RULE_LEAKED "leaked"

typedef struct run_rule {
    const char *name;        /* the word of the class */
    const char *title, *why; /* what it is, and why it is an error */
    uint32_t modes; /* any of them looks for it; 0: not known, every run does */
} run_rule_t;

/* In the order of the classes, then leaks; the first is the class of findings of a newer writer.
 * Returns how many there are. */
uint32_t run_rules(run_rule_t rules[RUN_RULES_MAX]);

/* The rule of an rmm_diag_finding_kind_t. */
uint32_t run_rule_of(uint32_t kind);

#endif /* RMM_TOOLS_RUN_RULES_H */
