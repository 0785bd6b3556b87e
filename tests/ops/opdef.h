// The definition of an op, read from the OpDef bytes that the library returns.
#ifndef RUNNEL_TESTS_OPS_OPDEF_H_
#define RUNNEL_TESTS_OPS_OPDEF_H_

#include <stdbool.h>
#include <stddef.h>

#include "tensorflow/c/c_api.h"

enum { MAX_ARGS = 64, MAX_ATTRS = 64, MAX_NAME = 96 };

typedef struct {
  char type_attr[MAX_NAME];       // empty when there is none, as in the other two
  char number_attr[MAX_NAME];     // N * T
  char type_list_attr[MAX_NAME];  // list(type)
} opdef_arg_t;

typedef struct {
  char name[MAX_NAME];
  char type[MAX_NAME];  // "int", "list(shape)" ...
} opdef_attr_t;

typedef struct {
  char name[MAX_NAME];
  size_t input_count;
  opdef_arg_t inputs[MAX_ARGS];
  size_t attr_count;
  opdef_attr_t attrs[MAX_ATTRS];
} opdef_t;

// Reads one OpDef. False when the bytes are not one.
bool opdef_parse(const void* data, size_t size, opdef_t* out);
// The type of an attr, or NULL.
const char* opdef_attr_type(const opdef_t* def, const char* name);

// Calls |each| for every op of a serialized OpList. False when the bytes are not one.
bool oplist_each(const void* data, size_t size, void (*each)(void* arg, const opdef_t* def),
                 void* arg);

#endif  // RUNNEL_TESTS_OPS_OPDEF_H_
