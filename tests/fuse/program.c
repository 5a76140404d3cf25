/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with a segment, told on stdin what to do to its accounting, one command a line;
 * answers "ok" when it is done, so that a test knows what the figures are. Through
 * publish/accounting.h, so that any GPU and any figure can be had without a driver.
 *
 *   location P UUID PCI_BUS_ID CAPACITY NAME
 *   alloc P BYTES, free P BYTES, reserve P BYTES, unreserve P BYTES, pad P BYTES
 *   oom P, devfree P BYTES
 *   resource ID TYPE NAME P UPSTREAM_ID
 *   take ID BYTES, give ID BYTES, hole ID FREE LARGEST, refuse ID, close ID
 *   track ID STACKS   a tracking adaptor over host memory, with stacks if not 0
 *   borrow ID BYTES COUNT, return ID   COUNT blocks through it; all of them back
 *   fill ID BYTES     blocks through it until one is refused
 *   race ID BYTES     the same by 8 threads at once, which forget their blocks
 *   pool ID           in its place a pool over the current device's cuda resource
 *   auto ID           in its place the pool that suits the device
 *   sleep ID, wake ID   that pool gives its memory to other programs, and takes it back
 *   untrack ID        its end, whatever is out
 *   log LEVEL TEXT    into its debug log, 0 trace to 5 critical
 *   event ACTION POINTER BYTES STREAM   traced, if that is on
 *   events N          of that many blocks, one after the other allocated and freed
 *   exec              begin anew with the same pid: another segment
 *   load BYTES PATH   a librmm-c of its own: a further segment, that allocates from a
 *                     cuda resource
 *   quit
 *
 * Or, with arguments, runs a command in a mount namespace of its own:
 *
 *   rmmfs_program mounts COMMAND...
 *
 * or as on a kernel without openat2:
 *
 *   rmmfs_program without_openat2 COMMAND...
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rmm/auto_resource.h>
#include <rmm/cuda_resource.h>
#include <rmm/host_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/pool_sleep.h>
#include <rmm/tracking_adaptor.h>

#include "harness/location_writer.h"
#include "harness/mounts.h"
#include "log/log.h"
#include "publish/accounting.h"
#include "publish/refusal_ring.h"
#include "publish/trace.h"

#define RESOURCES_MAX 600

static rmm_accounting_t resources[RESOURCES_MAX];

static bool do_location(uint32_t location, const char *rest)
{
    char uuid[64], pci[64], name[64];
    uint64_t capacity;
    if (sscanf(rest, "%63s %63s %" SCNu64 " %63[^\n]", uuid, pci, &capacity, name) !=
        4) {
        return false;
    }
    rmm_location_identity_t identity = {uuid, pci, name, capacity};
    rmm__location_open(location, &identity);
    return true;
}

static bool do_resource(uint32_t id, const char *rest)
{
    char type[32], name[64];
    rmm_accounting_desc_t desc = {.type = type, .name = name, .instance_id = id};
    return id < RESOURCES_MAX &&
           sscanf(
               rest, "%31s %63s %u %u", type, name, &desc.location,
               &desc.upstream_id) == 4 &&
           rmm__accounting_open(&resources[id], &desc) == RMM_OK;
}

static bool do_take(uint32_t id, uint64_t bytes, bool take)
{
    rmm_accounting_t *accounting = &resources[id];
    if (id >= RESOURCES_MAX || accounting->slot == NULL) {
        return false;
    }
    rmm__accounting_begin_exclusive(accounting);
    if (take) {
        rmm__accounting_alloc_exclusive(accounting, bytes, 0);
    } else {
        rmm__accounting_free_exclusive(accounting, bytes, 0);
    }
    rmm__accounting_end_exclusive(accounting);
    return true;
}

static bool do_hole(uint32_t id, const char *rest)
{
    uint64_t free_bytes, largest;
    if (id >= RESOURCES_MAX ||
        sscanf(rest, "%" SCNu64 " %" SCNu64, &free_bytes, &largest) != 2) {
        return false;
    }
    RMM_ACCOUNTING_SET(&resources[id], free_bytes, free_bytes);
    RMM_ACCOUNTING_SET(&resources[id], largest_free_bytes, largest);
    return true;
}

/* --- tracking ----------------------------------------------------------------------- */

#define TRACKERS_MAX 4
#define BORROWED_MAX 20000

static struct tracker {
    rmm_resource_t *mr;
    void *blocks[BORROWED_MAX];
    size_t bytes[BORROWED_MAX];
    size_t count;
} trackers[TRACKERS_MAX];

static bool do_track(uint32_t id, bool stacks)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    rmm_resource_t *host;
    rmm_status_t status;
    if (id >= TRACKERS_MAX || rmm_host_resource_create(&host) != RMM_OK) {
        return false;
    }
    options.capture_stacks = stacks;
    status = rmm_tracking_adaptor_create(host, &options, &trackers[id].mr);
    rmm_resource_release(host);
    return status == RMM_OK;
}

static bool do_pool(uint32_t id)
{
    rmm_resource_t *cuda;
    rmm_status_t status;
    if (id >= TRACKERS_MAX || rmm_cuda_resource_create(&cuda) != RMM_OK) {
        return false;
    }
    status = rmm_pool_resource_create(cuda, NULL, &trackers[id].mr);
    rmm_resource_release(cuda);
    return status == RMM_OK;
}

static bool do_borrow(struct tracker *tracker, const char *rest)
{
    size_t bytes, count;
    if (sscanf(rest, "%zu %zu", &bytes, &count) != 2 ||
        count > BORROWED_MAX - tracker->count) {
        return false;
    }
    for (; count > 0; count--) {
        void **block = &tracker->blocks[tracker->count];
        if (rmm_resource_alloc(tracker->mr, bytes, 0, NULL, block) != RMM_OK) {
            return false;
        }
        tracker->bytes[tracker->count++] = bytes;
    }
    return true;
}

static bool do_fill(struct tracker *tracker, const char *rest)
{
    size_t bytes;
    while (sscanf(rest, "%zu", &bytes) == 1 && tracker->count < BORROWED_MAX) {
        void **block = &tracker->blocks[tracker->count];
        rmm_status_t status = rmm_resource_alloc(tracker->mr, bytes, 0, NULL, block);
        if (status != RMM_OK) {
            return status == RMM_ERR_OUT_OF_MEMORY;
        }
        tracker->bytes[tracker->count++] = bytes;
    }
    return false;
}

#define RACERS 8

typedef struct racer {
    pthread_t thread;
    rmm_resource_t *mr;
    size_t bytes;
} racer_t;

static void *take_all(void *arg)
{
    const racer_t *racer = arg;
    void *block;
    while (rmm_resource_alloc(racer->mr, racer->bytes, 0, NULL, &block) == RMM_OK) {
        continue;
    }
    return NULL;
}

static bool do_race(const struct tracker *tracker, const char *rest)
{
    racer_t racers[RACERS];
    for (size_t i = 0; i < RACERS; i++) {
        racers[i].mr = tracker->mr;
        racers[i].bytes = strtoull(rest, NULL, 10);
        if (pthread_create(&racers[i].thread, NULL, take_all, &racers[i]) != 0) {
            return false;
        }
    }
    for (size_t i = 0; i < RACERS; i++) {
        (void)pthread_join(racers[i].thread, NULL);
    }
    return true;
}

static bool do_return(struct tracker *tracker)
{
    for (; tracker->count > 0; tracker->count--) {
        size_t last = tracker->count - 1;
        rmm_resource_dealloc(
            tracker->mr, tracker->blocks[last], tracker->bytes[last], 0, NULL);
    }
    return true;
}

/* Of a tracker. True: it was one, and *done_out says whether it could be done. */
static bool
obey_tracker(const char *verb, uint32_t id, const char *rest, bool *done_out)
{
    struct tracker *tracker = id < TRACKERS_MAX ? &trackers[id] : NULL;
    bool known = true;
    if (strcmp(verb, "track") == 0) {
        *done_out = do_track(id, atoi(rest) != 0);
    } else if (strcmp(verb, "pool") == 0) {
        *done_out = do_pool(id);
    } else if (strcmp(verb, "auto") == 0) {
        *done_out = tracker != NULL && !rmm_auto_resource_create(NULL, &tracker->mr);
    } else if (strcmp(verb, "sleep") == 0) {
        *done_out = tracker != NULL && !rmm_pool_sleep(tracker->mr, NULL);
    } else if (strcmp(verb, "wake") == 0) {
        *done_out = tracker != NULL && !rmm_pool_wake(tracker->mr);
    } else if (strcmp(verb, "borrow") == 0) {
        *done_out = tracker != NULL && do_borrow(tracker, rest);
    } else if (strcmp(verb, "fill") == 0) {
        *done_out = tracker != NULL && do_fill(tracker, rest);
    } else if (strcmp(verb, "race") == 0) {
        *done_out = tracker != NULL && do_race(tracker, rest);
    } else if (strcmp(verb, "return") == 0) {
        *done_out = tracker != NULL && do_return(tracker);
    } else if (strcmp(verb, "untrack") == 0) {
        *done_out = tracker != NULL;
        rmm_resource_release(tracker != NULL ? tracker->mr : NULL);
    } else {
        known = false;
    }
    return known;
}

/* --- a second library --------------------------------------------------------------- */

/* The library's functions, as a program finds them that loads it. */
typedef rmm_status_t (*create_fn)(rmm_resource_t **out);
typedef rmm_status_t (*alloc_fn)(
    rmm_resource_t *mr, size_t bytes, size_t align, void **ptr_out);

static bool find_function(void *library, const char *name, void *function_out)
{
    void *found = dlsym(library, name);
    memcpy(function_out, &found, sizeof(found)); /* C has no cast for this */
    return found != NULL;
}

static bool do_load(uint32_t bytes, const char *path)
{
    create_fn create;
    alloc_fn alloc;
    rmm_resource_t *resource;
    void *block, *library;
    char name[256];
    if (sscanf(path, "%255s", name) != 1) {
        return false;
    }
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    return find_function(library, "rmm_cuda_resource_create", &create) &&
           find_function(library, "rmm_resource_alloc_sync", &alloc) &&
           create(&resource) == RMM_OK && alloc(resource, bytes, 0, &block) == RMM_OK;
}

static void do_exec(void)
{
    (void)execl("/proc/self/exe", "rmmfs_program", (char *)NULL);
}

static bool do_location_figure(const char *verb, uint32_t location, uint64_t bytes)
{
    static const struct verb {
        const char *name;
        void (*act)(uint32_t location, uint64_t bytes);
    } verbs[] = {
        {"alloc", location_alloc},
        {"free", location_free},
        {"reserve", rmm__location_reserve},
        {"unreserve", rmm__location_unreserve},
        {"pad", location_pad},
        {"devfree", rmm__location_device_free},
    };
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verb, verbs[i].name) == 0) {
            verbs[i].act(location, bytes);
            return true;
        }
    }
    return false;
}

static void
put_event(uint32_t action, uint64_t pointer, uint64_t bytes, uint64_t stream)
{
    const rmm_event_t event = {
        .action = action, .pointer = pointer, .bytes = bytes, .stream = stream};
    if (rmm__trace_is_on()) {
        rmm__trace_put(&event, 0, 1);
    }
}

static bool do_event(const char *rest)
{
    char action[16];
    uint64_t pointer, bytes, stream;
    if (sscanf(
            rest, "%15s %" SCNx64 " %" SCNu64 " %" SCNx64, action, &pointer, &bytes,
            &stream) != 4) {
        return false;
    }
    put_event(
        strcmp(action, "allocate") == 0 ? RMM_EVENT_ALLOCATE
        : strcmp(action, "free") == 0   ? RMM_EVENT_FREE
                                        : RMM_EVENT_FAILURE,
        pointer, bytes, stream);
    return true;
}

static void do_events(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_event(
            i % 2 == 0 ? RMM_EVENT_ALLOCATE : RMM_EVENT_FREE, 0x100000 + i / 2, i, 0);
    }
}

/* bytes: of a user's request; 0: the resource was asked by another one. */
static void refuse(uint32_t id, uint64_t bytes)
{
    rmm__accounting_oom(&resources[id]);
    if (bytes != 0) {
        rmm__refusal_put(&resources[id], bytes, &(rmm_refused_by_t){0});
    }
}

static bool obey(const char *line)
{
    char verb[16] = "";
    uint32_t id = 0;
    int end = 0;
    if (sscanf(line, "%15s %u %n", verb, &id, &end) < 1) {
        return false;
    }
    const char *rest = line + end;
    uint64_t bytes = strtoull(rest, NULL, 10);
    bool done = false;
    if (obey_tracker(verb, id, rest, &done)) {
        return done;
    }
    if (strcmp(verb, "location") == 0) {
        return do_location(id, rest);
    }
    if (strcmp(verb, "resource") == 0) {
        return do_resource(id, rest);
    }
    if (strcmp(verb, "take") == 0 || strcmp(verb, "give") == 0) {
        return do_take(id, bytes, verb[0] == 't');
    }
    if (strcmp(verb, "hole") == 0) {
        return do_hole(id, rest);
    }
    if (strcmp(verb, "close") == 0 && id < RESOURCES_MAX) {
        rmm__accounting_close(&resources[id]);
        return true;
    }
    if (strcmp(verb, "load") == 0) {
        return do_load(id, rest);
    }
    if (strcmp(verb, "event") == 0) {
        return do_event(line + strlen(verb));
    }
    if (strcmp(verb, "events") == 0) {
        do_events(id);
        return true;
    }
    if (strcmp(verb, "log") == 0) {
        RMM_LOG_AT((rmm_log_level_t)id, "%.*s", (int)strcspn(rest, "\n"), rest);
        return true;
    }
    if (strcmp(verb, "exec") == 0) {
        do_exec();
        return false;
    }
    if (strcmp(verb, "refuse") == 0 && id < RESOURCES_MAX &&
        resources[id].slot != NULL) {
        refuse(id, bytes);
        return true;
    }
    if (strcmp(verb, "oom") == 0) {
        rmm__location_oom(id);
        return true;
    }
    return do_location_figure(verb, id, bytes);
}

/* Returns only if it cannot. */
static int run_in_own_mounts(char **command)
{
    if (mounts_unshare()) {
        (void)execvp(command[0], command);
    }
    perror("rmmfs_program: mounts");
    return 1;
}

/* Returns only if it cannot. */
static int run_without_openat2(char **command)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) {
        (void)execvp(command[0], command);
    }
    perror("rmmfs_program: without_openat2");
    return 1;
}

/* One program of many: a resource on the GPU, pools on top of it, and some bytes in each. */
static void live_as_one_of_many(uint32_t pools, const char *uuid)
{
    const rmm_location_identity_t gpu = {uuid, "0000:00:00.0", "Test GPU", 1u << 30};
    const rmm_accounting_desc_t cuda = {
        .type = "cuda", .name = "cuda", .instance_id = 1};
    rmm__publish_open("none");
    rmm__location_open(0, &gpu);
    bool done = rmm__accounting_open(&resources[1], &cuda) == RMM_OK;
    for (uint32_t id = 2; id < pools + 2 && done; id++) {
        const rmm_accounting_desc_t pool = {
            .type = "pool", .name = "pool", .instance_id = id, .upstream_id = 1};
        done = id < RESOURCES_MAX &&
               rmm__accounting_open(&resources[id], &pool) == RMM_OK &&
               do_take(id, 4096, true);
        RMM_ACCOUNTING_SET(&resources[id], free_bytes, 8192);
        RMM_ACCOUNTING_SET(&resources[id], largest_free_bytes, 6144);
    }
    rmm__location_reserve(0, (uint64_t)pools * 12288);
    location_alloc(0, (uint64_t)pools * 4096);
    (void)printf("%s\n", done ? "ok" : "failed");
    (void)fflush(stdout);
    (void)pause();
}

/* A process that forks before its first segment leaves its children free to make theirs. */
static int run_many(char **arguments)
{
    uint32_t count = (uint32_t)strtoul(arguments[0], NULL, 10);
    uint32_t pools = (uint32_t)strtoul(arguments[1], NULL, 10);
    for (uint32_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            live_as_one_of_many(pools, arguments[2]);
            _exit(0);
        }
        if (child < 0) {
            perror("rmmfs_program: fork");
            return 1;
        }
    }
    (void)pause();
    return 0;
}

int main(int argc, char **argv)
{
    char line[256];
    if (argc == 5 && strcmp(argv[1], "many") == 0) {
        return run_many(argv + 2);
    }
    if (argc > 2 && strcmp(argv[1], "mounts") == 0) {
        return run_in_own_mounts(argv + 2);
    }
    if (argc > 2 && strcmp(argv[1], "without_openat2") == 0) {
        return run_without_openat2(argv + 2);
    }
    rmm__publish_open("none");
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)printf("ok\n");
    while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "quit\n") != 0) {
        (void)printf("%s\n", obey(line) ? "ok" : "not a command");
    }
    return 0;
}
