/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which members a look checks, while there are more than it checks at once, that it takes all
 * ends that it is told of, and what is told of those for which something is short.
 */
#include "model_fixture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs/members.h"
#include "programs/shortage.h"
#include "render_any.h"
#include "segments/exits.h"

#define MANY (3 * MEMBERS_AT_ONCE)

typedef struct many_members {
    fixture_t fixture;
    int holders[2 * MANY];
    uint32_t count;
} many_members_t;

static many_members_t *open_members(void)
{
    many_members_t *members = calloc(1, sizeof(*members));
    assert_non_null(members);
    fixture_open(&members->fixture);
    return members;
}

static void let_go(many_members_t *members)
{
    for (uint32_t i = 0; i < members->count; i++) {
        (void)close(members->holders[i]);
    }
    members->count = 0;
}

static void close_members(many_members_t *members)
{
    let_go(members);
    fixture_close(&members->fixture);
    free(members);
}

/* A live process, as its lock tells. */
static member_t *join_member(many_members_t *members)
{
    char link[32];
    member_t *member = fixture_process(&members->fixture, 1000 + (pid_t)members->count);
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", member->segment.fd);
    int holder = open(link, O_RDWR | O_CLOEXEC);
    assert_true(holder >= 0);
    assert_int_equal(flock(holder, LOCK_EX | LOCK_NB), 0);
    members->holders[members->count++] = holder;
    return member;
}

/* The same before it uses a GPU. */
static member_t *begin(many_members_t *members)
{
    rmm_segment_location_t *location = &members->fixture.layout.locations[0];
    atomic_init(&location->used, 0);
    member_t *member = join_member(members);
    atomic_init(&location->used, 1);
    member->location_count = 0;
    member->locations_opened = UINT32_MAX;
    return member;
}

static void write_word(const member_t *member, size_t at, uint32_t word)
{
    assert_int_equal(
        pwrite(member->segment.fd, &word, sizeof(word), (off_t)at), sizeof(word));
}

static void open_location(const member_t *member)
{
    write_word(
        member, (size_t)fixture_location_at(0) + offsetof(rmm_segment_location_t, used),
        1);
    write_word(member, offsetof(rmm_segment_header_t, locations_opened), 1);
}

static bool uses_gpu(const member_t *member)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].location == 0) {
            return true;
        }
    }
    return false;
}

TEST_CASE(a_first_use_of_a_gpu_is_found_by_the_next_check_of_many_programs)
{
    (void)state;
    many_members_t *members = open_members();
    model_t *model = &members->fixture.model;
    for (uint32_t i = 0; i < MANY; i++) {
        (void)join_member(members);
    }
    for (uint32_t i = 0; i < MANY; i++) { /* wherever the turn of the others is */
        member_t *newcomer = begin(members);
        members_check_some(model);
        assert_false(uses_gpu(newcomer));
        assert_true(members_note_without_gpu(model));
        assert_false(
            members_without_gpu_opened_one(model)); /* no need for another look */
        open_location(newcomer);
        assert_true(members_without_gpu_opened_one(model));
        members_check_some(model);
        assert_true(uses_gpu(newcomer));
        assert_false(members_without_gpu_opened_one(model));
        assert_false(members_note_without_gpu(model));
    }
    close_members(members);
}

/* A user with many programs that use no GPU delays others, but not for ever. */
TEST_CASE(many_programs_without_a_gpu_delay_anothers_first_gpu_but_not_for_ever)
{
    (void)state;
    many_members_t *members = open_members();
    model_t *model = &members->fixture.model;
    member_t *victim = begin(members);
    for (uint32_t i = 1; i < MANY; i++) {
        (void)begin(members);
    }
    open_location(victim);
    for (uint32_t i = 0; i < MANY / MEMBERS_AT_ONCE; i++) {
        members_check_some(model);
    }
    assert_true(uses_gpu(victim));
    close_members(members);
}

static void fail_if_called(void *arg, entry_t *entry)
{
    (void)arg;
    (void)entry;
    fail();
}

/* Ends when its standard input, a pipe, does. */
static pid_t start_child(int *end_out)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(ends[0]);
    *end_out = ends[1];
    return child;
}

/* A look took the ends of 64 processes and had room for 16: it wrote over its stack. */
TEST_CASE(as_many_ends_as_one_query_returns_are_handled)
{
    (void)state;
    int end, status;
    many_members_t *members = open_members();
    model_t *model = &members->fixture.model;
    model->exits = exits_open(-1);
    assert_non_null(model->exits);
    pid_t child = start_child(&end);
    for (uint32_t i = 0; i < EXITS_AT_ONCE; i++) {
        member_t *member = join_member(members);
        member->pidfd = exits_watch(model->exits, child, member->serial);
        assert_true(member->pidfd >= 0);
    }
    let_go(members);
    (void)close(end);
    assert_int_equal(waitpid(child, &status, 0), child);
    members_take_exits(model, fail_if_called, NULL);
    for (uint32_t i = 0; i < model->member_count; i++) {
        assert_int_equal(model->members[i]->state, MEMBER_EXITED);
    }
    exits_close(model->exits);
    model->exits = NULL;
    close_members(members);
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* Each kind is told once, however often another one is told between. */
TEST_CASE(shortages_are_counted_and_logged_by_kind)
{
    (void)state;
    entry_t entries[2] = {{.kind = ENTRY_WAITING}, {.kind = ENTRY_WAITING}};
    char told[4096];
    text_t text;
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    int file = memfd_create("log", MFD_CLOEXEC);
    int standard_error = dup(STDERR_FILENO);
    assert_true(file >= 0 && standard_error >= 0);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    log_level_set(LOG_LEVEL_WARN);
    for (int i = 0; i < 10; i++) {
        shortage_note(model, &entries[0], SHORT_OF_MEMORY);
        shortage_note(model, &entries[1], SHORT_OF_DESCRIPTORS);
    }
    log_level_set(LOG_LEVEL_OFF);
    (void)dup2(standard_error, STDERR_FILENO);
    (void)close(standard_error);
    ssize_t bytes = pread(file, told, sizeof(told) - 1, 0);
    (void)close(file);
    assert_true(bytes > 0);
    told[bytes] = '\0';
    assert_int_equal(count_lines(told), 2);
    assert_int_equal(model->unshown[SHORT_OF_MEMORY], 1);
    assert_int_equal(model->unshown[SHORT_OF_DESCRIPTORS], 1);
    text_init(&text);
    assert_int_equal(
        render_file(model, (node_t){DIR_DAEMON, FILE_unshown, 0, 0}, &text), 0);
    text_append(&text, "", 1);
    assert_non_null(strstr(text.data, "1 out of memory"));
    assert_non_null(strstr(text.data, "1 out of descriptors"));
    text_fini(&text);
    shortage_note(model, &entries[0], SHORT_OF_NOTHING);
    shortage_note(model, &entries[1], SHORT_OF_MEMORY);
    assert_int_equal(model->unshown[SHORT_OF_MEMORY], 1);
    assert_int_equal(model->unshown[SHORT_OF_DESCRIPTORS], 0);
    end_fixture(fixture);
}

/* Each member has three descriptors, one more if it is diagnosed; a fixed number is kept. */
TEST_CASE(segments_leave_descriptors_to_the_daemon)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    const uint32_t members = model->member_count;
    entry_t entry = {.kind = ENTRY_WAITING};
    member_t member = {.segment.fd = 10};
    model->member_count = 99;
    model->descriptor_limit = 300 + 64;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_NOTHING);
    model->found_open++;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_DESCRIPTORS);
    model->found_open--;
    model->member_count = 100;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_DESCRIPTORS);
    model->member_count = 0;
    member.segment.fd = 299;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_NOTHING);
    member.segment.fd = 300;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_DESCRIPTORS);
    model->descriptor_limit = 20; /* then half of them */
    member.segment.fd = 9;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_NOTHING);
    member.segment.fd = 10;
    assert_int_equal(shortage_find(model, &entry, &member), SHORT_OF_DESCRIPTORS);
    model->member_count = members;
    end_fixture(fixture);
}
