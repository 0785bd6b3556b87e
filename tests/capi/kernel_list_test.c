// The lists of ops and kernels, and the ApiDef map.
#include <stdlib.h>

#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

CT_TEST(CAPI, GetAllOpList) {
  TF_Buffer* list = TF_GetAllOpList();
  cr_assert_not_null(list);
  cr_assert_gt(pb_count(list->data, list->length, 1), 100);
  pb_reader_t reader = pb_read(list->data, list->length);
  pb_field_t op, name;
  while (pb_next(&reader, &op)) {
    CT_INT(op.number, 1);
    cr_assert(pb_find(op.data, op.length, 1, &name) && name.length > 0);
  }
  cr_assert(!reader.malformed);
  static const char* const needed[] = {"Add", "AddN", "Const", "MatMul", "NoOp", "Placeholder"};
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; ++i) {
    cr_assert(pb_find_named(list->data, list->length, 1, 1, needed[i], &op), "%s", needed[i]);
  }
  TF_DeleteBuffer(list);
}

// KernelDef: op 1, device_type 2, constraint 3, host_memory_arg 4.
CT_TEST(TestKernel, TestGetAllRegisteredKernels) {
  TF_Status* s = TF_NewStatus();
  TF_Buffer* list = TF_GetAllRegisteredKernels(s);
  CT_OK(s);
  cr_assert_gt(pb_count(list->data, list->length, 1), 0);
  pb_reader_t reader = pb_read(list->data, list->length);
  pb_field_t kernel, field;
  while (pb_next(&reader, &kernel)) {
    cr_assert(pb_find(kernel.data, kernel.length, 1, &field) && field.length > 0);
    cr_assert(pb_find(kernel.data, kernel.length, 2, &field) && field.length > 0);
  }
  cr_assert(!reader.malformed);
  TF_DeleteBuffer(list);
  TF_DeleteStatus(s);
}

CT_TEST(TestKernel, TestGetRegisteredKernelsForOp) {
  TF_Status* s = TF_NewStatus();
  TF_Buffer* list = TF_GetRegisteredKernelsForOp("MatMul", s);
  CT_OK(s);
  pb_reader_t reader = pb_read(list->data, list->length);
  pb_field_t kernel;
  bool cpu_float = false;
  while (pb_next(&reader, &kernel)) {
    cr_assert(pb_has_string(kernel.data, kernel.length, 1, "MatMul"));
    // AttrConstraint: name 1, allowed_values 2 {list 1 {type 6}}.
    pb_field_t constraint, allowed, values, type;
    if (!pb_has_string(kernel.data, kernel.length, 2, "CPU")) continue;
    cr_assert(pb_find(kernel.data, kernel.length, 3, &constraint));
    cr_assert(pb_has_string(constraint.data, constraint.length, 1, "T"));
    cr_assert(pb_find(constraint.data, constraint.length, 2, &allowed));
    cr_assert(pb_find(allowed.data, allowed.length, 1, &values));
    cr_assert(pb_find(values.data, values.length, 6, &type));
    // Packed or not.
    cpu_float |= type.wire_type == 2 ? type.data[0] == TF_FLOAT : type.value == TF_FLOAT;
  }
  cr_assert(!reader.malformed);
  cr_assert(cpu_float);
  TF_DeleteBuffer(list);
  TF_DeleteStatus(s);
}

CT_TEST(TestKernel, TestGetRegisteredKernelsForOpNoKernels) {
  TF_Status* s = TF_NewStatus();
  TF_Buffer* list = TF_GetRegisteredKernelsForOp("Unknown", s);
  CT_OK(s);
  CT_INT(pb_count(list->data, list->length, 1), 0);
  TF_DeleteBuffer(list);
  TF_DeleteStatus(s);
}

static TF_ApiDefMap* map_of_all_ops(TF_Status* status) {
  TF_Buffer* ops = TF_GetAllOpList();
  TF_ApiDefMap* map = TF_NewApiDefMap(ops, status);
  CT_OK(status);
  TF_DeleteBuffer(ops);
  return map;
}

// ApiDef: graph_op_name 1, endpoint 3 {name 1}, in_arg 4 {name 1, rename_to 2, description 3},
// summary 7.
CT_TEST(TestApiDef, TestCreateApiDef) {
  TF_Status* s = TF_NewStatus();
  TF_ApiDefMap* map = map_of_all_ops(s);
  TF_Buffer* def = TF_ApiDefMapGet(map, "Sum", 3, s);
  CT_OK(s);
  cr_assert(pb_has_string(def->data, def->length, 1, "Sum"));
  pb_field_t endpoint;
  cr_assert(pb_find(def->data, def->length, 3, &endpoint));
  cr_assert(pb_has_string(endpoint.data, endpoint.length, 1, "Sum"));
  CT_INT(pb_count(def->data, def->length, 4), 2);
  // attr 6 {name 1, rename_to 2, default_value 3}: keep_dims is false unless it is said.
  pb_field_t attr, value;
  cr_assert(pb_find(def->data, def->length, 6, &attr));
  cr_assert(pb_has_string(attr.data, attr.length, 1, "keep_dims"));
  cr_assert(pb_find(attr.data, attr.length, 3, &value));
  cr_assert(pb_find(value.data, value.length, 5, &value));
  CT_INT(value.value, 0);
  TF_DeleteBuffer(def);
  cr_assert_null(TF_ApiDefMapGet(map, "NoSuchOp", 8, s));
  TF_DeleteApiDefMap(map);
  TF_DeleteStatus(s);
}

CT_TEST(TestApiDef, TestCreateApiDefWithOverwrites) {
  TF_Status* s = TF_NewStatus();
  TF_ApiDefMap* map = map_of_all_ops(s);
  const char* text =
      "op: <\n"
      "  graph_op_name: \"Abs\"\n"
      "  summary: \"A short text.\"\n"
      "  endpoint: < name: \"Other.abs\" >\n"
      "  in_arg: < name: \"x\" rename_to: \"value\" description: \"Any \\\"number\\\".\" >\n"
      ">\n";
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CT_OK(s);
  TF_Buffer* def = TF_ApiDefMapGet(map, "Abs", 3, s);
  CT_OK(s);
  cr_assert(pb_has_string(def->data, def->length, 7, "A short text."));
  pb_field_t endpoint, arg;
  cr_assert(pb_find(def->data, def->length, 3, &endpoint));
  cr_assert(pb_has_string(endpoint.data, endpoint.length, 1, "Other.abs"));
  cr_assert(pb_find(def->data, def->length, 4, &arg));
  cr_assert(pb_has_string(arg.data, arg.length, 2, "value"));
  cr_assert(pb_has_string(arg.data, arg.length, 3, "Any \"number\"."));
  TF_DeleteBuffer(def);
  // Other ops are as they were.
  def = TF_ApiDefMapGet(map, "Sum", 3, s);
  CT_OK(s);
  cr_assert(pb_has_string(def->data, def->length, 1, "Sum"));
  TF_DeleteBuffer(def);
  TF_DeleteApiDefMap(map);
  TF_DeleteStatus(s);
}

CT_TEST(TestApiDef, TextsUseTheNamesThatUsersSee) {
  TF_Status* s = TF_NewStatus();
  TF_ApiDefMap* map = map_of_all_ops(s);
  const char* text =
      "op {\n  graph_op_name: \"Abs\"\n  endpoint { name: \"math.Abs\" }\n"
      "  in_arg { name: \"x\" rename_to: \"value\" description: \"`x`, `y` and `x`\" }\n"
      "  summary: \"`Abs` of `x`, not Abs\"\n}\n";
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CT_OK(s);
  for (int again = 0; again < 2; ++again) {
    TF_Buffer* def = TF_ApiDefMapGet(map, "Abs", 3, s);
    CT_OK(s);
    cr_assert(pb_has_string(def->data, def->length, 7, "`math.Abs` of `value`, not Abs"));
    pb_field_t arg;
    cr_assert(pb_find(def->data, def->length, 4, &arg));
    cr_assert(pb_has_string(arg.data, arg.length, 1, "x"));
    cr_assert(pb_has_string(arg.data, arg.length, 3, "`value`, `y` and `value`"));
    TF_DeleteBuffer(def);
  }
  TF_DeleteApiDefMap(map);
  TF_DeleteStatus(s);
}

CT_TEST(TestApiDef, MultilineText) {
  // A block between "summary: <<END" and "END" is one string.
  TF_Status* s = TF_NewStatus();
  TF_ApiDefMap* map = map_of_all_ops(s);
  const char* text =
      "op {\n  graph_op_name: \"Abs\"\n  summary: <<END\nTwo lines\nof \"text\"\nEND\n}\n";
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CT_OK(s);
  TF_Buffer* def = TF_ApiDefMapGet(map, "Abs", 3, s);
  CT_OK(s);
  cr_assert(pb_has_string(def->data, def->length, 7, "Two lines\nof \"text\""));
  TF_DeleteBuffer(def);
  // The map is read-only once it was read.
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CT_ERROR(s, TF_FAILED_PRECONDITION,
           "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
  TF_DeleteApiDefMap(map);
  map = map_of_all_ops(s);
  TF_ApiDefMapPut(map, "op { not text", 13, s);
  CT_CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteApiDefMap(map);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, OpIsStateful) {
  TF_Status* s = TF_NewStatus();
  CT_INT(TF_OpIsStateful("MatMul", s), 0);
  CT_OK(s);
  CT_INT(TF_OpIsStateful("RandomUniform", s), 1);
  CT_OK(s);
  CT_INT(TF_OpIsStateful("NoSuchOp", s), 0);
  CT_CODE(s, TF_NOT_FOUND);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, GetNumberAttrForOpListInput) {
  TF_Status* s = TF_NewStatus();
  CT_STR(TF_GetNumberAttrForOpListInput("AddN", 0, s), "N");
  CT_OK(s);
  TF_DeleteStatus(s);
}
