/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a fuzzer where libFuzzer is not there (gcc): every file of the corpus, then
 * mutations of it from a fixed seed, so that a run can be repeated. A file or folder may
 * be given by name: "fuzz_segment input" repeats one finding, without mutations.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX ((size_t)1 << 20)
#define CORPUS_MAX 1024
#define ROUNDS 4000
#define SEED UINT64_C(0x9e3779b97f4a7c15)

typedef struct input {
    uint8_t *bytes;
    size_t size;
} input_t;

static input_t corpus[CORPUS_MAX];
static size_t corpus_count;
static uint64_t random_state = SEED;

/* xorshift64* (Vigna, 2016) */
static uint64_t draw(uint64_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * UINT64_C(0x2545f4914f6cdd1d)) % below;
}

static void die(const char *what, const char *name)
{
    fprintf(stderr, "%s %s: %s\n", what, name, strerror(errno));
    exit(2);
}

static void load_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    input_t *input = &corpus[corpus_count];
    if (file == NULL) {
        die("cannot open", path);
    }
    input->bytes = malloc(INPUT_MAX);
    if (input->bytes == NULL) {
        die("no memory for", path);
    }
    input->size = fread(input->bytes, 1, INPUT_MAX, file);
    fclose(file);
    corpus_count++;
}

static void load_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    if (folder == NULL) {
        die("cannot open", path);
    }
    while ((entry = readdir(folder)) != NULL && corpus_count < CORPUS_MAX) {
        char name[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        load_file(name);
    }
    closedir(folder);
}

static void load(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        die("cannot open", path);
    }
    if (S_ISDIR(status.st_mode)) {
        load_folder(path);
    } else {
        load_file(path);
    }
}

/* An exact copy for each run: an address sanitizer sees one byte too far. */
static void run_one(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        die("no memory for", "an input");
    }
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t mutate(uint8_t *bytes, size_t size)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff};
    uint64_t changes = 1 + draw(8);
    while (changes-- > 0 && size > 0) {
        switch (draw(4)) {
        case 0: /* a bit */
            bytes[draw(size)] ^= (uint8_t)(1u << draw(8));
            break;
        case 1: /* a byte */
            bytes[draw(size)] = (uint8_t)draw(256);
            break;
        case 2: { /* an aligned word, to a value at an edge */
            size_t at = draw(size) & ~(size_t)3;
            size_t room = size - at < 4 ? size - at : 4;
            memset(bytes + at, odd[draw(sizeof(odd))], room);
            break;
        }
        default: /* the length */
            size = draw(4) == 0 ? draw(size + 1) : size;
            break;
        }
    }
    return size;
}

static void run_mutations(void)
{
    uint8_t *bytes = malloc(INPUT_MAX);
    if (bytes == NULL) {
        die("no memory for", "mutations");
    }
    for (int round = 0; round < ROUNDS; round++) {
        const input_t *from = &corpus[draw(corpus_count)];
        memcpy(bytes, from->bytes, from->size);
        run_one(bytes, mutate(bytes, from->size));
    }
    free(bytes);
}

/* With no corpus: random bytes of random length. */
static void add_random_input(void)
{
    input_t *input = &corpus[corpus_count++];
    input->size = 512 + draw(4096);
    input->bytes = malloc(input->size);
    if (input->bytes == NULL) {
        die("no memory for", "a random input");
    }
    for (size_t i = 0; i < input->size; i++) {
        input->bytes[i] = (uint8_t)draw(256);
    }
}

int main(int argc, char **argv)
{
    struct stat status;
    bool single = argc == 2 && stat(argv[1], &status) == 0 && S_ISREG(status.st_mode);
    for (int i = 1; i < argc; i++) {
        load(argv[i]);
    }
    if (corpus_count == 0) {
        add_random_input();
    }
    run_one((const uint8_t *)"", 0);
    for (size_t i = 0; i < corpus_count; i++) {
        run_one(corpus[i].bytes, corpus[i].size);
    }
    if (!single) {
        run_mutations();
    }
    printf("%zu inputs, %d mutations\n", corpus_count, single ? 0 : ROUNDS);
    for (size_t i = 0; i < corpus_count; i++) {
        free(corpus[i].bytes);
    }
    return 0;
}
