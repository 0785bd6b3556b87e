// A graph that becomes a function and a host graph that calls it, for the tests of functions.
#ifndef RUNNEL_TESTS_CAPI_FUNCTION_UTIL_H_
#define RUNNEL_TESTS_CAPI_FUNCTION_UTIL_H_

#include <stdio.h>
#include <stdlib.h>

#include "util.h"

// Field numbers of FunctionDef, OpDef, ArgDef and NodeDef.
enum {
  FN_SIGNATURE = 1,
  FN_NODE = 3,
  FN_RET = 4,
  FN_CONTROL_RET = 6,
  OP_NAME = 1,
  OP_INPUT = 2,
  OP_OUTPUT = 3,
  OP_ATTR = 4,
  OP_DESCRIPTION = 6,
  OP_STATEFUL = 17,
  OP_CONTROL_OUTPUT = 20,
  ARG_NAME = 1,
  NODE_NAME = 1,
  NODE_INPUT = 3,
};

// A graph that becomes a function, and a host graph to call it from.
typedef struct fn_t {
  ct_t host;
  ct_t body;
  TF_Function* function;
} fn_t;

static inline fn_t begin(void) { return (fn_t){.host = ct_open(), .body = ct_open()}; }

static inline void end(fn_t* fn) {
  TF_DeleteFunction(fn->function);
  ct_close(&fn->host);
  ct_close(&fn->body);
}

static inline TF_Operation* feed(fn_t* fn, const char* name) {
  return ct_placeholder(&fn->body, fn->body.graph, name, TF_INT32);
}

// The whole body graph, or the operations given.
static inline TF_Function* define_try(fn_t* fn, int num_opers, const TF_Operation* const* opers,
                                      int ninputs, const TF_Output* inputs, int noutputs,
                                      const TF_Output* outputs, const char* const* names) {
  TF_Function* function =
      TF_GraphToFunction(fn->body.graph, "MyFunc", 0, num_opers, opers, ninputs, inputs, noutputs,
                         outputs, names, NULL, NULL, fn->body.status);
  cr_assert_eq(function == NULL, TF_GetCode(fn->body.status) != TF_OK);
  return function;
}

static inline void define(fn_t* fn, int num_opers, const TF_Operation* const* opers, int ninputs,
                          const TF_Output* inputs, int noutputs, const TF_Output* outputs,
                          const char* const* names) {
  fn->function = define_try(fn, num_opers, opers, ninputs, inputs, noutputs, outputs, names);
  CT_OK(fn->body.status);
  CT_STR(TF_FunctionName(fn->function), "MyFunc");
  TF_GraphCopyFunction(fn->host.graph, fn->function, NULL, fn->host.status);
  CT_OK(fn->host.status);
}

// A node of the host graph whose op is |name|.
static inline TF_Operation* use(fn_t* fn, const char* name, int count, const TF_Output* inputs) {
  TF_OperationDescription* desc = TF_NewOperation(fn->host.graph, name, "func_node");
  for (int i = 0; i < count; ++i) TF_AddInput(desc, inputs[i]);
  TF_Operation* oper = TF_FinishOperation(desc, fn->host.status);
  CT_OK(fn->host.status);
  return oper;
}

// Calls the function with int32 scalars; compares each output.
static inline void check(fn_t* fn, int count, const int32_t* values, int results,
                         const int32_t* wanted) {
  TF_Output inputs[4];
  static const char* const names[] = {"p0", "p1", "p2", "p3"};
  for (int i = 0; i < count; ++i)
    inputs[i] = ct_out(ct_placeholder(&fn->host, fn->host.graph, names[i], TF_INT32), 0);
  TF_Operation* oper = use(fn, "MyFunc", count, inputs);
  CT_INT(TF_OperationNumOutputs(oper), results);
  for (int r = 0; r < results; ++r) {
    TF_Tensor* tensors[4];
    for (int i = 0; i < count; ++i) tensors[i] = ct_int32(values[i]);
    CT_INT(ct_take_int32(ct_run(&fn->host, count, inputs, tensors, ct_out(oper, r))), wanted[r]);
  }
}

static inline TF_Buffer* function_def(fn_t* fn) {
  TF_Buffer* buffer = TF_NewBuffer();
  TF_FunctionToFunctionDef(fn->function, buffer, fn->body.status);
  CT_OK(fn->body.status);
  return buffer;
}

// Argument |i| (of field |kind|) of the signature is called |name|.
static inline void check_arg(fn_t* fn, int kind, int i, const char* name) {
  TF_Buffer* def = function_def(fn);
  pb_field_t signature, field;
  cr_assert(pb_find(def->data, def->length, FN_SIGNATURE, &signature));
  pb_reader_t reader = pb_read(signature.data, signature.length);
  int found = 0;
  while (pb_next(&reader, &field)) {
    if (field.number != kind || found++ != i) continue;
    cr_assert(pb_has_string(field.data, field.length, ARG_NAME, name), "argument %d is not '%s'", i,
              name);
  }
  cr_assert_gt(found, i, "no argument %d", i);
  TF_DeleteBuffer(def);
}

static inline void check_node(fn_t* fn, const char* name, int number, const char* input) {
  TF_Buffer* def = function_def(fn);
  pb_field_t node, field;
  cr_assert(pb_find_named(def->data, def->length, FN_NODE, NODE_NAME, name, &node), "no '%s'",
            name);
  pb_reader_t reader = pb_read(node.data, node.length);
  int found = 0;
  while (pb_next(&reader, &field)) {
    if (field.number != NODE_INPUT || found++ != number) continue;
    cr_assert(pb_field_is(&field, input), "input %d of '%s' is '%.*s', not '%s'", number, name,
              (int)field.length, (const char*)field.data, input);
  }
  cr_assert_gt(found, number);
  TF_DeleteBuffer(def);
}

static inline void check_pair(fn_t* fn, int map, const char* key, const char* value) {
  TF_Buffer* def = function_def(fn);
  pb_field_t entry;
  cr_assert(pb_find_named(def->data, def->length, map, 1, key, &entry), "no '%s'", key);
  cr_assert(pb_has_string(entry.data, entry.length, 2, value), "'%s' is not '%s'", key, value);
  TF_DeleteBuffer(def);
}

static inline TF_Function* negation(fn_t* fn, const char* name) {
  static int count;
  char label[16];
  snprintf(label, sizeof label, "x%d", count++);
  TF_Operation* x = feed(fn, label);
  TF_Output in = ct_out(x, 0);
  snprintf(label, sizeof label, "y%d", count++);
  TF_Operation* y = ct_neg(&fn->body, fn->body.graph, label, x);
  TF_Output out = ct_out(y, 0);
  TF_Function* function = TF_GraphToFunction(fn->body.graph, name, 0, 1, (const TF_Operation*[]){y},
                                             1, &in, 1, &out, NULL, NULL, NULL, fn->body.status);
  CT_OK(fn->body.status);
  return function;
}

#endif  // RUNNEL_TESTS_CAPI_FUNCTION_UTIL_H_
