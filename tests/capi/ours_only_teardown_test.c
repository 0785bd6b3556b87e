// A client may release graphs, sessions, contexts, functions, handles and tensors in any order. Run
// under the address sanitizer.
#include "eager_util.h"
#include "ops_c.h"

// The context goes before, between or after what was made in it.
typedef struct held_t {
  ce_t t;
  TFE_TensorHandle* handles[4];
  TF_Function* function;
} held_t;

static TF_Function* make_function(void) {
  ct_t t = ct_open();
  TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_INT64);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Neg", "y");
  TF_AddInput(desc, ct_out(x, 0));
  TF_Operation* y = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  TF_Output in = ct_out(x, 0), out = ct_out(y, 0);
  TF_Function* function = TF_GraphToFunction(t.graph, "negate", 0, -1, NULL, 1, &in, 1, &out, NULL,
                                             NULL, NULL, t.status);
  CT_OK(t.status);
  ct_close(&t);
  return function;
}

static TFE_TensorHandle* int64_of(ce_t* t, int64_t value) {
  return ce_handle(t, ct_tensor(TF_INT64, NULL, 0, &value, sizeof value));
}

static void set_elements(ce_t* t, TFE_Op* op) {
  TF_DataType types[] = {TF_INT64};
  const int64_t* dims[] = {NULL};
  int ranks[] = {0};
  TFE_OpSetAttrTypeList(op, "output_types", types, 1);
  TFE_OpSetAttrShapeList(op, "output_shapes", dims, ranks, 1, t->status);
  CT_OK(t->status);
}

// A variable, a dataset that calls a function, its iterator, and an element of it.
static held_t make_all(bool is_async) {
  held_t h = {.t = ce_open_with(is_async, NULL), .function = make_function()};
  ce_t* t = &h.t;
  TFE_ContextAddFunction(t->context, h.function, t->status);
  CT_OK(t->status);
  h.handles[0] = ce_variable(t, "cd2c89b7-88b7-44c8-ad83-06c2a9158347", 1);
  TFE_TensorHandle* numbers[] = {int64_of(t, 0), int64_of(t, 9), int64_of(t, 1)};
  TFE_Op* op = ce_op(t, "RangeDataset", 3, numbers);
  set_elements(t, op);
  TFE_TensorHandle* range = ce_run(t, op);
  op = ce_op(t, "MapDataset", 1, &range);
  TFE_OpAddInputList(op, NULL, 0, t->status);
  TFE_OpSetAttrFunctionName(op, "f", "negate", strlen("negate"));
  set_elements(t, op);
  h.handles[1] = ce_run(t, op);
  op = ce_op(t, "AnonymousIteratorV3", 0, NULL);
  set_elements(t, op);
  h.handles[2] = ce_run(t, op);
  ce_do(t, ce_op(t, "MakeIterator", 2, (TFE_TensorHandle*[]){h.handles[1], h.handles[2]}));
  op = ce_op(t, "IteratorGetNext", 1, &h.handles[2]);
  set_elements(t, op);
  h.handles[3] = ce_run(t, op);
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(numbers[i]);
  TFE_DeleteTensorHandle(range);
  return h;
}

CT_TEST(OursOnly, ContextsGoInAnyOrder) {
  for (int order = 0; order < 2 * 6; ++order) {
    held_t h = make_all(order % 2);
    for (int step = 0; step < 6; ++step) {
      int what = (step + order / 2) % 6;
      if (what < 4) TFE_DeleteTensorHandle(h.handles[what]);
      if (what == 4) TFE_DeleteContext(h.t.context);
      if (what == 5) TF_DeleteFunction(h.function);
    }
    TF_DeleteStatus(h.t.status);
  }
}

CT_TEST(OursOnly, FunctionsMayBeRemovedFirst) {
  held_t h = make_all(false);
  TFE_ContextRemoveFunction(h.t.context, "negate", h.t.status);
  CT_OK(h.t.status);
  TFE_ContextClearCaches(h.t.context);
  TFE_Op* op = ce_op(&h.t, "IteratorGetNext", 1, &h.handles[2]);
  set_elements(&h.t, op);
  TFE_DeleteTensorHandle(ce_run(&h.t, op));
  for (int i = 3; i >= 0; --i) TFE_DeleteTensorHandle(h.handles[i]);
  TF_DeleteFunction(h.function);
  ce_close(&h.t);
}

CT_TEST(OursOnly, GraphsSessionsAndResultsGoInAnyOrder) {
  for (int order = 0; order < 6; ++order) {
    ct_t t = ct_open();
    TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_INT32);
    TF_Operation* y = ct_neg(&t, t.graph, "y", x);
    TF_Tensor* result = ct_run1(&t, x, ct_int32(3), y);
    TF_Function* function = make_function();
    TF_GraphCopyFunction(t.graph, function, NULL, t.status);
    CT_OK(t.status);
    for (int step = 0; step < 4; ++step) {
      int what = (step + order) % 4;
      if (what == 0) TF_DeleteGraph(t.graph);
      if (what == 1) TF_DeleteSession(t.session, t.status);
      if (what == 2) CT_INT(ct_take_int32(result), -3);
      if (what == 3) TF_DeleteFunction(function);
    }
    TF_DeleteStatus(t.status);
  }
}
