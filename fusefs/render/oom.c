/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `oom` for people, and `oom.json` for programs: the last allocations that were refused for want of
 * memory, the last one first, each with who held the memory then. Refusals and holders of users
 * that are hidden from the reader are left out; what those held is in one sum. What the program had
 * in its own blocks is for those who may read its `leaks` and `diag`.
 */
#include <string.h>

#include "render/parts.h"
#include "render/printers.h"

static const char *gpu_name(uint32_t device, char name[16])
{
    if (device == DEVICE_NONE) {
        return "-";
    }
    tree_device_name(device, name);
    return name;
}

refusal_rest_t
refusal_rest(const hiding_t *hiding, const refusal_scene_t *scene, const text_t *text)
{
    refusal_rest_t rest = {scene->more, scene->more_bytes};
    for (uint32_t i = 0; i < scene->count; i++) {
        if (!is_shown_to(hiding, scene->holders[i].uid, text)) {
            rest.programs++;
            rest.bytes += scene->holders[i].held_bytes;
        }
    }
    return rest;
}

/* As tree_may_read() has it for `leaks`. NULL: not for this reader, or not known. */
static const refusal_blocks_t *blocks_for(const refusal_t *refusal, const text_t *text)
{
    return text->uid == 0 || text->uid == refusal->uid ? refusal->blocks : NULL;
}

/* --- for people ----------------------------------------------------------------------- */

static void put_holder(text_t *text, const refusal_holder_t *holder)
{
    text_printf(text, "  held %s %u", holder->process, (unsigned)holder->uid);
    text_puts(text, " ");
    render_column(text, holder->held_bytes);
    render_column(text, holder->current_bytes);
    render_string(text, holder->comm);
}

static void
put_holders(const model_t *model, text_t *text, const refusal_scene_t *scene)
{
    refusal_rest_t rest = refusal_rest(&model->hiding, scene, text);
    for (uint32_t i = 0; i < scene->count; i++) {
        if (is_shown_to(&model->hiding, scene->holders[i].uid, text)) {
            put_holder(text, &scene->holders[i]);
        }
    }
    if (rest.programs > 0) {
        text_printf(text, "  held by %u more ", rest.programs);
        render_value(text, rest.bytes);
    }
}

/* FILE+OFFSET of each frame, of PATH+OFFSET. */
static void put_short_stack(text_t *text, const char *stack)
{
    const char *separator = "";
    text_puts(text, stack[0] != '\0' ? "" : "-");
    while (*stack != '\0') {
        size_t length = strcspn(stack, ";");
        const char *slash = memrchr(stack, '/', length);
        size_t skip = slash != NULL ? (size_t)(slash - stack) + 1 : 0;
        text_puts(text, separator);
        text_append(text, stack + skip, length - skip);
        stack += length + (stack[length] == ';');
        separator = ";";
    }
}

static void put_blocks(text_t *text, const refusal_blocks_t *blocks)
{
    for (uint32_t i = 0; i < blocks->count; i++) {
        const refusal_group_t *group = &blocks->groups[i];
        text_puts(text, "  own ");
        render_column(text, group->bytes);
        render_column(text, group->count);
        render_column(text, group->resource_id);
        put_short_stack(text, group->stack);
        text_puts(text, " ");
        render_string(text, group->kernel);
    }
    if (blocks->more_bytes > 0) {
        text_puts(text, "  own in others ");
        render_value(text, blocks->more_bytes);
    }
}

static void put_refusal(const model_t *model, text_t *text, const refusal_t *refusal)
{
    const refusal_blocks_t *blocks = blocks_for(refusal, text);
    char gpu[16];
    render_time(text, refusal->time_ns);
    text_printf(
        text, " %s %u %s ", refusal->process, (unsigned)refusal->uid,
        gpu_name(refusal->device, gpu));
    render_column(text, refusal->bytes);
    render_column(
        text,
        refusal->device_free_bytes != 0 ? refusal->device_free_bytes : FIGURE_UNKNOWN);
    render_column(text, refusal->current_bytes);
    render_column(text, refusal->reserved_bytes);
    text_printf(text, "%u.", refusal->instance_id);
    text_put_foreign(text, refusal->name);
    text_puts(text, " ");
    text_put_foreign(text, refusal->job[0] != '\0' ? refusal->job : "-");
    text_puts(text, " ");
    render_string(text, refusal->comm);
    if (refusal->limit[0] != '\0') {
        text_puts(text, "  limit ");
        render_column(text, refusal->limit_bytes);
        render_string(text, refusal->limit);
    }
    put_holders(model, text, &refusal->scene);
    if (blocks != NULL) {
        put_blocks(text, blocks);
    }
}

void print_oom(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    text_puts(
        text,
        "#time process uid gpu bytes device_free_bytes current_bytes reserved_bytes "
        "resource job comm\n#  held process uid held_bytes current_bytes comm\n"
        "#  own bytes count resource stack kernel\n");
    for (uint32_t i = model->refusals.count; i > 0; i--) {
        const refusal_t *refusal = model->refusals.items[i - 1];
        if (is_shown_to(&model->hiding, refusal->uid, text)) {
            put_refusal(model, text, refusal);
        }
    }
}

/* --- for programs --------------------------------------------------------------------- */

static void
put_json_holders(const model_t *model, text_t *text, const refusal_scene_t *scene)
{
    const char *separator = "";
    refusal_rest_t rest = refusal_rest(&model->hiding, scene, text);
    text_puts(text, ", \"holders\": [");
    for (uint32_t i = 0; i < scene->count; i++) {
        const refusal_holder_t *holder = &scene->holders[i];
        if (is_shown_to(&model->hiding, holder->uid, text)) {
            text_printf(text, "%s\n  {\"process\": ", separator);
            put_quoted(text, holder->process);
            put_number_key(text, "uid", true, holder->uid);
            put_number_key(text, "held_bytes", true, holder->held_bytes);
            put_number_key(text, "current_bytes", true, holder->current_bytes);
            put_text_key(text, "comm", holder->comm);
            text_puts(text, "}");
            separator = ",";
        }
    }
    text_puts(text, "]");
    put_number_key(text, "other_holders", true, rest.programs);
    put_number_key(text, "other_held_bytes", true, rest.bytes);
}

static void put_json_stack(text_t *text, const char *stack)
{
    const char *separator = "";
    text_puts(text, ", \"stack\": [");
    while (*stack != '\0') {
        char frame[REFUSAL_STACK_BYTES];
        size_t length = strcspn(stack, ";");
        memcpy(frame, stack, length);
        frame[length] = '\0';
        text_puts(text, separator);
        put_quoted(text, frame);
        stack += length + (stack[length] == ';');
        separator = ", ";
    }
    text_puts(text, "]");
}

static void put_json_blocks(text_t *text, const refusal_blocks_t *blocks)
{
    text_puts(text, ", \"blocks\": [");
    for (uint32_t i = 0; i < blocks->count; i++) {
        const refusal_group_t *group = &blocks->groups[i];
        text_printf(text, "%s\n  {\"bytes\": ", i > 0 ? "," : "");
        render_number(text, group->bytes);
        put_number_key(text, "count", true, group->count);
        put_number_key(text, "resource_id", true, group->resource_id);
        put_text_key(text, "kernel", group->kernel);
        put_json_stack(text, group->stack);
        text_puts(text, "}");
    }
    text_puts(text, "]");
    put_number_key(text, "other_blocks_bytes", true, blocks->more_bytes);
}

static void
put_json_refusal(const model_t *model, text_t *text, const refusal_t *refusal)
{
    char gpu[16];
    text_puts(text, "{\"time\": \"");
    render_time(text, refusal->time_ns);
    text_puts(text, "\"");
    put_number_key(text, "number", true, refusal->serial);
    put_text_key(text, "process", refusal->process);
    put_number_key(text, "uid", true, refusal->uid);
    put_text_key(text, "comm", refusal->comm);
    put_text_key(text, "slurm_job", refusal->job);
    put_text_key(
        text, "gpu",
        refusal->device != DEVICE_NONE ? gpu_name(refusal->device, gpu) : "");
    put_number_key(text, "resource_id", true, refusal->instance_id);
    put_text_key(text, "resource", refusal->name);
    put_text_key(text, "type", refusal->type);
    put_number_key(text, "bytes", true, refusal->bytes);
    put_number_key(
        text, "device_free_bytes", refusal->device_free_bytes != 0,
        refusal->device_free_bytes);
    put_number_key(text, "current_bytes", true, refusal->current_bytes);
    put_number_key(text, "reserved_bytes", true, refusal->reserved_bytes);
    put_text_key(text, "limit", refusal->limit);
    put_number_key(
        text, "limit_bytes", refusal->limit[0] != '\0', refusal->limit_bytes);
    put_json_holders(model, text, &refusal->scene);
    const refusal_blocks_t *blocks = blocks_for(refusal, text);
    if (blocks != NULL) {
        put_json_blocks(text, blocks);
    } else {
        text_puts(text, ", \"blocks\": null, \"other_blocks_bytes\": null");
    }
    text_puts(text, "}");
}

void print_oom_json(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    const char *separator = "";
    text_puts(text, "{\"schema_version\": 1, \"refusals\": [");
    for (uint32_t i = model->refusals.count; i > 0; i--) {
        const refusal_t *refusal = model->refusals.items[i - 1];
        if (is_shown_to(&model->hiding, refusal->uid, text)) {
            text_printf(text, "%s\n", separator);
            put_json_refusal(model, text, refusal);
            separator = ",";
        }
    }
    text_printf(
        text, "],\n\"lost\": %llu}\n", (unsigned long long)model->refusals.lost);
}
