/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of the command line; see options.h.
 */
#include "options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_SHORT 0

static const struct option_desc {
    const char *name;
    char letter; /* NO_SHORT: none */
    const char *argument;
    size_t offset; /* of its bool */
    const char *help;
} descs[] = {
    {"foreground", 'f', NULL, offsetof(options_t, foreground),
     "stay in the foreground, log to stderr"},
    {"options", 'o', "OPTS", 0, "mount options, separated by commas; see below"},
    {"help", 'h', NULL, offsetof(options_t, help), "this text"},
    {"version", 'V', NULL, offsetof(options_t, version), "version of rmmfs"},
};
#define DESC_COUNT (sizeof(descs) / sizeof(descs[0]))

static const struct mount_desc {
    const char *name;
    size_t offset;
    const char *help;
} mount_descs[] = {
    {"allow_other", offsetof(options_t, allow_other),
     "let other users read (as root: always on)"},
    {"nonempty", offsetof(options_t, nonempty),
     "mount over a directory that is not empty"},
    {"no_inotify", offsetof(options_t, no_inotify),
     "read the segments' directories at each access"},
    {"debug", offsetof(options_t, debug), "print every request (with -f)"},
};

/* Not understood by us but by the kernel or fusermount3. */
static const char *const passed_on[] = {"ro",    "rw",      "dev",      "nodev",
                                        "suid",  "nosuid",  "exec",     "noexec",
                                        "atime", "noatime", "max_read="};

static bool *flag_at(options_t *options, size_t offset)
{
    return (bool *)(void *)((char *)options + offset);
}

static bool is_passed_on(const char *word)
{
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        size_t length = strlen(passed_on[i]);
        bool prefix = passed_on[i][length - 1] == '=';
        if (prefix ? strncmp(word, passed_on[i], length) == 0
                   : strcmp(word, passed_on[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* libfuse would say so in a line of its own, before ours. */
static bool max_read_is_good(const char *word)
{
    static const char name[] = "max_read=";
    const char *value = word + sizeof(name) - 1;
    if (strncmp(word, name, sizeof(name) - 1) != 0 ||
        (value[0] != '\0' && strlen(value) < sizeof("4294967295") - 1 &&
         strspn(value, "0123456789") == strlen(value))) {
        return true;
    }
    (void)fprintf(
        stderr, "rmmfs: mount option '%s': expected max_read=BYTES, such as 131072\n",
        word);
    return false;
}

static bool take_mount_option(options_t *options, const char *word)
{
    for (size_t i = 0; i < sizeof(mount_descs) / sizeof(mount_descs[0]); i++) {
        if (strcmp(word, mount_descs[i].name) == 0) {
            *flag_at(options, mount_descs[i].offset) = true;
            return true;
        }
    }
    if (!max_read_is_good(word)) {
        return false;
    }
    size_t used = strlen(options->mount_options);
    size_t room = sizeof(options->mount_options) - used;
    if (!is_passed_on(word) ||
        (size_t)snprintf(options->mount_options + used, room, ",%s", word) >= room) {
        (void)fprintf(
            stderr, "rmmfs: unknown mount option '%s': see rmmfs --help\n", word);
        return false;
    }
    return true;
}

static bool take_mount_options(options_t *options, const char *list)
{
    char *copy = strdup(list);
    char *rest = copy;
    char *word;
    bool good = copy != NULL;
    while (good && (word = strsep(&rest, ",")) != NULL) {
        good = word[0] == '\0' || take_mount_option(options, word);
    }
    free(copy);
    return good;
}

static void fill_getopt(struct option *longs, char *shorts)
{
    for (size_t i = 0; i < DESC_COUNT; i++) {
        bool takes = descs[i].argument != NULL;
        longs[i] = (struct option){
            descs[i].name, takes ? required_argument : no_argument, NULL,
            descs[i].letter};
        *shorts++ = descs[i].letter;
        if (takes) {
            *shorts++ = ':';
        }
    }
    longs[DESC_COUNT] = (struct option){0};
    *shorts = '\0';
}

static void set_flag(options_t *options, int letter)
{
    for (size_t i = 0; i < DESC_COUNT; i++) {
        if (descs[i].letter == letter) {
            *flag_at(options, descs[i].offset) = true;
        }
    }
}

bool options_parse(options_t *options, int argc, char **argv)
{
    struct option longs[DESC_COUNT + 1];
    char shorts[2 * DESC_COUNT + 1];
    int letter;
    memset(options, 0, sizeof(*options));
    fill_getopt(longs, shorts);
    opterr = 0; /* one line, and ours */
    while ((letter = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (letter == '?') {
            (void)fprintf(
                stderr, "rmmfs: unknown or incomplete option '%s': see rmmfs --help\n",
                argv[optind - 1]);
            return false;
        }
        if (letter == 'o') {
            if (!take_mount_options(options, optarg)) {
                return false;
            }
        } else {
            set_flag(options, letter);
        }
    }
    if (argc - optind > 1) {
        (void)fprintf(
            stderr, "rmmfs: one mount point only, not also '%s': see rmmfs --help\n",
            argv[optind + 1]);
        return false;
    }
    options->mountpoint = optind < argc ? argv[optind] : NULL;
    return true;
}

void options_print_help(void)
{
    (void)printf(
        "Usage: rmmfs [-f] [-o OPTS] [MOUNTPOINT]\n"
        "\n"
        "Show the GPU memory of all programs that use librmm-c as a file tree.\n"
        "MOUNTPOINT is an empty directory; without one /rmm for root, ~/rmm for a "
        "user\n"
        "(made if missing). As root: programs of all users; else the user's own.\n"
        "Unmount with `umount MOUNTPOINT` or SIGTERM.\n"
        "\n");
    for (size_t i = 0; i < DESC_COUNT; i++) {
        char names[40];
        (void)snprintf(
            names, sizeof(names), "-%c, --%s%s%s", descs[i].letter, descs[i].name,
            descs[i].argument != NULL ? " " : "",
            descs[i].argument != NULL ? descs[i].argument : "");
        (void)printf("  %-24s%s\n", names, descs[i].help);
    }
    (void)printf("\nMount options:\n");
    for (size_t i = 0; i < sizeof(mount_descs) / sizeof(mount_descs[0]); i++) {
        (void)printf("  %-24s%s\n", mount_descs[i].name, mount_descs[i].help);
    }
    (void)printf("  %-24sas for mount(8)\n", "ro noexec max_read=N ...");
    (void)printf("\n"
                 "Environment:\n"
                 "  RMM_RUNTIME_DIR         the one directory of segments, for "
                 "programs and rmmfs\n"
                 "  RMM_NVIDIA_PROC         instead of /proc/driver/nvidia/gpus\n"
                 "\n"
                 "Exit status: 0 after the mount (or, with -f, after the unmount); 1 "
                 "with one line\n"
                 "on stderr if that failed; 2 after wrong usage.\n");
}
