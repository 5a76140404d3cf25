/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug logs of two hostile processes of two users, from their rings to every text that
 * shows them: the ring's reader, the lines, the node's journal, the pipes.
 *
 * Promised: the reader gives each message once and in order, and counts what it missed. Every
 * text consists of whole lines of printable ASCII. A user's log has lines of the user's own
 * processes only, and what was read of it once stays as it was.
 *
 * The input: 8 bytes that change the header, then one of these steps in 8 bytes each:
 *   1 byte what, 1 byte of whom and how, 2 bytes position, 4 bytes value
 */
#include <inttypes.h>
#include <stdint.h>
#include <sys/mman.h>

#include "fuse/render_any.h"
#include "fuzz/exercise_segment.h"
#include "fuzz/small_member.h"
#include "model/journal.h"
#include "render/stream.h"
#include "support/daemon_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define PROCESSES 2
#define STEP_BYTES 8
#define STEPS_MOST 30
#define STRANGER 3000u

typedef struct program {
    const char *name;
    uid_t uid;
    member_t *member;
    uint64_t next; /* message that it writes */
    rmm_ring_cursor_t cursor;
    stream_t *pipe, *node_pipe;
    text_t seen; /* of its user's log, in that generation */
    uint32_t seen_generation;
} program_t;

typedef struct state {
    model_t model;
    program_t programs[PROCESSES];
    text_t text;
} state_t;

typedef struct step {
    uint8_t what, how;
    uint16_t at;
    uint32_t value;
} step_t;

/* --- what is promised of texts ----------------------------------------------------------- */

/* The process that a line is of; a line of `name` only, unless that is NULL. */
static void check_line(const char *line, size_t length, const char *name)
{
    static const char too_slow[] = "# lost messages: this reader was too slow";
    char own[32], lost[64];
    int own_bytes = snprintf(own, sizeof(own), "[%s][", name != NULL ? name : "");
    for (size_t i = 0; i < length; i++) {
        PROMISE((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
    }
    if (name == NULL || strncmp(line, own, (size_t)own_bytes) == 0 ||
        (length == strlen(too_slow) && memcmp(line, too_slow, length) == 0)) {
        return;
    }
    (void)snprintf(lost, sizeof(lost), " messages of %s", name);
    PROMISE(strncmp(line, "# lost ", 7) == 0 && length > strlen(lost));
    PROMISE(strncmp(line + length - strlen(lost), lost, strlen(lost)) == 0);
}

/* From the position `at` on. */
static void check_lines(const text_t *text, size_t at, const char *name)
{
    PROMISE(text->length == 0 || text->data[text->length - 1] == '\n');
    while (at < text->length) {
        const char *end = memchr(text->data + at, '\n', text->length - at);
        check_line(text->data + at, (size_t)(end - text->data) - at, name);
        at = (size_t)(end - text->data) + 1;
    }
}

/* --- the ring ---------------------------------------------------------------------------- */

typedef struct delivery {
    uint64_t count, least; /* number of the next message: at least this */
} delivery_t;

static void take_message(const rmm_log_message_t *message, void *arg)
{
    delivery_t *delivery = arg;
    PROMISE(message->number >= delivery->least);
    delivery->least = message->number + 1;
    delivery->count++;
    exercise_text(message->text, sizeof(message->text));
}

static void read_ring(program_t *program)
{
    const rmm_ring_cursor_t before = program->cursor;
    delivery_t delivery = {0, before.next};
    rmm_ring_cursor_t *cursor = &program->cursor;
    int error = rmm__segment_read_log(
        &program->member->segment, cursor, program->member->state == MEMBER_EXITED,
        take_message, &delivery);
    PROMISE(error == 0 || error == -EPROTO);
    PROMISE(delivery.least <= cursor->next || delivery.count == 0);
    PROMISE(cursor->next - before.next == delivery.count + cursor->lost - before.lost);
}

/* --- the journal ------------------------------------------------------------------------- */

/* Read on where the last read ended. */
static void follow(state_t *state, program_t *program)
{
    journal_t *journal = state->model.journal;
    bool has_previous;
    uint32_t generation = journal_generation(journal, program->uid, &has_previous);
    if (generation != program->seen_generation) {
        program->seen_generation = generation;
        text_clear(&program->seen);
    }
    size_t before = program->seen.length;
    journal_read(journal, generation, program->uid, before, SIZE_MAX, &program->seen);
    check_lines(&program->seen, before, program->name);
}

/* name: as in check_line */
static void read_journal(state_t *state, uid_t uid, const char *name)
{
    journal_t *journal = state->model.journal;
    bool has_previous;
    uint32_t generation = journal_generation(journal, uid, &has_previous);
    for (uint32_t back = 0; back <= has_previous; back++) {
        uint64_t bytes = journal_extent(journal, generation - back, uid).bytes;
        text_clear(&state->text);
        journal_read(journal, generation - back, uid, 0, SIZE_MAX, &state->text);
        check_lines(&state->text, 0, name);
        PROMISE(bytes == state->text.length && (uid != STRANGER || bytes == 0));
    }
}

/* What was read of it once never moved. */
static void check_growth(state_t *state, program_t *program)
{
    follow(state, program);
    text_clear(&state->text);
    journal_read(
        state->model.journal, program->seen_generation, program->uid, 0, SIZE_MAX,
        &state->text);
    PROMISE(state->text.length == program->seen.length);
    PROMISE(memcmp(state->text.data, program->seen.data, program->seen.length) == 0);
}

/* --- pipes and files --------------------------------------------------------------------- */

/* At least a line of any length: of fewer bytes a part of it comes. */
static void read_pipe(state_t *state, stream_t *pipe, const char *name, size_t bytes)
{
    text_clear(&state->text);
    if (stream_fetch(pipe, &state->model) == STREAM_DATA) {
        stream_take(pipe, bytes + RMM_SEGMENT_RECORD_BYTES + 200, &state->text);
        check_lines(&state->text, 0, name);
    }
}

static node_t process_node(const program_t *program, uint8_t file)
{
    return (node_t){
        .dir = DIR_PROCESS,
        .file = file,
        .serial = (uint32_t)program->member->process->serial};
}

static void render_log(state_t *state, const program_t *program)
{
    node_t node = process_node(program, FILE_process_log);
    PROMISE(render_file(&state->model, node, &state->text) == 0);
    check_lines(&state->text, 0, NULL);
}

/* --- hostile programs -------------------------------------------------------------------- */

static void put(const program_t *program, const void *bytes, size_t size, uint64_t at)
{
    PROMISE(
        pwrite(program->member->segment.fd, bytes, size, (off_t)at) == (ssize_t)size);
}

static void set_next(program_t *program, uint64_t next)
{
    program->next = next;
    put(program, &next, sizeof(next),
        program->member->segment.header.log_offset - sizeof(rmm_segment_log_t));
}

/* Messages as the library writes them, but for what they say. */
static void write_messages(program_t *program, const step_t *step)
{
    const rmm_segment_header_t *header = &program->member->segment.header;
    rmm_segment_log_record_t record = {
        .thread = step->value, .level = (uint16_t)(step->at % 9)};
    record.time_ns = (uint64_t)step->value << (step->at % 33);
    memset(record.text, (int)(step->at >> 8), (size_t)step->at % sizeof(record.text));
    for (uint32_t i = 0; i <= step->value % 64; i++) {
        atomic_init(&record.commit, 2 * program->next + 2);
        put(program, &record,
            header->log_stride < sizeof(record) ? header->log_stride : sizeof(record),
            header->log_offset +
                program->next % header->log_count * (uint64_t)header->log_stride);
        set_next(program, program->next + 1);
    }
}

/* Anything, anywhere in the log; near its end the file grows. */
static void change_log(const program_t *program, const step_t *step)
{
    const rmm_segment_header_t *header = &program->member->segment.header;
    uint64_t value = step->value;
    value |= (step->how & 0x80) != 0 ? UINT64_MAX << 32 : 0;
    put(program, &value, (size_t)1 << (step->how >> 1 & 3),
        header->log_offset - sizeof(rmm_segment_log_t) + step->at);
}

static void cut(const program_t *program, const step_t *step)
{
    PROMISE(
        ftruncate(
            program->member->segment.fd, (off_t)step->value % SMALL_SEGMENT_BYTES) ==
        0);
}

static void act(state_t *state, const step_t *step)
{
    program_t *program = &state->programs[step->how % PROCESSES];
    switch (step->what % 10) {
    case 0:
    case 1:
        write_messages(program, step);
        break;
    case 2:
        change_log(program, step);
        break;
    case 3:
        set_next(program, (uint64_t)step->value << (step->at % 33));
        break;
    case 4:
        journal_collect(state->model.journal, &state->model);
        follow(state, program);
        break;
    case 5:
        read_ring(program);
        break;
    case 6:
        read_pipe(state, program->pipe, NULL, step->value);
        break;
    case 7:
        read_pipe(state, program->node_pipe, program->name, step->value);
        break;
    case 8:
        render_log(state, program);
        break;
    default:
        if (step->at % 2 == 0) {
            cut(program, step);
        } else {
            program->member->state = MEMBER_EXITED;
        }
        break;
    }
}

/* --- all --------------------------------------------------------------------------------- */

/* False: the reader refuses its segment. */
static bool
add_program(state_t *state, program_t *program, const image_t *image, int number)
{
    program->uid = 1000u + 1000u * (uid_t)number;
    member_t *member =
        small_member(&state->model, image, 4711 + (pid_t)number, program->uid);
    if (member == NULL) {
        return false;
    }
    PROMISE(rmm__segment_has_log(&member->segment));
    program->member = member;
    program->name = member->process->name;
    program->next = 3; /* as in the sample */
    budget_t *budget = &state->model.budget;
    program->pipe = stream_open(
        process_node(program, FILE_process_log_pipe), member->process->serial,
        program->uid, budget);
    const node_t node = {DIR_ROOT, FILE_log_pipe, program->uid, 0};
    program->node_pipe = stream_open(node, 0, program->uid, budget);
    PROMISE(program->pipe != NULL && program->node_pipe != NULL);
    text_init(&program->seen);
    return true;
}

static bool add_programs(state_t *state, const uint8_t *data)
{
    static image_t sample, image;
    if (sample.size == 0) {
        small_segment_make(&sample, RMM_LOG_RECORDS);
    }
    image = sample;
    rmm_segment_header_t *header = (void *)image.bytes;
    header->log_count = data[0] % RMM_LOG_RECORDS + 1;
    header->log_stride = (uint32_t)(8 * (data[1] % 129));
    if ((data[2] & 1) != 0) {
        header->log_stride = sizeof(rmm_segment_log_record_t);
    }
    header->log_offset += (uint32_t)(8 * (data[2] >> 6));
    for (int i = 0; i < PROCESSES; i++) {
        if (!add_program(state, &state->programs[i], &image, i)) {
            return false;
        }
    }
    return true;
}

static void check_end(state_t *state)
{
    journal_t *journal = state->model.journal;
    journal_collect(journal, &state->model);
    for (int i = 0; i < PROCESSES; i++) {
        read_ring(&state->programs[i]);
        check_growth(state, &state->programs[i]);
        read_journal(state, state->programs[i].uid, state->programs[i].name);
    }
    read_journal(state, 0, NULL);
    read_journal(state, STRANGER, NULL);
}

static void run(state_t *state, const uint8_t *data, size_t bytes)
{
    for (size_t at = 8, i = 0; at + STEP_BYTES <= bytes && i < STEPS_MOST;
         at += STEP_BYTES, i++) {
        step_t step = {.what = data[at], .how = data[at + 1]};
        memcpy(&step.at, data + at + 2, sizeof(step.at));
        memcpy(&step.value, data + at + 4, sizeof(step.value));
        act(state, &step);
    }
    check_end(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static state_t state;
    if (bytes < 8) {
        return 0;
    }
    memset(state.programs, 0, sizeof(state.programs));
    log_level_set(LOG_LEVEL_OFF);
    model_init(&state.model);
    state.model.journal = journal_open(1, &state.model.budget);
    PROMISE(state.model.journal != NULL);
    text_init(&state.text);
    if (add_programs(&state, data)) {
        run(&state, data, bytes);
    }
    for (int i = 0; i < PROCESSES && state.programs[i].pipe != NULL; i++) {
        stream_close(state.programs[i].pipe);
        stream_close(state.programs[i].node_pipe);
        text_fini(&state.programs[i].seen);
    }
    text_fini(&state.text);
    journal_close(state.model.journal);
    model_fini(&state.model);
    return 0;
}
