// Functions as eager ops, and ops that call functions.
#include "eager_util.h"

// x -> x * x, called |name|.
static TF_Function* make_square(const char* name, TF_Status* status) {
  ct_t g = ct_open();
  TF_Operation* x = ct_placeholder(&g, g.graph, "x", TF_FLOAT);
  TF_Operation* y = ct_binary(&g, g.graph, "Mul", "y", ct_out(x, 0), ct_out(x, 0));
  TF_Output in = ct_out(x, 0), out = ct_out(y, 0);
  TF_Function* function =
      TF_GraphToFunction(g.graph, name, 0, -1, NULL, 1, &in, 1, &out, NULL, NULL, NULL, status);
  CT_OK(status);
  ct_close(&g);
  return function;
}

// (x, n) -> n < 3, and (x, n) -> (2x, n + 1).
static void add_loop(ce_t* t) {
  ct_t g = ct_open();
  TF_Output in[] = {ct_out(ct_placeholder(&g, g.graph, "x", TF_FLOAT), 0),
                    ct_out(ct_placeholder(&g, g.graph, "n", TF_INT32), 0)};
  TF_Operation* three = ct_scalar(&g, g.graph, "three", 3);
  TF_Output less = ct_out(ct_less(&g, g.graph, "less", in[1], ct_out(three, 0)), 0);
  TF_Function* cond = TF_GraphToFunction(g.graph, "cond", 0, -1, NULL, 2, in, 1, &less, NULL, NULL,
                                         NULL, t->status);
  CT_OK(t->status);
  TFE_ContextAddFunction(t->context, cond, t->status);
  CT_OK(t->status);
  TF_DeleteFunction(cond);
  ct_close(&g);
  g = ct_open();
  TF_Output args[] = {ct_out(ct_placeholder(&g, g.graph, "x", TF_FLOAT), 0),
                      ct_out(ct_placeholder(&g, g.graph, "n", TF_INT32), 0)};
  TF_Operation* one = ct_scalar(&g, g.graph, "one", 1);
  TF_Output out[] = {ct_out(ct_binary(&g, g.graph, "AddV2", "twice", args[0], args[0]), 0),
                     ct_out(ct_binary(&g, g.graph, "AddV2", "next", args[1], ct_out(one, 0)), 0)};
  TF_Function* body = TF_GraphToFunction(g.graph, "body", 0, -1, NULL, 2, args, 2, out, NULL, NULL,
                                         NULL, t->status);
  CT_OK(t->status);
  TFE_ContextAddFunction(t->context, body, t->status);
  CT_OK(t->status);
  TF_DeleteFunction(body);
  ct_close(&g);
}

CT_TEST(eager_function, a_function_is_an_op) {
  ce_t t = ce_open();
  cr_assert_not(TFE_ContextHasFunction(t.context, "square"));
  TF_Function* function = make_square("square", t.status);
  TFE_ContextAddFunction(t.context, function, t.status);
  CT_OK(t.status);
  TFE_ContextAddFunction(t.context, function, t.status);
  CT_OK(t.status);
  TF_DeleteFunction(function);
  cr_assert(TFE_ContextHasFunction(t.context, "square"));
  TFE_TensorHandle* x = ce_float(&t, 3);
  CE_FLOAT(ce_take(&t, ce_unary(&t, "square", x)), 9);
  CE_FLOAT(ce_take(&t, ce_unary(&t, "square", x)), 9);
  TF_Buffer* bytes = TF_NewBuffer();
  TFE_ContextGetFunctionDef(t.context, "square", bytes, t.status);
  CT_OK(t.status);
  // Added twice, it goes with the second removal.
  TFE_ContextRemoveFunction(t.context, "square", t.status);
  CT_OK(t.status);
  cr_assert(TFE_ContextHasFunction(t.context, "square"));
  TFE_ContextRemoveFunction(t.context, "square", t.status);
  CT_OK(t.status);
  cr_assert_not(TFE_ContextHasFunction(t.context, "square"));
  TFE_ContextRemoveFunction(t.context, "square", t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Tried to remove non-existent function 'square'.");
  TFE_ContextAddFunctionDef(t.context, bytes->data, bytes->length, t.status);
  CT_OK(t.status);
  CE_FLOAT(ce_take(&t, ce_unary(&t, "square", x)), 9);
  TFE_ContextAddFunctionDef(t.context, "zz", 2, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Invalid FunctionDef proto");
  TF_DeleteBuffer(bytes);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(eager_function, a_call_by_attribute) {
  ce_t t = ce_open();
  TF_Function* function = make_square("square", t.status);
  TFE_ContextAddFunction(t.context, function, t.status);
  TF_DeleteFunction(function);
  TFE_TensorHandle* x = ce_float(&t, 4);
  TFE_Op* op = ce_op(&t, "PartitionedCall", 0, NULL);
  TFE_OpAddInputList(op, &x, 1, t.status);
  TFE_OpSetAttrFunctionName(op, "f", "square", 6);
  TFE_OpSetAttrTypeList(op, "Tout", (TF_DataType[]){TF_FLOAT}, 1);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 16);
  op = ce_op(&t, "PartitionedCall", 0, NULL);
  TFE_OpAddInputList(op, &x, 1, t.status);
  TFE_Op* value = TFE_NewOp(t.context, "square", t.status);
  TFE_OpSetAttrFunction(op, "f", value);
  TFE_DeleteOp(value);
  TFE_OpSetAttrTypeList(op, "Tout", (TF_DataType[]){TF_FLOAT}, 1);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 16);
  op = ce_op(&t, "PartitionedCall", 0, NULL);
  TFE_OpAddInputList(op, &x, 1, t.status);
  TFE_OpSetAttrFunctionName(op, "f", "missing", 7);
  TFE_OpSetAttrTypeList(op, "Tout", (TF_DataType[]){TF_FLOAT}, 1);
  cr_assert_null(ce_try(&t, op));
  CT_ERROR_HAS(t.status, TF_GetCode(t.status), "missing");
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

CT_TEST(eager_function, a_loop_of_functions) {
  ce_t t = ce_open();
  add_loop(&t);
  TFE_TensorHandle* in[] = {ce_float(&t, 1.5f), ce_handle(&t, ct_int32(0))};
  for (int round = 0; round < 2; ++round) {
    TFE_Op* op = ce_op(&t, "While", 0, NULL);
    TFE_OpAddInputList(op, in, 2, t.status);
    TFE_OpSetAttrFunctionName(op, "cond", "cond", 4);
    TFE_OpSetAttrFunctionName(op, "body", "body", 4);
    TFE_TensorHandle* out[2];
    int count = 2;
    TFE_Execute(op, out, &count, t.status);
    CT_OK(t.status);
    CT_INT(count, 2);
    CE_FLOAT(ce_take(&t, out[0]), 12);
    TFE_DeleteTensorHandle(out[1]);
    TFE_DeleteOp(op);
  }
  TFE_DeleteTensorHandle(in[0]);
  TFE_DeleteTensorHandle(in[1]);
  ce_close(&t);
}
