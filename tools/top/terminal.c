/* SPDX-License-Identifier: Apache-2.0 */
/* See terminal.h. A file of its own, because term.h defines `lines`, `columns` and the like. */
#include "top/terminal.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

bool terminal_is_known(void)
{
    int error;
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK) {
        return false;
    }
    bool moves_cursor = cursor_address != NULL;
    del_curterm(cur_term);
    return moves_cursor;
}
