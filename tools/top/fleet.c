/* SPDX-License-Identifier: Apache-2.0 */
/* Asks nodes, and puts their answers together; see fleet.h. */
#include "top/fleet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

/* --- the thread --------------------------------------------------------------------------- */

static void end_request_locked(fleet_t *fleet, place_t *place, bool has_memory)
{
    if (place->reason[0] == '\0' && has_memory) {
        const node_t old = place->figures;
        place->figures = fleet->scratch;
        fleet->scratch = old;
        fleet->layout += old.device_count != place->figures.device_count;
        place->figures.time_ns = clock_ns();
    }
    fleet->has_memory = fleet->has_memory && has_memory;
    place->state = PLACE_IDLE;
    place->is_new = false;
    pthread_cond_broadcast(&fleet->changed);
}

/* Parses outside of the lock: that takes some milliseconds for each MB. */
static void finish(fleet_t *fleet, const CURLMsg *message)
{
    fleet_node_t *node = NULL;
    char reason[NODE_REASON_BYTES];
    CURLcode result = message->data.result;
    (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&node);
    place_t *place = &fleet->places[node->index];
    (void)curl_multi_remove_handle(fleet->multi, node->easy);
    fleet->asked--;
    bool has_memory =
        fleet_node_finish(node, result, &fleet->users, &fleet->scratch, reason);
    pthread_mutex_lock(&fleet->lock);
    memcpy(place->reason, reason, sizeof(reason));
    end_request_locked(fleet, place, has_memory);
    pthread_mutex_unlock(&fleet->lock);
}

static void ask_wanted_locked(fleet_t *fleet)
{
    for (uint32_t i = 0; i < fleet->count && fleet->asked < FLEET_PARALLEL; i++) {
        place_t *place = &fleet->places[i];
        if (place->state != PLACE_WANTED) {
            continue;
        }
        place->state = PLACE_ASKED;
        if (curl_multi_add_handle(fleet->multi, place->node.easy) == CURLM_OK) {
            fleet->asked++;
        } else {
            snprintf(place->reason, sizeof(place->reason), "it cannot be asked");
            end_request_locked(fleet, place, false);
        }
    }
}

static bool is_ending(fleet_t *fleet)
{
    pthread_mutex_lock(&fleet->lock);
    bool is_so = fleet->is_ending;
    if (!is_so) {
        ask_wanted_locked(fleet);
    }
    pthread_mutex_unlock(&fleet->lock);
    return is_so;
}

static void *ask_when_wanted(void *arg)
{
    fleet_t *fleet = arg;
    int left;
    while (!is_ending(fleet)) {
        const CURLMsg *message;
        bool has_room = false; /* for a further node */
        (void)curl_multi_perform(fleet->multi, &left);
        while ((message = curl_multi_info_read(fleet->multi, &left)) != NULL) {
            if (message->msg == CURLMSG_DONE) {
                finish(fleet, message);
                has_room = true;
            }
        }
        (void)curl_multi_poll(fleet->multi, NULL, 0, has_room ? 0 : 1000, NULL);
    }
    return NULL;
}

/* Signals are for the thread that waits for keys. */
static bool start_thread(fleet_t *fleet)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&fleet->thread, NULL, ask_when_wanted, fleet);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    fleet->is_started = error == 0;
    errno = error;
    return fleet->is_started;
}

/* --- its life ----------------------------------------------------------------------------- */

static void init_lock(fleet_t *fleet)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&fleet->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&fleet->lock, NULL);
}

static bool has_namesake(const fleet_t *fleet, uint32_t index)
{
    for (uint32_t i = 0; i < fleet->count; i++) {
        const char *name = fleet->places[i].node.name;
        if (i != index && strcmp(name, fleet->places[index].node.name) == 0) {
            return true;
        }
    }
    return false;
}

/* Nodes that would have the same name have their domains and ports, too. */
static void tell_apart(fleet_t *fleet)
{
    for (uint32_t i = 0; i < fleet->count; i++) {
        fleet->places[i].has_namesake = has_namesake(fleet, i);
    }
    for (uint32_t i = 0; i < fleet->count; i++) {
        fleet_node_t *one = &fleet->places[i].node;
        const char *host = strstr(one->url, "://") + 3;
        int length = (int)strcspn(host, "/");
        const char *at = memrchr(host, '@', (size_t)length);
        if (fleet->places[i].has_namesake) {
            length -= at != NULL ? (int)(at + 1 - host) : 0;
            host = at != NULL ? at + 1 : host;
            snprintf(one->name, sizeof(one->name), "%.*s", length, host);
        }
    }
}

static bool
add_nodes(fleet_t *fleet, const char *const *texts, char *message, size_t message_bytes)
{
    fleet->places = calloc(fleet->count, sizeof(*fleet->places));
    fleet->multi = curl_multi_init();
    if (fleet->places == NULL || fleet->multi == NULL) {
        snprintf(message, message_bytes, "no host memory");
        return false;
    }
    (void)curl_multi_setopt(fleet->multi, CURLMOPT_MAXCONNECTS, (long)fleet->count);
    for (; fleet->started < fleet->count; fleet->started++) {
        place_t *place = &fleet->places[fleet->started];
        place->is_new = true;
        node_init(&place->figures);
        if (!fleet_node_init(
                &place->node, texts[fleet->started], fleet->started,
                &fleet->used_by_all)) {
            snprintf(
                message, message_bytes, "\"%.100s\" is not the address of a node",
                texts[fleet->started]);
            fleet->started++;
            return false;
        }
    }
    tell_apart(fleet);
    return true;
}

bool fleet_open(
    fleet_t *fleet, const char *const *texts, uint32_t count, char *message,
    size_t message_bytes)
{
    memset(fleet, 0, sizeof(*fleet));
    fleet->count = count;
    fleet->has_memory = true;
    node_init(&fleet->scratch);
    init_lock(fleet);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(message, message_bytes, "cannot start libcurl");
        pthread_cond_destroy(&fleet->changed);
        pthread_mutex_destroy(&fleet->lock);
        return false;
    }
    bool is_open = add_nodes(fleet, texts, message, message_bytes);
    if (is_open && !start_thread(fleet)) {
        snprintf(message, message_bytes, "cannot start a thread: %s", strerror(errno));
        is_open = false;
    }
    if (!is_open) {
        fleet_close(fleet);
    }
    return is_open;
}

void fleet_close(fleet_t *fleet)
{
    pthread_mutex_lock(&fleet->lock);
    fleet->is_ending = true;
    pthread_mutex_unlock(&fleet->lock);
    if (fleet->is_started) {
        (void)curl_multi_wakeup(fleet->multi);
        pthread_join(fleet->thread, NULL);
    }
    for (uint32_t i = 0; i < fleet->started; i++) {
        place_t *place = &fleet->places[i];
        if (place->state == PLACE_ASKED) {
            (void)curl_multi_remove_handle(fleet->multi, place->node.easy);
        }
        fleet_node_fini(&place->node);
        node_fini(&place->figures);
    }
    (void)curl_multi_cleanup(fleet->multi);
    curl_global_cleanup();
    node_fini(&fleet->scratch);
    free(fleet->places);
    pthread_cond_destroy(&fleet->changed);
    pthread_mutex_destroy(&fleet->lock);
    memset(fleet, 0, sizeof(*fleet));
}

/* --- snapshots ---------------------------------------------------------------------------- */

static void want_locked(fleet_t *fleet)
{
    for (uint32_t i = 0; i < fleet->count; i++) {
        if (fleet->places[i].state == PLACE_IDLE) {
            fleet->places[i].state = PLACE_WANTED;
        }
    }
    (void)curl_multi_wakeup(fleet->multi);
}

static bool is_waiting_locked(const fleet_t *fleet, bool is_patient)
{
    for (uint32_t i = 0; i < fleet->count; i++) {
        const place_t *place = &fleet->places[i];
        bool is_expected = is_patient || place->is_new || place->reason[0] == '\0';
        if (place->state != PLACE_IDLE && is_expected) {
            return true;
        }
    }
    return false;
}

static void wait_locked(fleet_t *fleet, uint64_t until_ns, bool is_patient)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000u),
        .tv_nsec = (long)(until_ns % 1000000000u)};
    int error = 0;
    while (error == 0 && is_waiting_locked(fleet, is_patient)) {
        error = pthread_cond_timedwait(&fleet->changed, &fleet->lock, &until);
    }
}

/* Of a silent node only the devices are there, without figures. */
static bool append_silent(node_t *node, const node_t *figures)
{
    node_t devices = {
        .devices = figures->devices, .device_count = figures->device_count};
    uint32_t first = node->device_count;
    if (!node_append(node, &devices)) {
        return false;
    }
    for (uint32_t i = first; i < node->device_count; i++) {
        figures_t *none = &node->devices[i].figures;
        memset(none, 0, sizeof(*none));
        node->devices[i].device_free_bytes = FIGURE_UNKNOWN;
        node->devices[i].use_count = 0;
    }
    return true;
}

static bool append_locked(const place_t *place, node_t *node)
{
    node_site_t *site = node_add_site(node);
    if (site == NULL) {
        return false;
    }
    memcpy(site->name, place->node.name, sizeof(site->name));
    memcpy(site->reason, place->reason, sizeof(site->reason));
    site->time_ns = place->figures.time_ns;
    if (place->is_new) {
        snprintf(site->reason, sizeof(site->reason), "has not answered yet");
    }
    return site->reason[0] != '\0' ? append_silent(node, &place->figures)
                                   : node_append(node, &place->figures);
}

/* The first reason, where no node has figures. */
static bool has_answer(fleet_t *fleet, const node_t *node)
{
    for (uint32_t i = 0; i < node->site_count; i++) {
        if (node->sites[i].reason[0] == '\0') {
            return true;
        }
    }
    snprintf(
        fleet->failure, sizeof(fleet->failure), "%s: %s", node->sites[0].name,
        node->sites[0].reason);
    return false;
}

bool fleet_take(fleet_t *fleet, node_t *node, uint64_t wait_ns, bool is_patient)
{
    bool is_whole = true;
    node_clear(node);
    fleet->failure[0] = '\0';
    pthread_mutex_lock(&fleet->lock);
    want_locked(fleet);
    wait_ns *= 1 + (fleet->count - 1) / FLEET_PARALLEL;
    wait_locked(fleet, clock_ns() + wait_ns, is_patient);
    for (uint32_t i = 0; i < fleet->count && is_whole; i++) {
        is_whole = append_locked(&fleet->places[i], node);
    }
    is_whole = is_whole && fleet->has_memory;
    node->layout = fleet->layout;
    pthread_mutex_unlock(&fleet->lock);
    node->time_ns = clock_ns();
    return is_whole && (has_answer(fleet, node) || !is_patient);
}
