// Finds where each op is defined, inferred, differentiated, computed and tested, for `runnel ops`.
//
//   op_places ROOT OPS.inc KERNELS.inc
//
// OPS.inc gets one row per op: {name, family, definition, shape function, gradient, cases}, with
// paths relative to ROOT, "" for none. KERNELS.inc gets the file of every table of kernels, in the
// order of src/kernels/families.def.
#include <ctype.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLine = 1 << 16, kText = 4096 };

// Names, each with the place where it was found first.
typedef struct index_t {
  char** names;
  char** places;
  size_t count, capacity;
} index_t;

static void die(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

static void* checked(void* memory) {
  if (!memory) die("op_places: out of memory");
  return memory;
}

static const char* find(const index_t* index, const char* name) {
  for (size_t i = 0; i < index->count; ++i)
    if (strcmp(index->names[i], name) == 0) return index->places[i];
  return "";
}

static void add(index_t* index, const char* name, const char* place) {
  if (*find(index, name)) return;
  if (index->count == index->capacity) {
    index->capacity = index->capacity ? 2 * index->capacity : 256;
    index->names = checked(realloc(index->names, index->capacity * sizeof *index->names));
    index->places = checked(realloc(index->places, index->capacity * sizeof *index->places));
  }
  index->names[index->count] = checked(strdup(name));
  index->places[index->count++] = checked(strdup(place));
}

static void clear(index_t* index) {
  for (size_t i = 0; i < index->count; ++i) {
    free(index->names[i]);
    free(index->places[i]);
  }
  free(index->names);
  free(index->places);
}

// Copies the word at |text|: letters, digits and underscores.
static void word_at(const char* text, char* out) {
  size_t n = 0;
  while ((isalnum((unsigned char)text[n]) || text[n] == '_') && n < kText - 1) n++;
  memcpy(out, text, n);
  out[n] = 0;
}

// Indexes the word after |mark| in every line that begins with |start|, in the files that match
// |pattern|, under the file's path.
static void scan(const char* root, const char* pattern, const char* start, const char* mark,
                 index_t* out) {
  char path[kText], word[kText], line[kLine];
  snprintf(path, sizeof path, "%s/%s", root, pattern);
  glob_t files = {0};
  if (glob(path, 0, NULL, &files) != 0) die("op_places: nothing matches '%s'", path);
  for (size_t i = 0; i < files.gl_pathc; ++i) {
    FILE* file = fopen(files.gl_pathv[i], "r");
    if (!file) die("op_places: cannot read '%s'", files.gl_pathv[i]);
    while (fgets(line, sizeof line, file)) {
      const char* at = strncmp(line, start, strlen(start)) == 0 ? strstr(line, mark) : NULL;
      if (!at) continue;
      word_at(at + strlen(mark), word);
      add(out, word, files.gl_pathv[i] + strlen(root) + 1);
    }
    fclose(file);
  }
  globfree(&files);
}

typedef struct op_t {
  char name[kText], shape[kText], grad[kText];
  int line;
} op_t;

static void write_op(FILE* out, const op_t* op, const char* family, const index_t* shapes,
                     const index_t* grads, const index_t* cases) {
  if (!op->name[0]) return;
  fprintf(out, "{\"%s\", \"%s\", \"src/ops/%s.ops:%d\", \"%s\", \"%s\", \"%s\"},\n", op->name,
          family, family, op->line, find(shapes, op->shape), find(grads, op->grad),
          find(cases, op->name));
}

static void write_family(const char* root, const char* family, FILE* out, const index_t* shapes,
                         const index_t* grads, const index_t* cases) {
  char path[kText], line[kLine];
  snprintf(path, sizeof path, "%s/src/ops/%s.ops", root, family);
  FILE* file = fopen(path, "r");
  if (!file) die("op_places: cannot read '%s'", path);
  op_t op = {.line = 0};
  for (int number = 1; fgets(line, sizeof line, file); ++number) {
    bool is_face = strncmp(line, "face ", 5) == 0;
    if (is_face || strncmp(line, "op ", 3) == 0) {
      write_op(out, &op, family, shapes, grads, cases);
      op = (op_t){.line = number};
      word_at(line + (is_face ? 5 : 3), op.name);
    } else if (strncmp(line, "  shape ", 8) == 0) {
      word_at(line + 8 + strspn(line + 8, " "), op.shape);
    } else if (strncmp(line, "  grad ", 7) == 0) {
      word_at(line + 7 + strspn(line + 7, " "), op.grad);
    }
  }
  write_op(out, &op, family, shapes, grads, cases);
  fclose(file);
}

// Calls |visit| with the name in every line of |path|: NAME, or X(NAME).
static void each_family(const char* root, const char* list, void (*visit)(const char*, void*),
                        void* arg) {
  char path[kText], line[kLine], word[kText];
  snprintf(path, sizeof path, "%s/%s", root, list);
  FILE* file = fopen(path, "r");
  if (!file) die("op_places: cannot read '%s'", path);
  while (fgets(line, sizeof line, file)) {
    word_at(strncmp(line, "X(", 2) == 0 ? line + 2 : line, word);
    if (*word && line[0] != '/' && line[0] != '#') visit(word, arg);
  }
  fclose(file);
}

typedef struct places_t {
  const char* root;
  FILE* out;
  index_t shapes, grads, cases, kernels;
} places_t;

static void on_ops(const char* family, void* arg) {
  places_t* p = arg;
  write_family(p->root, family, p->out, &p->shapes, &p->grads, &p->cases);
}

static void on_kernels(const char* family, void* arg) {
  places_t* p = arg;
  fprintf(p->out, "\"%s\",\n", find(&p->kernels, family));
}

static FILE* open_output(const char* path) {
  FILE* out = fopen(path, "w");
  if (!out) die("op_places: cannot write '%s'", path);
  fprintf(out, "// Made by tools/op_places.c.\n");
  return out;
}

int main(int argc, char** argv) {
  if (argc != 4) die("usage: op_places ROOT OPS.inc KERNELS.inc");
  places_t p = {.root = argv[1]};
  scan(p.root, "src/ops/*.c", "rn_status_t rn_shape_fn_", "rn_shape_fn_", &p.shapes);
  scan(p.root, "src/framework/*.c", "rn_status_t rn_shape_fn_", "rn_shape_fn_", &p.shapes);
  scan(p.root, "src/ops/*.c", "RN_RULE(", "RN_RULE(", &p.grads);
  scan(p.root, "tests/ops/cases/*.jsonl", "{", "\"op\": \"", &p.cases);
  static const char* const folders[] = {"src/kernels/*.c", "src/kernels/*/*.c",
                                        "src/kernels/*/*/*.c"};
  for (int i = 0; i < 3; ++i)
    scan(p.root, folders[i], "RN_KERNEL_FAMILY(", "RN_KERNEL_FAMILY(", &p.kernels);
  p.out = open_output(argv[2]);
  each_family(p.root, "src/ops/families.def", on_ops, &p);
  fclose(p.out);
  p.out = open_output(argv[3]);
  each_family(p.root, "src/kernels/families.def", on_kernels, &p);
  fclose(p.out);
  clear(&p.shapes);
  clear(&p.grads);
  clear(&p.cases);
  clear(&p.kernels);
  return 0;
}
