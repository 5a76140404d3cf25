/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getopt_long() and argp print their own messages (two lines, and argp's exit status is
 * 64) and keep the help apart from the parsing; a table of five columns does both.
 */
#include "common/options.h"

#include <string.h>

#define HELP_COLUMN 24

/* The option that argument names up to '=' or its end, or NULL. */
static const tool_option_t *
find_option(const tool_command_t *command, const char *argument)
{
    size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < command->option_count; i++) {
        const tool_option_t *option = &command->options[i];
        if (strlen(option->name) == length &&
            memcmp(option->name, argument, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static const char *long_form(const char *argument)
{
    if (strcmp(argument, "-h") == 0) {
        return "--help";
    }
    return strcmp(argument, "-V") == 0 ? "--version" : argument;
}

/* NULL: there is none. "--" ends the options; a file of that name is --OPTION=-- . */
static const char *value_of(const char *equals, const char *next)
{
    if (equals != NULL) {
        return equals + 1;
    }
    return next != NULL && strcmp(next, "--") != 0 ? next : NULL;
}

/* Applies the option at argv[0]; the number of words used, or -1. */
static int apply_option(
    const tool_command_t *command, char **argv, void *values,
    char message[TOOL_MESSAGE_MAX])
{
    const char *argument = long_form(argv[0]);
    const char *name = argument + 2;
    const tool_option_t *option = find_option(command, name);
    if (strncmp(argument, "--", 2) != 0 || option == NULL) {
        snprintf(
            message, TOOL_MESSAGE_MAX, "unknown option %.100s; see --help", argv[0]);
        return -1;
    }
    void *field = (char *)values + option->offset;
    const char *equals = strchr(name, '=');
    if (option->argument == NULL) {
        if (equals != NULL) {
            snprintf(message, TOOL_MESSAGE_MAX, "--%s takes no value", option->name);
            return -1;
        }
        *(bool *)field = true;
        return 1;
    }
    const char *text = value_of(equals, argv[1]);
    if (text == NULL) {
        snprintf(
            message, TOOL_MESSAGE_MAX, "--%s needs a value: %s", option->name,
            option->argument);
        return -1;
    }
    const char *expected = option->parse(text, field);
    if (expected != NULL) {
        snprintf(
            message, TOOL_MESSAGE_MAX, "--%s: \"%.60s\" is not %s", option->name, text,
            expected);
        return -1;
    }
    return equals != NULL ? 1 : 2;
}

int tool_options_parse(
    const tool_command_t *command, char **argv, void *values,
    char message[TOOL_MESSAGE_MAX])
{
    int operands = 0;
    int i = 1;
    while (argv[i] != NULL && strcmp(argv[i], "--") != 0) {
        bool is_option = argv[i][0] == '-' && argv[i][1] != '\0';
        if (!is_option && command->options_come_first) {
            break;
        }
        if (!is_option) {
            argv[++operands] = argv[i++];
            continue;
        }
        int used = apply_option(command, argv + i, values, message);
        if (used < 0) {
            return -1;
        }
        i += used;
    }
    if (argv[i] != NULL && strcmp(argv[i], "--") == 0) {
        i++;
    }
    while (argv[i] != NULL) {
        argv[++operands] = argv[i++];
    }
    argv[operands + 1] = NULL;
    return operands;
}

static void print_option(const tool_option_t *option, FILE *out)
{
    char left[64];
    int used = snprintf(
        left, sizeof left, "  --%s%s%s", option->name,
        option->argument != NULL ? " " : "",
        option->argument != NULL ? option->argument : "");
    fprintf(out, "%-*s", HELP_COLUMN, left);
    if (used >= HELP_COLUMN) {
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    }
    for (const char *c = option->help; *c != '\0'; c++) {
        fputc(*c, out);
        if (*c == '\n') {
            fprintf(out, "%*s", HELP_COLUMN, "");
        }
    }
    fputc('\n', out);
}

void tool_options_help(const tool_command_t *command, FILE *out)
{
    fprintf(out, "Usage: %s\n%s\n\n", command->usage, command->about);
    for (size_t i = 0; i < command->option_count; i++) {
        print_option(&command->options[i], out);
    }
    if (command->notes != NULL) {
        fprintf(out, "\n%s\n", command->notes);
    }
}
