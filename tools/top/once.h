/* SPDX-License-Identifier: Apache-2.0 */
/* One reading, printed: the first page as plain text, or all figures as JSON. */
#ifndef RMM_TOP_ONCE_H
#define RMM_TOP_ONCE_H

#include "top/options.h"
#include "top/sample.h"

/* False: said why. */
bool once_print_page(const options_t *options, sampler_t *sampler);
bool once_print_json(sampler_t *sampler);

#endif /* RMM_TOP_ONCE_H */
