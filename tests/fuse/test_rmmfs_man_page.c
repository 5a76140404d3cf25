/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm(5) against the tree: every row of tree_files.def and every statistic has an entry with
 * its mode, below a heading that names each of its directories, and no entry is of a file that
 * is not there. What is missing the test says as lines to copy.
 * documents_every_file_of_the_tree.sh does the same with a mount, also for directories and
 * links. The figures in its sentences are those of the sources. And rmmfs(8) against budget.h.
 */
#include "model_fixture.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "control/reports.h"
#include "control/waiting_writes.h"
#include "harness/document.h"
#include "model/journal.h"
#include "model/node_events.h"
#include "model/tree.h"
#include "programs/members.h"
#include "segment/segment_blocks.h"
#include "segment/segment_format.h"
#include "support/budget.h"
#include "support/text.h"

#define PAGE "docs/man/rmm.5"
#define HEADING ".SS "
#define ENTRIES_MAX 256
#define NAME_BYTES 64

/* A directory of each kind in the fixture's tree, and what a heading of the page calls it. One
 * that stands for two comes before them. */
enum { GPU = 1 << 2, HOST = 1 << 3 };
static const struct dir {
    const char *token, *path;
    unsigned bit;
} dirs[] = {
    {"/rmm/", "", 1 << 0},
    {"/rmm/daemon/", "daemon", 1 << 1},
    {"/rmm/LOCATION/", NULL, GPU | HOST},
    {"/rmm/gpuN/", "gpu0", GPU},
    {"/rmm/host/", "host", HOST},
    {"/rmm/by-uuid/", "by-uuid", 1 << 4},
    {"/rmm/proc/", "proc", 1 << 5},
    {"/rmm/proc/PID/", "proc/4711", 1 << 6},
    {"/rmm/proc/PID/trace/", "proc/4711/trace", 1 << 7},
    {"/rmm/proc/PID/diag/", "proc/4711/diag", 1 << 8},
    {"/rmm/proc/PID/LOCATION/", "proc/4711/gpu0", 1 << 9},
    {"/rmm/proc/PID/LOCATION/mr/", "proc/4711/gpu0/mr", 1 << 10},
    {"/rmm/proc/PID/LOCATION/mr/ID.NAME/", "proc/4711/gpu0/mr/*", 1 << 11},
};
enum { DIR_COUNT = sizeof(dirs) / sizeof(dirs[0]) };

static const char *const names[] = {
#define FILE_ROW(id, name, access, kind, where, collect) name,
#define PIPE_ROW(id, name, where) name,
#define LOG_ROW(id, name) name,
#include "model/tree_files.def"
#define X(field, kind, unit, help) #field,
    RMM_EACH_STAT(X)
#undef X
};
enum { NAME_COUNT = sizeof(names) / sizeof(names[0]) };

/* --- the page ------------------------------------------------------------------------- */

/* .BR NAME " (0400, pipe)" */
typedef struct page_entry {
    char name[NAME_BYTES], about[NAME_BYTES];
    unsigned dirs;
} page_entry_t;

static page_entry_t entries[ENTRIES_MAX];
static size_t entry_count;

static unsigned dirs_of_heading(char *heading)
{
    unsigned found = 0;
    for (char *token; (token = strsep(&heading, " \n")) != NULL;) {
        size_t i = 0;
        while (i < DIR_COUNT && strcmp(token, dirs[i].token) != 0) {
            i++;
        }
        found |= i < DIR_COUNT ? dirs[i].bit : 0;
        if (i == DIR_COUNT && strncmp(token, "/rmm/", 5) == 0) {
            fail_msg(PAGE ": no directory of the tree is %s", token);
        }
    }
    return found;
}

static bool is_file(const page_entry_t *entry)
{
    return entry->about[0] == '0' && entry->name[strlen(entry->name) - 1] != '/';
}

static int read_page(void **state)
{
    FILE *page = open_document("man/rmm.5");
    char line[LINE_BYTES];
    unsigned section = 0;
    while (fgets(line, sizeof(line), page) != NULL) {
        page_entry_t entry = {.dirs = section};
        if (strncmp(line, HEADING, strlen(HEADING)) == 0) {
            section = dirs_of_heading(line + strlen(HEADING));
        } else if (
            sscanf(line, ".BR %63s \" (%63[^)])\"", entry.name, entry.about) == 2 &&
            is_file(&entry)) {
            assert_true(entry_count < ENTRIES_MAX);
            entries[entry_count++] = entry;
        }
    }
    fclose(page);
    assert_true(entry_count > 20);
    return 0;
}

/* What the page says of a file in one directory; "": nothing. */
static const char *documented(const char *name, unsigned dir)
{
    for (size_t i = 0; i < entry_count; i++) {
        if ((entries[i].dirs & dir) != 0 && strcmp(entries[i].name, name) == 0) {
            return entries[i].about;
        }
    }
    return "";
}

/* --- the tree ------------------------------------------------------------------------- */

static void take_first(const char *name, node_t node, void *arg)
{
    node_t *first = arg;
    (void)name;
    *first = first->file == FILE_NONE ? node : *first;
}

static node_t find_dir(const model_t *model, const char *path)
{
    char copy[NAME_BYTES], *rest = copy, *name;
    node_t node = tree_root;
    snprintf(copy, sizeof(copy), "%s", path);
    while ((name = strsep(&rest, "/")) != NULL && *name != '\0') {
        node_t next = {0};
        if (strcmp(name, "*") == 0) {
            assert_true(tree_list(model, node, 0, take_first, &next));
        } else {
            assert_true(tree_lookup(model, node, 0, name, &next));
        }
        node = next;
    }
    return node;
}

/* What the page should say of a file; "": it is not there. log.1 comes when log is full. */
static void
describe(const model_t *model, node_t dir, const char *name, char about[NAME_BYTES])
{
    node_t node = {DIR_ROOT, FILE_log_1, 0, 0};
    node_info_t info;
    bool found = tree_lookup(model, dir, 0, name, &node) ||
                 (dir.dir == DIR_ROOT && strcmp(name, "log.1") == 0);
    about[0] = '\0';
    if (found) {
        assert_true(tree_info(model, node, &info));
        snprintf(
            about, NAME_BYTES, "%04o%s", (unsigned)info.mode & 07777,
            tree_kind(node) == KIND_PIPE ? ", pipe" : "");
    }
}

/* --- both ----------------------------------------------------------------------------- */

/* The heading that is to be written for these directories. */
static void print_heading(char *heading, size_t bytes, unsigned wanted)
{
    heading[0] = '\0';
    for (size_t i = 0; i < DIR_COUNT && wanted != 0; i++) {
        if ((dirs[i].bit & wanted) == dirs[i].bit) {
            size_t used = strlen(heading);
            snprintf(heading + used, bytes - used, " %s", dirs[i].token);
            wanted &= ~dirs[i].bit;
        }
    }
}

/* False, and printed: the page lacks it. */
static bool check_name(const model_t *model, const char *name)
{
    char about[NAME_BYTES], missing_about[NAME_BYTES] = "", heading[LINE_BYTES];
    unsigned missing = 0;
    for (size_t i = 0; i < DIR_COUNT; i++) {
        if (dirs[i].path == NULL) {
            continue;
        }
        describe(model, find_dir(model, dirs[i].path), name, about);
        const char *said = documented(name, dirs[i].bit);
        if (said[0] != '\0' && strcmp(said, about) != 0) {
            fail_msg(
                PAGE ": %s%s is (%s) in the page, and (%s) in the tree", dirs[i].token,
                name, said, about[0] != '\0' ? about : "not there");
        }
        bool is_other = missing != 0 && strcmp(about, missing_about) != 0;
        if (said[0] == '\0' && about[0] != '\0' && !is_other) {
            missing |= dirs[i].bit;
            memcpy(missing_about, about, sizeof(about));
        }
    }
    if (missing != 0) {
        print_heading(heading, sizeof(heading), missing);
        print_error(
            PAGE " does not have the file %s. Write below \".SS%s\"\n.TP\n.BR %s \" "
                 "(%s)\"\nWhat is in it.\n",
            name, heading, name, missing_about);
    }
    return missing == 0;
}

TEST_CASE(the_page_has_every_file_and_its_mode)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    int missing = 0;
    fixture_open(fixture);
    for (uint32_t i = 0; i < RMM_SEGMENT_SLOTS; i++) {
        atomic_init(&fixture->layout.slots[i].flags, RMM_SLOT_HAS_BLOCKS);
    }
    (void)fixture_process(fixture, 4711);
    fixture->model.journal = journal_open(0, &fixture->model.budget);
    for (size_t i = 0; i < NAME_COUNT; i++) {
        missing += !check_name(&fixture->model, names[i]);
    }
    journal_close(fixture->model.journal);
    fixture->model.journal = NULL;
    fixture_close(fixture);
    free(fixture);
    assert_int_equal(missing, 0);
}

TEST_CASE(the_page_has_no_other_file_and_none_twice)
{
    for (size_t i = 0; i < entry_count; i++) {
        size_t at = 0;
        while (at < NAME_COUNT && strcmp(names[at], entries[i].name) != 0) {
            at++;
        }
        if (at == NAME_COUNT || entries[i].dirs == 0) {
            fail_msg(
                PAGE ": %s is no file of the tree, or below no heading of a directory",
                entries[i].name);
        }
        for (size_t j = 0; j < i; j++) {
            if ((entries[i].dirs & entries[j].dirs) != 0 &&
                strcmp(entries[i].name, entries[j].name) == 0) {
                fail_msg(PAGE ": %s is twice in it", entries[i].name);
            }
        }
    }
}

static bool has_word(const char *text, const char *word)
{
    static const char parts[] = "abcdefghijklmnopqrstuvwxyz_.0123456789";
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
        bool begins = at == text || strchr(parts, at[-1]) == NULL;
        if (begins && (at[length] == '\0' || strchr(parts, at[length]) == NULL)) {
            return true;
        }
    }
    return false;
}

/* --- limits ---------------------------------------------------------------------------- */

static void put_limit(char *out, size_t bytes, const char *kind, uint64_t limit)
{
    bool is_bytes = strstr(kind, "_bytes") != NULL;
    bool is_mib = limit % ((uint64_t)1 << 20) == 0;
    uint64_t unit = !is_bytes ? 1 : is_mib ? (uint64_t)1 << 20 : 1 << 10;
    snprintf(
        out, bytes, "%llu%s", (unsigned long long)(limit / unit),
        !is_bytes ? ""
        : is_mib  ? " MiB"
                  : " KiB");
}

static bool has_line(const char *name, const char *begin, const char *part)
{
    FILE *document = open_document(name);
    char line[LINE_BYTES], before[LINE_BYTES] = "";
    bool found = false;
    while (!found && fgets(line, sizeof(line), document) != NULL) {
        bool begins = strncmp(line, begin, strlen(begin)) == 0 ||
                      strncmp(before, begin, strlen(begin)) == 0;
        found = begins && strstr(line, part) != NULL;
        memcpy(before, line, sizeof(line));
    }
    fclose(document);
    return found;
}

static void check_limits(const char *kind, uint64_t user, uint64_t system, uint64_t all)
{
    char limits[3][24], begin[NAME_BYTES], part[NAME_BYTES * 2];
    put_limit(limits[0], sizeof(limits[0]), kind, user);
    put_limit(limits[1], sizeof(limits[1]), kind, system);
    put_limit(limits[2], sizeof(limits[2]), kind, all);
    snprintf(begin, sizeof(begin), ".B %s\n", kind);
    snprintf(part, sizeof(part), ": %s, %s, %s.", limits[0], limits[1], limits[2]);
    if (!has_line("man/rmmfs.8", begin, part)) {
        fail_msg("docs/man/rmmfs.8, LIMITS: write below .B %s: \"WHAT%s\"", kind, part);
    }
}

TEST_CASE(the_limits_of_users_are_those_of_the_daemon)
{
#define X(id, name, user, system, together) check_limits(name, user, system, together);
    BUDGET_KIND_MAP(X)
#undef X
}

/* --- figures in sentences --------------------------------------------------------------- */

static char sentences[64 << 10];

/* The page's text: words, one blank between two, without what troff is told. */
static void read_sentences(void)
{
    FILE *page = open_document("man/rmm.5");
    char line[LINE_BYTES];
    size_t used = 0;
    while (fgets(line, sizeof(line), page) != NULL) {
        const char *text = line;
        if (line[0] == '.') {
            text += strcspn(line, " \n");
        }
        for (; *text != '\0' && used + 2 < sizeof(sentences); text++) {
            bool is_blank = *text == ' ' || *text == '\n';
            if (!is_blank && *text != '"') {
                sentences[used++] = *text;
            } else if (is_blank && used > 0 && sentences[used - 1] != ' ') {
                sentences[used++] = ' ';
            }
        }
    }
    sentences[used] = '\0';
    fclose(page);
    assert_true(used > 10000 && used + 2 < sizeof(sentences));
}

__attribute__((format(printf, 1, 2))) static void
expect_sentence(const char *format, ...)
{
    char part[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part, sizeof(part), format, arguments);
    va_end(arguments);
    if (strstr(sentences, part) == NULL) {
        fail_msg(PAGE ": the sources say \"%s\"", part);
    }
}

#define MIB_OF(bytes) ((unsigned)((bytes) >> 20))
#define MS_OF(ns) ((unsigned)((ns) / 1000000u))

TEST_CASE(the_figures_of_the_page_are_those_of_the_sources)
{
    (void)state;
    const rmm_segment_header_t *header = NULL;
    read_sentences();
    expect_sentence(
        "reports %d bytes as its size; any other file %u MiB", TREE_VALUE_BYTES,
        MIB_OF(TEXT_NODE_BYTES_MAX));
    expect_sentence("waits for that, at most %u ms", MS_OF(REPORT_WAIT_NS));
    expect_sentence("A report has at most %u blocks", RMM_BLOCKS_ROWS_MAX);
    expect_sentence(
        "At %u KiB (for root and the daemon's user %u MiB)",
        (unsigned)(JOURNAL_USER_BYTES >> 10), MIB_OF(JOURNAL_BYTES));
    expect_sentence(
        "may cause %u events at once and then %u a second", EVENTS_OF_USER,
        1000000000u / EVENTS_NS_EACH);
    expect_sentence("until %u seconds after its end", MS_OF(EXITED_SHOWN_NS) / 1000);
    expect_sentence("cut at %zu bytes", sizeof(header->cmdline) - 1);
    expect_sentence("Its newest messages, at most %u", RMM_LOG_RECORDS);
    expect_sentence("fails with ETIMEDOUT after %u ms", MS_OF(WRITE_WAIT_NS));
    expect_sentence("in force, or after %u ms", MS_OF(WRITE_WAIT_NS));
    expect_sentence("longer than %u MiB", MIB_OF(TEXT_BYTES_MAX));
}

TEST_CASE(the_page_has_every_type_of_event)
{
    (void)state;
    read_sentences();
    const char *at = strstr(sentences, "The types are ");
    char *end = at != NULL ? strstr(sentences, "A user's programs may cause") : NULL;
    assert_true(end > at);
    *end = '\0'; /* other entries have some of these words, too */
#define X(id, name)                                                                    \
    if (!has_word(at, name)) {                                                         \
        fail_msg(PAGE ", events_pipe: write the type %s", name);                       \
    }
    EVENT_TYPE_MAP(X)
#undef X
}

int main(void)
{
    return harness_run_cases(read_page, NULL);
}
