// Writes the tables of a library that has only what a graph needs, for `make lite`.
//
//   lite_tables GRAPH_OPS LITE_TXT OUT_OPS OUT_REGISTRAR
//
// GRAPH_OPS names ops, one per line (runnel graph --ops). LITE_TXT (src/ops/lite.txt) says what the
// planner adds. OUT_OPS gets all of them, for opgen --only. OUT_REGISTRAR takes the place of
// src/kernels/registrar.c: the tables of kernels with a row for one of these ops.
#include <stdio.h>
#include <stdlib.h>

#include "framework/kernel.h"
#include "framework/op_def.h"

#define X(name) extern const rn_kernel_family_t rn_kernels_##name;
#include "kernels/families.def"
#undef X

static const struct {
  const char* name;
  const rn_kernel_family_t* family;
} tables[] = {
#define X(name) {#name, &rn_kernels_##name},
#include "kernels/families.def"
#undef X
};

enum { kMostOps = 4096, kLine = 4096 };

static const char* ops[kMostOps];
static int count;

static void stop(const char* what, const char* which) {
  fprintf(stderr, "lite_tables: %s%s\n", what, which);
  exit(1);
}

static bool has(const char* op) {
  for (int i = 0; i < count; ++i)
    if (strcmp(ops[i], op) == 0) return true;
  return false;
}

static bool add(const char* op) {
  if (has(op)) return false;
  if (count == kMostOps) stop("too many ops", "");
  if (!rn_op_find(rn_str(op))) stop("this library has no op ", op);
  ops[count] = strdup(op);
  if (!ops[count++]) stop("out of memory", "");
  return true;
}

static FILE* open_file(const char* path, const char* mode) {
  FILE* file = fopen(path, mode);
  if (!file) stop("cannot open ", path);
  return file;
}

// Adds what one line of LITE_TXT says; false if that changes nothing.
static bool add_line(char* line) {
  const char* separators = " \n";
  char* save = NULL;
  const char* name = strtok_r(line, separators, &save);
  if (!name || *name == '#') return false;
  const char* word = strtok_r(NULL, separators, &save);
  if (!word) return add(name);
  while ((word = strtok_r(NULL, separators, &save)))
    if (has(word)) return add(name);
  return false;
}

static bool add_lines(const char* path) {
  char line[kLine];
  bool has_changed = false;
  FILE* file = open_file(path, "r");
  while (fgets(line, sizeof line, file)) has_changed |= add_line(line);
  fclose(file);
  return has_changed;
}

static bool is_needed(const rn_kernel_family_t* family) {
  for (size_t i = 0; i < family->count; ++i)
    if (strcmp(family->rows[i].device, "CPU") == 0 && has(family->rows[i].op)) return true;
  return false;
}

static void write_registrar(FILE* out) {
  fputs("#include \"framework/kernel.h\"\n\n", out);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    if (is_needed(tables[i].family))
      fprintf(out, "extern const rn_kernel_family_t rn_kernels_%s;\n", tables[i].name);
  fputs("\nconst rn_kernel_family_t* const rn_builtin_kernels[] = {\n", out);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    if (is_needed(tables[i].family)) fprintf(out, "    &rn_kernels_%s,\n", tables[i].name);
  fputs("    NULL,\n};\n", out);
}

int main(int argc, char** argv) {
  if (argc != 5) stop("usage: lite_tables GRAPH_OPS LITE_TXT OUT_OPS OUT_REGISTRAR", "");
  add_lines(argv[1]);
  while (add_lines(argv[2])) continue;
  FILE* out = open_file(argv[3], "w");
  for (int i = 0; i < count; ++i) fprintf(out, "%s\n", ops[i]);
  if (fclose(out)) stop("cannot write ", argv[3]);
  out = open_file(argv[4], "w");
  write_registrar(out);
  if (fclose(out)) stop("cannot write ", argv[4]);
  return 0;
}
