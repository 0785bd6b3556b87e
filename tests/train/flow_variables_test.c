// Branches and bodies with variables, and with control inputs from outside.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

static rn_edge_t below_four(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 4));
}

// Variables that branches and bodies make, find and change.
static int with_variable(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const rn_edge_t* x = arg;
  const rn_var_t* v = rn_get_variable(s, "v", NULL, 0, .initializer = rn_init_constant(3));
  rn_node_t* node = v ? rn_var_add(s, v, rn_const_float(s, 2)) : NULL;
  rn_op_begin(s, "Identity");
  rn_op_input(s, *x);
  rn_op_control(s, node);
  out[0] = (rn_edge_t){rn_op_finish(s), 0};
  return 1;
}

static int without(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const rn_edge_t* x = arg;
  out[0] = rn_Neg(s, *x);
  return 1;
}

Test(flow, variables_in_branches) {
  for (int functional = 0; functional < 2; ++functional) {
    trial_t t = trial_open();
    rn_edge_t x = rn_const_float(t.s, 5), y;
    rn_edge_t p = rn_Placeholder(t.s, TF_BOOL, .shape = RN_SET_SHAPE(NULL, 0));
    cr_assert(rn_cond(t.s, p, rn_branch(with_variable, &x), rn_branch(without, &x), &y, 1,
                      .functional = functional),
              "%s", rn_scope_message(t.s));
    trial_init(&t);
    for (int k = 0; k < 2; ++k) {
      bool held = k == 0;
      TF_Tensor* value = tensor_of(TF_BOOL, NULL, 0, &held);
      double got;
      trial_fetch(&t, y, &p, &value, 1, &got, 1);
      cr_expect(got == (held ? 5 : -5));
      // Once, by the first step.
      cr_expect(trial_scalar(&t, rn_var_read(t.s, rn_find_variable(t.s, "v"))) == 5);
      TF_DeleteTensor(value);
    }
    trial_close(&t);
  }
}

// A body that waits for a node of the outside, one with outputs and one without.
static void after_outside(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  rn_node_t** nodes = arg;
  rn_edge_t one = rn_const_int32(s, 1);
  rn_op_begin(s, "AddV2");
  rn_op_input(s, values[0]);
  rn_op_input(s, one);
  rn_op_control(s, nodes[0]);
  rn_op_control(s, nodes[1]);
  next[0] = (rn_edge_t){rn_op_finish(s), 0};
}

Test(flow, waits_for_the_outside) {
  for (int functional = 0; functional < 2; ++functional) {
    trial_t t = trial_open();
    const rn_var_t* v = rn_get_variable(t.s, "v", NULL, 0, .initializer = rn_init_constant(3));
    rn_node_t* nodes[2] = {rn_const_int32(t.s, 9).node,
                           rn_var_assign(t.s, v, rn_const_float(t.s, 8))};
    nodes[1] = rn_group(t.s, &nodes[1], 1);
    rn_edge_t start = rn_const_int32(t.s, 0), end;
    cr_assert(
        rn_while(t.s, below_four, after_outside, nodes, &start, &end, 1, .functional = functional),
        "%s", rn_scope_message(t.s));
    trial_init(&t);
    cr_expect(trial_scalar(&t, end) == 4);
    cr_expect(trial_scalar(&t, rn_var_read(t.s, v)) == 8);
    trial_close(&t);
  }
}

// A body that reads a variable, and one that changes it.
typedef struct reader_t {
  rn_variable_kind_t kind;
  bool changes;
} reader_t;

static void use_variable(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const reader_t* reader = arg;
  const rn_var_t* v =
      rn_get_variable(s, "w", NULL, 0, .initializer = rn_init_constant(3), .kind = reader->kind);
  if (!v) return;
  rn_edge_t one = rn_const_int32(s, 1);
  rn_node_t* change = reader->changes ? rn_var_add(s, v, rn_const_float(s, 2)) : NULL;
  next[1] = rn_Mul(s, values[1], rn_var_read(s, v));
  rn_op_begin(s, "AddV2");
  rn_op_input(s, values[0]);
  rn_op_input(s, one);
  if (change) rn_op_control(s, change);
  next[0] = (rn_edge_t){rn_op_finish(s), 0};
}

Test(flow, variables_in_loops) {
  for (int form = 0; form < 4; ++form) {
    reader_t reader = {form >> 1 ? RN_VARIABLE_REFERENCE : RN_VARIABLE_RESOURCE, false};
    trial_t t = trial_open();
    rn_edge_t starts[2] = {rn_const_int32(t.s, 0), rn_const_float(t.s, 2)}, ends[2];
    cr_assert(
        rn_while(t.s, below_four, use_variable, &reader, starts, ends, 2, .functional = form & 1),
        "form %d: %s", form, rn_scope_message(t.s));
    const rn_var_t* v = rn_find_variable(t.s, "w");
    rn_gradient_t d;
    cr_assert(rn_compute_gradients(t.s, ends[1], &v, 1, NULL, &d), "form %d: %s", form,
              rn_scope_message(t.s));
    trial_init(&t);
    cr_expect(trial_scalar(&t, ends[1]) == 2 * 81, "form %d", form);
    cr_expect(trial_scalar(&t, d.dense) == 2 * 4 * 27, "form %d", form);
    trial_close(&t);
  }
}

Test(flow, variables_changed_by_loops) {
  // References do not go into functions.
  for (int form = 0; form < 3; ++form) {
    reader_t reader = {form == 2 ? RN_VARIABLE_REFERENCE : RN_VARIABLE_RESOURCE, true};
    trial_t t = trial_open();
    rn_edge_t starts[2] = {rn_const_int32(t.s, 0), rn_const_float(t.s, 2)}, ends[2];
    cr_assert(rn_while(t.s, below_four, use_variable, &reader, starts, ends, 2,
                       .functional = form == 1, .parallel_iterations = 1),
              "form %d: %s", form, rn_scope_message(t.s));
    trial_init(&t);
    cr_expect(trial_scalar(&t, ends[0]) == 4);
    cr_expect(trial_scalar(&t, rn_var_read(t.s, rn_find_variable(t.s, "w"))) == 11, "form %d",
              form);
    trial_close(&t);
  }
}

// The gradient of a variable that one branch reads: nothing where the other was taken.
static int times_variable(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const rn_edge_t* x = arg;
  const rn_var_t* v = rn_get_variable(s, "v", NULL, 0, .initializer = rn_init_constant(3));
  out[0] = v ? rn_Mul(s, rn_var_read(s, v), *x) : RN_NO_EDGE;
  return 1;
}

static void cond_turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const bool* functional = arg;
  rn_edge_t x = values[1], two = rn_const_int32(s, 2);
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  rn_cond(s, rn_Less(s, values[0], two), rn_branch(times_variable, &x), rn_branch(without, &x),
          &next[1], 1, .functional = *functional);
}

Test(flow, gradients_of_variables_in_branches) {
  for (int form = 0; form < 4; ++form) {
    bool functional = form & 1, in_loop = form >> 1;
    trial_t t = trial_open();
    rn_edge_t x = rn_const_float(t.s, 5), y[2], starts[2] = {rn_const_int32(t.s, 0), x};
    rn_edge_t p = rn_Placeholder(t.s, TF_BOOL, .shape = RN_SET_SHAPE(NULL, 0));
    if (in_loop)
      rn_while(t.s, below_four, cond_turn, &functional, starts, y, 2, .functional = functional);
    else
      rn_cond(t.s, p, rn_branch(times_variable, &x), rn_branch(without, &x), &y[1], 1,
              .functional = functional);
    trial_built(&t);
    const rn_var_t* v = rn_find_variable(t.s, "v");
    rn_gradient_t d;
    cr_assert(rn_compute_gradients(t.s, y[1], &v, 1, NULL, &d), "form %d: %s", form,
              rn_scope_message(t.s));
    trial_init(&t);
    for (int k = 0; k < 2; ++k) {
      bool held = k == 0;
      TF_Tensor* value = tensor_of(TF_BOOL, NULL, 0, &held);
      double got;
      trial_fetch(&t, d.dense, &p, &value, 1, &got, 1);
      // In the loop two turns multiply: 5 v².
      cr_expect(got == (in_loop ? 2 * 5 * 3 : held ? 5 : 0), "form %d: %g", form, got);
      TF_DeleteTensor(value);
    }
    trial_close(&t);
  }
}
