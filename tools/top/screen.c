/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncurses; see screen.h. Signals are blocked but while the program waits for keys, so that none
 * is missed between a look at a flag and the wait.
 */
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "top/control.h"
#include "top/inspector.h"
#include "top/terminal.h"
#include "top/view.h"

#define HEIGHT_MAX 1000

typedef struct screen {
    source_t *source;
    node_t node;
    history_t history;
    inspector_t inspector;
    ui_t ui;
    view_t view;
    int attributes[ATTRIBUTE_COUNT];
    sigset_t unblocked; /* while it waits */
    bool has_memory;
} screen_t;

static volatile sig_atomic_t is_ended, is_resized;

static void note(int number)
{
    if (number == SIGWINCH) {
        is_resized = 1;
    } else {
        is_ended = 1;
    }
}

/* --- terminal ----------------------------------------------------------------------------- */

static void choose_attributes(screen_t *screen, bool has_colors)
{
    static const short colors[ATTRIBUTE_COUNT] = {
        [ATTRIBUTE_USED] = COLOR_GREEN,
        [ATTRIBUTE_CACHED] = COLOR_CYAN,
        [ATTRIBUTE_OTHERS] = COLOR_MAGENTA,
        [ATTRIBUTE_WARNING] = COLOR_YELLOW};
    static const int plain[ATTRIBUTE_COUNT] = {
        [ATTRIBUTE_TITLE] = (int)A_BOLD,
        [ATTRIBUTE_HEADER] = (int)A_REVERSE,
        [ATTRIBUTE_SELECTED] = (int)A_REVERSE,
        [ATTRIBUTE_WARNING] = (int)A_BOLD};
    for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
        screen->attributes[i] = plain[i];
        if (has_colors && colors[i] != 0) {
            init_pair((short)i, colors[i], -1);
            screen->attributes[i] |= (int)COLOR_PAIR(i);
        }
    }
}

/* As much of the window as is drawn on: ncurses crashes where a size does not fit in a short.
 * False: it is not known. */
static bool window_size(int *rows, int *columns)
{
    struct winsize size = {.ws_row = 0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *rows = size.ws_row < HEIGHT_MAX ? size.ws_row : HEIGHT_MAX;
    *columns = size.ws_col < VIEW_WIDTH_MAX ? size.ws_col : VIEW_WIDTH_MAX;
    return size.ws_row > 0 && size.ws_col > 0;
}

/* newterm() takes what these say instead of asking the terminal. */
static void set_first_size(void)
{
    int rows, columns;
    char text[16];
    if (window_size(&rows, &columns)) {
        snprintf(text, sizeof(text), "%d", rows);
        setenv("LINES", text, 1);
        snprintf(text, sizeof(text), "%d", columns);
        setenv("COLUMNS", text, 1);
    }
}

static bool open_terminal(screen_t *screen, bool wants_colors)
{
    const char *name = getenv("TERM");
    set_first_size();
    if (!terminal_is_known() || newterm(NULL, stdout, stdin) == NULL) {
        tool_error(
            "cannot use the terminal \"%s\": set TERM, or use --once",
            name != NULL ? name : "");
        return false;
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    mouseinterval(0);
    bool has_colors = wants_colors && start_color() == OK && use_default_colors() == OK;
    choose_attributes(screen, has_colors);
    return true;
}

/* Before newterm(), which leaves signals alone that are caught already. */
static void catch_signals(screen_t *screen)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
    const struct sigaction action = {.sa_handler = note};
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
        sigaction(caught[i], &action, NULL);
        sigaddset(&blocked, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, &screen->unblocked);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
        sigdelset(&screen->unblocked, caught[i]);
    }
}

/* --- drawing ------------------------------------------------------------------------------ */

/* Cells of one attribute go out together. */
static void draw_line(const screen_t *screen, int y)
{
    const canvas_t *canvas = &screen->view.canvas;
    const cell_t *cells = &canvas->cells[(size_t)y * (size_t)canvas->width];
    char text[VIEW_WIDTH_MAX * CANVAS_CHARACTER_BYTES + 1];
    move(y, 0);
    for (int x = 0; x < canvas->width;) {
        uint8_t attribute = cells[x].attribute;
        size_t used = 0;
        for (; x < canvas->width && cells[x].attribute == attribute; x++) {
            used += canvas_utf8(cells[x].character, text + used);
        }
        attrset(screen->attributes[attribute]);
        addnstr(text, (int)used);
    }
}

static void draw(screen_t *screen)
{
    getmaxyx(stdscr, screen->ui.height, screen->ui.width);
    if (!view_make(&screen->view, &screen->node, &screen->history, &screen->ui)) {
        screen->has_memory = false;
        return;
    }
    for (int y = 0; y < screen->view.canvas.height; y++) {
        draw_line(screen, y);
    }
    refresh();
}

/* --- input -------------------------------------------------------------------------------- */

static uint32_t key_of(int key)
{
    switch (key) {
    case KEY_UP:
        return UI_KEY_UP;
    case KEY_DOWN:
        return UI_KEY_DOWN;
    case KEY_PPAGE:
        return UI_KEY_PAGE_UP;
    case KEY_NPAGE:
        return UI_KEY_PAGE_DOWN;
    case KEY_HOME:
        return UI_KEY_HOME;
    case KEY_END:
        return UI_KEY_END;
    case KEY_ENTER:
    case '\r':
    case '\n':
        return UI_KEY_ENTER;
    case KEY_BACKSPACE:
    case '\b':
    case 0x7f:
        return UI_KEY_BACKSPACE;
    case 0x1b:
        return UI_KEY_ESCAPE;
    default:
        return key > 0 && key < 0x7f ? (uint32_t)key : 0;
    }
}

static void take_mouse(screen_t *screen)
{
    MEVENT event;
    const view_t *view = &screen->view;
    if (getmouse(&event) != OK) {
        return;
    }
    if ((event.bstate & BUTTON4_PRESSED) != 0) {
        ui_press(&screen->ui, UI_KEY_UP, &screen->node, &screen->history);
    } else if ((event.bstate & BUTTON5_PRESSED) != 0) {
        ui_press(&screen->ui, UI_KEY_DOWN, &screen->node, &screen->history);
    } else if (
        event.y >= view->rows_y && event.y < view->rows_y + (int)view->row_count) {
        ui_click(
            &screen->ui, view->first_row + (uint32_t)(event.y - view->rows_y),
            &screen->node, &screen->history);
    }
}

static void do_request(screen_t *screen)
{
    ui_request_t request;
    const sampler_t *sampler = source_sampler(screen->source);
    if (!ui_take_request(&screen->ui, &request)) {
        return;
    }
    if (sampler == NULL) {
        snprintf(
            screen->ui.message, sizeof(screen->ui.message), "%s cannot be changed",
            screen->source->kind == SOURCE_MOUNT   ? "with --mount, programs"
            : screen->source->kind == SOURCE_FLEET ? "programs of other nodes"
                                                   : "a recording");
        return;
    }
    control_do(&sampler->segments, &screen->node, &request, screen->ui.message);
}

/* All keys that were pressed. */
static void take_keys(screen_t *screen)
{
    int key;
    while ((key = getch()) != ERR) {
        if (key == KEY_MOUSE) {
            take_mouse(screen);
        } else if (key_of(key) != 0) {
            ui_press(&screen->ui, key_of(key), &screen->node, &screen->history);
        }
        do_request(screen);
    }
}

/* Until a key, a signal, or that time. False: the terminal is gone. It has to be noticed here:
 * input at its end is always ready, so signals, which are unblocked only while ppoll() waits, would
 * not come through either. */
static bool wait_for_keys(const screen_t *screen, uint64_t until_ns)
{
    uint64_t now = clock_ns(), left = until_ns > now ? until_ns - now : 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    const struct timespec wait = {
        .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
    int ready = ppoll(&input, 1, &wait, &screen->unblocked);
    return ready <= 0 || (input.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Where the limit of the program on that resource's device is. */
static uint32_t location_of(const node_t *node, const node_resource_t *resource)
{
    uint32_t i = 0;
    while (i < node->use_count && (node->uses[i].process != resource->process ||
                                   node->uses[i].device != resource->device)) {
        i++;
    }
    return i < node->use_count ? node->uses[i].location : UINT32_MAX;
}

static void look(screen_t *screen, const sampler_t *sampler)
{
    const node_resource_t *resource = ui_resource(&screen->ui, &screen->node);
    look_t at = {.id = screen->ui.page != UI_LIST ? screen->ui.shown_id : 0};
    if (resource != NULL) {
        at.resource_id = resource->instance_id;
        at.slot = resource->slot;
        at.location = location_of(&screen->node, resource);
    }
    inspector_look(&screen->inspector, &sampler->segments, &at);
    screen->ui.detail = &screen->inspector.detail;
}

/* Say so if the screen shows a recording, or if what it shows is being recorded. */
static void say_source(screen_t *screen)
{
    const source_t *source = screen->source;
    const recorder_t *recorder = &source->recorder;
    char *said = screen->ui.source;
    size_t bytes = sizeof(screen->ui.source);
    if (source->kind == SOURCE_RECORDING) {
        snprintf(
            said, bytes, "RECORDING %llu of %llu",
            (unsigned long long)source->player.next,
            (unsigned long long)source->player.count);
    } else if (source_silence(source)[0] != '\0') {
        snprintf(
            said, bytes, "NO ANSWER FOR %llu s: %s",
            (unsigned long long)((clock_ns() - source->mount.answered_ns) / 1000000000u),
            source_silence(source));
    } else if (recorder->reason[0] != '\0') {
        snprintf(said, bytes, "RECORDING ENDED: %s", recorder->reason);
    } else if (recorder->file != NULL) {
        snprintf(said, bytes, "RECORDS");
    } else if (source->kind == SOURCE_MOUNT) {
        snprintf(said, bytes, "from %.120s", source->mount.reading.path);
    }
}

static void read_node(screen_t *screen)
{
    const sampler_t *sampler = source_sampler(screen->source);
    if (source_is_over(screen->source)) {
        return;
    }
    screen->has_memory = source_take(screen->source, &screen->node) &&
                         (source_silence(screen->source)[0] != '\0' ||
                          history_add(&screen->history, &screen->node));
    if (screen->has_memory && sampler != NULL) {
        look(screen, sampler);
    }
    say_source(screen);
}

static void loop(screen_t *screen, uint64_t interval_ns)
{
    uint64_t next_ns = 0;
    bool is_there = true;
    int rows, columns;
    while (is_there && screen->has_memory && !screen->ui.is_over && !is_ended) {
        uint64_t now = clock_ns();
        if (now >= next_ns) {
            next_ns = now + interval_ns;
            if (!screen->ui.is_frozen) {
                read_node(screen);
            }
        }
        if (is_resized && window_size(&rows, &columns)) {
            resizeterm(rows, columns);
        }
        is_resized = 0;
        draw(screen);
        is_there = wait_for_keys(screen, next_ns);
        take_keys(screen);
    }
}

static void init_ui(ui_t *ui, const options_t *options)
{
    memset(ui, 0, sizeof(*ui));
    ui->sort = options->sort;
    ui->is_ascii = !terminal_is_utf8();
    snprintf(ui->filter, sizeof(ui->filter), "%s", options->filter);
}

bool screen_run(const options_t *options, source_t *source)
{
    screen_t screen = {.source = source, .has_memory = true};
    node_init(&screen.node);
    history_init(&screen.history);
    inspector_init(&screen.inspector);
    init_ui(&screen.ui, options);
    catch_signals(&screen);
    if (!open_terminal(&screen, !options->no_color && terminal_wants_color())) {
        return false;
    }
    loop(&screen, (uint64_t)(options->interval_seconds * 1e9));
    endwin();
    if (!screen.has_memory) {
        tool_error("%s", source_failure(source));
    }
    view_fini(&screen.view);
    history_fini(&screen.history);
    inspector_fini(&screen.inspector);
    node_fini(&screen.node);
    if (source->recorder.reason[0] != '\0') {
        tool_error("the recording has ended early: %s", source->recorder.reason);
        return false;
    }
    return screen.has_memory;
}
