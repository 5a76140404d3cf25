/* SPDX-License-Identifier: Apache-2.0 */
/* page.css and page.js as texts that end with a NUL, and what a Content-Security-Policy calls
 * them; made of them by cmake/embed.cmake. */
#ifndef RMM_PAGE_PAGE_FILES_H
#define RMM_PAGE_PAGE_FILES_H

extern const unsigned char rmm__page_css[], rmm__page_js[];
extern const char rmm__page_css_hash[], rmm__page_js_hash[];

#endif /* RMM_PAGE_PAGE_FILES_H */
