/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions of the simulated GPU that librmm-c has loaded. */
#include "replay/simulated.h"

#include <dlfcn.h>
#include <string.h>

#include <rmm/device.h>

static bool find(simulated_t *found)
{
    void *library = dlopen(RMM_SIM_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    void *symbol;
    /* a test of this program has the simulated GPU in itself */
    void *where = library != NULL ? library : RTLD_DEFAULT;
#define X(name)                                                                        \
    symbol = dlsym(where, "rmm_sim_" #name);                                           \
    if (symbol == NULL) {                                                              \
        return false;                                                                  \
    }                                                                                  \
    memcpy(&found->name, &symbol, sizeof symbol);
    SIMULATED_MAP(X)
#undef X
    return true;
}

const simulated_t *simulated(void)
{
    static simulated_t found;
    if (strcmp(rmm_driver_name(), "sim") != 0) {
        return NULL;
    }
    return find(&found) ? &found : NULL;
}
