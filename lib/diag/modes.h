/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes of the diagnosis as users write them: words separated by commas.
 */
#ifndef RMM_DIAG_MODES_H
#define RMM_DIAG_MODES_H

#include <stdbool.h>
#include <stdint.h>

#define RMM_DIAG_MODE_USAGE 1u /* which kernel used which block */
#define RMM_DIAG_MODE_BOUNDS                                                           \
    2u /* copies, fills and prefetches that leave their block */
#define RMM_DIAG_MODE_ORDER                                                            \
    4u /* uses and frees that nothing orders; counts uses, too */
#define RMM_DIAG_MODE_DRIVER 8u /* what the program takes from the driver itself */

#define RMM_DIAG_MODE_GUARDS                                                           \
    16u /* kernels that write past the end of a block; counts uses, too */

/* In each of them every use is seen. */
#define RMM_DIAG_MODES_WITH_USES                                                       \
    (RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_ORDER | RMM_DIAG_MODE_GUARDS)
/* In each of them captured graphs are followed. */
#define RMM_DIAG_MODES_WITH_GRAPHS (RMM_DIAG_MODES_WITH_USES | RMM_DIAG_MODE_BOUNDS)
/* They need what was done since the start: they can be switched off, and never on. */
#define RMM_DIAG_MODES_FROM_START (RMM_DIAG_MODE_ORDER | RMM_DIAG_MODE_GUARDS)

#define RMM_DIAG_MODES_TEXT 48u      /* all of them */
#define RMM_DIAG_MODE_WORD_BYTES 40u /* one that is unknown, cut to fit */
#define RMM_DIAG_MODE_WORDS "usage, bounds, order, driver, guards"

/*
 * NULL, an empty text and "off" are no mode at all. False: a word is unknown, and the first
 * such is in `word_out`, cut to fit.
 */
bool rmm__diag_modes_parse(
    const char *text, uint32_t *modes_out, char word_out[RMM_DIAG_MODE_WORD_BYTES]);

/* All of them. */
uint32_t rmm__diag_modes_all(void);

/* As it can be parsed again; "off" for none. */
void rmm__diag_modes_print(uint32_t modes, char text[RMM_DIAG_MODES_TEXT]);

#endif /* RMM_DIAG_MODES_H */
