/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page as text that ends with a NUL, and what a Content-Security-Policy calls
 * them; made of them by cmake/embed.cmake. */
#ifndef RMM_TOOLS_TIMELINE_PAGE_FILES_H
#define RMM_TOOLS_TIMELINE_PAGE_FILES_H

extern const unsigned char page_html[];
extern const unsigned char page_css[];
extern const unsigned char page_js[];
extern const char page_html_hash[], page_css_hash[], page_js_hash[];

#endif /* RMM_TOOLS_TIMELINE_PAGE_FILES_H */
