/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that users write to the files of the tree, while programs of two users live, change
 * their segments and end.
 *
 * Promised: a write takes effect, or fails with an errno that control.h names and changes
 * neither a control page nor a device. Nobody but the owner and root commands a program. What
 * a limit or a switch shows after a write can be written again and changes nothing.
 *
 * The input: 1 byte that sets how old the second program is, then steps:
 *   1 byte what, 1 byte who, 2 bytes which file, 1 byte length, as many bytes
 */
#include <errno.h>
#include <stdint.h>

#include "fuse/model_fixture.h"
#include "fuse/render_any.h"
#include "fuzz/exercise_segment.h"
#include "fuzz/small_member.h"

#include "control/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define PROGRAMS 2
#define NODES_MOST 512
#define STEPS_MOST 64
#define STEP_BYTES 5

/* All that a write may change. */
typedef struct effects {
    rmm_control_page_t pages[PROGRAMS];
    device_t gpu, host;
    log_level_t log_level;
} effects_t;

typedef struct world {
    model_t model;
    member_t *members[PROGRAMS];
    node_t nodes[NODES_MOST];
    uint32_t node_count;
    waiting_writes_t writes;
    text_t text;
    effects_t before, after;
} world_t;

typedef struct step {
    uint8_t what, who;
    uint16_t node;
    const char *word;
    size_t length;
} step_t;

static const uid_t users[] = {0, 1000, 2000, 3000};

/* --- the world --------------------------------------------------------------------------- */

static void note_node(const char *name, node_t node, void *arg)
{
    world_t *world = arg;
    (void)name;
    PROMISE(world->node_count < NODES_MOST);
    if (node.file == FILE_SELF) {
        (void)tree_list(&world->model, node, 0, note_node, world);
    } else {
        world->nodes[world->node_count++] = node;
    }
}

static void add_program(world_t *world, int number)
{
    static image_t sample;
    if (sample.size == 0) {
        small_segment_make(&sample, 4);
    }
    member_t *member = small_member(
        &world->model, &sample, 4711 + (pid_t)number, 1000u + 1000u * (uid_t)number);
    const gpu_identity_t gpu = {"GPU-00000000", "0000:01:00.0", "Sample", 1 << 20, 0};
    PROMISE(member != NULL);
    fixture_control(member);
    member->locations[0].device = gpus_number(&world->model, &gpu);
    member->locations[1].location = 1;
    member->locations[1].device = DEVICE_HOST;
    member->location_count = 2;
    world->members[number] = member;
}

static void open_world(world_t *world)
{
    log_level_set(LOG_LEVEL_OFF);
    model_init(&world->model);
    text_init(&world->text);
    waiting_writes_init(&world->writes);
    add_program(world, 0);
    add_program(world, 1);
    world->node_count = 0;
    (void)tree_list(&world->model, tree_root, 0, note_node, world);
}

static void free_trims(waiting_write_t *trim)
{
    while (trim != NULL) {
        waiting_write_t *next = trim->next;
        PROMISE(
            trim->error == 0 || trim->error == -ESRCH || trim->error == -ETIMEDOUT ||
            trim->error == -EINTR);
        waiting_write_free(trim);
        trim = next;
    }
}

static void close_world(world_t *world)
{
    free_trims(waiting_writes_take_all(&world->writes, -EINTR));
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        PROMISE(budget_take(
            &world->model.budget, users[i], BUDGET_TRIMS,
            budget_limit(&world->model.budget, users[i], BUDGET_TRIMS)));
        budget_give(&world->model.budget, users[i], BUDGET_TRIMS, UINT64_MAX);
    }
    waiting_writes_fini(&world->writes);
    text_fini(&world->text);
    model_fini(&world->model);
}

/* --- effects ----------------------------------------------------------------------------- */

static void look(const world_t *world, effects_t *effects)
{
    memset(effects, 0, sizeof(*effects));
    for (int i = 0; i < PROGRAMS; i++) {
        const member_t *member = world->members[i];
        PROMISE(member->has_control);
        PROMISE(
            pread(
                member->control.fd, &effects->pages[i], sizeof(effects->pages[i]), 0) ==
            sizeof(effects->pages[i]));
        effects->pages[i].request_count = 0; /* also rises if all stays as it is */
    }
    memcpy(&effects->gpu, &world->model.gpus[0], sizeof(effects->gpu));
    memcpy(&effects->host, &world->model.host, sizeof(effects->host));
    effects->log_level = log_level_get();
}

static bool page_changed(const world_t *world, int program)
{
    return memcmp(
               &world->before.pages[program], &world->after.pages[program],
               sizeof(world->before.pages[program])) != 0;
}

static bool is_known_error(int error)
{
    static const int errors[] = {ENOENT,     EACCES, EINVAL, ESRCH,
                                 EOPNOTSUPP, EBUSY,  EDQUOT};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (error == -errors[i]) {
            return true;
        }
    }
    return false;
}

/* --- writes ------------------------------------------------------------------------------ */

static int write_trim(world_t *world, node_t node, uid_t uid, const step_t *step)
{
    command_t command = {&world->model, node, uid, step->word, step->length, NULL};
    int error = 0;
    waiting_write_t *trim = waiting_write_new(&world->model.budget, uid, &error);
    if (trim == NULL) {
        return error;
    }
    command.wait = trim;
    error = control_write(&command);
    if (error == 0) {
        waiting_writes_add(&world->writes, trim);
    } else {
        waiting_write_free(trim);
    }
    return error;
}

/* What is shown is a command, and the one that is in force. */
static void write_what_is_shown(world_t *world, node_t node, uid_t uid)
{
    bool is_shown = node.file == FILE_limit_bytes ||
                    node.file == FILE_resource_limit_bytes ||
                    node.file == FILE_enable || node.file == FILE_log_level;
    if (!is_shown) {
        return;
    }
    PROMISE(render_file(&world->model, node, &world->text) == 0);
    const command_t command = {&world->model,      node, uid, world->text.data,
                               world->text.length, NULL};
    look(world, &world->before);
    PROMISE(control_write(&command) == 0);
    look(world, &world->after);
    PROMISE(memcmp(&world->before, &world->after, sizeof(world->before)) == 0);
}

/* The peak of a GPU is root's, who may ask all programs to begin theirs again. */
static void check_access(const world_t *world, node_t node, uid_t uid)
{
    for (int i = 0; i < PROGRAMS; i++) {
        uid_t owner = world->members[i]->process->uid;
        PROMISE(uid == 0 || uid == owner || !page_changed(world, i));
    }
    PROMISE(
        uid == 0 || node.dir == DIR_PROCESS || node.dir == DIR_PROCESS_DEVICE ||
        node.dir == DIR_RESOURCE || node.dir == DIR_TRACE);
}

static void do_write(world_t *world, node_t node, const step_t *step)
{
    uid_t uid = users[step->who % (sizeof(users) / sizeof(users[0]))];
    look(world, &world->before);
    const command_t command = {&world->model, node,         uid,
                               step->word,    step->length, NULL};
    int error = tree_write_waits(node) ? write_trim(world, node, uid, step)
                                       : control_write(&command);
    look(world, &world->after);
    PROMISE(error == 0 || is_known_error(error));
    if (error != 0) {
        PROMISE(memcmp(&world->before, &world->after, sizeof(world->before)) == 0);
        return;
    }
    check_access(world, node, uid);
    write_what_is_shown(world, node, uid);
}

/* --- what programs do -------------------------------------------------------------------- */

static void change_segment(const world_t *world, const step_t *step)
{
    const member_t *member = world->members[step->who % PROGRAMS];
    size_t bytes = step->length < 8 ? step->length : 8;
    off_t most = (off_t)member->segment.header.segment_bytes - 8;
    PROMISE(
        pwrite(member->segment.fd, step->word, bytes, (off_t)step->node % most) ==
        (ssize_t)bytes);
}

/* It obeys the trim that its page asks for. */
static void obey(world_t *world, const step_t *step)
{
    const member_t *member = world->members[step->who % PROGRAMS];
    rmm_control_page_t page;
    PROMISE(pread(member->control.fd, &page, sizeof(page), 0) == sizeof(page));
    uint32_t number = atomic_load_explicit(&page.trim_number, memory_order_relaxed);
    PROMISE(
        pwrite(
            member->segment.fd, &number, sizeof(number),
            offsetof(rmm_segment_header_t, trim_seen)) == sizeof(number));
    free_trims(waiting_writes_take_over(&world->writes, &world->model));
}

static void act(world_t *world, const step_t *step)
{
    node_t node = world->nodes[step->node % world->node_count];
    switch (step->what % 8) {
    case 5:
        change_segment(world, step);
        break;
    case 6:
        obey(world, step);
        break;
    case 7:
        if (step->node % 8 == 0) {
            world->members[step->who % PROGRAMS]->state = MEMBER_EXITED;
            free_trims(waiting_writes_take_over(&world->writes, &world->model));
        }
        break;
    default:
        do_write(world, node, step);
        break;
    }
}

/* --- all --------------------------------------------------------------------------------- */

/* Bytes that it took; 0: no further step. */
static size_t next_step(const uint8_t *data, size_t bytes, step_t *step)
{
    if (bytes < STEP_BYTES || bytes - STEP_BYTES < data[4] % 100u) {
        return 0;
    }
    step->what = data[0];
    step->who = data[1];
    memcpy(&step->node, data + 2, sizeof(step->node));
    step->length = data[4] % 100u;
    step->word = (const char *)data + STEP_BYTES;
    return STEP_BYTES + step->length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static world_t world;
    step_t step;
    open_world(&world);
    size_t at = 0, taken;
    for (int i = 0; i < STEPS_MOST; i++) {
        taken = next_step(data + at, bytes - at, &step);
        if (taken == 0) {
            break;
        }
        act(&world, &step);
        at += taken;
    }
    close_world(&world);
    return 0;
}
