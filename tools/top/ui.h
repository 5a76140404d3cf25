/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's choice of page, row, order and filter, and how keys change it. Knows no terminal.
 *
 * The selected row is known by its program and device, so that it stays selected while rows
 * change places.
 */
#ifndef RMM_TOP_UI_H
#define RMM_TOP_UI_H

#include <stdbool.h>
#include <stdint.h>

#include "node/node.h"
#include "top/detail.h"
#include "top/figure_history.h"

typedef enum ui_sort {
    UI_SORT_CURRENT,
    UI_SORT_RESERVED,
    UI_SORT_PEAK,
    UI_SORT_RATE,
    UI_SORT_PID,
    UI_SORT_USER,
    UI_SORT_COMMAND,
    UI_SORT_NODE,
    UI_SORT_COUNT
} ui_sort_t;

/* "current", ...: for --sort and for the screen. */
extern const char *const ui_sort_names[UI_SORT_COUNT];

typedef enum ui_page { UI_LIST, UI_PROGRAM, UI_HELP } ui_page_t;

/* Keys that are no character. */
typedef enum ui_key {
    UI_KEY_UP = 0x110000, /* behind Unicode */
    UI_KEY_DOWN,
    UI_KEY_PAGE_UP,
    UI_KEY_PAGE_DOWN,
    UI_KEY_HOME,
    UI_KEY_END,
    UI_KEY_ENTER,
    UI_KEY_ESCAPE,
    UI_KEY_BACKSPACE
} ui_key_t;

#define UI_PAGE_ROWS 10
#define UI_FILTER_BYTES 64
#define UI_TYPED_BYTES 24
#define UI_NAME_BYTES 64
#define UI_MESSAGE_BYTES 200
#define UI_SOURCE_BYTES 160

/* A request to the program that is shown: see control.h. */
typedef enum ui_request_kind {
    UI_REQUEST_NONE,
    UI_REQUEST_RESET,
    UI_REQUEST_LIMIT,
    UI_REQUEST_TRIM
} ui_request_kind_t;

typedef struct ui_request {
    ui_request_kind_t kind;
    uint64_t id;          /* of the program */
    bool is_resource;     /* else the program on a device */
    uint32_t resource_id; /* instance_id */
    uint32_t device;      /* index */
    uint64_t limit_bytes;
    char name[UI_NAME_BYTES]; /* of it, for people */
} ui_request_t;

typedef struct ui {
    ui_page_t page, page_before_help;
    ui_sort_t sort;
    char filter[UI_FILTER_BYTES]; /* "": none */
    bool is_typing;               /* the filter */
    bool is_frozen;
    bool is_over;
    uint64_t selected_id; /* 0: the first row */
    uint32_t selected_device;
    uint64_t shown_id;   /* the program of UI_PROGRAM */
    uint32_t shown_line; /* of its resources, the selected one */
    int width, height;
    bool is_ascii;
    ui_request_t request; /* kind: none is made */
    bool is_complete;     /* nothing is left to be typed: the screen takes it */
    char typed[UI_TYPED_BYTES];
    char
        source[UI_SOURCE_BYTES]; /* where it is from, in the first line; "": from now */
    char message[UI_MESSAGE_BYTES]; /* until the next key; "": none */
    const detail_t *detail; /* of the program that is shown; NULL: none. Borrowed */
} ui_t;

/* key: a character or one of ui_key_t. */
void ui_press(ui_t *ui, uint32_t key, const node_t *node, const history_t *history);

/* The action that keys requested; false: none, or not all is typed yet. */
bool ui_take_request(ui_t *ui, ui_request_t *request_out);

/* The selected resource of the program that is shown; NULL: none. */
const node_resource_t *ui_resource(const ui_t *ui, const node_t *node);

/* A click on the i-th row of the list, or of the resources. */
void ui_click(ui_t *ui, uint32_t row, const node_t *node, const history_t *history);

#endif /* RMM_TOP_UI_H */
