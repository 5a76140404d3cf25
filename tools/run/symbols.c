/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names by libdw; see symbols.h. Its functions are declared here as its manual has them: its
 * headers are not needed. Each file is a session of its own: the same path may have been loaded
 * twice.
 */
#include "run/symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/clean_text.h"

#define FILES_MAX 128u

/* X(function, result, parameters) of libdw.so.1 */
#define LIBDW_MAP(X)                                                                   \
    X(dwfl_begin, void *, (const void *callbacks))                                     \
    X(dwfl_end, void, (void *dwfl))                                                    \
    X(dwfl_report_begin, void, (void *dwfl))                                           \
    X(dwfl_report_offline, void *,                                                     \
      (void *dwfl, const char *name, const char *path, int fd))                        \
    X(dwfl_report_end, int, (void *dwfl, void *removed, void *arg))                    \
    X(dwfl_module_getelf, void *, (void *module, uint64_t *bias))                      \
    X(dwfl_module_build_id, int,                                                       \
      (void *module, const unsigned char **bits, uint64_t *address))                   \
    X(dwfl_module_addrname, const char *, (void *module, uint64_t address))            \
    X(dwfl_module_getsrc, void *, (void *module, uint64_t address))                    \
    X(dwfl_lineinfo, const char *,                                                     \
      (void *line, uint64_t *address, int *line_out, int *column, void *time,          \
       void *length))                                                                  \
    X(dwfl_line_comp_dir, const char *, (void *line))

/* Dwfl_Callbacks */
typedef struct callbacks {
    void *find_elf, *find_debuginfo, *section_address;
    char **debuginfo_path;
} callbacks_t;

typedef struct file {
    char path[RMM_DIAG_PATH_BYTES];
    void *dwfl, *module; /* module NULL: it cannot be read */
    uint64_t bias;
} file_t;

struct run_symbols {
    void *library;
    callbacks_t callbacks;
#define X(name, result, parameters) result(*name) parameters;
    LIBDW_MAP(X)
#undef X
    file_t files[FILES_MAX];
    uint32_t file_count;
};

/* --- libdw ---------------------------------------------------------------------------- */

/* ISO C has no conversion from an object's pointer to a function's. */
static bool get(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);
    memcpy(function_out, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool get_all(run_symbols_t *symbols)
{
    bool good =
        get(symbols->library, "dwfl_build_id_find_elf", &symbols->callbacks.find_elf) &&
        get(symbols->library, "dwfl_standard_find_debuginfo",
            &symbols->callbacks.find_debuginfo) &&
        get(symbols->library, "dwfl_offline_section_address",
            &symbols->callbacks.section_address);
#define X(name, result, parameters)                                                    \
    good = good && get(symbols->library, #name, &symbols->name);
    LIBDW_MAP(X)
#undef X
    return good;
}

run_symbols_t *run_symbols_open(void)
{
    run_symbols_t *symbols = calloc(1, sizeof(*symbols));
    if (symbols == NULL) {
        return NULL;
    }
    symbols->library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (symbols->library == NULL || !get_all(symbols)) {
        run_symbols_close(symbols);
        return NULL;
    }
    return symbols;
}

void run_symbols_close(run_symbols_t *symbols)
{
    if (symbols == NULL) {
        return;
    }
    for (uint32_t i = 0; i < symbols->file_count; i++) {
        if (symbols->files[i].dwfl != NULL) {
            symbols->dwfl_end(symbols->files[i].dwfl);
        }
    }
    if (symbols->library != NULL) {
        (void)dlclose(symbols->library);
    }
    free(symbols);
}

/* --- files ---------------------------------------------------------------------------- */

/* A file that was built again meanwhile would give wrong names. */
static bool
is_same(const run_symbols_t *symbols, void *module, const rmm_diag_module_info_t *info)
{
    const unsigned char *bits = NULL;
    uint64_t address = 0;
    int bytes = symbols->dwfl_module_build_id(module, &bits, &address);
    if (info->build_id_bytes == 0 || bytes <= 0) {
        return info->build_id_bytes == 0 && bytes <= 0;
    }
    return (uint32_t)bytes >= info->build_id_bytes &&
           memcmp(bits, info->build_id, info->build_id_bytes) == 0;
}

static void open_file(
    const run_symbols_t *symbols, const rmm_diag_module_info_t *info, file_t *file)
{
    memcpy(file->path, info->path, sizeof(file->path));
    file->dwfl = symbols->dwfl_begin(&symbols->callbacks);
    if (file->dwfl == NULL || info->path[0] != '/') { /* not a file, or cut */
        return;
    }
    symbols->dwfl_report_begin(file->dwfl);
    void *module = symbols->dwfl_report_offline(file->dwfl, "", info->path, -1);
    (void)symbols->dwfl_report_end(file->dwfl, NULL, NULL);
    if (module != NULL && is_same(symbols, module, info) &&
        symbols->dwfl_module_getelf(module, &file->bias) != NULL) {
        file->module = module;
    }
}

/* NULL: too many. */
static const file_t *
find_file(run_symbols_t *symbols, const rmm_diag_module_info_t *info)
{
    for (uint32_t i = 0; i < symbols->file_count; i++) {
        if (strcmp(symbols->files[i].path, info->path) == 0) {
            return &symbols->files[i];
        }
    }
    if (symbols->file_count == FILES_MAX) {
        return NULL;
    }
    file_t *file = &symbols->files[symbols->file_count++];
    open_file(symbols, info, file);
    return file;
}

static void copy(char *to, size_t bytes, const char *from)
{
    (void)snprintf(to, bytes, "%s", from != NULL ? from : "");
    rmm__text_clean(to, bytes);
}

/* Before glibc 2.34 its threads were a library of their own. */
static bool is_c_library(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return strncmp(name, "libc.so", strlen("libc.so")) == 0 ||
           strncmp(name, "libc-2.", strlen("libc-2.")) == 0 ||
           strncmp(name, "libpthread", strlen("libpthread")) == 0;
}

/* Functions of the C library that call main() or a thread's function are in every stack. Their
 * lines are of no use to a reader, and finding them takes 50 ms where libc6-dbg is installed,
 * because libdw unpacks all of it. */
static bool is_start_of_thread(const char *path, const char *function)
{
    static const char *const names[] = {"start_thread", "clone3", "__clone3"};

    if (!is_c_library(path)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return strncmp(function, "__libc_start_", strlen("__libc_start_")) == 0;
}

void run_symbols_find(
    run_symbols_t *symbols, const rmm_diag_module_info_t *module, uint64_t offset,
    run_symbol_t *symbol_out)
{
    *symbol_out = (run_symbol_t){.line = 0};
    const file_t *file = symbols != NULL ? find_file(symbols, module) : NULL;
    if (file == NULL || file->module == NULL) {
        return;
    }
    uint64_t address = offset + file->bias;
    copy(
        symbol_out->function, sizeof(symbol_out->function),
        symbols->dwfl_module_addrname(file->module, address));
    if (is_start_of_thread(module->path, symbol_out->function)) {
        return;
    }
    void *line = symbols->dwfl_module_getsrc(file->module, address);
    if (line != NULL) {
        copy(
            symbol_out->file, sizeof(symbol_out->file),
            symbols->dwfl_lineinfo(line, NULL, &symbol_out->line, NULL, NULL, NULL));
        copy(
            symbol_out->folder, sizeof(symbol_out->folder),
            symbols->dwfl_line_comp_dir(line));
    }
}
