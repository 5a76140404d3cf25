/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users, as index.html shows them: read on several threads at once, because the daemon
 * answers several readers at once.
 */
#include "harness/in_child.h"
#include "harness/tmpfs.h"

#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/user_names.h"

#define THREADS 4
#define READINGS 500
#define USERS_MAX 1000
#define NOBODY_HAS 4000000000u

/* A snapshot with a process of each user of the file, and of one that the file lacks. */
typedef struct people {
    snapshot_process_t processes[USERS_MAX + 1];
    char names[USERS_MAX][32];
    snapshot_t snapshot;
} people_t;

static bool is_met(const people_t *people, uid_t uid)
{
    for (uint32_t i = 0; i < people->snapshot.process_count; i++) {
        if (people->processes[i].uid == uid) {
            return true;
        }
    }
    return false;
}

static people_t *meet_people(void)
{
    people_t *people = calloc(1, sizeof(*people));
    const struct passwd *user;
    assert_non_null(people);
    snapshot_t *snapshot = &people->snapshot;
    snapshot->processes = people->processes;
    FILE *file = fopen("/etc/passwd", "re");
    assert_non_null(file);
    while (snapshot->process_count < USERS_MAX && (user = fgetpwent(file)) != NULL) {
        if (!is_met(people, user->pw_uid)) {
            (void)snprintf(
                people->names[snapshot->process_count], sizeof(people->names[0]), "%s",
                user->pw_name);
            people->processes[snapshot->process_count++].uid = user->pw_uid;
        }
    }
    (void)fclose(file);
    assert_true(snapshot->process_count > 1);
    return people;
}

/* How many users have another name than theirs. */
static uint32_t count_wrong(const people_t *people, const user_names_t *names)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < people->snapshot.process_count; i++) {
        const char *name = user_names_find(names, people->processes[i].uid);
        wrong += name == NULL || strcmp(name, people->names[i]) != 0;
    }
    return wrong;
}

static void *read_often(void *arg)
{
    const people_t *people = arg;
    uintptr_t wrong = 0;
    for (int i = 0; i < READINGS; i++) {
        user_names_t names;
        wrong += user_names_read(&names, &people->snapshot)
                     ? count_wrong(people, &names)
                     : 1;
        user_names_free(&names);
    }
    return (void *)wrong;
}

TEST_CASE(names_are_right_on_all_threads)
{
    (void)state;
    people_t *people = meet_people();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, people), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_int_equal((uintptr_t)wrong, 0);
    }
    free(people);
}

TEST_CASE(a_user_that_the_file_lacks_has_no_name)
{
    (void)state;
    people_t *people = meet_people();
    user_names_t names;
    people->processes[people->snapshot.process_count++].uid = NOBODY_HAS;
    people->processes[0].uid = people->processes[1].uid; /* of two processes */
    assert_true(user_names_read(&names, &people->snapshot));
    assert_null(user_names_find(&names, NOBODY_HAS));
    assert_string_equal(
        user_names_find(&names, people->processes[1].uid), people->names[1]);
    user_names_free(&names);
    free(people);
}

/* In place of the file, in a mount namespace of the child's own. */
static void read_odd_file(const char *path)
{
    static const char text[] = "first:x:101:1::/:/bin/sh\n"
                               "second:x:101:1::/:/bin/sh\n" /* of the same user */
                               "wrapped:x:4294967398:1::/:/bin/sh\n" /* 102 + 2^32 */
                               "number:x:102x:1::/:/bin/sh\n"
                               "nothing\n"
                               "\n"
                               "right:x:102:1::/:/bin/sh\n"
                               "cut:x:103"; /* the disk was full */
    snapshot_process_t processes[] = {{.uid = 101}, {.uid = 102}, {.uid = 103}};
    snapshot_t snapshot = {.processes = processes, .process_count = 3};
    user_names_t names;
    mount_tmpfs(path, 0, NULL);
    CHECK(chdir(path) == 0);
    int fd = open("passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
    CHECK(mount("passwd", "/etc/passwd", NULL, MS_BIND, NULL) == 0);
    CHECK(user_names_read(&names, &snapshot));
    CHECK(strcmp(user_names_find(&names, 101), "first") == 0);
    CHECK(strcmp(user_names_find(&names, 102), "right") == 0);
    CHECK(user_names_find(&names, 103) == NULL);
    user_names_free(&names);
    close(fd);
    _exit(0);
}

TEST_CASE(a_line_of_the_file_counts_only_if_it_is_whole)
{
    runtime_t runtime;
    tmpfs_or_skip();
    runtime_open(&runtime);
    pid_t child = fork_child();
    if (child == 0) {
        read_odd_file(runtime.path);
    }
    assert_int_equal(exit_status_of(child), 0);
    runtime_close(&runtime);
}
