// opgen's in-memory form of op definitions, between reading and writing.
#ifndef RUNNEL_TOOLS_OPGEN_H_
#define RUNNEL_TOOLS_OPGEN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
  KIND_STRING,
  KIND_INT,
  KIND_FLOAT,
  KIND_BOOL,
  KIND_TYPE,
  KIND_SHAPE,
  KIND_TENSOR,
  KIND_FUNC,
  KIND_COUNT
};

typedef struct names_t {
  char** items;
  int count;
} names_t;

// One shape; rank -1 and dims of -1 are unknown.
typedef struct dims_t {
  int rank;
  int64_t* dims;
} dims_t;

// A value as it was written: strings unquoted, numbers, types and booleans as their text.
typedef struct value_t {
  names_t words;
  dims_t* shapes;  // of kind shape, as many as words
} value_t;

typedef struct attr_t {
  char* name;
  int kind;
  bool is_list;
  bool has_minimum;
  int64_t minimum;
  bool has_default;
  value_t value;
  names_t allowed;
  int inferred_from;  // the input that determines it; -1 if none does
} attr_t;

typedef struct arg_t {
  char* name;
  char* type;  // "T", "float"; of a list of mixed types the attribute
  char* number;
  bool is_list;
  bool is_ref;
  char* full;  // hexadecimal digits, or NULL
} arg_t;

typedef struct op_t {
  char* name;
  char* face_of;    // the op whose definition and kernels it has; NULL for most ops
  names_t without;  // of a face: attributes that it lacks
  const char* family;
  const char* file;
  int line;
  int input_count, output_count, attr_count;
  arg_t* inputs;
  arg_t* outputs;
  attr_t* attrs;
  names_t flags;
  char* role;
  int deprecated_at;
  char* deprecation;
  char* shape;
  char* grad;
  char* doc;
} op_t;

typedef struct ops_t {
  op_t* items;
  int count;
  names_t families;
} ops_t;

// The enumerator of a type name ("float" → "FLOAT"), or NULL.
const char* dtype_enumerator(const char* name);
int attr_index(const op_t* op, const char* name);
bool is_mixed_list(const arg_t* arg);
void name_add(names_t* names, const char* text);
int name_find(const names_t* names, const char* text);
const char* kind_word(int kind);
void write_string(FILE* out, const char* text);

void write_table(FILE* out, const ops_t* ops);
void write_builders(FILE* out, const ops_t* ops);
// C++ headers of classes (opgen_cc.c).
void begin_cc_header(FILE* out, const char* header);
void end_cc_header(FILE* out, const char* header);
const char* write_cc_class(FILE* out, const ops_t* ops, char* line);
void write_page(FILE* out, const ops_t* ops, const char* family);

#endif  // RUNNEL_TOOLS_OPGEN_H_
