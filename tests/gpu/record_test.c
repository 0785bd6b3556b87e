// Recorded segments: replays compute what the instructions would, see new values of variables, and
// give way when something has moved.
#include <dlfcn.h>

#include "device/cuda/driver_api.h"
#include "runnel/gradients.h"
#include "util.h"

// How often the emulated driver was asked to |call|; 0 on a real card.
static int64_t count(const char* call) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const char* path = getenv("RUNNEL_CUDA_PATH");
  char file[4096];
  snprintf(file, sizeof file, "%s/libcuda.so.1", path ? path : "");
  if (!library) library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  int64_t (*ask)(const char*) =
      library ? (int64_t(*)(const char*))(uintptr_t)dlsym(library, "rn_emulated_count") : NULL;
  return ask ? ask(call) : 0;
}

RT_TEST(record, chains_are_replayed) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;  // the chain would be fused into one node
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = x;
  for (int i = 0; i < 20; ++i) y = rn_Mul(rt.s, rn_Sin(rt.s, y), rn_const_float(rt.s, 1.5f));
  float first[5];
  for (int turn = 0; turn < 5; ++turn) first[turn] = rt_get(&rt, y, x, (float)turn);
  int64_t before = count("cuLaunchKernel");
  for (int turn = 0; turn < 5; ++turn) cr_assert_eq(rt_get(&rt, y, x, (float)turn), first[turn]);
  if (before) cr_assert_eq(count("cuLaunchKernel"), before, "every step was one graph");
  rt_end(&rt);
}

// Some outputs of batch normalizations are empty, and the shape of one is not known to the graph.
RT_TEST(record, batch_norms_are_replayed) {
  rt_t rt = rt_begin(1);
  const int64_t dims[] = {2, 2, 2, 1}, one = 1, zero = 0;
  const float values[] = {1, 2, 3, 4, 5, 6, 7, 9};
  rn_edge_t fed = rt_placeholder(&rt, "x"), none = rn_const(rt.s, RN_FLOAT, &zero, 1, "");
  rn_edge_t x = rn_Reshape(rt.s, fed, rn_const_int32_list(rt.s, NULL, 0));
  rn_edge_t y = rn_Mul(rt.s, rn_const(rt.s, RN_FLOAT, dims, 4, values), x);
  rn_edge_t scale = rn_const(rt.s, RN_FLOAT, &one, 1, &(float){2});
  rn_edge_t offset = rn_const(rt.s, RN_FLOAT, &one, 1, &(float){1});
  for (int i = 0; i < 3; ++i) y = rn_FusedBatchNormV3(rt.s, y, scale, offset, none, none).y;
  rn_edge_t cube = rn_Mul(rt.s, rn_Square(rt.s, y), y), dx;
  rn_gradients(rt.s, rn_Sum(rt.s, cube, rn_const_int32_list(rt.s, (int32_t[]){0, 1, 2, 3}, 4)), &x,
               1, &dx);
  float first[5];
  for (int turn = 0; turn < 5; ++turn) first[turn] = rt_get(&rt, dx, fed, (float)turn + 1);
  int64_t before = count("cuLaunchKernel");
  for (int turn = 0; turn < 5; ++turn)
    cr_assert_eq(rt_get(&rt, dx, fed, (float)turn + 1), first[turn]);
  if (before) cr_assert_eq(count("cuLaunchKernel"), before, "every step was one graph");
  rt_end(&rt);
}

// Random numbers of several kinds, in a chain that begins with |x|, summed up.
static rn_edge_t random_sum(rn_scope_t* s, rn_edge_t x, const char* device) {
  rn_edge_t shape = rn_const_int32_list(s, (int32_t[]){300}, 1);
  rn_scope_set_device(s, device);
  rn_edge_t zero = rn_Mul(s, x, rn_const_float(s, 0));
  rn_edge_t kinds[] = {
      rn_RandomUniform(s, shape, RN_FLOAT, .seed = 1, .seed2 = 2),
      rn_RandomStandardNormal(s, shape, RN_FLOAT, .seed = 3, .seed2 = 4),
      rn_TruncatedNormal(s, shape, RN_FLOAT, .seed = 5, .seed2 = 6),
      rn_Cast(s,
              rn_RandomUniformInt(s, shape, rn_const_scalar(s, RN_INT64, 0),
                                  rn_const_scalar(s, RN_INT64, 100), .seed = 7, .seed2 = 8),
              RN_FLOAT)};
  rn_edge_t y = zero;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k)
    y = rn_AddV2(s, y, rn_Sum(s, kinds[k], rn_const_int32_list(s, (int32_t[]){0}, 1)));
  rn_scope_set_device(s, NULL);
  return y;
}

// A replayed step draws new numbers, those that the CPU draws.
RT_TEST(record, random_numbers_go_on) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t gpu = random_sum(rt.s, x, "/gpu:0"), cpu = random_sum(rt.s, x, "/cpu:0");
  float last = 0;
  int64_t before = 0;
  for (int turn = 0; turn < 8; ++turn) {
    if (turn == 4) before = count("cuLaunchKernel");
    float a = rt_get(&rt, gpu, x, (float)turn), b = rt_get(&rt, cpu, x, (float)turn);
    cr_assert_float_eq(a, b, 1e-2, "turn %d: %g and %g", turn, a, b);
    cr_assert_neq(a, last);
    last = a;
  }
  if (before) cr_assert_eq(count("cuLaunchKernel"), before, "every step was one graph");
  rt_end(&rt);
}

// A step that fails elsewhere stops the segment that it is recording, wherever it is then; the next
// step must not replay half of it.
RT_TEST(record, stopped_recordings_are_dropped) {
  for (int turn = 0; turn < 40; ++turn) {
    rt_t rt = rt_begin(2);
    rt.options.optimize = false;  // or the chain would be one node
    rn_edge_t x = rt_placeholder(&rt, "x"), y = x;
    for (int i = 0; i < 60; ++i) y = rn_AddV2(rt.s, y, rn_const_float(rt.s, 1));
    rn_scope_set_device(rt.s, "/cpu:0");
    rn_edge_t other = rt_op(rt.s, "TestFail", rt_op(rt.s, "TestAsync", x));
    for (int step = 0; step < 4; ++step) {
      rn_tensor_t fed = rt_scalar((float)step);
      rt_step_t s = {0};
      rt_feed(&s, x, &fed);
      rt_fetch(&s, y);
      rt_fetch(&s, other);
      rt_fails = step == 1;
      rn_status_t status = rt_run(&rt, &s);
      cr_assert_eq(rn_ok(status), step != 1, "%s", rn_status_message(status));
      if (rn_ok(status)) {
        cr_assert_eq(rt_value(&s.out[0]), (float)(step + 60), "turn %d, step %d", turn, step);
        rt_clear(&s);
      }
      rn_status_free(status);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}

static rn_edge_t read_variable(rn_scope_t* s, rn_edge_t handle, rn_node_t* after) {
  rn_op_begin(s, "ReadVariableOp");
  rn_op_input(s, handle);
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  if (after) rn_op_control(s, after);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// A variable whose old value is still used gets a new buffer when it changes. A recording that has
// done so fits no other step.
RT_TEST(record, variables_that_move) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;
  rn_scope_t* s = rt.s;
  rn_op_begin(s, "VarHandleOp");
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  rn_op_attr_shape(s, "shape", NULL, 0);
  rn_edge_t handle = {rn_op_finish(s), 0};
  rn_node_t* first = rn_AssignVariableOp(s, handle, rn_const_float(s, 1));
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t before = read_variable(s, handle, NULL);
  rn_scope_add_control(s, before.node);
  rn_node_t* update = rn_AssignAddVariableOp(s, handle, x);
  rn_scope_clear_controls(s);
  rn_edge_t after = read_variable(s, handle, update);
  rn_edge_t grown = rn_Sub(s, rn_Neg(s, rn_Neg(s, after)), before);
  rn_edge_t negative = rn_Neg(s, after);
  rt_do(&rt, first);
  float value = 1;
  for (int turn = 1; turn < 50; ++turn) {
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar((float)turn);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, grown);
    rt_fetch(&step, negative);
    OK(rt_run(&rt, &step));
    value += (float)turn;
    cr_assert_eq(rt_value(&step.out[0]), (float)turn, "turn %d: grew by %g", turn,
                 (double)rt_value(&step.out[0]));
    cr_assert_eq(rt_value(&step.out[1]), -value, "turn %d", turn);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  rt_end(&rt);
}

static void assign_from(rt_t* rt, rn_node_t* target, rn_edge_t feed, float value) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_floats(4, (float[]){value, value, value, value});
  if (feed.node) rt_feed(&step, feed, &fed);
  rt_target(&step, target);
  OK(rt_run(rt, &step));
  rn_tensor_clear(&fed);
}

static float look(rt_t* rt, rn_edge_t value) {
  rt_step_t step = {0};
  rt_fetch(&step, value);
  OK(rt_run(rt, &step));
  float first = *RN_DATA(&step.out[0], float);
  rt_clear(&step);
  return first;
}

// Two variables share a value after an assignment, so the next update of one of them gives it
// memory elsewhere. What was recorded then has the old place in it; the memory is the variable's
// from then on, whatever becomes of the recording.
RT_TEST(record, variables_that_share_a_value) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;
  rn_scope_t* s = rt.s;
  rn_edge_t a = rn_VarHandleOp(s, RN_FLOAT, (int64_t[]){4}, 1, .shared_name = "a");
  rn_edge_t b = rn_VarHandleOp(s, RN_FLOAT, (int64_t[]){4}, 1, .shared_name = "b");
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT), read_a = rn_ReadVariableOp(s, a, RN_FLOAT);
  rn_edge_t read_b = rn_ReadVariableOp(s, b, RN_FLOAT);
  rn_node_t* set = rn_AssignVariableOp(s, a, x);
  rn_node_t* share = rn_AssignVariableOp(s, b, read_a);
  rn_edge_t more = rn_Mul(s, rn_AddV2(s, x, x), rn_const_float(s, 0.5f));
  rn_node_t* add = rn_AssignAddVariableOp(s, a, more);
  assign_from(&rt, set, x, 0);
  float value = 0, shared = 0;
  for (int turn = 0; turn < 60; ++turn) {
    if (turn % 5 == 3) {
      assign_from(&rt, share, RN_NO_EDGE, 0);
      shared = value;
    }
    assign_from(&rt, add, x, 1 + (float)turn);
    value += 1 + (float)turn;
    cr_assert_eq(look(&rt, read_a), value, "step %d: %g instead of %g", turn,
                 (double)look(&rt, read_a), (double)value);
    if (turn > 3) cr_assert_eq(look(&rt, read_b), shared, "step %d", turn);
  }
  if (count("cuGraphLaunch")) cr_assert_gt(count("cuStreamBeginCapture_v2"), 4);
  rt_end(&rt);
}

// A value whose shape only the step knows may lie where a longer one lay.
RT_TEST(record, shapes_of_inputs_may_change) {
  rt_t rt = rt_begin(1);
  int64_t eight = 8, one = 1;
  float values[8];
  int32_t ids[8], start[1] = {0};
  for (int i = 0; i < 8; ++i) values[i] = (float)(1 << i), ids[i] = i % 2;
  rn_edge_t n = rn_Placeholder(rt.s, RN_INT32, .shape = RN_SHAPE(1));
  rn_edge_t from = rn_const(rt.s, RN_INT32, &one, 1, start);
  rn_edge_t x = rn_Slice(rt.s, rn_const(rt.s, RN_FLOAT, &eight, 1, values), from, n);
  rn_edge_t id = rn_Slice(rt.s, rn_const(rt.s, RN_INT32, &eight, 1, ids), from, n);
  rn_edge_t sums = rn_UnsortedSegmentSum(rt.s, x, id, rn_const_int32(rt.s, 2));
  rn_edge_t y = rn_Neg(rt.s, rn_Sqrt(rt.s, rn_Square(rt.s, sums)));
  static const int32_t lengths[] = {8, 8, 8, 3, 5, 8, 2, 7, 7, 7, 1};
  for (size_t turn = 0; turn < sizeof lengths / sizeof *lengths; ++turn) {
    rn_tensor_t fed;
    OK(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){1, &one}, &fed));
    *RN_DATA(&fed, int32_t) = lengths[turn];
    float want[2] = {0, 0};
    for (int i = 0; i < lengths[turn]; ++i) want[i % 2] -= values[i];
    rt_step_t step = {0};
    rt_feed(&step, n, &fed);
    rt_fetch(&step, y);
    OK(rt_run(&rt, &step));
    for (int i = 0; i < 2; ++i)
      cr_assert_eq(RN_DATA(&step.out[0], float)[i], want[i], "step %d: %g, not %g", (int)turn,
                   RN_DATA(&step.out[0], float)[i], want[i]);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  rt_end(&rt);
}
