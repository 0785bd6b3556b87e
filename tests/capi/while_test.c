// While loops: built from two small graphs, incomplete descriptions, running, nesting and
// differentiating them.
#include <stdlib.h>

#include "util.h"

// while (i0 < i1) { i0 += 1; } style loops over int32 scalars named p0, p1, ...
typedef struct loop_t {
  ct_t t;
  int count;
  TF_Output inputs[4];
  TF_Output outputs[4];
  TF_WhileParams* params;
} loop_t;

static TF_WhileParams* keep(TF_WhileParams params) {
  // Const members: the struct can only be made by copying it whole.
  TF_WhileParams* kept = malloc(sizeof *kept);
  memcpy(kept, &params, sizeof params);
  return kept;
}

// |loop| must stay where it is: the array of inputs may be borrowed until the loop is finished.
static void begin(loop_t* loop, int count) {
  *loop = (loop_t){.t = ct_open(), .count = count};
  static const char* const names[] = {"p0", "p1", "p2", "p3"};
  for (int i = 0; i < count; ++i) {
    loop->inputs[i] = ct_out(ct_placeholder(&loop->t, loop->t.graph, names[i], TF_INT32), 0);
    loop->outputs[i] = ct_out(NULL, -1);
  }
  loop->params = keep(TF_NewWhile(loop->t.graph, loop->inputs, count, loop->t.status));
  CT_OK(loop->t.status);
  CT_INT(loop->params->ninputs, count);
  cr_assert_not_null(loop->params->cond_graph);
  cr_assert_not_null(loop->params->body_graph);
  for (int i = 0; i < count; ++i) {
    cr_assert_not_null(loop->params->cond_inputs[i].oper);
    cr_assert_not_null(loop->params->body_inputs[i].oper);
  }
  loop->params->name = "test_loop";
}

// cond: input 0 < input 1.
static void set_cond(loop_t* loop) {
  TF_WhileParams* p = loop->params;
  p->cond_output =
      ct_out(ct_less(&loop->t, p->cond_graph, "less", p->cond_inputs[0], p->cond_inputs[1]), 0);
}

// body: input 0 + 1, the others as they are.
static void set_body(loop_t* loop) {
  TF_WhileParams* p = loop->params;
  TF_Operation* one = ct_scalar(&loop->t, p->body_graph, "one", 1);
  TF_Operation* add = ct_add(&loop->t, p->body_graph, "add", p->body_inputs[0], ct_out(one, 0));
  p->body_outputs[0] = ct_out(add, 0);
  for (int i = 1; i < loop->count; ++i) p->body_outputs[i] = p->body_inputs[i];
}

static void finish(loop_t* loop) { TF_FinishWhile(loop->params, loop->t.status, loop->outputs); }

static void end(loop_t* loop) {
  free(loop->params);
  ct_close(&loop->t);
}

// Finishing must fail with |message| and add nothing to the graph.
static void expect_error(loop_t* loop, TF_Code code, const char* message) {
  finish(loop);
  CT_ERROR(loop->t.status, code, message);
  char* text = ct_graph_text(loop->t.graph);
  cr_assert_null(strstr(text, "test_loop"));
  free(text);
  end(loop);
}

static int32_t run_loop(loop_t* loop, int32_t a, int32_t b, int fetch) {
  TF_Tensor* values[] = {ct_int32(a), ct_int32(b)};
  return ct_take_int32(ct_run(&loop->t, 2, loop->inputs, values, loop->outputs[fetch]));
}

CT_TEST(CApiWhileLoopTest, BasicLoop) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  set_body(&loop);
  finish(&loop);
  CT_OK(loop.t.status);
  for (int i = 0; i < 2; ++i) {
    cr_assert_not_null(loop.outputs[i].oper);
    cr_assert_geq(loop.outputs[i].index, 0);
  }
  CT_INT(run_loop(&loop, -4, 3, 0), 3);
  CT_INT(run_loop(&loop, -4, 3, 1), 3);
  CT_INT(run_loop(&loop, 5, 2, 0), 5);  // not once
  CT_INT(run_loop(&loop, 0, 1000, 0), 1000);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, LoopNodes) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  set_body(&loop);
  finish(&loop);
  CT_OK(loop.t.status);
  char* text = ct_graph_text(loop.t.graph);
  CT_STR(text,
         "p0 = Placeholder()\n"
         "p1 = Placeholder()\n"
         "test_loop/Enter = Enter(p0)\n"
         "test_loop/Enter_1 = Enter(p1)\n"
         "test_loop/Merge = Merge(test_loop/Enter, test_loop/NextIteration)\n"
         "test_loop/Merge_1 = Merge(test_loop/Enter_1, test_loop/NextIteration_1)\n"
         "test_loop/cond/less = Less(test_loop/Merge, test_loop/Merge_1, ^test_loop/Merge)\n"
         "test_loop/LoopCond = LoopCond(test_loop/cond/less)\n"
         "test_loop/Switch = Switch(test_loop/Merge, test_loop/LoopCond)\n"
         "test_loop/Switch_1 = Switch(test_loop/Merge_1, test_loop/LoopCond)\n"
         "test_loop/body/one = Const(^test_loop/Switch)\n"
         "test_loop/body/add = AddN(test_loop/Switch:1, test_loop/body/one)\n"
         "test_loop/NextIteration = NextIteration(test_loop/body/add)\n"
         "test_loop/NextIteration_1 = NextIteration(test_loop/Switch_1:1)\n"
         "test_loop/Exit = Exit(test_loop/Switch)\n"
         "test_loop/Exit_1 = Exit(test_loop/Switch_1)\n");
  free(text);
  end(&loop);
}

// The frame name and the invariants are what the executor goes by.
CT_TEST(CApiWhileLoopTest, EnterAttributes) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  set_body(&loop);
  finish(&loop);
  CT_OK(loop.t.status);
  TF_Operation* enter = TF_GraphOperationByName(loop.t.graph, "test_loop/Enter_1");
  char frame[32] = {0};
  TF_OperationGetAttrString(enter, "frame_name", frame, sizeof frame - 1, loop.t.status);
  CT_OK(loop.t.status);
  CT_STR(frame, "test_loop");
  unsigned char constant = 7;
  TF_OperationGetAttrBool(enter, "is_constant", &constant, loop.t.status);
  CT_OK(loop.t.status);
  CT_INT(constant, 0);
  int64_t parallel = 0;
  TF_OperationGetAttrInt(enter, "parallel_iterations", &parallel, loop.t.status);
  CT_OK(loop.t.status);
  CT_INT(parallel, 10);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, NestedLoop) {
  // The outer body holds a whole loop.
  loop_t loop;
  begin(&loop, 2);
  TF_WhileParams* p = loop.params;
  ct_t* t = &loop.t;
  TF_Operation* six = ct_scalar(t, p->cond_graph, "six", 6);
  p->cond_output = ct_out(ct_less(t, p->cond_graph, "less", p->cond_inputs[0], ct_out(six, 0)), 0);

  TF_Output inner_inputs[] = {p->body_inputs[1]};
  TF_WhileParams* inner = keep(TF_NewWhile(p->body_graph, inner_inputs, 1, t->status));
  CT_OK(t->status);
  inner->name = "inner_loop";
  TF_Operation* three = ct_scalar(t, inner->cond_graph, "three", 3);
  inner->cond_output =
      ct_out(ct_less(t, inner->cond_graph, "less", inner->cond_inputs[0], ct_out(three, 0)), 0);
  TF_Operation* one = ct_scalar(t, inner->body_graph, "one", 1);
  inner->body_outputs[0] =
      ct_out(ct_add(t, inner->body_graph, "add", inner->body_inputs[0], ct_out(one, 0)), 0);
  TF_Output inner_output = ct_out(NULL, -1);
  TF_FinishWhile(inner, t->status, &inner_output);
  CT_OK(t->status);
  free(inner);

  // Both grow by what the inner loop ended with.
  p->body_outputs[0] = ct_out(ct_add(t, p->body_graph, "add0", p->body_inputs[0], inner_output), 0);
  p->body_outputs[1] = ct_out(ct_add(t, p->body_graph, "add1", p->body_inputs[1], inner_output), 0);
  finish(&loop);
  CT_OK(t->status);
  // i0 0, i1 0: inner 3 -> 3, 3; inner 3 -> 6, 6; stop.
  CT_INT(run_loop(&loop, 0, 0, 0), 6);
  CT_INT(run_loop(&loop, 0, 0, 1), 6);
  CT_INT(run_loop(&loop, 7, 0, 1), 0);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, UnsetCondOutput) {
  loop_t loop;
  begin(&loop, 1);
  set_body(&loop);
  expect_error(&loop, TF_INVALID_ARGUMENT, "TF_WhileParams `cond_output` field isn't set");
}

CT_TEST(CApiWhileLoopTest, WrongCondOutputType) {
  loop_t loop;
  begin(&loop, 1);
  loop.params->cond_output = loop.params->cond_inputs[0];
  set_body(&loop);
  finish(&loop);
  CT_ERROR(loop.t.status, TF_INVALID_ARGUMENT,
           "BuildWhileLoop: 'cond' argument must return a boolean output, got int32");
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, InvalidCondOutputNode) {
  loop_t loop;
  begin(&loop, 1);
  // From the outer graph.
  loop.params->cond_output = loop.inputs[0];
  set_body(&loop);
  finish(&loop);
  CT_CODE(loop.t.status, TF_INVALID_ARGUMENT);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, InvalidCondOutputIndex) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  loop.params->cond_output.index = 100;
  set_body(&loop);
  finish(&loop);
  CT_ERROR(loop.t.status, TF_INVALID_ARGUMENT,
           "Invalid return output 100 of node 'less', which has 1 output(s)");
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, UnsetBodyOutput) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  expect_error(&loop, TF_INVALID_ARGUMENT, "TF_WhileParams `body_outputs[0]` field isn't set");
}

CT_TEST(CApiWhileLoopTest, UnsetSecondBodyOutput) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  loop.params->body_outputs[0] = loop.params->body_inputs[0];
  expect_error(&loop, TF_INVALID_ARGUMENT, "TF_WhileParams `body_outputs[1]` field isn't set");
}

CT_TEST(CApiWhileLoopTest, InvalidBodyOutputNode) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  set_body(&loop);
  loop.params->body_outputs[1] = loop.inputs[1];
  finish(&loop);
  CT_CODE(loop.t.status, TF_INVALID_ARGUMENT);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, NullName) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  set_body(&loop);
  loop.params->name = NULL;
  expect_error(&loop, TF_INVALID_ARGUMENT, "TF_WhileParams `name` field is null");
}

CT_TEST(CApiWhileLoopTest, WrongGraph) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  set_body(&loop);
  // The condition's inputs belong to the condition's graph only.
  loop.params->body_outputs[0] = loop.params->cond_inputs[0];
  finish(&loop);
  CT_CODE(loop.t.status, TF_INVALID_ARGUMENT);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, BadTypes) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  // An op on floats in the body of a loop over int32.
  TF_OperationDescription* desc =
      TF_NewOperation(loop.params->body_graph, "FakeQuantWithMinMaxArgs", "float_op");
  TF_AddInput(desc, loop.params->body_inputs[0]);
  cr_assert_null(TF_FinishOperation(desc, loop.t.status));
  CT_ERROR_HAS(loop.t.status, TF_INVALID_ARGUMENT, "float_op");
  CT_ERROR_HAS(loop.t.status, TF_INVALID_ARGUMENT, "int32");
  TF_AbortWhile(loop.params);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, Abort) {
  loop_t loop;
  begin(&loop, 2);
  set_cond(&loop);
  TF_AbortWhile(loop.params);
  char* text = ct_graph_text(loop.t.graph);
  CT_STR(text, "p0 = Placeholder()\np1 = Placeholder()\n");
  free(text);
  end(&loop);
}

CT_TEST(CApiWhileLoopTest, NoInputs) {
  ct_t t = ct_open();
  (void)TF_NewWhile(t.graph, NULL, 0, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "TF_NewWhile() must be passed at least one input");
  ct_close(&t);
}

CT_TEST(CApiWhileLoopTest, Gradients) {
  // d(out)/d(in) of while (i < 10) i += 1 is 1.
  loop_t loop;
  begin(&loop, 1);
  TF_WhileParams* p = loop.params;
  ct_t* t = &loop.t;
  TF_Operation* ten = ct_scalar(t, p->cond_graph, "ten", 10);
  p->cond_output = ct_out(ct_less(t, p->cond_graph, "less", p->cond_inputs[0], ct_out(ten, 0)), 0);
  set_body(&loop);
  finish(&loop);
  CT_OK(t->status);
  TF_Output gradient = ct_out(NULL, -1);
  TF_AddGradients(t->graph, loop.outputs, 1, loop.inputs, 1, NULL, t->status, &gradient);
  CT_OK(t->status);
  TF_Tensor* values[] = {ct_int32(1)};
  CT_INT(ct_take_int32(ct_run(t, 1, loop.inputs, values, gradient)), 1);
  end(&loop);
}
