/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's options as one table: from it come the parsing and the --help text.
 * Long options only: --name VALUE or --name=VALUE, "--" ends them; but -h and -V stand for
 * --help and --version, which is what a hand types first.
 */
#ifndef RMM_TOOLS_COMMON_OPTIONS_H
#define RMM_TOOLS_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Parses text into the field; NULL, or what was expected ("a number of bytes"). */
typedef const char *(*tool_parse_fn)(const char *text, void *field);

typedef struct tool_option {
    const char *name;     /* without the dashes */
    const char *argument; /* as --help shows it; NULL: a flag, its field a bool */
    tool_parse_fn parse;  /* NULL for a flag */
    size_t offset;        /* of the field in the program's options struct */
    const char *help;     /* one or more lines, parted by \n */
} tool_option_t;

typedef struct tool_command {
    const char *usage; /* "rmm-replay [OPTION]... LOG" */
    const char *about; /* one paragraph */
    const tool_option_t *options;
    size_t option_count;
    const char *notes;       /* printed after the options */
    bool options_come_first; /* the first operand ends the options */
} tool_command_t;

#define TOOL_MESSAGE_MAX 256

/*
 * Fill values from argv[1..] and move the operands to the front of argv[1..].
 * Returns how many operands there are, or -1 with one line in message.
 */
int tool_options_parse(
    const tool_command_t *command, char **argv, void *values,
    char message[TOOL_MESSAGE_MAX]);

/* What --help prints. */
void tool_options_help(const tool_command_t *command, FILE *out);

#endif /* RMM_TOOLS_COMMON_OPTIONS_H */
