/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of the command line; see options.h.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

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
    {"clear", 'c', NULL, offsetof(options_t, clear),
     "unmount what a killed rmmfs left on MOUNTPOINT, if anything, and exit"},
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
     "do not use inotify: read the directories of segments at each access"},
    {"debug", offsetof(options_t, debug), "print every request (with -f)"},
};

/* Those with a value; false: it is none of them. */
static bool take_hidepid(options_t *options, const char *value);
static bool take_group(options_t *options, const char *value);

static const struct value_desc {
    const char *name, *argument;
    bool (*take)(options_t *options, const char *value);
    const char *help;
} value_descs[] = {
    {"hidepid=", "LEVEL", take_hidepid,
     "what users see of other users' processes: off (0),\n"
     "                          noaccess (1), invisible (2), as in proc(5)"},
    {"gid=", "GROUP", take_group,
     "members of GROUP see all processes in spite of hidepid"},
};

/* Not understood by us but by the kernel or fusermount3. */
static const char *const passed_on[] = {"ro",     "rw",   "dev",    "nodev",  "suid",
                                        "nosuid", "exec", "noexec", "noatime"};

static bool *flag_at(options_t *options, size_t offset)
{
    return (bool *)(void *)((char *)options + offset);
}

static bool is_passed_on(const char *word)
{
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        if (strcmp(word, passed_on[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool take_hidepid(options_t *options, const char *value)
{
    static const char *const levels[HIDING_LEVEL_COUNT][2] = {
        {"0", "off"}, {"1", "noaccess"}, {"2", "invisible"}};
    for (int i = 0; i < HIDING_LEVEL_COUNT; i++) {
        if (strcmp(value, levels[i][0]) == 0 || strcmp(value, levels[i][1]) == 0) {
            options->hiding.level = (hiding_level_t)i;
            return true;
        }
    }
    return false;
}

static bool take_group(options_t *options, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (value[0] >= '0' && value[0] <= '9' && *end == '\0') {
        options->hiding.group = (gid_t)number;
        options->hiding.has_group = errno == 0 && number < (gid_t)-1;
        return options->hiding.has_group;
    }
    const struct group *group = getgrnam(value);
    if (group != NULL) {
        options->hiding.group = group->gr_gid;
        options->hiding.has_group = true;
    }
    return group != NULL;
}

typedef enum taken { TAKEN, TAKEN_NOT, TAKEN_WRONG } taken_t;

static taken_t take_value(options_t *options, const char *word)
{
    for (size_t i = 0; i < sizeof(value_descs) / sizeof(value_descs[0]); i++) {
        size_t length = strlen(value_descs[i].name);
        if (strncmp(word, value_descs[i].name, length) == 0) {
            if (value_descs[i].take(options, word + length)) {
                return TAKEN;
            }
            log_reason(
                "mount option '%s': no such %s: see rmmfs --help", word,
                value_descs[i].take == take_group ? "group" : "level");
            return TAKEN_WRONG;
        }
    }
    return TAKEN_NOT;
}

/* atime is the default, and libfuse 3.17 does not know its name. */
static void forget_noatime(char *mount_options)
{
    static const char word[] = ",noatime";
    char *found;
    while ((found = strstr(mount_options, word)) != NULL) {
        memmove(found, found + strlen(word), strlen(found + strlen(word)) + 1);
    }
}

static bool take_mount_option(options_t *options, const char *word)
{
    taken_t taken = take_value(options, word);
    if (taken != TAKEN_NOT) {
        return taken == TAKEN;
    }
    for (size_t i = 0; i < sizeof(mount_descs) / sizeof(mount_descs[0]); i++) {
        if (strcmp(word, mount_descs[i].name) == 0) {
            *flag_at(options, mount_descs[i].offset) = true;
            return true;
        }
    }
    if (strcmp(word, "atime") == 0) {
        forget_noatime(options->mount_options);
        return true;
    }
    size_t used = strlen(options->mount_options);
    size_t room = sizeof(options->mount_options) - used;
    if (!is_passed_on(word) ||
        (size_t)snprintf(options->mount_options + used, room, ",%s", word) >= room) {
        log_reason("unknown mount option '%s': see rmmfs --help", word);
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
            log_reason(
                "unknown or incomplete option '%s': see rmmfs --help",
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
        log_reason(
            "one mount point only, not also '%s': see rmmfs --help", argv[optind + 1]);
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
        "MOUNTPOINT is an empty directory; default: /rmm for root, ~/rmm for other "
        "users\n"
        "(created if missing). Root sees the programs of all users, others their own.\n"
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
    for (size_t i = 0; i < sizeof(value_descs) / sizeof(value_descs[0]); i++) {
        char name[32];
        (void)snprintf(
            name, sizeof(name), "%s%s", value_descs[i].name, value_descs[i].argument);
        (void)printf("  %-24s%s\n", name, value_descs[i].help);
    }
    (void)printf("  %-24sas for mount(8)\n", "ro noatime ...");
    (void)printf(
        "\n"
        "Environment:\n"
        "  RMM_RUNTIME_DIR         the directory of segments, the same for programs "
        "and rmmfs\n"
        "  RMM_NVIDIA_PROC         a directory to use instead of "
        "/proc/driver/nvidia/gpus\n"
        "\n"
        "Exit status: 0 after the mount (with -f, after the unmount); 1 with one line\n"
        "on stderr if that failed; 2 after wrong usage.\n");
}
