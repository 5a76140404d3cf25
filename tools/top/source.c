/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between programs and a recording; see source.h. */
#include "top/source.h"

#include <string.h>

bool source_open(
    source_t *source, const options_t *options, char *message, size_t message_bytes)
{
    memset(source, 0, sizeof(*source));
    source->is_recorded = options->replay != NULL;
    if (source->is_recorded) {
        return player_open(&source->player, options->replay, message, message_bytes);
    }
    if (!sampler_init(&source->sampler, message, message_bytes)) {
        return false;
    }
    if (options->record != NULL &&
        !recorder_open(&source->recorder, options->record, message, message_bytes)) {
        sampler_fini(&source->sampler);
        return false;
    }
    return true;
}

void source_close(source_t *source)
{
    recorder_close(&source->recorder);
    if (source->is_recorded) {
        player_close(&source->player);
    } else {
        sampler_fini(&source->sampler);
    }
}

bool source_is_over(const source_t *source)
{
    return source->is_recorded && player_is_over(&source->player);
}

bool source_take(source_t *source, node_t *node)
{
    if (source->is_recorded) {
        return player_take(&source->player, node);
    }
    bool is_whole = sampler_take(&source->sampler, node);
    if (is_whole) {
        recorder_add(&source->recorder, node);
    }
    return is_whole;
}

bool source_take_one(source_t *source, node_t *node)
{
    return source->is_recorded ? player_take_last(&source->player, node)
                               : source_take(source, node);
}

const char *source_failure(const source_t *source)
{
    return source->is_recorded ? "the recording has changed, or there is no host memory"
                               : "no host memory";
}

const sampler_t *source_sampler(const source_t *source)
{
    return source->is_recorded ? NULL : &source->sampler;
}
