/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of rmmfs; see options.h.
 */
#include "daemon/options.h"

#include <grp.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "core/numbers.h"
#include "support/daemon_log.h"

#define HISTORY_SECONDS_LEAST 12u /* steps of 0.1 s */
#define HISTORY_SECONDS_MOST 604800u

static const char *parse_level(const char *text, void *field)
{
    static const char *const levels[HIDING_LEVEL_COUNT][2] = {
        {"0", "off"}, {"1", "noaccess"}, {"2", "invisible"}};
    for (int i = 0; i < HIDING_LEVEL_COUNT; i++) {
        if (strcmp(text, levels[i][0]) == 0 || strcmp(text, levels[i][1]) == 0) {
            *(hiding_level_t *)field = (hiding_level_t)i;
            return NULL;
        }
    }
    return "off (0), noaccess (1) or invisible (2)";
}

static const char *parse_group(const char *text, void *field)
{
    hiding_t *hiding = field;
    const struct group *group;
    uint64_t number = UINT64_MAX;
    if (rmm__number_parse(text, strlen(text), &number) == RMM_NUMBER_MALFORMED) {
        group = getgrnam(text);
        number = group != NULL ? group->gr_gid : UINT64_MAX;
    }
    hiding->group = (gid_t)number;
    hiding->has_group = number < (gid_t)-1;
    return hiding->has_group ? NULL : "a group";
}

static const char *parse_history(const char *text, void *field)
{
    uint64_t number = 0;
    bool is_good = rmm__number_parse(text, strlen(text), &number) == RMM_NUMBER_OK &&
                   number >= HISTORY_SECONDS_LEAST && number <= HISTORY_SECONDS_MOST;
    *(uint32_t *)field = (uint32_t)number;
    return is_good ? NULL : "12 to 604800 seconds";
}

/* A word that the kernel or fusermount3 understands. Of two that are equal the last one counts:
 * it may revoke what stands between them. */
static const char *pass_on(const char *word, void *field)
{
    char *list = field;
    char entry[16];
    (void)snprintf(entry, sizeof(entry), ",%s", word);
    char *found = strstr(list, entry);
    if (found != NULL) {
        memmove(found, found + strlen(entry), strlen(found + strlen(entry)) + 1);
    }
    (void)strcat(list, entry);
    return NULL;
}

/* The default, whose name libfuse 3.17 does not know. */
static const char *pass_on_atime(const char *word, void *field)
{
    (void)word;
    (void)pass_on("noatime", field);
    *strrchr(field, ',') = '\0';
    return NULL;
}

#define FIELD(name) offsetof(options_t, name)
static const tool_option_t mount_table[] = {
    {"allow_other", 0, NULL, NULL, FIELD(allow_other),
     "let other users read (as root: always on)"},
    {"nonempty", 0, NULL, NULL, FIELD(nonempty),
     "mount over a directory that is not empty"},
    {"mkdir", 0, NULL, NULL, FIELD(mkdir), "make the mount point if it is missing"},
    {"no_inotify", 0, NULL, NULL, FIELD(no_inotify),
     "do not use inotify: read the directories of segments at\neach access"},
    {"debug", 0, NULL, NULL, FIELD(debug), "print every request (with -f)"},
    {"hidepid", 0, "LEVEL", parse_level, FIELD(hiding.level),
     "what users see of other users' processes: off (0),\n"
     "noaccess (1), invisible (2), as in proc(5)"},
    {"gid", 0, "GROUP", parse_group, FIELD(hiding),
     "members of GROUP see all processes in spite of hidepid"},
    {"history", 0, "SECONDS", parse_history, FIELD(history_seconds),
     "how much time the histories in index.html cover; default\n3600, an hour"},
    {"atime", 0, NULL, pass_on_atime, FIELD(mount_options),
     "and noatime, ro, rw, dev, nodev, suid, nosuid, exec, noexec:\nas for mount(8)"},
    {"noatime", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"ro", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"rw", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"dev", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"nodev", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"suid", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"nosuid", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"exec", 0, NULL, pass_on, FIELD(mount_options), NULL},
    {"noexec", 0, NULL, pass_on, FIELD(mount_options), NULL},
};

static const tool_command_t mount_words = {
    .about = "Mount options:",
    .options = mount_table,
    .option_count = sizeof(mount_table) / sizeof(mount_table[0]),
};

static const tool_option_t table[] = {
    {"foreground", 'f', NULL, NULL, FIELD(foreground),
     "stay in the foreground, log to stderr"},
    {"clear", 'c', NULL, NULL, FIELD(clear),
     "unmount what a killed rmmfs left on MOUNTPOINT, if\nanything, and exit"},
    {"check", 0, NULL, NULL, FIELD(check),
     "say why the program PID, or any, is not in the tree, and exit"},
    {"ping", 0, NULL, NULL, FIELD(ping),
     "exit: 0 if the daemon on MOUNTPOINT answers, else 1"},
    {"options", 'o', "OPTS", NULL, 0, "mount options, separated by commas; see below"},
    {"help", 'h', NULL, NULL, FIELD(help), "print this and exit"},
    {"version", 'V', NULL, NULL, FIELD(version), "print the version and exit"},
};

static const tool_command_t command = {
    .usage = "rmmfs [-f] [-o OPTS] [MOUNTPOINT]\n"
             "       rmmfs --check [PID] [MOUNTPOINT]",
    .about =
        "Show the GPU memory of all programs that use librmm-c as a file tree.\n"
        "MOUNTPOINT is an empty directory; default: /rmm for root, ~/rmm for other "
        "users\n"
        "(created if missing). Root sees the programs of all users, others their own.\n"
        "Unmount with `umount MOUNTPOINT` or SIGTERM.",
    .options = table,
    .option_count = sizeof(table) / sizeof(table[0]),
    .listed = &mount_words,
    .notes =
        "Environment:\n"
        "  RMM_RUNTIME_DIR       the directory of segments, the same for programs and "
        "rmmfs\n"
        "  RMM_NVIDIA_PROC       a directory to use instead of "
        "/proc/driver/nvidia/gpus\n"
        "\n"
        "Exit status: 0 after the mount (with -f, after the unmount); 1 with one line\n"
        "on stderr if that failed, or with --check if a fact is not as it should be; "
        "2\n"
        "after wrong usage.",
};

/* False: a mount point. */
static bool parse_pid(const char *text, pid_t *pid)
{
    uint64_t value;
    if (rmm__number_parse(text, strlen(text), &value) != RMM_NUMBER_OK || value == 0 ||
        value > INT_MAX) {
        return false;
    }
    *pid = (pid_t)value;
    return true;
}

bool options_parse(options_t *options, char **argv)
{
    char message[TOOL_MESSAGE_MAX];
    memset(options, 0, sizeof(*options));
    int operands = tool_options_parse(&command, argv, options, message);
    if (operands < 0) {
        log_reason("%s", message);
        return false;
    }
    int first = operands > 0 && options->check && parse_pid(argv[1], &options->pid);
    if (operands > first + 1) {
        log_reason("one mount point only, not also '%s'; see --help", argv[first + 2]);
        return false;
    }
    options->mountpoint = operands > first ? argv[first + 1] : NULL;
    return true;
}

void options_print_help(void)
{
    tool_options_help(&command, stdout);
}
