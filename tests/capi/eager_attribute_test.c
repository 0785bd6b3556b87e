// Attributes of eager ops: set, implied by inputs, copied, reset.
#include "eager_util.h"

CT_TEST(eager_attribute, attributes_of_every_kind) {
  ce_t t = ce_open();
  unsigned char is_list = 2;
  CT_INT(TFE_OpNameGetAttrType(t.context, "ConcatV2", "N", &is_list, t.status), TF_ATTR_INT);
  CT_INT(is_list, 0);
  TFE_Op* op = ce_op(&t, "Squeeze", 0, NULL);
  CT_INT(TFE_OpGetAttrType(op, "squeeze_dims", &is_list, t.status), TF_ATTR_INT);
  CT_INT(is_list, 1);
  TFE_OpGetAttrType(op, "nothing", &is_list, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Attribute 'nothing' does not exist for this operation");
  TFE_OpSetAttrIntList(op, "squeeze_dims", (int64_t[]){0}, 1);
  TFE_TensorHandle* x = ce_handle(&t, ct_float_matrix(1, 3, (float[]){1, 2, 3}));
  TFE_OpAddInput(op, x, t.status);
  TFE_TensorHandle* y = ce_run(&t, op);
  CT_INT(TFE_TensorHandleNumDims(y, t.status), 1);
  TFE_DeleteTensorHandle(y);

  op = ce_op(&t, "Const", 0, NULL);
  TF_Tensor* value = ct_float(9);
  TFE_OpSetAttrTensor(op, "value", value, t.status);
  CT_OK(t.status);
  TF_DeleteTensor(value);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_Op* other = ce_op(&t, "Const", 0, NULL);
  TFE_OpAddAttrs(other, TFE_OpGetAttrs(op));
  TF_Buffer* bytes = TF_NewBuffer();
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op), bytes, t.status);
  CT_OK(t.status);
  cr_assert_gt(bytes->length, 10);
  TF_DeleteBuffer(bytes);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 9);
  CE_FLOAT(ce_take(&t, ce_run(&t, other)), 9);

  op = ce_op(&t, "Empty", 0, NULL);
  TFE_OpSetAttrShape(op, "dtype", (int64_t[300]){0}, 300, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

// The bytes of attribute |name|, an AttrValue, in what |op| has or follows from its inputs.
static bool find_attr(ce_t* t, const TFE_Op* op, const char* name, pb_field_t* out,
                      TF_Buffer* bytes) {
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op), bytes, t->status);
  CT_OK(t->status);
  pb_field_t entry;
  return pb_find_named(bytes->data, bytes->length, 2, 1, name, &entry) &&
         pb_find(entry.data, entry.length, 2, out);
}

// -1: the op has no such attribute. |field| is that of an AttrValue: 3 is an int, 6 a type.
static long long attr_of(ce_t* t, const TFE_Op* op, const char* name, int field) {
  TF_Buffer* bytes = TF_NewBuffer();
  pb_field_t value, found;
  long long result = -1;
  if (find_attr(t, op, name, &value, bytes) && pb_find(value.data, value.length, field, &found))
    result = (long long)found.value;
  TF_DeleteBuffer(bytes);
  return result;
}

CT_TEST(eager_attribute, attributes_follow_from_inputs) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 1), *zero = ce_handle(&t, ct_int32(0));
  TFE_TensorHandle* wide = ce_handle(&t, ct_tensor(TF_INT64, NULL, 0, (int64_t[]){0}, 8));
  TFE_TensorHandle* both[] = {x, x};
  TFE_Op* op = ce_op(&t, "Min", 0, NULL);
  CT_INT(attr_of(&t, op, "T", 6), -1);
  TFE_OpAddInput(op, x, t.status);
  CT_INT(attr_of(&t, op, "T", 6), TF_FLOAT);
  CT_INT(attr_of(&t, op, "Tidx", 6), TF_INT32);  // by default
  TFE_OpAddInput(op, wide, t.status);
  CT_INT(attr_of(&t, op, "Tidx", 6), TF_INT64);
  TFE_DeleteOp(op);
  op = ce_op(&t, "Concat", 1, &zero);
  TFE_OpAddInputList(op, both, 2, t.status);
  CT_INT(attr_of(&t, op, "T", 6), TF_FLOAT);
  CT_INT(attr_of(&t, op, "N", 3), 2);
  TFE_DeleteOp(op);
  // Tensors given one by one do not say where the list ends.
  op = ce_op(&t, "Concat", 1, &zero);
  TFE_OpAddInput(op, x, t.status);
  TFE_OpAddInput(op, x, t.status);
  CT_INT(attr_of(&t, op, "T", 6), -1);
  CT_INT(attr_of(&t, op, "N", 3), -1);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(wide);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(zero);
  ce_close(&t);
}

// The first value of an attribute counts, whether it was set or an input implied it.
CT_TEST(eager_attribute, first_values_of_attributes_count) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 7), *axis = ce_handle(&t, ct_int32(0));
  TFE_TensorHandle* list[] = {x, x};
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpSetAttrType(op, "T", TF_INT32);  // the input said float
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), -7);
  op = ce_op(&t, "Neg", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  TFE_OpAddInput(op, x, t.status);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), -7);
  op = ce_op(&t, "Neg", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  TFE_OpAddInput(op, x, t.status);
  cr_assert_null(ce_try(&t, op));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT,
           "cannot compute Neg as input #0(zero-based) was expected to be a int32 tensor but is a "
           "float tensor");
  op = ce_op(&t, "Cast", 1, &x);
  TFE_OpSetAttrType(op, "DstT", TF_INT32);
  TFE_OpSetAttrType(op, "DstT", TF_FLOAT);
  TFE_OpSetAttrType(op, "SrcT", TF_INT32);
  TFE_TensorHandle* y = ce_run(&t, op);
  CT_INT(TFE_TensorHandleDataType(y), TF_INT32);
  TFE_DeleteTensorHandle(y);
  // Lists say how long they are, and of which type.
  op = ce_op(&t, "AddN", 0, NULL);
  TFE_OpAddInputList(op, list, 2, t.status);
  TFE_OpSetAttrInt(op, "N", 3);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 14);
  op = ce_op(&t, "Pack", 0, NULL);
  TFE_OpAddInputList(op, list, 2, t.status);
  TFE_OpSetAttrInt(op, "axis", 0);
  TFE_OpSetAttrInt(op, "axis", 5);
  y = ce_run(&t, op);
  op = ce_op(&t, "Sum", 2, (TFE_TensorHandle*[]){y, axis});
  TFE_OpSetAttrBool(op, "keep_dims", 0);
  TFE_OpSetAttrType(op, "Tidx", TF_INT64);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 14);
  TFE_DeleteTensorHandle(y);
  op = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddInputList(op, list, 1, t.status);
  TF_DataType types[] = {TF_INT32, TF_INT32};
  TFE_OpSetAttrTypeList(op, "T", types, 2);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 7);
  // Of a list that is given tensor by tensor nobody knows the end.
  op = ce_op(&t, "AddN", 2, list);
  TFE_OpSetAttrInt(op, "N", 2);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 14);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(axis);
  ce_close(&t);
}

// A copy of an op from what can be asked of it: a list of types goes with the attributes.
CT_TEST(eager_attribute, copies_of_ops) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 1), *y = ce_handle(&t, ct_int32(7));
  TFE_TensorHandle *inputs[] = {x, y}, *results[2] = {0};
  TFE_Op* op = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddInputList(op, inputs, 2, t.status);
  TFE_Op* copy = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddAttrs(copy, TFE_OpGetAttrs(op));
  for (int i = 0; i < 2; ++i) TFE_OpAddInput(copy, TFE_OpGetFlatInput(op, i, t.status), t.status);
  int count = 2;
  TFE_Execute(copy, results, &count, t.status);
  CT_OK(t.status);
  CT_INT(count, 2);
  CT_INT(TFE_TensorHandleDataType(results[1]), TF_INT32);
  for (int i = 0; i < 2; ++i) TFE_DeleteTensorHandle(results[i]);
  TFE_DeleteOp(copy);
  TFE_DeleteOp(op);
  // What an op has of its own stays.
  op = ce_op(&t, "VarHandleOp", 0, NULL);
  TFE_OpSetAttrType(op, "dtype", TF_INT64);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, t.status);
  copy = ce_op(&t, "VarHandleOp", 0, NULL);
  TFE_OpSetAttrType(copy, "dtype", TF_FLOAT);
  TFE_OpAddAttrs(copy, TFE_OpGetAttrs(op));
  CT_INT(attr_of(&t, copy, "dtype", 6), TF_FLOAT);
  TF_Buffer* bytes = TF_NewBuffer();
  pb_field_t shape;
  cr_assert(find_attr(&t, copy, "shape", &shape, bytes));
  TF_DeleteBuffer(bytes);
  TFE_DeleteOp(copy);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(eager_attribute, reset_makes_it_another) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 4);
  TFE_Op* op = ce_op(&t, "Neg", 1, &x);
  TFE_OpReset(op, "Sqrt", "/cpu:0", t.status);
  CT_OK(t.status);
  TFE_OpAddInput(op, x, t.status);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 2);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(eager_attribute, lists_and_lengths) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* axis = ce_handle(&t, ct_int32(0));
  TFE_Op* op = ce_op(&t, "ConcatV2", 0, NULL);
  TFE_OpAddInputList(op, (TFE_TensorHandle*[]){x, x, x}, 3, t.status);
  TFE_OpAddInput(op, axis, t.status);
  CT_INT(TFE_OpGetInputLength(op, "values", t.status), 3);
  CT_INT(TFE_OpGetInputLength(op, "axis", t.status), 1);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), 1);
  CT_OK(t.status);
  CT_INT(TFE_OpGetFlatInputCount(op, t.status), 4);
  cr_assert_eq(TFE_OpGetFlatInput(op, 3, t.status), axis);
  CT_INT(TFE_OpGetInputLength(op, "nothing", t.status), -1);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Input 'nothing' not found");
  TFE_TensorHandle* all = ce_run(&t, op);
  CT_INT(TFE_TensorHandleNumElements(all, t.status), 6);
  TFE_DeleteTensorHandle(all);

  op = ce_op(&t, "Split", 0, NULL);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), -1);
  CT_ERROR(t.status, TF_NOT_FOUND, "No attr named 'num_split' in NodeDef:");
  TFE_OpSetAttrInt(op, "num_split", 2);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), 2);
  TFE_OpAddInput(op, axis, t.status);
  TFE_OpAddInput(op, x, t.status);
  TFE_TensorHandle* halves[5];
  int count = 5;
  TFE_Execute(op, halves, &count, t.status);
  CT_OK(t.status);
  CT_INT(count, 2);
  CE_FLOAT(ce_take(&t, halves[1]), 2);
  TFE_DeleteTensorHandle(halves[0]);
  TFE_DeleteOp(op);

  // Single tensors for a list, with the attributes that nothing can be inferred of.
  op = ce_op(&t, "ConcatV2", 3, (TFE_TensorHandle*[]){x, x, axis});
  TFE_OpSetAttrInt(op, "N", 2);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrType(op, "Tidx", TF_INT32);
  TFE_DeleteTensorHandle(ce_run(&t, op));
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(axis);
  ce_close(&t);
}
