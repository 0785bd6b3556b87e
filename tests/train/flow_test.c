// Conditionals and loops: values and gradients, as nodes and as functions, nested; names and
// attributes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

static rn_edge_t number(rn_scope_t* s, double value) {
  return rn_const_scalar(s, TF_DOUBLE, value);
}

// What programs are made with.
typedef struct program_args_t {
  rn_edge_t x;
  bool outer, inner;  // whether the outer, the inner construct is functional
  rn_edge_t extra[2];
} program_args_t;

typedef rn_edge_t (*program_t)(rn_scope_t* s, program_args_t* p);
typedef double (*truth_t)(double x);

static TF_Tensor* double_of(double x) { return tensor_of(TF_DOUBLE, NULL, 0, &x); }

// The program gives |truth|, and its gradient is what differences say, in all four forms.
static void try_program(const char* what, program_t program, truth_t truth, const double* xs,
                        int count) {
  for (int form = 0; form < 4; ++form) {
    trial_t t = trial_open();
    rn_edge_t x = rn_Placeholder(t.s, TF_DOUBLE, .shape = RN_SET_SHAPE(NULL, 0));
    program_args_t p = {.x = x, .outer = form & 1, .inner = form >> 1};
    rn_edge_t y = program(t.s, &p);
    cr_assert(rn_scope_ok(t.s), "%s, form %d: %s", what, form, rn_scope_message(t.s));
    for (int i = 0; i < count; ++i) {
      TF_Tensor* value = double_of(xs[i]);
      double got = NAN, error = NAN;
      cr_assert(trial_fetch(&t, y, &x, &value, 1, &got, 1) == 1, "%s, form %d", what, form);
      expect_close(what, form, got, truth(xs[i]), 1e-12);
      bool fits = rn_check_gradient(t.s, &y, 1, &x, &value, 1,
                                    &(rn_check_options_t){.tolerance = 1e-5}, &error);
      cr_assert(fits, "%s, form %d at %g: %s", what, form, xs[i], rn_scope_message(t.s));
      TF_DeleteTensor(value);
    }
    trial_close(&t);
  }
}

static int square(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const program_args_t* p = arg;
  out[0] = rn_Mul(s, p->x, p->x);
  return 1;
}

static int three_less(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const program_args_t* p = arg;
  out[0] = rn_Sub(s, rn_Mul(s, number(s, 3), p->x), rn_Exp(s, p->x));
  return 1;
}

static rn_edge_t cond_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t y;
  rn_cond(s, rn_Less(s, p->x, number(s, 1)), rn_branch(square, p), rn_branch(three_less, p), &y, 1,
          .functional = p->outer);
  return rn_Mul(s, y, p->x);
}
static double cond_truth(double x) { return x * (x < 1 ? x * x : 3 * x - exp(x)); }

Test(flow, cond) {
  try_program("cond", cond_program, cond_truth, (const double[]){0.5, -2, 1.5}, 3);
}

// A branch that hands on what is outside, one that reads nothing of it, one result that no
// gradient goes through.
static int as_it_is(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const program_args_t* p = arg;
  out[0] = p->x;
  out[1] = rn_const_int32(s, 7);
  return 2;
}

static int constants(rn_scope_t* s, rn_edge_t* out, void* arg) {
  (void)arg;
  out[0] = number(s, 4);
  out[1] = rn_const_int32(s, 9);
  return 2;
}

static rn_edge_t pass_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t y[2];
  rn_cond(s, rn_Less(s, p->x, number(s, 1)), rn_branch(as_it_is, p), rn_branch(constants, p), y, 2,
          .functional = p->outer);
  return rn_AddV2(s, rn_Mul(s, y[0], p->x), rn_Cast(s, y[1], TF_DOUBLE));
}
static double pass_truth(double x) { return x < 1 ? x * x + 7 : 4 * x + 9; }

Test(flow, cond_of_outer_edges) {
  try_program("pass", pass_program, pass_truth, (const double[]){0.5, 2}, 2);
}

static int nested_branch(rn_scope_t* s, rn_edge_t* out, void* arg) {
  program_args_t* p = arg;
  rn_cond(s, rn_Less(s, p->x, number(s, 0)), rn_branch(square, p), rn_branch(three_less, p), out, 1,
          .functional = p->inner);
  out[0] = rn_Mul(s, out[0], p->x);
  return 1;
}

static rn_edge_t nested_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t y;
  rn_cond(s, rn_Less(s, p->x, number(s, 1)), rn_branch(nested_branch, p), rn_branch(square, p), &y,
          1, .functional = p->outer);
  return y;
}
static double nested_truth(double x) {
  return x >= 1 ? x * x : x < 0 ? x * x * x : x * (3 * x - exp(x));
}

Test(flow, cond_in_cond) {
  try_program("nested", nested_program, nested_truth, (const double[]){-0.5, 0.5, 2}, 3);
}

// Loops.
static rn_edge_t below_four(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 4));
}

// y ← y · x + sin(y)
static void grow(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const program_args_t* p = arg;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, rn_Mul(s, values[1], p->x), rn_Sin(s, values[1]));
}

static rn_edge_t while_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), p->x}, ends[2];
  rn_while(s, below_four, grow, p, starts, ends, 2, .functional = p->outer);
  return ends[1];
}
static double grown(double y, double x, int turns) {
  for (int i = 0; i < turns; ++i) y = y * x + sin(y);
  return y;
}
static double while_truth(double x) { return grown(x, x, 4); }

Test(flow, loop) {
  try_program("while", while_program, while_truth, (const double[]){0.5, -1.5}, 2);
}

static rn_edge_t limited_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), p->x}, ends[2];
  rn_while(s, below_four, grow, p, starts, ends, 2, .functional = p->outer,
           .maximum_iterations = rn_const_int32(s, 2), .swap_memory = p->inner,
           .parallel_iterations = 1);
  return ends[1];
}
static double limited_truth(double x) { return grown(x, x, 2); }

Test(flow, loop_of_limited_length) {
  try_program("limited", limited_program, limited_truth, (const double[]){0.5, -1.5}, 2);
}

// A conditional in a loop.
static void cond_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  program_args_t* p = arg;
  program_args_t here = {.x = values[1]};
  rn_cond(s, rn_Less(s, values[1], p->x), rn_branch(square, &here), rn_branch(three_less, &here),
          &next[1], 1, .functional = p->inner);
  next[1] = rn_AddV2(s, next[1], p->x);
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
}

static rn_edge_t cond_in_loop(rn_scope_t* s, program_args_t* p) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), rn_Mul(s, p->x, number(s, 0.75))}, ends[2];
  rn_while(s, below_four, cond_body, p, starts, ends, 2, .functional = p->outer);
  return ends[1];
}
static double cond_in_loop_truth(double x) {
  double y = 0.75 * x;
  for (int i = 0; i < 4; ++i) y = (y < x ? y * y : 3 * y - exp(y)) + x;
  return y;
}

Test(flow, cond_in_loop) {
  try_program("cond in while", cond_in_loop, cond_in_loop_truth, (const double[]){0.3, -0.4}, 2);
}

// A loop in a conditional.
static int loop_branch(rn_scope_t* s, rn_edge_t* out, void* arg) {
  program_args_t* p = arg;
  rn_edge_t starts[2] = {rn_const_int32(s, 0), rn_Neg(s, p->x)}, ends[2];
  rn_while(s, below_four, grow, p, starts, ends, 2, .functional = p->inner);
  out[0] = ends[1];
  return 1;
}

static rn_edge_t loop_in_cond(rn_scope_t* s, program_args_t* p) {
  rn_edge_t y;
  rn_cond(s, rn_Less(s, p->x, number(s, 1)), rn_branch(loop_branch, p), rn_branch(square, p), &y, 1,
          .functional = p->outer);
  return y;
}
static double loop_in_cond_truth(double x) { return x < 1 ? grown(-x, x, 4) : x * x; }

Test(flow, loop_in_cond) {
  try_program("while in cond", loop_in_cond, loop_in_cond_truth, (const double[]){0.5, 1.25}, 2);
}

// A loop in a loop; the inner one reads the outer's values and what is outside of both.
typedef struct inner_t {
  rn_edge_t y, x;
} inner_t;

static rn_edge_t below_three(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 3));
}

static void inner_turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const inner_t* p = arg;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, rn_Mul(s, values[1], p->x), rn_Tanh(s, p->y));
}

static void outer_turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  program_args_t* p = arg;
  inner_t inner = {values[1], p->x};
  rn_edge_t starts[2] = {rn_const_int32(s, 0), rn_Sin(s, values[1])}, ends[2];
  rn_while(s, below_three, inner_turn, &inner, starts, ends, 2, .functional = p->inner);
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, ends[1], values[1]);
}

static rn_edge_t loop_in_loop(rn_scope_t* s, program_args_t* p) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), p->x}, ends[2];
  rn_while(s, below_four, outer_turn, p, starts, ends, 2, .functional = p->outer);
  return ends[1];
}
static double loop_in_loop_truth(double x) {
  double y = x;
  for (int i = 0; i < 4; ++i) {
    double z = sin(y);
    for (int k = 0; k < 3; ++k) z = z * x + tanh(y);
    y += z;
  }
  return y;
}

Test(flow, loop_in_loop) {
  try_program("while in while", loop_in_loop, loop_in_loop_truth, (const double[]){0.5, -0.3}, 2);
}

// Choices of many.
static int cube(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const program_args_t* p = arg;
  out[0] = rn_Mul(s, rn_Mul(s, p->x, p->x), p->x);
  return 1;
}

static rn_edge_t case_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t y, predicates[2] = {rn_Less(s, p->x, number(s, 0)), rn_Less(s, p->x, number(s, 1))};
  rn_branch_t branches[2] = {rn_branch(cube, p), rn_branch(square, p)};
  rn_branch_t otherwise = rn_branch(three_less, p);
  rn_case(s, predicates, branches, 2, &otherwise, &y, 1, .functional = p->outer);
  return y;
}
static double case_truth(double x) { return x < 0 ? x * x * x : x < 1 ? x * x : 3 * x - exp(x); }

Test(flow, case_by_predicates) {
  try_program("case", case_program, case_truth, (const double[]){-0.5, 0.5, 1.5}, 3);
}

static rn_edge_t index_program(rn_scope_t* s, program_args_t* p) {
  rn_edge_t y, index = rn_Cast(s, rn_Floor(s, p->x), TF_INT32);
  rn_branch_t branches[3] = {rn_branch(cube, p), rn_branch(square, p), rn_branch(three_less, p)};
  rn_branch_t otherwise = rn_branch(square, p);
  rn_switch_case(s, index, branches, 3, p->inner ? &otherwise : NULL, &y, 1,
                 .functional = p->outer);
  return y;
}
static double index_truth(double x) {
  int i = (int)floor(x);
  return i == 0 ? x * x * x : i == 1 ? x * x : 3 * x - exp(x);
}

Test(flow, case_by_index) {
  try_program("switch_case", index_program, index_truth, (const double[]){0.5, 1.5, 2.5}, 3);
  for (int functional = 0; functional < 2; ++functional) {
    for (int with_default = 0; with_default < 2; ++with_default) {
      for (int k = 0; k < 2; ++k) {
        double x = k ? -1.5 : 3.5, last = 3 * x - exp(x);
        trial_t t = trial_open();
        program_args_t p = {number(t.s, x), functional, with_default, {{0}}};
        double got = trial_scalar(&t, index_program(t.s, &p));
        expect_close("out of range", k, got, with_default ? x * x : last, 1e-12);
        trial_close(&t);
      }
    }
  }
}

// The error of running |edge|.
static const char* failure(trial_t* t, rn_edge_t edge) {
  trial_built(t);
  TF_SessionOptions* options = TF_NewSessionOptions();
  t->session = TF_NewSession(t->graph, options, t->status);
  TF_DeleteSessionOptions(options);
  TF_Output output = rn_output_of(edge);
  TF_Tensor* value = NULL;
  TF_SessionRun(t->session, NULL, NULL, NULL, 0, &output, &value, 1, NULL, 0, NULL, t->status);
  TF_DeleteTensor(value);
  return TF_Message(t->status);
}

Test(flow, case_that_fails) {
  for (int functional = 0; functional < 2; ++functional) {
    for (int held = 0; held < 3; ++held) {
      trial_t t = trial_open();
      program_args_t p = {.x = number(t.s, 3)};
      bool first = held == 2, second = held > 0;
      rn_edge_t y, predicates[2] = {rn_const(t.s, TF_BOOL, NULL, 0, &first),
                                    rn_const(t.s, TF_BOOL, NULL, 0, &second)};
      rn_branch_t branches[2] = {rn_branch(cube, &p), rn_branch(square, &p)};
      cr_assert(rn_case(t.s, predicates, branches, 2, NULL, &y, 1, .exclusive = true,
                        .functional = functional),
                "%s", rn_scope_message(t.s));
      if (held == 1) {
        cr_expect(trial_scalar(&t, y) == 9);
      } else {
        const char* message = failure(&t, y);
        const char* wanted =
            held ? "More than one condition evaluated as True" : "None of conditions evaluated";
        cr_expect(strstr(message, wanted), "%s", message);
      }
      trial_close(&t);
    }
  }
}

// Names as tf.compat.v1 gives them.
static void expect_node(trial_t* t, const char* name, const char* op) {
  TF_Operation* node = TF_GraphOperationByName(t->graph, name);
  cr_assert(node, "no node '%s'", name);
  cr_expect(strcmp(TF_OperationOpType(node), op) == 0, "'%s' is %s", name,
            TF_OperationOpType(node));
}

Test(flow, names) {
  trial_t t = trial_open();
  program_args_t p = {.x = number(t.s, 0.5)};
  cond_program(t.s, &p);
  cond_program(t.s, &p);
  while_program(t.s, &p);
  const char* switches[] = {"cond/Switch", "cond/Switch_1", "cond_1/Switch", "while/Switch"};
  for (int i = 0; i < 4; ++i) expect_node(&t, switches[i], "Switch");
  const char* merges[] = {"cond/Merge", "while/Merge", "while/Merge_1"};
  for (int i = 0; i < 3; ++i) expect_node(&t, merges[i], "Merge");
  const char* identities[] = {"cond/switch_t", "cond/switch_f", "cond/pred_id", "while/Identity"};
  for (int i = 0; i < 4; ++i) expect_node(&t, identities[i], "Identity");
  expect_node(&t, "while/Enter", "Enter");
  expect_node(&t, "while/LoopCond", "LoopCond");
  expect_node(&t, "while/NextIteration", "NextIteration");
  expect_node(&t, "while/Exit_1", "Exit");
  char frame[64] = "";
  TF_OperationGetAttrString(TF_GraphOperationByName(t.graph, "while/Enter"), "frame_name", frame,
                            sizeof frame, t.status);
  cr_expect(strcmp(frame, "while/while_context") == 0, "%s", frame);
  p.outer = true;
  cond_program(t.s, &p);
  while_program(t.s, &p);
  expect_node(&t, "cond_2", "StatelessIf");
  expect_node(&t, "while_1", "StatelessWhile");
  cr_expect(!TF_GraphOperationByName(t.graph, "cond_2/true_fn/Mul"), "a node was left behind");
  trial_close(&t);
}

// The attributes of loops.
Test(flow, loop_attributes) {
  for (int functional = 0; functional < 2; ++functional) {
    trial_t t = trial_open();
    rn_edge_t x = number(t.s, 0.5);
    program_args_t p = {.x = x};
    rn_edge_t starts[2] = {rn_const_int32(t.s, 0), x}, ends[2];
    rn_while(t.s, below_four, grow, &p, starts, ends, 2, .functional = functional,
             .no_back_prop = true, .swap_memory = true, .parallel_iterations = 3);
    trial_built(&t);
    TF_Operation* cond = TF_GraphOperationByName(t.graph, functional ? "while" : "while/LoopCond");
    TF_Operation* enter = TF_GraphOperationByName(t.graph, functional ? "while" : "while/Enter");
    unsigned char back_prop = 1, swap = 0;
    int64_t parallel = 0;
    TF_OperationGetAttrBool(cond, "_back_prop", &back_prop, t.status);
    TF_OperationGetAttrBool(cond, "_swap_memory", &swap, t.status);
    TF_OperationGetAttrInt(enter, "parallel_iterations", &parallel, t.status);
    cr_expect(!back_prop && swap && parallel == 3);
    rn_gradient_t d;
    bool found = rn_gradients_of(t.s, &ends[1], 1, &x, 1, NULL, &d);
    cr_expect(!found || rn_gradient_is_none(d), "a gradient came through");
    trial_close(&t);
  }
}

// A tensor that grows.
static void append(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t both[2] = {values[1], values[1]};
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_ConcatV2(s, both, 2, rn_const_int32(s, 0));
}

Test(flow, invariants) {
  for (int functional = 0; functional < 2; ++functional) {
    trial_t t = trial_open();
    rn_edge_t x = wave(t.s, 3, 0, 0.7), starts[2] = {rn_const_int32(t.s, 0), x}, ends[2];
    const int64_t open[1] = {-1};
    rn_opt_shape_t invariants[2] = {{0}, RN_SET_SHAPE(open, 1)};
    cr_assert(rn_while(t.s, below_four, append, NULL, starts, ends, 2, .invariants = invariants,
                       .functional = functional),
              "%s", rn_scope_message(t.s));
    double got[64];
    cr_expect(trial_fetch(&t, ends[1], NULL, NULL, 0, got, 64) == 48);
    expect_close("grown", 47, got[47], sin(0.7 * 3), 1e-6);
    cr_expect(TF_GraphGetTensorNumDims(t.graph, rn_output_of(ends[1]), t.status) == 1);
    // Each element is there 16 times.
    rn_edge_t loss = rn_Sum(t.s, ends[1], rn_const_int32(t.s, 0)), d;
    cr_assert(rn_gradients(t.s, loss, &x, 1, &d), "%s", rn_scope_message(t.s));
    cr_expect(trial_fetch(&t, d, NULL, NULL, 0, got, 64) == 3 && got[0] == 16 && got[2] == 16);
    trial_close(&t);
  }
}

// Gradients of gradients.
static void try_twice(const char* what, program_t program, double at) {
  for (int form = 0; form < 4; ++form) {
    trial_t t = trial_open();
    rn_edge_t x = rn_Placeholder(t.s, TF_DOUBLE, .shape = RN_SET_SHAPE(NULL, 0)), d;
    program_args_t p = {.x = x, .outer = form & 1, .inner = form >> 1};
    rn_edge_t y = program(t.s, &p);
    TF_Tensor* value = double_of(at);
    cr_assert(rn_gradients(t.s, y, &x, 1, &d), "%s, form %d: %s", what, form,
              rn_scope_message(t.s));
    bool fits = rn_check_gradient(t.s, &d, 1, &x, &value, 1,
                                  &(rn_check_options_t){.tolerance = 1e-5}, NULL);
    cr_expect(fits, "%s, form %d: %s", what, form, rn_scope_message(t.s));
    TF_DeleteTensor(value);
    trial_close(&t);
  }
}

Test(flow, second_order) {
  try_twice("cond", cond_program, 0.5);
  try_twice("cond in cond", nested_program, 0.5);
  try_twice("case", case_program, 1.5);
}

// Through the loop that runs backwards; TensorFlow refuses these.
Test(flow, second_order_of_loops) {
  try_twice("while", while_program, 0.5);
  try_twice("limited", limited_program, 0.5);
  try_twice("cond in loop", cond_in_loop, 0.5);
  try_twice("loop in cond", loop_in_cond, 0.5);
  try_twice("loop in loop", loop_in_loop, 0.5);
}

// A loop that never turns hands on what it began with, and its gradient.
Test(flow, no_turns) {
  for (int functional = 0; functional < 2; ++functional) {
    trial_t t = trial_open();
    rn_edge_t x = number(t.s, 0.5), starts[2] = {rn_const_int32(t.s, 4), x}, ends[2], d[2];
    program_args_t p = {.x = number(t.s, 2)};
    rn_while(t.s, below_four, grow, &p, starts, ends, 2, .functional = functional);
    rn_edge_t xs[2] = {x, p.x};
    cr_assert(rn_gradients(t.s, ends[1], xs, 2, d), "%s", rn_scope_message(t.s));
    cr_expect(trial_scalar(&t, ends[1]) == 0.5);
    cr_expect(trial_scalar(&t, d[0]) == 1 && trial_scalar(&t, d[1]) == 0);
    trial_close(&t);
  }
}

// What goes through a GraphDef is the same loop.
Test(flow, imported) {
  for (int form = 0; form < 4; ++form) {
    trial_t from = trial_open(), to = trial_open();
    program_args_t p = {
        .x = rn_Placeholder(from.s, TF_DOUBLE, .name = "x"), .outer = form & 1, .inner = form >> 1};
    rn_Identity(from.s, loop_in_loop(from.s, &p), .name = "y");
    trial_built(&from);
    TF_Buffer* bytes = TF_NewBuffer();
    TF_GraphToGraphDef(from.graph, bytes, from.status);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(to.graph, bytes, options, to.status);
    cr_assert(TF_GetCode(to.status) == TF_OK, "form %d: %s", form, TF_Message(to.status));
    rn_edge_t x = {(rn_node_t*)TF_GraphOperationByName(to.graph, "x"), 0};
    rn_edge_t y = {(rn_node_t*)TF_GraphOperationByName(to.graph, "y"), 0};
    TF_Tensor* value = double_of(0.5);
    double got;
    trial_fetch(&to, y, &x, &value, 1, &got, 1);
    expect_close("imported", form, got, loop_in_loop_truth(0.5), 1e-12);
    bool fits = rn_check_gradient(to.s, &y, 1, &x, &value, 1,
                                  &(rn_check_options_t){.tolerance = 1e-5}, NULL);
    cr_expect(fits, "form %d: %s", form, rn_scope_message(to.s));
    TF_DeleteTensor(value);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(bytes);
    trial_close(&from);
    trial_close(&to);
  }
}
