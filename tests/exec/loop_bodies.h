// Conditions and bodies of loops, for tests of loops.
#ifndef RUNNEL_TESTS_EXEC_LOOP_BODIES_H_
#define RUNNEL_TESTS_EXEC_LOOP_BODIES_H_

#include "util.h"

static RT_UNUSED rn_edge_t below_ten(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 10));
}
// i + 1, and twice the other plus i.
static RT_UNUSED void count_up(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  next[1] = rn_AddV2(s, rn_Mul(s, values[1], rt_const_at(s, values[0], 2)), values[0]);
}

// What count_up makes of x.
static RT_UNUSED float counted(float i, float x) {
  for (; i < 10; ++i) x = x * 2 + i;
  return x;
}

// A loop invariant.
static RT_UNUSED rn_edge_t enter(rn_scope_t* s, const char* frame, rn_edge_t value) {
  rn_op_begin(s, "Enter");
  rn_op_input(s, value);
  rn_op_attr_string(s, "frame_name", frame);
  rn_op_attr_bool(s, "is_constant", true);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// Adds one, and passes the sum to the op that |arg| names.
static RT_UNUSED void do_it(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  next[0] = rt_op(s, arg, rn_AddV2(s, values[0], rt_const_at(s, values[0], 1)));
}

#endif  // RUNNEL_TESTS_EXEC_LOOP_BODIES_H_
