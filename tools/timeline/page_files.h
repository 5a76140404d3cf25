/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page as text that ends with a NUL; made of them by embed.cmake. */
#ifndef RMM_TOOLS_TIMELINE_PAGE_FILES_H
#define RMM_TOOLS_TIMELINE_PAGE_FILES_H

extern const unsigned char page_html[];
extern const unsigned char page_css[];
extern const unsigned char page_js[];

#endif /* RMM_TOOLS_TIMELINE_PAGE_FILES_H */
