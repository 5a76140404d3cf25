/* SPDX-License-Identifier: Apache-2.0 */
/* Places in SARIF; see sarif_place.h. */
#include "run/sarif_place.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "run/names.h"
#include "run/text.h"

json_t *run_sarif_text(const char *text)
{
    char *clean = strdup(text);
    if (clean == NULL) {
        return NULL;
    }
    run_text_clean(clean);
    json_t *value = json_string(clean);
    free(clean);
    return value;
}

/* --- paths ------------------------------------------------------------------------------- */

char *run_sarif_encode(const char *path)
{
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = malloc(3 * strlen(path) + 1), *to = encoded;
    if (encoded == NULL) {
        return NULL;
    }
    for (const char *from = path; *from != '\0'; from++) {
        unsigned char byte = (unsigned char)*from;
        if (byte < 0x80 && (isalnum(byte) || strchr("-._~/", byte) != NULL)) {
            *to++ = *from;
        } else {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    *to = '\0';
    return encoded;
}

/* Where the part before the last one begins in text[0..length), which has no '/' at its end. */
static size_t parent_of(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] != '/') {
        length--;
    }
    return length;
}

/* Without "//", "." and, as far as there is a folder before it, "..": what the path means where no
 * folder on it is a link. False: too long. */
static bool normalise(const char *path, char out[PATH_MAX])
{
    size_t length = 0;
    bool is_absolute = path[0] == '/';
    if (strlen(path) + 2 > PATH_MAX) {
        return false;
    }
    out[length] = '/';
    length += is_absolute ? 1 : 0;
    size_t least = length;
    while (*path != '\0') {
        size_t part = strcspn(path, "/");
        bool is_up = part == 2 && strncmp(path, "..", 2) == 0;
        if (is_up && length > least) {
            length = parent_of(out, length - 1);
        } else if (
            part > 0 && !(part == 1 && path[0] == '.') && !(is_up && is_absolute)) {
            memcpy(out + length, path, part);
            length += part;
            out[length++] = '/';
            least = is_up ? length : least;
        }
        path += part;
        path += *path == '/' ? 1 : 0;
    }
    out[length > 1 ? length - 1 : length] = '\0';
    return true;
}

/* The path as it is below the folder; NULL: it is not. */
static const char *below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (path[0] != '/') {
        return strncmp(path, "../", 3) != 0 ? path : NULL;
    }
    bool is_below =
        length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/';
    return is_below ? path + length + 1 : NULL;
}

/* The source of a frame, which compilers name from the folder that they ran in. */
static void source_of(const run_frame_t *frame, char path[PATH_MAX])
{
    bool is_whole = frame->file[0] == '/' || frame->folder == NULL;
    (void)snprintf(
        path, PATH_MAX, "%s%s%s", is_whole ? "" : frame->folder, is_whole ? "" : "/",
        frame->file);
}

static bool has_source_below(const run_frame_t *frame, const char *folder)
{
    char path[PATH_MAX], whole[PATH_MAX];
    if (frame->file == NULL) {
        return false;
    }
    source_of(frame, path);
    return normalise(path, whole) && below(whole, folder) != NULL;
}

json_t *run_sarif_artifact(const char *path, const char *folder)
{
    char whole[PATH_MAX], uri[3 * PATH_MAX + 16];
    const char *shown = normalise(path, whole) ? whole : path;
    shown = shown[0] != '\0' ? shown : ".";
    const char *relative = below(shown, folder);
    char *encoded = run_sarif_encode(relative != NULL ? relative : shown);
    json_t *object = json_object();
    if (encoded == NULL || object == NULL) {
        free(encoded);
        json_decref(object);
        return NULL;
    }
    bool is_absolute = relative == NULL && shown[0] == '/';
    (void)snprintf(uri, sizeof(uri), "%s%s", is_absolute ? "file://" : "", encoded);
    free(encoded);
    return json_whole_or_null(
        object, json_put(object, "uri", json_string(uri)) &&
                    (relative == NULL ||
                     json_put(object, "uriBaseId", json_string(RUN_SARIF_BASE))));
}

/* --- frames ------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static json_t *json_of_function(const char *function)
{
    char *demangled = run_demangle(function);
    json_t *object = json_object();
    bool good = json_put(
                    object, "fullyQualifiedName",
                    run_sarif_text(demangled != NULL ? demangled : function)) &&
                json_put(object, "kind", json_string("function")) &&
                (demangled == NULL ||
                 json_put(object, "decoratedName", run_sarif_text(function)));
    free(demangled);
    return json_whole_or_null(object, good);
}

static json_t *json_of_region(int line)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object, json_put(object, "startLine", json_integer(line > 0 ? line : 1)));
}

/* The line of a file. */
static json_t *json_of_line(const char *path, int line, const char *folder)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "artifactLocation", run_sarif_artifact(path, folder)) &&
            json_put(object, "region", json_of_region(line)));
}

/* NULL or empty: it is not known. */
static bool put_function(json_t *location, const char *function)
{
    if (function == NULL || function[0] == '\0') {
        return true;
    }
    json_t *functions = json_array();
    bool good = functions != NULL &&
                json_array_append_new(functions, json_of_function(function)) == 0;
    return json_put(location, "logicalLocations", json_whole_or_null(functions, good));
}

/* Its line, or where the source is not known its place in the file of the program or library. */
static json_t *json_of_place(const run_frame_t *frame, const char *folder)
{
    if (frame->file != NULL) {
        char path[PATH_MAX];
        source_of(frame, path);
        return json_of_line(path, frame->line, folder);
    }
    json_t *object = json_object(), *address = json_object();
    bool good = json_put(address, "kind", json_string("instruction")) &&
                json_put(address, "relativeAddress", json_count(frame->offset));
    if (!good) {
        json_decref(address);
        address = NULL;
    }
    good = json_put(object, "address", address) &&
           (frame->module.path[0] == '\0' ||
            json_put(
                object, "artifactLocation",
                run_sarif_artifact(frame->module.path, folder)));
    return json_whole_or_null(object, good);
}

static json_t *json_of_frame(const run_frame_t *frame, const char *folder)
{
    json_t *object = json_object(), *location = json_object();
    const char *module = base_name(frame->module.path);
    bool good = json_put(location, "physicalLocation", json_of_place(frame, folder)) &&
                put_function(location, frame->function);
    good = json_put(object, "location", json_whole_or_null(location, good)) &&
           (module[0] == '\0' || json_put(object, "module", run_sarif_text(module)));
    return json_whole_or_null(object, good);
}

static json_t *json_of_python(const rmm_diag_line_t *line, const char *folder)
{
    json_t *location = json_object();
    bool good = json_put(
                    location, "physicalLocation",
                    json_of_line(line->file, (int)line->number, folder)) &&
                put_function(location, line->function);
    return json_whole_or_null(location, good);
}

static json_t *json_of_python_frame(const rmm_diag_line_t *line, const char *folder)
{
    json_t *object = json_object();
    return json_whole_or_null(
        object, json_put(object, "location", json_of_python(line, folder)));
}

/* The lines of Python first, as in the text. */
static json_t *json_of_frames(const run_stack_t *stack, const char *folder)
{
    const run_python_t *python = &stack->python;
    json_t *frames = json_array();
    bool good = frames != NULL;
    for (uint32_t i = 0; good && i < python->line_count; i++) {
        good = json_array_append_new(
                   frames, json_of_python_frame(&python->lines[i], folder)) == 0;
    }
    for (uint32_t i = run_stack_first(stack); good && i < stack->frame_count; i++) {
        good = json_array_append_new(
                   frames, json_of_frame(&stack->frames[i], folder)) == 0;
    }
    return json_whole_or_null(frames, good);
}

json_t *
run_sarif_stack(const run_stack_t *stack, const char *message, const char *folder)
{
    json_t *object = json_object(), *text = json_object();
    bool good = json_put(text, "text", run_sarif_text(message));
    good = json_put(object, "message", json_whole_or_null(text, good)) &&
           json_put(object, "frames", json_of_frames(stack, folder));
    return json_whole_or_null(object, good);
}

/* --- the first place --------------------------------------------------------------------- */

/* The innermost frame with a source in the folder; else with any; else the first of the program.
 * NULL: there are no frames. */
static const run_frame_t *main_frame(const run_stack_t *stack, const char *folder)
{
    uint32_t first = run_stack_first(stack);
    const run_frame_t *with_line = NULL;
    for (uint32_t i = first; i < stack->frame_count; i++) {
        const run_frame_t *frame = &stack->frames[i];
        if (has_source_below(frame, folder)) {
            return frame;
        }
        with_line = with_line == NULL && frame->file != NULL ? frame : with_line;
    }
    return with_line != NULL || first >= stack->frame_count ? with_line
                                                            : &stack->frames[first];
}

/* Of Python: the innermost line in the folder that is in no installed package; else the innermost
 * outside of packages. NULL: there are none. */
static const rmm_diag_line_t *main_line(const run_python_t *python, const char *folder)
{
    char whole[PATH_MAX];
    const rmm_diag_line_t *first = NULL;
    for (uint32_t i = 0; i < python->line_count; i++) {
        const rmm_diag_line_t *line = &python->lines[i];
        if (!run_python_is_own(line) || line->file[0] == '\0') {
            continue;
        }
        if (normalise(line->file, whole) && below(whole, folder) != NULL) {
            return line;
        }
        first = first == NULL ? line : first;
    }
    return first;
}

static json_t *
json_of_main_frame(const run_frame_t *frame, const char *program, const char *folder)
{
    char path[PATH_MAX];
    int line = 1;
    if (frame != NULL && frame->file != NULL) {
        source_of(frame, path);
        line = frame->line;
    } else {
        bool has_module = frame != NULL && frame->module.path[0] != '\0';
        (void)snprintf(
            path, sizeof(path), "%s", has_module ? frame->module.path : program);
    }
    json_t *object = json_object();
    bool good =
        json_put(object, "physicalLocation", json_of_line(path, line, folder)) &&
        (frame == NULL || put_function(object, frame->function));
    return json_whole_or_null(object, good);
}

json_t *
run_sarif_location(const run_stack_t *stack, const char *program, const char *folder)
{
    const rmm_diag_line_t *line = main_line(&stack->python, folder);
    return line != NULL
               ? json_of_python(line, folder)
               : json_of_main_frame(main_frame(stack, folder), program, folder);
}
