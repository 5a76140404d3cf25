/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of rmmfs.
 */
#ifndef RMM_FUSEFS_OPTIONS_H
#define RMM_FUSEFS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/hiding.h"

typedef struct options {
    bool foreground;
    bool help, version;
    bool clear;       /* clear a dead mount, no more */
    bool ping, check; /* see check.h */
    pid_t pid;        /* with check: the program; 0: none */
    bool debug;       /* -o debug: libfuse prints every request */
    bool nonempty;    /* -o nonempty: mount over a directory that holds something */
    bool mkdir;       /* -o mkdir: make the mount point if it is missing */
    bool no_inotify;  /* -o no_inotify: read directories at every look */
    bool allow_other; /* -o allow_other */
    hiding_t hiding;  /* -o hidepid=LEVEL, -o gid=GROUP */
    uint32_t history_seconds; /* -o history=SECONDS; 0: the default */
    char mount_options[64];   /* the rest of -o, for the kernel: each word once */
    const char *mountpoint;   /* NULL: the default */
} options_t;

/* False: said what is wrong on stderr. */
bool options_parse(options_t *options, char **argv);

void options_print_help(void);

#endif /* RMM_FUSEFS_OPTIONS_H */
