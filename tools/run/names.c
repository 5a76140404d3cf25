/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people write them; see names.h. */
#include "run/names.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "segment/clean_text.h"

enum { NAME_WIDTH = 60, KEY_BYTES = 40 };

/* __cxa_demangle() of the C++ ABI */
typedef char *(*demangle_fn)(
    const char *name, char *buffer, size_t *length, int *status);

static demangle_fn find_demangler(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
    demangle_fn function;
    memcpy(&function, &symbol, sizeof(function)); /* ISO C has no conversion */
    return function;
}

char *run_demangle(const char *name)
{
    static demangle_fn demangle;
    static bool is_looked_for;
    int status;
    if (strncmp(name, "_Z", 2) != 0) { /* others would be taken for names of types */
        return NULL;
    }
    if (!is_looked_for) {
        demangle = find_demangler();
        is_looked_for = true;
    }
    return demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
}

void run_name_print(const char *name, const char *unnamed, FILE *out)
{
    char *demangled = run_demangle(name);
    const char *shown = demangled != NULL ? demangled : name;
    if (shown[0] == '\0') {
        fputs(unnamed, out);
    } else if (strlen(shown) <= NAME_WIDTH) {
        fputs(shown, out);
    } else {
        char cut[NAME_WIDTH - 3 + 1];
        rmm__text_copy(cut, sizeof(cut), shown); /* no character in the middle */
        fprintf(out, "%s...", cut);
    }
    free(demangled);
}

bool run_name_put_json(json_t *object, const char *key, const char *name)
{
    char mangled_key[KEY_BYTES];
    char *demangled = run_demangle(name);
    bool good =
        json_put(object, key, json_text_or_null(demangled != NULL ? demangled : name));
    if (demangled != NULL) {
        (void)snprintf(mangled_key, sizeof(mangled_key), "%s_mangled", key);
        good = good && json_put(object, mangled_key, json_text_or_null(name));
    }
    free(demangled);
    return good;
}

void run_resource_print(
    uint32_t id, const rmm_diag_resource_name_t *resource, FILE *out)
{
    char text[RUN_RESOURCE_BYTES];
    run_resource_text(id, resource, text);
    fputs(text, out);
}

bool run_resource_put_json(
    json_t *object, uint32_t id, const rmm_diag_resource_name_t *resource)
{
    return json_put(object, "resource", json_count(id)) &&
           json_put(object, "resource_type", json_text_or_null(resource->type)) &&
           json_put(object, "resource_name", json_text_or_null(resource->name));
}
