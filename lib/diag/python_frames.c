/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's frames: the proof, the gate, and the texts; see python_frames.h.
 *
 * The gate: a thread that reads frames counts itself, then looks at the gate; the interpreter's end
 * closes it first and looks at the count then. All four are sequentially consistent: one of the two
 * sees the other.
 */
#include "diag/python_frames.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/hash.h"
#include "diag/python_calls.h"
#include "diag/python_lines.h"

typedef enum proof { PROOF_TO_COME, PROOF_GOOD, PROOF_BAD } proof_t;
typedef enum gate { GATE_FOR_GIL, GATE_OPEN, GATE_CLOSED } gate_t;

enum { CLOSING_MS = 1000, METH_NOARGS = 4, OBJECT_TYPE = 8 };

_Atomic(bool) rmm__python_is_on;

static rmm_python_calls_t python; /* do not change once it is on, as the next two */
static rmm_python_layout_t layout;
static char version[20];                 /* "3.11.7" */
static _Atomic(rmm_diag_python_t) wrong; /* why there are no lines; 0: nothing */
static _Atomic(proof_t) proof;
static _Atomic(gate_t) gate;
static _Atomic(uint32_t) readers; /* threads that are behind the gate */
static _Atomic(bool) is_asked;    /* Python will call in_interpreter() */

static void give_up(rmm_diag_python_t why)
{
    atomic_store_explicit(&wrong, why, memory_order_relaxed);
    atomic_store_explicit(&rmm__python_is_on, false, memory_order_relaxed);
}

/* --- the proof: with the GIL --------------------------------------------------------------- */

static bool has_attribute(void *object, const char *name, uint32_t offset)
{
    void *is = python.PyObject_GetAttrString(object, name);
    const void *loaded;

    memcpy(&loaded, (const char *)object + offset, sizeof(loaded));
    if (is != NULL) {
        python.Py_DecRef(is); /* the object keeps it */
    }
    return is != NULL && is == loaded;
}

/* The frame that Python calls `frame` is the one that was read. */
static bool is_confirmed(void *frame, const rmm_python_frame_t *read)
{
    void *code = python.PyFrame_GetCode(frame);
    bool good =
        code == read->code &&
        python.PyFrame_GetLineNumber(frame) ==
            python.PyCode_Addr2Line(code, read->at) &&
        has_attribute(code, "co_filename", layout.code_file) &&
        has_attribute(
            code, layout.code_begin < 0 ? "co_name" : "co_qualname", layout.code_name);

    python.Py_DecRef(code);
    return good;
}

/* The frames agree, each with each, and end together. */
static bool are_confirmed(void *frame, const rmm_python_frame_t *frames, uint32_t count)
{
    bool good = true;
    uint32_t i = 0;

    python.Py_IncRef(frame);
    for (; good && frame != NULL && i < count; i++) {
        void *back = NULL;

        good = is_confirmed(frame, &frames[i]);
        back = python.PyFrame_GetBack(frame);
        python.Py_DecRef(frame);
        frame = back;
    }
    good = good && i == count && (frame == NULL || count == RMM_PYTHON_FRAMES);
    if (frame != NULL) {
        python.Py_DecRef(frame);
    }
    return good;
}

static void compare(void *state, const rmm_python_probe_t *probe)
{
    rmm_python_frame_t frames[RMM_PYTHON_FRAMES];
    void *frame = python.PyEval_GetFrame();
    uint32_t count =
        rmm__python_walk(&layout, state, python.PyCode_Type, probe, frames);

    if (frame == NULL && count == 0) {
        return; /* proves nothing */
    }
    if (frame != NULL && are_confirmed(frame, frames, count)) {
        atomic_store_explicit(&proof, PROOF_GOOD, memory_order_release);
    } else {
        atomic_store_explicit(&proof, PROOF_BAD, memory_order_relaxed);
        give_up(RMM_DIAG_PYTHON_DIFFERS);
    }
}

/* Leaves an exception that is on its way as it is. No collection runs meanwhile: its finalizers
 * could use the GPU. */
static void prove(void *state)
{
    int fds[2], had_gc = 0;
    void *type = NULL, *value = NULL, *trace = NULL;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return; /* the next time */
    }
    had_gc = python.PyGC_Disable != NULL ? python.PyGC_Disable() : 0;
    python.PyErr_Fetch(&type, &value, &trace);
    compare(state, &(rmm_python_probe_t){.from = fds[0], .to = fds[1]});
    python.PyErr_Restore(type, value, trace);
    if (had_gc && python.PyGC_Enable != NULL) {
        (void)python.PyGC_Enable();
    }
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static bool has_gil(const void *state)
{
    return state != NULL && python.PyThreadState_GetUnchecked() == state;
}

static bool is_proved(void *state)
{
    /* acquire: pairs with compare(), though nothing but the proof itself depends on it */
    proof_t now = atomic_load_explicit(&proof, memory_order_acquire);

    if (now == PROOF_TO_COME && has_gil(state)) {
        prove(state);
        now = atomic_load_explicit(&proof, memory_order_acquire);
    }
    return now == PROOF_GOOD;
}

/* --- the end of the interpreter ------------------------------------------------------------- */

/* Registered with atexit: Python calls it before it frees any thread's frames. Whatever happens,
 * the program's end does not wait for ever. */
static void *close_gate(void *self, void *arguments)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    (void)self;
    (void)arguments;
    atomic_store_explicit(&gate, GATE_CLOSED, memory_order_seq_cst);
    for (int ms = 0;
         ms < CLOSING_MS && atomic_load_explicit(&readers, memory_order_seq_cst) > 0;
         ms++) {
        (void)nanosleep(&pause, NULL);
    }
    return python.Py_BuildValue("");
}

/* Python's PyMethodDef */
static struct {
    const char *name;
    void *(*call)(void *self, void *arguments);
    int flags;
    const char *text;
} closer = {"rmm_diag_close", close_gate, METH_NOARGS, NULL};

static bool register_closer(void)
{
    void *module = python.PyImport_ImportModule("atexit");
    void *function =
        module != NULL ? python.PyCFunction_NewEx(&closer, NULL, NULL) : NULL;
    void *done = function != NULL
                     ? python.PyObject_CallMethod(module, "register", "O", function)
                     : NULL;
    void *const objects[] = {module, function, done};

    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        if (objects[i] != NULL) {
            python.Py_DecRef(objects[i]);
        }
    }
    return done != NULL;
}

/* Called by Python between two instructions of its main thread: it has the GIL, and no driver or
 * engine is in a call on its stack. */
static int in_interpreter(void *unused)
{
    (void)unused;
    if (!is_proved(python.PyGILState_GetThisThreadState())) {
        atomic_store_explicit(&is_asked, false, memory_order_relaxed);
        return 0;
    }
    if (register_closer()) {
        atomic_store_explicit(&gate, GATE_OPEN, memory_order_seq_cst);
    } else {
        python.PyErr_Clear();
        give_up(RMM_DIAG_PYTHON_REFUSES);
    }
    return 0;
}

static void ask_python(void)
{
    if (python.Py_IsInitialized() != 0 &&
        !atomic_load_explicit(&is_asked, memory_order_relaxed) &&
        !atomic_exchange_explicit(&is_asked, true, memory_order_relaxed) &&
        python.Py_AddPendingCall(in_interpreter, NULL) != 0) {
        atomic_store_explicit(&is_asked, false, memory_order_relaxed); /* it was full */
    }
}

/* --- reading -------------------------------------------------------------------------------- */

static void leave(void)
{
    /* release: the frames are read; pairs with close_gate() */
    atomic_fetch_sub_explicit(&readers, 1, memory_order_release);
}

/* NULL: not to be read. Else leave() follows. */
static void *enter(void)
{
    void *state = NULL;
    gate_t now = GATE_CLOSED;

    atomic_fetch_add_explicit(&readers, 1, memory_order_seq_cst);
    now = atomic_load_explicit(&gate, memory_order_seq_cst);
    state = python.PyGILState_GetThisThreadState();
    if (state != NULL && now == GATE_FOR_GIL) {
        ask_python();
    }
    if (state != NULL && (now == GATE_OPEN || has_gil(state))) {
        return state;
    }
    leave();
    return NULL;
}

/* In the child of a fork, where the other threads are not. */
static void forget_readers(void)
{
    atomic_store_explicit(&readers, 0, memory_order_relaxed);
}

static uint64_t key_of(const rmm_python_stack_t *stack)
{
    uint64_t key = stack->count;

    for (uint32_t i = 0; i < stack->count; i++) {
        const rmm_python_frame_t *frame = &stack->frames[i];

        key = rmm__hash(key ^ (uintptr_t)frame->code);
        key = rmm__hash(key ^ (key >> 32) ^ (uint32_t)frame->at) ^ frame->content;
    }
    return key != 0 ? key : 1;
}

void rmm__python_read(rmm_python_stack_t *stack)
{
    void *state = enter();

    if (state == NULL) {
        return;
    }
    if (is_proved(state)) {
        stack->count =
            rmm__python_walk(&layout, state, python.PyCode_Type, NULL, stack->frames);
        stack->key = stack->count > 0 ? key_of(stack) : 0;
    }
    leave();
}

/* --- texts ---------------------------------------------------------------------------------- */

/* Of a character; 0: it has no UTF-8. */
static size_t utf8_of(uint32_t character, char out[4])
{
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t bytes = character < 0x80      ? 1
                   : character < 0x800   ? 2
                   : character < 0x10000 ? 3
                                         : 4;

    if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) {
        return 0; /* half of a pair: a byte of a name that is no UTF-8 */
    }
    for (size_t i = bytes; i-- > 1; character >>= 6) {
        out[i] = (char)(0x80 | (character & 0x3f));
    }
    out[0] = (char)(first[bytes] | character);
    return bytes;
}

/* The end of a text of Python that has room; "": it is none. */
static void copy_text(const void *code, uint32_t offset, char *out, size_t room)
{
    const void *text = NULL, *type = NULL;
    ssize_t at = 0;
    size_t free_bytes = room - 1;

    memset(out, 0, room);
    memcpy(&text, (const char *)code + offset, sizeof(text));
    if (text != NULL) {
        memcpy(&type, (const char *)text + OBJECT_TYPE, sizeof(type));
    }
    at = type == python.PyUnicode_Type ? python.PyUnicode_GetLength(text) : 0;
    while (at > 0) {
        char character[4] = "?";
        size_t bytes = utf8_of(python.PyUnicode_ReadChar(text, --at), character);

        bytes = bytes > 0 ? bytes : 1;
        if (bytes > free_bytes) {
            break;
        }
        free_bytes -= bytes;
        memcpy(out + free_bytes, character, bytes);
    }
    memmove(out, out + free_bytes, room - free_bytes);
    memset(out + room - free_bytes, 0, free_bytes);
}

static uint32_t line_of(const rmm_python_frame_t *frame)
{
    rmm_diag_line_t line = {.number = 0};
    int number = python.PyCode_Addr2Line(frame->code, frame->at);

    line.number = number > 0 ? (uint32_t)number : 0;
    copy_text(frame->code, layout.code_file, line.file, sizeof(line.file));
    copy_text(frame->code, layout.code_name, line.function, sizeof(line.function));
    return rmm__python_line_put(&line);
}

uint32_t
rmm__python_lines(const rmm_python_stack_t *stack, uint32_t lines[RMM_DIAG_STACK_LINES])
{
    if (stack->count == 0 || enter() == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < stack->count; i++) {
        lines[i] = line_of(&stack->frames[i]);
    }
    leave();
    return stack->count;
}

/* --- beginning ------------------------------------------------------------------------------ */

static void find_python(void)
{
    const char *lacking = NULL, *text = NULL;
    int major = 0, minor = 0;

    if (!rmm__python_calls_find(&python, &lacking) && lacking == NULL) {
        return; /* not a program of Python */
    }
    text = python.Py_GetVersion();
    (void)sscanf(text, "%d.%d", &major, &minor);
    (void)snprintf(version, sizeof(version), "%.*s", (int)strcspn(text, " "), text);
    if (strstr(text, "free-threading") != NULL) {
        give_up(RMM_DIAG_PYTHON_NO_GIL);
    } else if (
        lacking != NULL ||
        !rmm__python_layout_of(major, minor, python._PyRuntime, &layout)) {
        give_up(RMM_DIAG_PYTHON_UNKNOWN);
    } else if (pthread_atfork(NULL, NULL, forget_readers) == 0) {
        atomic_store_explicit(&rmm__python_is_on, true, memory_order_release);
    }
}

void rmm__python_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, find_python);
}

const char *rmm__python_version(void)
{
    return version;
}

rmm_diag_python_t rmm__python_state(void)
{
    rmm_diag_python_t why = atomic_load_explicit(&wrong, memory_order_relaxed);

    if (why != 0 || version[0] == '\0') {
        return why;
    }
    return atomic_load_explicit(&proof, memory_order_relaxed) == PROOF_GOOD
               ? RMM_DIAG_PYTHON_HAS
               : RMM_DIAG_PYTHON_UNPROVED;
}
