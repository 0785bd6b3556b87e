// Tapes: gradients of executed ops, with custom gradient functions, and of second order.
#include <math.h>

#include "eager_util.h"
#include "runnel/tape.h"

static rn_tape_t* start(ce_t* t, rn_tape_options_t options) {
  rn_tape_t* tape = rn_tape_start(t->context, &options, t->status);
  CT_OK(t->status);
  return tape;
}

static void watch(ce_t* t, rn_tape_t* tape, TFE_TensorHandle* x) {
  rn_tape_watch(tape, x, t->status);
  CT_OK(t->status);
}

static TFE_TensorHandle* gradient(ce_t* t, rn_tape_t* tape, TFE_TensorHandle* y,
                                  TFE_TensorHandle* x) {
  TFE_TensorHandle* dx = NULL;
  rn_tape_gradient(tape, &y, 1, &x, 1, NULL, &dx, t->status);
  CT_OK(t->status);
  return dx;
}

CT_TEST(tape, gradient_of_a_square) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 3);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){0});
  watch(&t, tape, x);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", x, x);
  CE_FLOAT(ce_take(&t, gradient(&t, tape, y, x)), 6);
  TFE_TensorHandle* dx = NULL;
  cr_assert_not(rn_tape_gradient(tape, &y, 1, &x, 1, NULL, &dx, t.status));
  CT_ERROR_HAS(t.status, TF_FAILED_PRECONDITION, "A non-persistent GradientTape can only be used");
  cr_assert_null(dx);
  rn_tape_delete(tape);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(tape, what_is_not_watched_has_no_gradient) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 3);
  TFE_TensorHandle* z = ce_float(&t, 5);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){.is_persistent = true});
  watch(&t, tape, x);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", x, z);
  cr_assert(rn_tape_tracks(tape, x) && rn_tape_tracks(tape, y) && !rn_tape_tracks(tape, z));
  cr_assert_not(rn_tape_tracks(NULL, x));
  cr_assert_null(gradient(&t, tape, z, x));
  CE_FLOAT(ce_take(&t, gradient(&t, tape, y, x)), 5);
  rn_tape_gradient_options_t options = {.zeros = true};
  TFE_TensorHandle* dx = NULL;
  cr_assert(rn_tape_gradient(tape, &z, 1, &x, 1, &options, &dx, t.status));
  CE_FLOAT(ce_take(&t, dx), 0);
  rn_tape_delete(tape);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  TFE_DeleteTensorHandle(z);
  ce_close(&t);
}

CT_TEST(tape, several_targets_and_sources) {
  ce_t t = ce_open();
  TFE_TensorHandle* in[] = {ce_float(&t, 2), ce_float(&t, 5)};
  rn_tape_t* tape = start(&t, (rn_tape_options_t){.is_persistent = true});
  watch(&t, tape, in[0]);
  watch(&t, tape, in[1]);
  TFE_TensorHandle* product = ce_binary(&t, "Mul", in[0], in[1]);
  TFE_TensorHandle* square = ce_unary(&t, "Square", product);
  // A value in between is a source too.
  TFE_TensorHandle* sources[] = {in[0], in[1], product};
  TFE_TensorHandle* targets[] = {product, square};
  TFE_TensorHandle* d[3];
  cr_assert(rn_tape_gradient(tape, targets, 2, sources, 3, NULL, d, t.status));
  CE_FLOAT(ce_take(&t, d[0]), 5 + 2 * 10 * 5);
  CE_FLOAT(ce_take(&t, d[1]), 2 + 2 * 10 * 2);
  CE_FLOAT(ce_take(&t, d[2]), 1 + 2 * 10);
  TFE_TensorHandle* three = ce_float(&t, 3);
  rn_tape_gradient_options_t options = {.target_gradients = (TFE_TensorHandle*[]){three, NULL}};
  cr_assert(rn_tape_gradient(tape, targets, 2, sources, 1, &options, d, t.status));
  CE_FLOAT(ce_take(&t, d[0]), 3 * 5 + 2 * 10 * 5);
  rn_tape_delete(tape);
  TFE_DeleteTensorHandle(three);
  TFE_DeleteTensorHandle(in[0]);
  TFE_DeleteTensorHandle(in[1]);
  TFE_DeleteTensorHandle(product);
  TFE_DeleteTensorHandle(square);
  ce_close(&t);
}

CT_TEST(tape, nothing_is_recorded_while_it_pauses) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 3);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){.is_persistent = true});
  watch(&t, tape, x);
  rn_tape_pause(tape);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", x, x);
  rn_tape_resume(tape);
  TFE_TensorHandle* z = ce_binary(&t, "Mul", x, y);
  cr_assert_null(gradient(&t, tape, y, x));
  CE_FLOAT(ce_take(&t, gradient(&t, tape, z, x)), 9);
  rn_tape_delete(tape);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  TFE_DeleteTensorHandle(z);
  ce_close(&t);
}

CT_TEST(tape, a_persistent_one_records_its_own_gradients) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 2);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){.is_persistent = true});
  watch(&t, tape, x);
  TFE_TensorHandle* square = ce_binary(&t, "Mul", x, x);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", square, square);
  TFE_TensorHandle* first = gradient(&t, tape, y, x);
  TFE_TensorHandle* second = gradient(&t, tape, first, x);
  CE_FLOAT(ce_take(&t, gradient(&t, tape, second, x)), 24 * 2);
  // Outside nothing is added any more.
  rn_tape_pause(tape);
  TFE_TensorHandle* again = gradient(&t, tape, y, x);
  cr_assert_null(gradient(&t, tape, again, x));
  rn_tape_delete(tape);
  CE_FLOAT(ce_take(&t, again), 4 * 8);
  CE_FLOAT(ce_take(&t, first), 4 * 8);
  CE_FLOAT(ce_take(&t, second), 12 * 4);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(square);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(tape, gradients_of_gradients) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 2);
  rn_tape_t* third = start(&t, (rn_tape_options_t){0});
  watch(&t, third, x);
  rn_tape_t* second = start(&t, (rn_tape_options_t){0});
  watch(&t, second, x);
  rn_tape_t* first = start(&t, (rn_tape_options_t){0});
  watch(&t, first, x);
  TFE_TensorHandle* square = ce_binary(&t, "Mul", x, x);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", square, square);  // x^4
  TFE_TensorHandle* d1 = gradient(&t, first, y, x);
  CE_FLOAT(ce_value(&t, d1), 4 * 8);
  TFE_TensorHandle* d2 = gradient(&t, second, d1, x);
  CE_FLOAT(ce_value(&t, d2), 12 * 4);
  TFE_TensorHandle* d3 = gradient(&t, third, d2, x);
  CE_FLOAT(ce_take(&t, d3), 24 * 2);
  rn_tape_delete(first);
  rn_tape_delete(second);
  rn_tape_delete(third);
  TFE_DeleteTensorHandle(d1);
  TFE_DeleteTensorHandle(d2);
  TFE_DeleteTensorHandle(square);
  TFE_DeleteTensorHandle(y);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

// Adds the graph's function of two arguments and closes it.
static void add_function(ce_t* t, ct_t* g, const char* name, const TF_Output* in, int out_count,
                         const TF_Output* out) {
  TF_Function* function = TF_GraphToFunction(g->graph, name, 0, -1, NULL, 2, in, out_count, out,
                                             NULL, NULL, NULL, t->status);
  CT_OK(t->status);
  TFE_ContextAddFunction(t->context, function, t->status);
  CT_OK(t->status);
  TF_DeleteFunction(function);
  ct_close(g);
}

// The same through a loop: x is squared twice.
CT_TEST(tape, gradients_of_gradients_of_a_loop) {
  ce_t t = ce_open();
  ct_t g = ct_open();
  TF_Output in[] = {ct_out(ct_placeholder(&g, g.graph, "x", TF_FLOAT), 0),
                    ct_out(ct_placeholder(&g, g.graph, "n", TF_INT32), 0)};
  TF_Operation* two = ct_scalar(&g, g.graph, "two", 2);
  TF_Output less = ct_out(ct_less(&g, g.graph, "less", in[1], ct_out(two, 0)), 0);
  add_function(&t, &g, "cond", in, 1, &less);
  g = ct_open();
  TF_Output args[] = {ct_out(ct_placeholder(&g, g.graph, "x", TF_FLOAT), 0),
                      ct_out(ct_placeholder(&g, g.graph, "n", TF_INT32), 0)};
  TF_Operation* one = ct_scalar(&g, g.graph, "one", 1);
  TF_Output next[] = {ct_out(ct_binary(&g, g.graph, "Mul", "square", args[0], args[0]), 0),
                      ct_out(ct_binary(&g, g.graph, "AddV2", "more", args[1], ct_out(one, 0)), 0)};
  add_function(&t, &g, "body", args, 2, next);

  TFE_TensorHandle* start_at[] = {ce_float(&t, 2), ce_handle(&t, ct_int32(0))};
  rn_tape_t* second = start(&t, (rn_tape_options_t){0});
  watch(&t, second, start_at[0]);
  rn_tape_t* first = start(&t, (rn_tape_options_t){0});
  watch(&t, first, start_at[0]);
  TFE_Op* op = ce_op(&t, "While", 0, NULL);
  TFE_OpAddInputList(op, start_at, 2, t.status);
  TFE_OpSetAttrFunctionName(op, "cond", "cond", 4);
  TFE_OpSetAttrFunctionName(op, "body", "body", 4);
  TFE_TensorHandle* out[2];
  int count = 2;
  TFE_Execute(op, out, &count, t.status);
  CT_OK(t.status);
  TFE_TensorHandle* d1 = gradient(&t, first, out[0], start_at[0]);
  CE_FLOAT(ce_value(&t, d1), 4 * 8);
  CE_FLOAT(ce_take(&t, gradient(&t, second, d1, start_at[0])), 12 * 4);
  rn_tape_delete(first);
  rn_tape_delete(second);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(d1);
  for (int i = 0; i < 2; ++i) {
    TFE_DeleteTensorHandle(out[i]);
    TFE_DeleteTensorHandle(start_at[i]);
  }
  ce_close(&t);
}

// y = (3 - w)^2 goes down by its gradient: the variable is watched because it is read.
CT_TEST(tape, a_variable_is_trained) {
  ce_t t = ce_open();
  TFE_TensorHandle* w = ce_variable(&t, "w", 0);
  TFE_TensorHandle* goal = ce_float(&t, 3);
  TFE_TensorHandle* rate = ce_float(&t, 0.25f);
  for (int i = 0; i < 50; ++i) {
    rn_tape_t* tape = start(&t, (rn_tape_options_t){0});
    TFE_TensorHandle* value = ce_read(&t, w);
    TFE_TensorHandle* difference = ce_binary(&t, "Sub", goal, value);
    TFE_TensorHandle* loss = ce_unary(&t, "Square", difference);
    TFE_TensorHandle* dw = gradient(&t, tape, loss, w);
    cr_assert_not_null(dw);
    rn_tape_delete(tape);
    ce_do(&t, ce_op(&t, "ResourceApplyGradientDescent", 3, (TFE_TensorHandle*[]){w, rate, dw}));
    TFE_DeleteTensorHandle(value);
    TFE_DeleteTensorHandle(difference);
    TFE_DeleteTensorHandle(loss);
    TFE_DeleteTensorHandle(dw);
  }
  float found = ce_take(&t, ce_read(&t, w));
  cr_assert(fabsf(found - 3) < 1e-6f, "%g", (double)found);
  TFE_DeleteTensorHandle(goal);
  TFE_DeleteTensorHandle(rate);
  TFE_DeleteTensorHandle(w);
  ce_close(&t);
}

CT_TEST(tape, matrices_and_shapes_that_change) {
  ce_t t = ce_open();
  for (int rows = 1; rows < 4; ++rows) {
    float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    TFE_TensorHandle* a = ce_handle(&t, ct_float_matrix(rows, 4, ones));
    TFE_TensorHandle* b = ce_handle(&t, ct_float_matrix(4, 2, ones));
    TFE_TensorHandle* axes = ce_handle(&t, ct_int32_vector(2, (int32_t[]){0, 1}));
    rn_tape_t* tape = start(&t, (rn_tape_options_t){0});
    watch(&t, tape, b);
    TFE_TensorHandle* product = ce_binary(&t, "MatMul", a, b);
    TFE_TensorHandle* sum = ce_binary(&t, "Sum", product, axes);
    TFE_TensorHandle* db = gradient(&t, tape, sum, b);
    CT_INT(TFE_TensorHandleDim(db, 0, t.status), 4);
    CT_INT(TFE_TensorHandleDim(db, 1, t.status), 2);
    CE_FLOAT(ce_take(&t, db), rows);
    rn_tape_delete(tape);
    TFE_DeleteTensorHandle(a);
    TFE_DeleteTensorHandle(b);
    TFE_DeleteTensorHandle(axes);
    TFE_DeleteTensorHandle(product);
    TFE_DeleteTensorHandle(sum);
  }
  ce_close(&t);
}

// The gradient of one's own: twice what arrived.
typedef struct twice_t {
  ce_t* t;
  int calls, frees;
} twice_t;

static void twice(void* arg, TFE_TensorHandle* const* outputs, int output_count,
                  TFE_TensorHandle** inputs, int input_count, TF_Status* status) {
  twice_t* state = arg;
  CT_INT(output_count, 1);
  CT_INT(input_count, 1);
  ++state->calls;
  inputs[0] = ce_binary(state->t, "AddV2", outputs[0], outputs[0]);
  TF_SetStatus(status, TF_OK, "");
}
static void count_free(void* arg) { ++((twice_t*)arg)->frees; }

CT_TEST(tape, a_rule_of_ones_own) {
  ce_t t = ce_open();
  twice_t state = {.t = &t};
  TFE_TensorHandle* x = ce_float(&t, 3);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){0});
  watch(&t, tape, x);
  TFE_TensorHandle* square = ce_binary(&t, "Mul", x, x);
  rn_tape_pause(tape);
  TFE_TensorHandle* round = ce_unary(&t, "Neg", square);
  rn_tape_resume(tape);
  rn_tape_record(t.context, &square, 1, &round, 1, twice, &state, count_free, t.status);
  CT_OK(t.status);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", round, square);
  // dy/dsquare = round + 2 * square, dsquare/dx = 2x
  CE_FLOAT(ce_take(&t, gradient(&t, tape, y, x)), (-9 + 2 * 9) * 6);
  CT_INT(state.calls, 1);
  rn_tape_delete(tape);
  CT_INT(state.frees, 1);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(square);
  TFE_DeleteTensorHandle(round);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

// Nobody is asked for a gradient that could only end at a StopGradient.
CT_TEST(tape, nothing_is_asked_behind_a_stop) {
  ce_t t = ce_open();
  twice_t state = {.t = &t};
  TFE_TensorHandle* x = ce_float(&t, 3);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){0});
  watch(&t, tape, x);
  TFE_TensorHandle* stopped = ce_unary(&t, "StopGradient", x);
  TFE_TensorHandle* round = ce_unary(&t, "Neg", stopped);
  rn_tape_record(t.context, &stopped, 1, &round, 1, twice, &state, count_free, t.status);
  CT_OK(t.status);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", round, x);
  CE_FLOAT(ce_take(&t, gradient(&t, tape, y, x)), -3);
  CT_INT(state.calls, 0);
  rn_tape_delete(tape);
  CT_INT(state.frees, 1);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(stopped);
  TFE_DeleteTensorHandle(round);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

// What is not watched is a constant, though a recorded op reads it; a target is its own source.
CT_TEST(tape, what_is_not_watched_is_a_constant) {
  ce_t t = ce_open();
  TFE_TensorHandle *x = ce_float(&t, 3), *c = ce_float(&t, 4);
  rn_tape_t* tape = start(&t, (rn_tape_options_t){.is_persistent = true});
  watch(&t, tape, x);
  TFE_TensorHandle* y = ce_binary(&t, "Mul", x, c);
  CE_FLOAT(ce_take(&t, gradient(&t, tape, y, x)), 4);
  cr_assert_null(gradient(&t, tape, y, c));
  CE_FLOAT(ce_take(&t, gradient(&t, tape, c, c)), 1);
  rn_tape_delete(tape);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(c);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(tape, bad_calls_are_told) {
  ce_t t = ce_open();
  cr_assert_null(rn_tape_start(NULL, NULL, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  rn_tape_t* tape = rn_tape_start(t.context, NULL, t.status);
  rn_tape_watch(tape, NULL, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  cr_assert_not(rn_tape_gradient(tape, NULL, 1, NULL, 0, NULL, NULL, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  rn_tape_pause(NULL);
  rn_tape_resume(NULL);
  rn_tape_delete(NULL);
  rn_tape_delete(tape);
  ce_close(&t);
}

// A table of four rows of two, as a variable, and two rows gathered from it, one of them twice.
static TFE_TensorHandle* table(ce_t* t) {
  static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  TFE_Op* op = ce_op(t, "VarHandleOp", 0, NULL);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", (int64_t[]){4, 2}, 2, t->status);
  TFE_OpSetAttrString(op, "shared_name", "table", 5);
  TFE_TensorHandle* variable = ce_run(t, op);
  TFE_TensorHandle* initial =
      ce_handle(t, ct_tensor(TF_FLOAT, (int64_t[]){4, 2}, 2, values, sizeof values));
  ce_do(t, ce_op(t, "AssignVariableOp", 2, (TFE_TensorHandle*[]){variable, initial}));
  TFE_DeleteTensorHandle(initial);
  return variable;
}

static TFE_TensorHandle* gathered(ce_t* t, TFE_TensorHandle* variable) {
  static const int32_t rows[] = {2, 0, 2};
  TFE_TensorHandle* indices =
      ce_handle(t, ct_tensor(TF_INT32, (int64_t[]){3}, 1, rows, sizeof rows));
  TFE_Op* op = ce_op(t, "ResourceGather", 2, (TFE_TensorHandle*[]){variable, indices});
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_TensorHandle* result = ce_run(t, op);
  TFE_DeleteTensorHandle(indices);
  return result;
}

static void check_floats(ce_t* t, TFE_TensorHandle* handle, int count, const float* wanted) {
  TF_Tensor* tensor = TFE_TensorHandleResolve(handle, t->status);
  CT_OK(t->status);
  CT_INT(TF_TensorElementCount(tensor), count);
  for (int i = 0; i < count; ++i) CE_FLOAT(((float*)TF_TensorData(tensor))[i], wanted[i]);
  TF_DeleteTensor(tensor);
  TFE_DeleteTensorHandle(handle);
}

static void check_ints(ce_t* t, TFE_TensorHandle* handle, int count, const int64_t* wanted) {
  TF_Tensor* tensor = TFE_TensorHandleResolve(handle, t->status);
  CT_OK(t->status);
  CT_INT(TF_TensorElementCount(tensor), count);
  const void* data = TF_TensorData(tensor);
  for (int i = 0; i < count; ++i)
    CT_INT(
        TF_TensorType(tensor) == TF_INT32 ? ((const int32_t*)data)[i] : ((const int64_t*)data)[i],
        wanted[i]);
  TF_DeleteTensor(tensor);
  TFE_DeleteTensorHandle(handle);
}

CT_TEST(tape, rows_of_an_embedding) {
  ce_t t = ce_open();
  TFE_TensorHandle* variable = table(&t);
  for (int keeps = 0; keeps < 2; ++keeps) {
    rn_tape_t* tape = rn_tape_start(t.context, NULL, t.status);
    TFE_TensorHandle* rows = gathered(&t, variable);
    TFE_TensorHandle* y = ce_unary(&t, "Square", rows);
    rn_tape_slices_t slices = {0};
    rn_tape_gradient_options_t options = {.slices = keeps ? &slices : NULL};
    TFE_TensorHandle* dense = NULL;
    cr_assert(rn_tape_gradient(tape, &y, 1, &variable, 1, &options, &dense, t.status));
    if (keeps) {
      cr_assert_null(dense);
      check_floats(&t, slices.values, 6, (float[]){10, 12, 2, 4, 10, 12});
      check_ints(&t, slices.indices, 3, (int64_t[]){2, 0, 2});
      check_ints(&t, slices.shape, 2, (int64_t[]){4, 2});
    } else {
      check_floats(&t, dense, 8, (float[]){2, 4, 0, 0, 20, 24, 0, 0});
    }
    TFE_DeleteTensorHandle(rows);
    TFE_DeleteTensorHandle(y);
    rn_tape_delete(tape);
  }
  TFE_DeleteTensorHandle(variable);
  ce_close(&t);
}

// A gradient that touches all rows is dense, also where slices are asked for; so is the sum of
// slices and others, and what passes through a step of one's own.
CT_TEST(tape, slices_and_others) {
  ce_t t = ce_open();
  TFE_TensorHandle* variable = table(&t);
  TFE_TensorHandle* x = ce_float(&t, 3);
  rn_tape_t* tape = rn_tape_start(t.context, NULL, t.status);
  rn_tape_watch(tape, x, t.status);
  TFE_TensorHandle* rows = gathered(&t, variable);
  TFE_Op* op = ce_op(&t, "ReadVariableOp", 1, &variable);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_TensorHandle* all = ce_run(&t, op);
  TFE_TensorHandle* scaled = ce_binary(&t, "Mul", all, x);
  TFE_TensorHandle* targets[] = {rows, scaled};
  TFE_TensorHandle *sources[] = {variable, x}, *out[2] = {0};
  rn_tape_slices_t slices[2];
  rn_tape_gradient_options_t options = {.slices = slices};
  cr_assert(rn_tape_gradient(tape, targets, 2, sources, 2, &options, out, t.status));
  cr_assert_null(slices[0].values);
  cr_assert_null(slices[1].values);
  check_floats(&t, out[0], 8, (float[]){4, 4, 3, 3, 5, 5, 3, 3});
  check_floats(&t, out[1], 1, (float[]){36});
  TFE_DeleteTensorHandle(rows);
  TFE_DeleteTensorHandle(all);
  TFE_DeleteTensorHandle(scaled);
  rn_tape_delete(tape);

  // Two stretches, with a step of one's own between them.
  tape = rn_tape_start(t.context, NULL, t.status);
  rows = gathered(&t, variable);
  rn_tape_pause(tape);
  twice_t state = {.t = &t};
  TFE_TensorHandle* doubled = ce_binary(&t, "AddV2", rows, rows);
  rn_tape_resume(tape);
  rn_tape_record(t.context, &rows, 1, &doubled, 1, twice, &state, NULL, t.status);
  CT_OK(t.status);
  cr_assert(rn_tape_gradient(tape, &doubled, 1, &variable, 1, &options, out, t.status));
  cr_assert_null(out[0]);
  check_floats(&t, slices[0].values, 6, (float[]){2, 2, 2, 2, 2, 2});
  TFE_DeleteTensorHandle(slices[0].indices);
  TFE_DeleteTensorHandle(slices[0].shape);
  TFE_DeleteTensorHandle(rows);
  TFE_DeleteTensorHandle(doubled);
  rn_tape_delete(tape);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(variable);
  ce_close(&t);
}
