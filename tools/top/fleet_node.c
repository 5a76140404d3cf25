/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the answer of a node; see fleet_node.h. */
#include "top/fleet_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "top/json_values.h"
#include "top/node_json.h"

/* --- the address -------------------------------------------------------------------------- */

/* What a list of names has: no blank, no comma, no character that a terminal takes as more. */
static bool is_word(const char *text)
{
    for (; *text > ' ' && *text < 0x7f && *text != ','; text++) {
    }
    return *text == '\0';
}

/* A name without its domain, an address as it is. */
static void short_name(const char *host, char name[NODE_SITE_BYTES])
{
    size_t length = strcspn(host, "."), digits = strspn(host, "0123456789.:");
    bool is_number = host[0] == '[' || host[digits] == '\0';
    snprintf(
        name, NODE_SITE_BYTES, "%.*s", is_number ? (int)strlen(host) : (int)length,
        host);
}

/* The part between // and / of a URL, and what is behind it. */
static bool split_url(CURLU *parts, char **host_out, char **path_out)
{
    return curl_url_get(parts, CURLUPART_HOST, host_out, 0) == CURLUE_OK &&
           curl_url_get(parts, CURLUPART_PATH, path_out, 0) == CURLUE_OK;
}

/* Complete a URL: the default path, also for that of Prometheus. */
static bool complete(
    CURLU *parts, bool is_url, char url[FLEET_URL_BYTES], char name[NODE_SITE_BYTES])
{
    char *host = NULL, *path = NULL, *port = NULL, *whole = NULL;
    bool is_good = split_url(parts, &host, &path);
    if (is_good && (strcmp(path, "/") == 0 || strcmp(path, "/metrics") == 0)) {
        is_good = curl_url_set(parts, CURLUPART_PATH, "/json", 0) == CURLUE_OK;
    }
    if (is_good && !is_url &&
        curl_url_get(parts, CURLUPART_PORT, &port, 0) != CURLUE_OK) {
        is_good = curl_url_set(parts, CURLUPART_PORT, FLEET_PORT, 0) == CURLUE_OK;
    }
    is_good = is_good && curl_url_get(parts, CURLUPART_URL, &whole, 0) == CURLUE_OK &&
              strlen(whole) < FLEET_URL_BYTES;
    if (is_good) {
        strcpy(url, whole);
        short_name(host, name);
    }
    curl_free(host);
    curl_free(path);
    curl_free(port);
    curl_free(whole);
    return is_good;
}

bool fleet_node_address(
    const char *text, char url[FLEET_URL_BYTES], char name[NODE_SITE_BYTES])
{
    char with_scheme[FLEET_URL_BYTES];
    bool is_url = strstr(text, "://") != NULL;
    CURLU *parts = curl_url();
    int length = snprintf(
        with_scheme, sizeof(with_scheme), "%s%s", is_url ? "" : "http://", text);
    bool is_good = parts != NULL && text[0] != '\0' && is_word(text) &&
                   length < (int)sizeof(with_scheme) &&
                   (strncmp(with_scheme, "http://", 7) == 0 ||
                    strncmp(with_scheme, "https://", 8) == 0) &&
                   curl_url_set(parts, CURLUPART_URL, with_scheme, 0) == CURLUE_OK &&
                   complete(parts, is_url, url, name);
    curl_url_cleanup(parts);
    return is_good;
}

/* --- the answer --------------------------------------------------------------------------- */

/* Called by libcurl for each piece. Another number than all bytes ends the request. */
static size_t take_piece(char *piece, size_t size, size_t count, void *arg)
{
    fleet_node_t *one = arg;
    size_t bytes = size * count;
    if (bytes > FLEET_JSON_BYTES_MAX - one->used ||
        bytes > FLEET_BYTES_MAX - *one->used_by_all) {
        one->is_too_long = true;
        return 0;
    }
    if (one->used + bytes > one->room) {
        size_t room = one->room != 0 ? one->room : 65536;
        for (; room < one->used + bytes; room *= 2) {
        }
        char *larger = realloc(one->text, room);
        if (larger == NULL) {
            one->has_memory = false;
            return 0;
        }
        one->text = larger;
        one->room = room;
    }
    memcpy(one->text + one->used, piece, bytes);
    one->used += bytes;
    *one->used_by_all += bytes;
    return bytes;
}

static bool set_options(fleet_node_t *one)
{
    CURL *easy = one->easy;
    return curl_easy_setopt(easy, CURLOPT_URL, one->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, FLEET_TIMEOUT_MS) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(
               easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)FLEET_JSON_BYTES_MAX) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "rmm-top") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_piece) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, one) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, one) == CURLE_OK;
}

bool fleet_node_init(
    fleet_node_t *one, const char *text, uint32_t index, size_t *used_by_all)
{
    *one =
        (fleet_node_t){.index = index, .used_by_all = used_by_all, .has_memory = true};
    if (!fleet_node_address(text, one->url, one->name)) {
        return false;
    }
    one->easy = curl_easy_init();
    return one->easy != NULL && set_options(one);
}

void fleet_node_fini(fleet_node_t *one)
{
    curl_easy_cleanup(one->easy);
    free(one->text);
    memset(one, 0, sizeof(*one));
}

/* --- programs ----------------------------------------------------------------------------- */

typedef struct meeting {
    const fleet_node_t *one;
    fleet_users_t *users;
} meeting_t;

static const char *name_user(fleet_users_t *users, uid_t uid)
{
    for (uint32_t i = 0; i < users->count; i++) {
        if (users->users[i].uid == uid) {
            return users->users[i].name;
        }
    }
    uint32_t at = users->count < FLEET_USERS ? users->count++ : users->next;
    users->next = (users->next + 1) % FLEET_USERS;
    users->users[at].uid = uid;
    node_name_user(uid, users->users[at].name, sizeof(users->users[at].name));
    return users->users[at].name;
}

/* Numbers that differ in one bit differ in half of them behind this (splitmix64's last step). */
static uint64_t mixed(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* A node_meet_fn. The same program has the same id in each answer: made of its node, its pid and
 * when it started. */
static bool meet(void *arg, const json_t *object, node_process_t *process)
{
    const meeting_t *meeting = arg;
    uint64_t start_time_ns, pid = 0;
    char name[32]; /* "4711", or "4711-2": the second of this pid */
    (void)json_get_text(object, "pid", name, sizeof(name));
    (void)json_get_figure(object, "start_time_ns", &start_time_ns);
    if (rmm__number_parse(name, strlen(name), &pid) == RMM_NUMBER_OK &&
        pid <= INT32_MAX) {
        process->pid = (pid_t)pid;
    }
    uint64_t id = mixed(start_time_ns + meeting->one->index);
    for (const char *at = name; *at != '\0'; at++) {
        id = mixed(id + (unsigned char)*at);
    }
    process->id = id | 1; /* 0 is none */
    rmm__text_copy(
        process->user, sizeof(process->user), name_user(meeting->users, process->uid));
    return true;
}

/* --- the end of a request ----------------------------------------------------------------- */

static bool say(char reason[NODE_REASON_BYTES], const char *text)
{
    snprintf(reason, NODE_REASON_BYTES, "%s", text);
    return true;
}

/* rmm-exporter says in its text what an error is about. */
static bool say_status(const fleet_node_t *one, long status, char *reason)
{
    char text[NODE_REASON_BYTES];
    size_t length = one->used < sizeof(text) - 1 ? one->used : sizeof(text) - 1;
    bool is_redirect = status >= 300 && status < 400;
    if (one->text != NULL) {
        memcpy(text, one->text, length);
    }
    text[one->text != NULL ? length : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (strncmp(text, "rmm-exporter: ", 14) == 0) {
        rmm__text_copy(reason, NODE_REASON_BYTES, text + 14);
        return true;
    }
    snprintf(
        reason, NODE_REASON_BYTES, "%s %ld",
        is_redirect ? "redirects, which is not followed: HTTP status" : "HTTP status",
        status);
    return true;
}

static bool say_result(const fleet_node_t *one, CURLcode result, char *reason)
{
    if (one->is_too_long || result == CURLE_FILESIZE_EXCEEDED) {
        return say(reason, "its answer is too long");
    }
    switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
        return say(reason, "does not answer within 3 s");
    case CURLE_COULDNT_RESOLVE_HOST:
        return say(reason, "its name is not known");
    case CURLE_COULDNT_CONNECT:
        return say(reason, "nothing listens there, or it cannot be reached");
    case CURLE_GOT_NOTHING:
        return say(reason, "closes the connection without an answer");
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return say(reason, "its answer is not HTTP");
    default:
        return say(reason, curl_easy_strerror(result));
    }
}

static bool
parse(fleet_node_t *one, fleet_users_t *users, node_t *figures, char *reason)
{
    json_error_t error;
    meeting_t meeting = {one, users};
    json_t *json = json_loadb(
        one->text != NULL ? one->text : "", one->used, JSON_REJECT_DUPLICATES, &error);
    node_parsed_t parsed =
        json != NULL ? node_from_json(json, meet, &meeting, figures) : NODE_IS_NONE;
    json_decref(json);
    if (parsed == NODE_IS_NONE) {
        (void)say(reason, "its answer is not the json of a node");
    }
    return parsed != NODE_NO_MEMORY;
}

bool fleet_node_finish(
    fleet_node_t *one, CURLcode result, fleet_users_t *users, node_t *figures,
    char reason[NODE_REASON_BYTES])
{
    long status = 0;
    bool has_memory = one->has_memory;
    reason[0] = '\0';
    (void)curl_easy_getinfo(one->easy, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK) {
        (void)say_result(one, result, reason);
    } else if (status != 200) {
        (void)say_status(one, status, reason);
    } else {
        has_memory = parse(one, users, figures, reason) && has_memory;
    }
    *one->used_by_all -= one->used;
    one->used = 0;
    one->is_too_long = false;
    return has_memory;
}
