/* SPDX-License-Identifier: Apache-2.0 */
/* See server.h. */
#include "exporter/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "exporter/answers.h"
#include "exporter/negotiate.h"
#include "exporter/reading.h"

#define IDLE_SECONDS 15u      /* a client that neither sends nor takes anything */
#define CONNECTIONS_MAX 1000u /* of all addresses together */
#define OTHER_DESCRIPTORS 64u /* texts, sockets, epoll sets, standard streams */
#define REQUEST_BYTES                                                                  \
    ((size_t)16 << 10) /* request line and headers, for each connection */
#define NS_PER_MS UINT64_C(1000000)

typedef struct request {
    struct request *next, *previous;
    struct MHD_Connection *connection;
    document_t document;
    bool is_read;     /* the request, to its end */
    answer_t *answer; /* NULL: suspended, until it is there */
} request_t;

typedef struct server {
    const char *mount;
    double timeout_seconds;
    struct MHD_Daemon *daemons[LISTEN_MAX];
    size_t daemon_count;
    reading_t readings[DOCUMENT_COUNT];
    readings_left_t left;
    request_t *requests;
    answers_t answers;
    char reason[256]; /* why the last reading failed; "": it did not */
} server_t;

_Static_assert(READING_PARALLEL_MAX == DOCUMENT_COUNT, "one reading for each document");

/* --- the log ------------------------------------------------------------------------------ */

/* One line when it changes, not one for each scrape. */
static void note_reason(server_t *server, const char *reason)
{
    if (strcmp(server->reason, reason) != 0) {
        tool_error("%s", reason[0] != '\0' ? reason : "rmmfs answers again");
        (void)snprintf(server->reason, sizeof(server->reason), "%s", reason);
    }
}

static void note_failure(server_t *server, int error)
{
    char reason[sizeof(server->reason)];
    if (error == ETIMEDOUT) {
        (void)snprintf(
            reason, sizeof(reason), "%.100s: rmmfs does not answer within %g s",
            server->mount, server->timeout_seconds);
    } else if (error == EBUSY) {
        (void)snprintf(
            reason, sizeof(reason),
            "%.100s: rmmfs does not answer, and %d readers still wait for it",
            server->mount, READING_LEFT_MAX);
    } else if (error == ENOENT) {
        (void)snprintf(
            reason, sizeof(reason), "%.100s: rmmfs is not mounted there",
            server->mount);
    } else {
        (void)snprintf(
            reason, sizeof(reason), "%.100s: %s", server->mount, strerror(error));
    }
    note_reason(server, reason);
}

/* --- requests ----------------------------------------------------------------------------- */

static request_t *
add_request(server_t *server, struct MHD_Connection *connection, document_t document)
{
    request_t *request = calloc(1, sizeof(*request));
    if (request != NULL) {
        request->connection = connection;
        request->document = document;
        request->next = server->requests;
        if (request->next != NULL) {
            request->next->previous = request;
        }
        server->requests = request;
    }
    return request;
}

static void remove_request(server_t *server, request_t *request)
{
    *(request->previous != NULL ? &request->previous->next : &server->requests) =
        request->next;
    if (request->next != NULL) {
        request->next->previous = request->previous;
    }
    if (request->answer != NULL) {
        answers_release(&server->answers, request->answer);
    }
    free(request);
}

static void give(request_t *request, answer_t *answer)
{
    request->answer = answer;
    answer->holders++;
}

static void disconnect(request_t *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != NULL) {
        (void)shutdown(info->connect_fd, SHUT_RDWR);
    }
}

/* answer NULL (no memory): they are disconnected. */
static void give_all(server_t *server, document_t document, answer_t *answer)
{
    for (request_t *request = server->requests; request != NULL;
         request = request->next) {
        if (request->document != document || !request->is_read ||
            request->answer != NULL) {
            continue;
        }
        if (answer != NULL) {
            give(request, answer);
        }
        MHD_resume_connection(request->connection);
    }
}

/* --- readings ----------------------------------------------------------------------------- */

/* False with errno. */
static bool begin_reading(server_t *server, document_t document)
{
    char path[4096];
    if (!readings_left_look(&server->left)) {
        errno = EBUSY;
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", server->mount, document_file(document));
    return reading_start(
        &server->readings[document], path, document_head(document),
        (uint64_t)(server->timeout_seconds * 1e9));
}

/* Clients of the oldest text had time enough. */
static void make_room(server_t *server)
{
    const answer_t *oldest = answers_displace(&server->answers);
    for (request_t *request = server->requests; oldest != NULL && request != NULL;
         request = request->next) {
        if (request->answer == oldest) {
            disconnect(request);
        }
    }
}

static void end_reading(server_t *server, document_t document)
{
    uint64_t bytes;
    int fd = reading_take(&server->readings[document], &bytes);
    make_room(server);
    answer_t *answer = answers_add(&server->answers, document, fd, bytes);
    note_reason(server, "");
    if (answer != NULL) {
        answer->holders++; /* nobody may be there any more */
    }
    give_all(server, document, answer);
    if (answer != NULL) {
        answers_release(&server->answers, answer);
    }
}

static void fail_reading(server_t *server, document_t document)
{
    answer_t *answer = answers_failure(document, server->reason);
    if (answer != NULL) {
        answer->holders++;
    }
    give_all(server, document, answer);
    if (answer != NULL) {
        answers_release(&server->answers, answer);
    }
}

static void look_at_readings(server_t *server)
{
    for (document_t document = 0; document < DOCUMENT_COUNT; document++) {
        reading_t *reading = &server->readings[document];
        if (reading->pid == 0) {
            continue;
        }
        reading_state_t state = reading_look(reading, &server->left);
        if (state == READING_DONE) {
            end_reading(server, document);
        } else if (state == READING_FAILED) {
            note_failure(server, errno);
            fail_reading(server, document);
        }
    }
    (void)readings_left_look(&server->left);
}

/* --- HTTP --------------------------------------------------------------------------------- */

static enum MHD_Result
reply(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(
        response, "Content-Type", "text/plain; charset=utf-8");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* The client's text is there, or is read from now on. */
static enum MHD_Result serve(server_t *server, request_t *request)
{
    answer_t *shared = answers_shared(&server->answers, request->document);
    if (request->is_read && request->answer == NULL) {
        return MHD_NO; /* no memory */
    }
    request->is_read = true;
    if (request->answer == NULL && shared != NULL) {
        give(request, shared);
    } else if (
        request->answer == NULL && server->readings[request->document].pid == 0 &&
        !begin_reading(server, request->document)) {
        note_failure(server, errno);
        answer_t *failure = answers_failure(request->document, server->reason);
        if (failure == NULL) {
            return MHD_NO;
        }
        give(request, failure);
    }
    if (request->answer == NULL) {
        MHD_suspend_connection(request->connection);
        return MHD_YES;
    }
    return MHD_queue_response(
        request->connection, request->answer->status, request->answer->response);
}

static enum MHD_Result
begin(server_t *server, struct MHD_Connection *connection, const char *url, void **own)
{
    document_t document;
    if (strcmp(url, "/healthz") == 0) {
        return reply(connection, MHD_HTTP_OK, "ok\n");
    }
    if (strcmp(url, "/metrics") == 0) {
        const char *accept =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
        document =
            negotiate_openmetrics(accept) ? DOCUMENT_OPENMETRICS : DOCUMENT_METRICS;
    } else if (strcmp(url, "/metrics.all") == 0) {
        document = DOCUMENT_ALL_METRICS;
    } else if (strcmp(url, "/") == 0 || strcmp(url, "/index.html") == 0) {
        document = DOCUMENT_PAGE;
    } else if (strcmp(url, "/json") == 0) {
        document = DOCUMENT_JSON;
    } else {
        return reply(
            connection, MHD_HTTP_NOT_FOUND,
            "Not found. There are /metrics, /metrics.all, /json, / and /healthz.\n");
    }
    *own = add_request(server, connection, document);
    return *own != NULL ? MHD_YES : MHD_NO;
}

/* Called when the headers are there, for each piece of a body, at the end of it, and when the
 * connection goes on. */
static enum MHD_Result handle(
    void *arg, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *body, size_t *body_bytes, void **own)
{
    (void)version;
    (void)body;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return reply(
            connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD are served.\n");
    }
    if (*own == NULL) {
        return begin(arg, connection, url, own);
    }
    if (*body_bytes > 0) {
        *body_bytes = 0;
        return MHD_YES;
    }
    return serve(arg, *own);
}

static void complete(
    void *arg, struct MHD_Connection *connection, void **own,
    enum MHD_RequestTerminationCode code)
{
    (void)connection;
    (void)code;
    if (*own != NULL) {
        remove_request(arg, *own);
        *own = NULL;
    }
}

/* --- its life ----------------------------------------------------------------------------- */

static unsigned connections_each(size_t daemon_count)
{
    struct rlimit limit = {.rlim_cur = 1024};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    rlim_t most = limit.rlim_cur > OTHER_DESCRIPTORS + LISTEN_MAX
                      ? limit.rlim_cur - OTHER_DESCRIPTORS
                      : LISTEN_MAX;
    most = most > CONNECTIONS_MAX ? CONNECTIONS_MAX : most;
    return (unsigned)(most / daemon_count);
}

static bool start(server_t *server, const listen_sockets_t *sockets)
{
    unsigned connections = connections_each(sockets->count);
    for (size_t i = 0; i < sockets->count; i++) {
        server->daemons[i] = MHD_start_daemon(
            MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, server,
            MHD_OPTION_LISTEN_SOCKET, sockets->fds[i], MHD_OPTION_NOTIFY_COMPLETED,
            complete, server, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
            MHD_OPTION_CONNECTION_LIMIT, connections,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES, MHD_OPTION_END);
        if (server->daemons[i] == NULL) {
            tool_error("cannot start the HTTP server: %s", strerror(errno));
            return false;
        }
        server->daemon_count++;
    }
    return true;
}

/* -1: until something happens. */
static int wait_ms(const server_t *server)
{
    uint64_t wait = UINT64_MAX, now = clock_ns();
    for (size_t i = 0; i < server->daemon_count; i++) {
        MHD_UNSIGNED_LONG_LONG ms;
        if (MHD_get_timeout(server->daemons[i], &ms) == MHD_YES && ms < wait) {
            wait = ms;
        }
    }
    for (document_t document = 0; document < DOCUMENT_COUNT; document++) {
        const reading_t *reading = &server->readings[document];
        if (reading->pid != 0) {
            uint64_t left_ns = reading->until_ns > now ? reading->until_ns - now : 0;
            uint64_t ms = left_ns / NS_PER_MS + 1;
            wait = ms < wait ? ms : wait;
        }
    }
    return wait == UINT64_MAX ? -1 : wait > INT32_MAX ? INT32_MAX : (int)wait;
}

/* Whether one of them says that the server shall end. */
static bool take_signals(int fd)
{
    struct signalfd_siginfo signals[8];
    ssize_t got = read(fd, signals, sizeof(signals));
    for (ssize_t i = 0; i < got / (ssize_t)sizeof(signals[0]); i++) {
        if (signals[i].ssi_signo != SIGCHLD) {
            return true;
        }
    }
    return false;
}

static void serve_until_signal(server_t *server, int signal_fd)
{
    struct pollfd fds[LISTEN_MAX + 1] = {{.fd = signal_fd, .events = POLLIN}};
    for (size_t i = 0; i < server->daemon_count; i++) {
        fds[i + 1] = (struct pollfd){
            MHD_get_daemon_info(server->daemons[i], MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
            POLLIN, 0};
    }
    do {
        look_at_readings(server);
        for (size_t i = 0; i < server->daemon_count; i++) {
            (void)MHD_run(server->daemons[i]);
        }
        (void)poll(fds, server->daemon_count + 1, wait_ms(server));
    } while ((fds[0].revents & POLLIN) == 0 || !take_signals(signal_fd));
}

/* No connection may be suspended when its daemon stops. */
static void stop(server_t *server)
{
    for (document_t document = 0; document < DOCUMENT_COUNT; document++) {
        if (server->readings[document].pid != 0) {
            reading_abandon(&server->readings[document], &server->left);
            fail_reading(server, document);
        }
    }
    for (size_t i = 0; i < server->daemon_count; i++) {
        (void)MHD_run(server->daemons[i]);
        MHD_stop_daemon(server->daemons[i]);
    }
}

/* Those that the loop takes by a descriptor. A client that goes away is no reason to end. */
static int block_signals(void)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &taken, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool server_run(
    const listen_sockets_t *sockets, const char *mount, double timeout_seconds)
{
    server_t server = {.mount = mount, .timeout_seconds = timeout_seconds};
    int signal_fd = block_signals();
    if (signal_fd < 0) {
        tool_error("cannot wait for signals: %s", strerror(errno));
        return false;
    }
    bool is_started = start(&server, sockets);
    if (is_started) {
        serve_until_signal(&server, signal_fd);
    }
    stop(&server);
    (void)close(signal_fd);
    return is_started;
}
