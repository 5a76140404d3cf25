/* SPDX-License-Identifier: Apache-2.0 */
/* The list of limits; see limits.h. */
#include "model/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/list.h"

#define WORD_OF_DEVICE "gpu"

void limits_fini(limits_t *limits)
{
    free(limits->items);
    *limits = (limits_t){.items = NULL};
}

/* --- words ---------------------------------------------------------------------------- */

const char *limit_kind_name(uint32_t kind)
{
    return kind < JOB_KIND_COUNT ? job_kind_name((job_kind_t)kind) : WORD_OF_DEVICE;
}

bool limit_kind_parse(const char *word, uint32_t *kind_out)
{
    for (uint32_t kind = 0; kind <= LIMIT_OF_DEVICE; kind++) {
        if (strcmp(word, limit_kind_name(kind)) == 0) {
            *kind_out = kind;
            return true;
        }
    }
    return false;
}

void limit_print_group(const limit_t *limit, char group[LIMIT_GROUP_BYTES])
{
    if (limit->kind == LIMIT_OF_DEVICE && limit->device == LIMIT_HOST) {
        (void)snprintf(group, LIMIT_GROUP_BYTES, WORD_OF_DEVICE " host");
    } else if (limit->kind == LIMIT_OF_DEVICE) {
        (void)snprintf(
            group, LIMIT_GROUP_BYTES, WORD_OF_DEVICE " gpu%u", limit->device);
    } else {
        (void)snprintf(
            group, LIMIT_GROUP_BYTES, "%s %s", limit_kind_name(limit->kind),
            limit->name);
    }
}

/* --- whose ---------------------------------------------------------------------------- */

bool limit_is_of(const limit_t *limit, const job_t *job)
{
    if (job == NULL || limit->kind == LIMIT_OF_DEVICE) {
        return job == NULL && limit->kind == LIMIT_OF_DEVICE;
    }
    return job->kind == limit->kind &&
           (limit->uid == LIMIT_ANY_USER || limit->uid == job->uid) &&
           strcmp(job->name, limit->name) == 0;
}

bool limit_is_on(const limit_t *limit, uint32_t device)
{
    return limit->device == LIMIT_EACH_GPU ? device < LIMIT_EACH_GPU
                                           : limit->device == device;
}

/* --- the list ------------------------------------------------------------------------- */

static bool are_alike(const limit_t *left, const limit_t *right)
{
    return left->kind == right->kind && left->uid == right->uid &&
           left->device == right->device && strcmp(left->name, right->name) == 0;
}

static limit_t *find(const limits_t *limits, const limit_t *like)
{
    for (uint32_t i = 0; i < limits->count; i++) {
        if (are_alike(&limits->items[i], like)) {
            return &limits->items[i];
        }
    }
    return NULL;
}

const limit_t *limits_find(const limits_t *limits, const limit_t *like)
{
    return find(limits, like);
}

static void remove_at(limits_t *limits, uint32_t at)
{
    limits->count--;
    memmove(
        &limits->items[at], &limits->items[at + 1],
        (limits->count - at) * sizeof(limit_t));
}

static bool has_too_many(const limits_t *limits, uid_t uid)
{
    uint32_t of_user = 0;
    for (uint32_t i = 0; i < limits->count; i++) {
        of_user += limits->items[i].set_by == uid;
    }
    return limits->count >= LIMITS_MAX || (uid != 0 && of_user >= LIMITS_OF_USER);
}

static int add(limits_t *limits, const limit_t *limit)
{
    if (has_too_many(limits, limit->set_by)) {
        return -EDQUOT;
    }
    limit_t *items = rmm__list_make_room(
        limits->items, limits->count, &limits->capacity, sizeof(limit_t));
    if (items == NULL) {
        return -ENOMEM;
    }
    limits->items = items;
    limits->items[limits->count++] = *limit;
    return 0;
}

static int replace(limits_t *limits, limit_t *known, const limit_t *limit)
{
    if (known->set_by == 0 && limit->set_by != 0) {
        return -EPERM;
    }
    if (limit->limit_bytes == UINT64_MAX) {
        remove_at(limits, (uint32_t)(known - limits->items));
    } else {
        known->limit_bytes = limit->limit_bytes;
        known->set_by = limit->set_by;
    }
    return 0;
}

/* A limit for the jobs of all users, which only root sets. */
static bool is_below_one_of_root(const limits_t *limits, const limit_t *limit)
{
    limit_t of_all = *limit;
    of_all.uid = LIMIT_ANY_USER;
    return limit->uid != LIMIT_ANY_USER && limits_find(limits, &of_all) != NULL;
}

static int remove_unknown(const limits_t *limits, const limit_t *limit)
{
    return is_below_one_of_root(limits, limit) ? -EPERM
                                               : 0 /* there is none, as wanted */;
}

int limits_set(limits_t *limits, const limit_t *limit)
{
    limit_t *known = find(limits, limit);
    int error = known != NULL                      ? replace(limits, known, limit)
                : limit->limit_bytes == UINT64_MAX ? remove_unknown(limits, limit)
                                                   : add(limits, limit);
    limits->is_due = limits->is_due || error == 0;
    limits->is_started = limits->is_started || error == 0;
    return error;
}

bool limits_restore(limits_t *limits, const limit_t *limit)
{
    limits->is_due = limits->is_started = true;
    return find(limits, limit) != NULL || add(limits, limit) == 0;
}

/* --- time ----------------------------------------------------------------------------- */

static bool has_programs(const jobs_t *jobs, const limit_t *limit)
{
    for (uint32_t i = 0; i < jobs->count; i++) {
        if (jobs->items[i]->processes > 0 && limit_is_of(limit, jobs->items[i])) {
            return true;
        }
    }
    return false;
}

static bool is_over(const jobs_t *jobs, limit_t *limit, uint64_t now_ns)
{
    if (limit->kind == JOB_USER || limit->kind == LIMIT_OF_DEVICE) {
        return false;
    }
    if (has_programs(jobs, limit)) {
        limit->had_programs = true;
        limit->ended_ns = 0;
    } else if (limit->had_programs && limit->ended_ns == 0) {
        limit->ended_ns = now_ns;
    }
    return limit->ended_ns != 0 && now_ns - limit->ended_ns >= LIMITS_JOB_ENDED_NS;
}

bool limits_expire(limits_t *limits, const jobs_t *jobs, uint64_t now_ns)
{
    uint32_t before = limits->count;
    for (uint32_t i = before; i > 0; i--) {
        if (is_over(jobs, &limits->items[i - 1], now_ns)) {
            remove_at(limits, i - 1);
        }
    }
    limits->is_due = limits->is_due || limits->count != before;
    return limits->count != before;
}
