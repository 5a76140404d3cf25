/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module rmm_c._segments: the figures of the processes of a runtime folder, without rmmfs
 * and without librmm-c. It is the reader of the daemon, which trusts nothing in a segment.
 *
 * The shape is that of /rmm/json: processes with devices with resources, and figures by the name
 * that they have in the segment's schema.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "segment/runtime_dir.h"
#include "segment/segment_reader.h"

static bool set(PyObject *map, const char *name, PyObject *value)
{
    bool done = value != NULL && PyDict_SetItemString(map, name, value) == 0;

    Py_XDECREF(value);
    return done;
}

static PyObject *text(const char *string)
{
    return PyUnicode_DecodeUTF8(string, (Py_ssize_t)strlen(string), "replace");
}

/* All figures of a record that the segment's schema has for this scope. */
static bool set_figures(
    PyObject *map, const rmm_segment_t *segment, const rmm_record_t *record,
    uint16_t scope)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        const rmm_segment_schema_t *entry = &segment->schema[i];

        if (entry->scope == scope &&
            !set(
                map, entry->name,
                PyLong_FromUnsignedLongLong(rmm_record_schema_value(record, entry)))) {
            return false;
        }
    }
    return true;
}

static PyObject *
resource_at(const rmm_segment_t *segment, uint32_t index, uint32_t location)
{
    rmm_record_t record;
    const rmm_segment_slot_t *slot;
    PyObject *map;

    if (!rmm_segment_read_slot(segment, index, &record, NULL) ||
        rmm_record_slot(&record)->location != location) {
        return NULL;
    }
    slot = rmm_record_slot(&record);
    map = PyDict_New();
    if (map != NULL &&
        (!set(
             map, "resource",
             PyUnicode_FromFormat("%u.%s", slot->instance_id, slot->name)) ||
         !set(map, "type", text(slot->type)) ||
         !set_figures(map, segment, &record, RMM_SCHEMA_SLOT))) {
        Py_CLEAR(map);
    }
    return map;
}

static PyObject *resources_of(const rmm_segment_t *segment, uint32_t location)
{
    uint32_t count = rmm_segment_slot_count(segment);
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *resource = resource_at(segment, i, location);

        if (resource != NULL && PyList_Append(list, resource) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(resource);
        if (PyErr_Occurred()) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* NULL without an exception: the process does not use this location. */
static PyObject *device_at(const rmm_segment_t *segment, uint32_t index)
{
    rmm_record_t record;
    const rmm_segment_location_t *location;
    PyObject *map;

    if (!rmm_segment_read_location(segment, index, &record)) {
        return NULL;
    }
    location = rmm_record_location(&record);
    map = PyDict_New();
    if (map != NULL && (!set(
                            map, "device",
                            index == RMM_SEGMENT_HOST_LOCATION
                                ? PyUnicode_FromString("host")
                                : PyUnicode_FromFormat("gpu%u", index)) ||
                        !set(map, "uuid", text(location->uuid)) ||
                        !set(
                            map, "capacity_bytes",
                            PyLong_FromUnsignedLongLong(location->capacity_bytes)) ||
                        !set_figures(map, segment, &record, RMM_SCHEMA_LOCATION) ||
                        !set(map, "resources", resources_of(segment, index)))) {
        Py_CLEAR(map);
    }
    return map;
}

static PyObject *devices_of(const rmm_segment_t *segment)
{
    uint32_t count = rmm_segment_location_count(segment);
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *device = device_at(segment, i);

        if (device != NULL && PyList_Append(list, device) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(device);
        if (PyErr_Occurred()) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *process_of(const rmm_segment_t *segment)
{
    bool is_live = rmm_segment_is_live(segment);
    pid_t pid = is_live ? rmm_segment_pid(segment) : 0;
    PyObject *map = PyDict_New();

    if (map != NULL &&
        (!set(
             map, "pid",
             PyUnicode_FromFormat(
                 "%d", pid != 0 ? (int)pid : (int)segment->header.pid)) ||
         !set(map, "state", PyUnicode_FromString(is_live ? "live" : "exited")) ||
         !set(map, "uid", PyLong_FromUnsignedLong(segment->uid)) ||
         !set(map, "comm", text(segment->header.comm)) ||
         !set(map, "devices", devices_of(segment)))) {
        Py_CLEAR(map);
    }
    return map;
}

/* Add the process of a file to the list. A segment that is gone, is being made or is refused
 * is left out. False: an exception. */
static bool add_process(PyObject *list, int dirfd, const char *name)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    PyObject *process;
    bool done;

    if (!rmm_segment_name_parse(name, NULL) ||
        rmm_segment_open(&segment, dirfd, name, reason) != RMM_SEGMENT_GOOD) {
        return true;
    }
    process = process_of(&segment);
    rmm_segment_close(&segment);
    done = process != NULL && PyList_Append(list, process) == 0;
    Py_XDECREF(process);
    return done;
}

static PyObject *read_folder(PyObject *module, PyObject *args)
{
    PyObject *path = NULL, *list;
    struct dirent *entry;
    DIR *folder;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    folder = opendir(PyBytes_AS_STRING(path));
    if (folder == NULL) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
        Py_DECREF(path);
        return NULL;
    }
    Py_DECREF(path);
    list = PyList_New(0);
    while (list != NULL && (entry = readdir(folder)) != NULL) {
        if (!add_process(list, dirfd(folder), entry->d_name)) {
            Py_CLEAR(list);
        }
    }
    closedir(folder);
    return list;
}

/* The folder that this process would write its segment to. */
static PyObject *own_folder(PyObject *module, PyObject *unused)
{
    char path[RMM_RUNTIME_DIR_BYTES], reason[256];

    (void)module;
    (void)unused;
    if (!rmm__runtime_dir(path, reason, sizeof(reason))) {
        PyErr_SetString(PyExc_OSError, reason);
        return NULL;
    }
    return PyUnicode_DecodeFSDefault(path);
}

static PyMethodDef functions[] = {
    {"read_folder", read_folder, METH_VARARGS, "The processes of a runtime folder."},
    {"own_folder", own_folder, METH_NOARGS, "The runtime folder of this process."},
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
