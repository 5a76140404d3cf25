/* SPDX-License-Identifier: Apache-2.0 */
/* One reading: the first page as plain text, all figures as JSON, or a page for a browser. */
#ifndef RMM_TOP_ONCE_H
#define RMM_TOP_ONCE_H

#include "top/options.h"
#include "top/source.h"

/* False: said why. */
bool once_print_page(const options_t *options, source_t *source);
bool once_print_json(source_t *source);
/* To options->html, which is there with all of the page, or as it was. */
bool once_write_html(const options_t *options, source_t *source);

#endif /* RMM_TOP_ONCE_H */
