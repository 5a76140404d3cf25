/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module rmm_c._segments: the figures of the processes of a node, without rmmfs and without
 * librmm-c. lib/node reads them, as for rmm-top, and trusts nothing in a segment.
 *
 * The shape is that of /rmm/json: devices, and processes with devices with resources, each with
 * its figures by their names.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "node/sampler.h"
#include "segment/runtime_dir.h"

/* A snapshot that becomes objects; the next use and resource, which are in the order of the
 * processes. */
typedef struct reading {
    sampler_t sampler;
    node_t node;
    uint32_t use, resource;
} reading_t;

/* --- objects ------------------------------------------------------------------------------ */

static bool set(PyObject *map, const char *name, PyObject *value)
{
    bool done = value != NULL && PyDict_SetItemString(map, name, value) == 0;

    Py_XDECREF(value);
    return done;
}

static bool append(PyObject *list, PyObject *value)
{
    bool done = value != NULL && PyList_Append(list, value) == 0;

    Py_XDECREF(value);
    return done;
}

static PyObject *whole_or_null(PyObject *object, bool is_whole)
{
    if (!is_whole) {
        Py_XDECREF(object);
        return NULL;
    }
    return object;
}

static PyObject *text(const char *string)
{
    return PyUnicode_DecodeUTF8(string, (Py_ssize_t)strlen(string), "replace");
}

static PyObject *figure(uint64_t value)
{
    if (value == FIGURE_UNKNOWN) {
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLongLong(value);
}

static bool
set_figures(PyObject *map, const figure_name_t *names, const figures_t *figures)
{
    bool is_whole = true;

    for (; is_whole && names->name != NULL; names++) {
        is_whole = set(map, names->name, figure(figure_value(figures, names->offset)));
    }
    return is_whole;
}

/* --- statistics of newer programs --------------------------------------------------------- */

typedef struct addition {
    PyObject *map;
    bool is_whole;
} addition_t;

static void add_newer(const rmm_segment_schema_t *entry, uint64_t value, void *arg)
{
    addition_t *addition = arg;

    addition->is_whole =
        addition->is_whole && set(addition->map, entry->name, figure(value));
}

/* Those that this version does not know, at a location or a slot of a process. */
static bool set_newer(
    PyObject *map, const reading_t *reading, uint32_t process, uint16_t scope,
    uint32_t index)
{
    const rmm_segment_t *segment = &reading->sampler.segments.list[process]->segment;
    addition_t addition = {map, true};
    rmm_record_t record;

    if (figures_has_newer(segment) &&
        (scope == RMM_SCHEMA_SLOT
             ? rmm__segment_read_slot(segment, index, &record, NULL)
             : rmm__segment_read_location(segment, index, &record))) {
        figures_each_newer(segment, scope, &record, add_newer, &addition);
    }
    return addition.is_whole;
}

/* --- a process ---------------------------------------------------------------------------- */

static PyObject *resource_of(const reading_t *reading, const node_resource_t *resource)
{
    PyObject *map = PyDict_New();

    return whole_or_null(
        map,
        map != NULL &&
            set(map, "resource",
                PyUnicode_FromFormat("%u.%s", resource->instance_id, resource->name)) &&
            set(map, "type", text(resource->type)) &&
            set_figures(map, figures_of_resources, &resource->figures) &&
            set_newer(
                map, reading, resource->process, RMM_SCHEMA_SLOT, resource->slot));
}

static PyObject *resources_of(const reading_t *reading, const node_use_t *use)
{
    const node_t *node = &reading->node;
    PyObject *list = PyList_New(0);
    bool is_whole = list != NULL;

    for (uint32_t i = reading->resource; is_whole && i < node->resource_count &&
                                         node->resources[i].process == use->process;
         i++) {
        if (node->resources[i].device == use->device) {
            is_whole = append(list, resource_of(reading, &node->resources[i]));
        }
    }
    return whole_or_null(list, is_whole);
}

static bool set_device(PyObject *map, const node_device_t *device)
{
    return set(map, "device", text(device->name)) &&
           set(map, "uuid", text(device->uuid)) &&
           set(map, "capacity_bytes", figure(device->capacity_bytes));
}

static PyObject *use_of(const reading_t *reading, const node_use_t *use)
{
    PyObject *map = PyDict_New();

    return whole_or_null(
        map,
        map != NULL && set_device(map, &reading->node.devices[use->device]) &&
            set_figures(map, figures_of_locations, &use->figures) &&
            set_newer(map, reading, use->process, RMM_SCHEMA_LOCATION, use->location) &&
            set(map, "resources", resources_of(reading, use)));
}

static PyObject *uses_of(reading_t *reading, uint32_t process)
{
    const node_t *node = &reading->node;
    PyObject *list = PyList_New(0);
    bool is_whole = list != NULL;

    for (; is_whole && reading->use < node->use_count &&
           node->uses[reading->use].process == process;
         reading->use++) {
        is_whole = append(list, use_of(reading, &node->uses[reading->use]));
    }
    while (reading->resource < node->resource_count &&
           node->resources[reading->resource].process == process) {
        reading->resource++;
    }
    return whole_or_null(list, is_whole);
}

static PyObject *process_of(reading_t *reading, uint32_t index)
{
    const node_process_t *process = &reading->node.processes[index];
    const rmm_segment_t *segment = &reading->sampler.segments.list[index]->segment;
    int pid = process->pid != 0 ? (int)process->pid : (int)segment->header.pid;
    PyObject *map = PyDict_New();

    return whole_or_null(
        map, map != NULL && set(map, "pid", PyUnicode_FromFormat("%d", pid)) &&
                 set(map, "state", text(process->is_live ? "live" : "exited")) &&
                 set(map, "uid", PyLong_FromUnsignedLong(process->uid)) &&
                 set(map, "comm", text(process->comm)) &&
                 set(map, "devices", uses_of(reading, index)));
}

/* --- the node ----------------------------------------------------------------------------- */

static PyObject *processes_of(reading_t *reading)
{
    PyObject *list = PyList_New(0);
    bool is_whole = list != NULL;

    for (uint32_t i = 0; is_whole && i < reading->node.process_count; i++) {
        is_whole = append(list, process_of(reading, i));
    }
    return whole_or_null(list, is_whole);
}

/* Those that a live process uses. */
static PyObject *devices_of(const node_t *node)
{
    PyObject *list = PyList_New(0);
    bool is_whole = list != NULL;

    for (uint32_t i = 1; is_whole && i <= node->device_count; i++) {
        const node_device_t *device =
            &node->devices[i < node->device_count ? i : NODE_HOST];
        PyObject *map = device->use_count > 0 ? PyDict_New() : NULL;

        if (device->use_count > 0) {
            is_whole = append(
                list,
                whole_or_null(
                    map, map != NULL && set_device(map, device) &&
                             set_figures(map, figures_of_locations, &device->figures)));
        }
    }
    return whole_or_null(list, is_whole);
}

static PyObject *folders_of(const segments_t *segments)
{
    PyObject *list = PyList_New(0);
    bool is_whole = list != NULL;

    for (uint32_t i = 0; is_whole && i < segments->path_count; i++) {
        is_whole = append(list, PyUnicode_DecodeFSDefault(segments->paths[i]));
    }
    return whole_or_null(list, is_whole);
}

static PyObject *take(reading_t *reading)
{
    PyObject *map;

    node_init(&reading->node);
    reading->sampler.segments.keeps_ended = true;
    if (!sampler_take(&reading->sampler, &reading->node)) {
        return PyErr_NoMemory();
    }
    map = PyDict_New();
    return whole_or_null(
        map, map != NULL &&
                 set(map, "folders", folders_of(&reading->sampler.segments)) &&
                 set(map, "devices", devices_of(&reading->node)) &&
                 set(map, "processes", processes_of(reading)));
}

/* The directories of this process, of which its own is made if it is missing. */
static bool begin(reading_t *reading)
{
    char path[RMM_RUNTIME_DIR_BYTES], reason[256];

    if (!rmm__runtime_dir(path, reason, sizeof(reason)) ||
        !sampler_init(&reading->sampler, reason, sizeof(reason))) {
        PyErr_SetString(PyExc_OSError, reason);
        return false;
    }
    return true;
}

static bool begin_at(reading_t *reading, PyObject *path)
{
    const char *folder = PyBytes_AsString(path);
    int error = sampler_init_at(&reading->sampler, folder);

    if (error != 0) {
        errno = error;
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, folder);
    }
    return error == 0;
}

static PyObject *read_node(PyObject *module, PyObject *args)
{
    PyObject *path = NULL, *found = NULL;
    reading_t *reading;

    (void)module;
    if (!PyArg_ParseTuple(args, "|O&", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    reading = PyMem_Calloc(1, sizeof(*reading));
    if (reading == NULL) {
        Py_XDECREF(path);
        return PyErr_NoMemory();
    }
    if (path != NULL ? begin_at(reading, path) : begin(reading)) {
        found = take(reading);
        node_fini(&reading->node);
        sampler_fini(&reading->sampler);
    }
    PyMem_Free(reading);
    Py_XDECREF(path);
    return found;
}

static PyMethodDef functions[] = {
    {"read_node", read_node, METH_VARARGS,
     "The processes of a folder of segments, or of those of this process."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rmm_c._segments",
    .m_doc = "Reads the segments of processes; use rmm_c.open_tree().",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__segments(void)
{
    return PyModule_Create(&definition);
}
