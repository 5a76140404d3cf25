/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's options as one table: from it come the parsing and the --help text.
 * --name VALUE or --name=VALUE; -n VALUE or -nVALUE, where a row names a letter; "--" ends them.
 */
#ifndef RMM_TOOLS_COMMON_OPTIONS_H
#define RMM_TOOLS_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Parses text, for a flag its name, into the field; NULL, or what was expected ("a number of
 * bytes"). */
typedef const char *(*tool_parse_fn)(const char *text, void *field);

typedef struct tool_option {
    const char *name;     /* without the dashes */
    char letter;          /* 'h': -h is the same; 0: there is none */
    const char *argument; /* as --help shows it; NULL: a flag */
    tool_parse_fn parse;  /* NULL: a flag whose field is a bool, or a list of words */
    size_t offset;        /* of the field in the program's options struct */
    const char *help;     /* one or more lines, parted by \n; NULL: not in --help */
} tool_option_t;

typedef struct tool_command {
    const char *usage; /* "rmm-replay [OPTION]... LOG" */
    const char *about; /* one paragraph */
    const tool_option_t *options;
    size_t option_count;
    const char *notes; /* printed after the options */
    /* the words of a list and, in `about`, their heading */
    const struct tool_command *listed;
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

/* Print the text of --help. */
void tool_options_help(const tool_command_t *command, FILE *out);

#endif /* RMM_TOOLS_COMMON_OPTIONS_H */
