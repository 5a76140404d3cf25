/* SPDX-License-Identifier: Apache-2.0 */
/* Finds Python's functions; see python_calls.h. */
#include "diag/python_calls.h"

#include <string.h>

#include "core/loaded_module.h"

static bool find(const char *name, void *out)
{
    void *found = rmm__loaded_symbol(name);

    memcpy(out, &found, sizeof(found)); /* a function's address, too */
    return found != NULL;
}

bool rmm__python_calls_find(rmm_python_calls_t *calls, const char **lacking_out)
{
    const char *lacking = NULL;

    memset(calls, 0, sizeof(*calls));
    *lacking_out = NULL;
    if (!find("Py_GetVersion", &calls->Py_GetVersion)) {
        return false;
    }
#define FIND(name, result, parameters)                                                 \
    lacking = find(#name, &calls->name) ? lacking : #name;
    RMM_PYTHON_READ_MAP(FIND)
    RMM_PYTHON_PROOF_MAP(FIND)
    RMM_PYTHON_END_MAP(FIND)
    FIND(PyCode_Type, , )
    FIND(PyUnicode_Type, , )
#undef FIND
    if (!find("PyThreadState_GetUnchecked", &calls->PyThreadState_GetUnchecked) &&
        !find("_PyThreadState_UncheckedGet", &calls->PyThreadState_GetUnchecked)) {
        lacking = "PyThreadState_GetUnchecked"; /* which has that name from 3.13 on */
    }
    (void)find("PyGC_Disable", &calls->PyGC_Disable);
    (void)find("PyGC_Enable", &calls->PyGC_Enable);
    (void)find("_PyRuntime", &calls->_PyRuntime);
    *lacking_out = lacking;
    return lacking == NULL;
}
