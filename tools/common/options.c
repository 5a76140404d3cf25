/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getopt_long() and argp print their own messages (two lines, and argp's exit status is
 * 64) and keep the help apart from the parsing; a table of five columns does both.
 */
#include "common/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 24

typedef struct parser {
    const tool_command_t *command;
    const char *dashes; /* before an option's name, in messages */
    void *values;
    char *
        message; /* of TOOL_MESSAGE_MAX; the functions below fill it and return false */
} parser_t;

/* The option that the word names up to '=' or its end, or NULL. */
static const tool_option_t *find_name(const tool_command_t *command, const char *word)
{
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < command->option_count; i++) {
        const tool_option_t *option = &command->options[i];
        if (strlen(option->name) == length && memcmp(option->name, word, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static const tool_option_t *find_letter(const tool_command_t *command, char letter)
{
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].letter == letter) {
            return &command->options[i];
        }
    }
    return NULL;
}

__attribute__((format(printf, 2, 3))) static bool
refuse(const parser_t *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->message, TOOL_MESSAGE_MAX, format, arguments);
    va_end(arguments);
    return false;
}

static bool apply_list(const parser_t *parser, const char *list);

/* text: the value, or NULL if there is none. */
static bool store(const parser_t *parser, const tool_option_t *option, const char *text)
{
    void *field = (char *)parser->values + option->offset;
    const char *expected;
    if (option->argument == NULL && text != NULL) {
        return refuse(parser, "%s%s takes no value", parser->dashes, option->name);
    }
    if (option->argument != NULL && text == NULL) {
        return refuse(
            parser, "%s%s needs a value: %s", parser->dashes, option->name,
            option->argument);
    }
    if (option->parse == NULL && text != NULL) {
        return apply_list(parser, text);
    }
    if (option->parse == NULL) {
        *(bool *)field = true;
        return true;
    }
    expected = option->parse(text != NULL ? text : option->name, field);
    return expected == NULL || refuse(
                                   parser, "%s%s: \"%.60s\" is not %s", parser->dashes,
                                   option->name, text, expected);
}

/* The next word as a value; NULL: there is none. "--" ends the options; a file of that name is
 * --OPTION=-- . */
static const char *take_next(char ***argv)
{
    const char *next = (*argv)[1];
    if (next == NULL || strcmp(next, "--") == 0) {
        return NULL;
    }
    ++*argv;
    return next;
}

/* NAME, NAME=VALUE, or NAME and the word behind argv, which moves there. argv NULL: there is no
 * further word. */
static bool apply_name(const parser_t *parser, const char *word, char ***argv)
{
    const tool_option_t *option = find_name(parser->command, word);
    const char *text = strchr(word, '=');
    if (option == NULL) {
        return refuse(
            parser, "unknown option %s%.100s; see --help", parser->dashes, word);
    }
    if (text != NULL) {
        text++;
    } else if (option->argument != NULL && argv != NULL) {
        text = take_next(argv);
    }
    return store(parser, option, text);
}

static bool apply_list(const parser_t *parser, const char *list)
{
    parser_t words = *parser;
    char *copy = strdup(list);
    char *rest = copy;
    char *word;
    bool good = copy != NULL || refuse(parser, "no memory");
    words.command = parser->command->listed;
    words.dashes = "-o ";
    while (good && (word = strsep(&rest, ",")) != NULL) {
        good = word[0] == '\0' || apply_name(&words, word, NULL);
    }
    free(copy);
    return good;
}

/* -fh is -f -h; a value is the rest of the word, or the word behind argv. */
static bool apply_letters(const parser_t *parser, const char *letters, char ***argv)
{
    bool good = true;
    while (good && *letters != '\0') {
        const tool_option_t *option = find_letter(parser->command, *letters++);
        const char *text = NULL;
        if (option == NULL) {
            return refuse(parser, "unknown option %.100s; see --help", **argv);
        }
        if (option->argument != NULL) {
            text = *letters != '\0' ? letters : take_next(argv);
            letters = "";
        }
        good = store(parser, option, text);
    }
    return good;
}

int tool_options_parse(
    const tool_command_t *command, char **argv, void *values,
    char message[TOOL_MESSAGE_MAX])
{
    const parser_t parser = {command, "--", values, message};
    int operands = 0;
    char **at = argv + 1;
    for (; *at != NULL && strcmp(*at, "--") != 0; at++) {
        bool is_long = strncmp(*at, "--", 2) == 0;
        if ((*at)[0] == '-' && (*at)[1] != '\0') {
            if (!(is_long ? apply_name(&parser, *at + 2, &at)
                          : apply_letters(&parser, *at + 1, &at))) {
                return -1;
            }
        } else if (command->options_come_first) {
            break;
        } else {
            argv[++operands] = *at;
        }
    }
    if (*at != NULL && strcmp(*at, "--") == 0) {
        at++;
    }
    while (*at != NULL) {
        argv[++operands] = *at++;
    }
    argv[operands + 1] = NULL;
    return operands;
}

static void print_option(
    const tool_option_t *option, const char *dashes, const char *between, FILE *out)
{
    char left[64];
    int used = snprintf(
        left, sizeof left, "  %s%s%s%s", dashes, option->name,
        option->argument != NULL ? between : "",
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

static void print_options(const tool_command_t *command, bool are_listed, FILE *out)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const tool_option_t *option = &command->options[i];
        char dashes[] = "-x, --";
        dashes[1] = option->letter;
        if (option->help != NULL) {
            print_option(
                option, are_listed ? "" : dashes + (option->letter != 0 ? 0 : 4),
                are_listed ? "=" : " ", out);
        }
    }
}

void tool_options_help(const tool_command_t *command, FILE *out)
{
    fprintf(out, "Usage: %s\n%s\n\n", command->usage, command->about);
    print_options(command, false, out);
    if (command->listed != NULL) {
        fprintf(out, "\n%s\n", command->listed->about);
        print_options(command->listed, true, out);
    }
    if (command->notes != NULL) {
        fprintf(out, "\n%s\n", command->notes);
    }
}
