// What is computed before the first step, and what is not. Results equal those of the unoptimized
// graph.
#include "util.h"

enum { COUNT = 6 };

static rn_tensor_t numbers(int64_t rows, int64_t columns) {
  rn_tensor_t value;
  int64_t dims[] = {rows, columns};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, dims}, &value));
  for (int64_t i = 0; i < value.count; ++i)
    RN_DATA(&value, float)[i] = (float)((i * 7919) % 1009) / 1009 - 0.4f;
  return value;
}

// The gradient of a mean, times a constant: large ones are made of little, and used up. |all| is
// read elsewhere too, and must not be missed.
static rn_tensor_t data_of_step;

static void build(rt_t* rt, rt_step_t* step) {
  rn_scope_t* s = rt->s;
  rn_tensor_t value = numbers(300, 40);
  rn_edge_t one = rn_const_float(s, 1),
            data = rn_const(s, RN_FLOAT, (int64_t[]){300, 40}, 2, value.data);
  rn_edge_t reshaped = rn_Reshape(s, one, rn_const_int32_list(s, (int32_t[]){1, 1}, 2));
  rn_edge_t all = rn_Tile(s, reshaped, rn_const_int32_list(s, (int32_t[]){300, 40}, 2));
  rn_edge_t mean = rn_RealDiv(s, all, rn_const_float(s, 12000));
  rt_fetch(step, rn_Mul(s, mean, data));
  rt_fetch(step, rn_Sum(s, rn_Neg(s, all), rn_const_int32(s, 0)));
  // One number over and over, and what is only known in the step.
  rn_edge_t fed = rn_Placeholder(s, RN_FLOAT, .shape = {true, (int64_t[]){300, 40}, 2});
  rn_edge_t column = rn_Sum(s, fed, rn_const_int32(s, 1), .keep_dims = true);
  rt_fetch(step, rn_Sub(s, mean, fed));
  rt_fetch(step, rn_Mul(s, column, rn_Sqrt(s, mean)));
  // Several results; a shape that only values tell; and what is made of both.
  int32_t ids[2000];
  for (int i = 0; i < 2000; ++i) ids[i] = (i * 31) % 300;
  rn_Unique_out_t unique = rn_Unique(s, rn_const_int32_list(s, ids, 2000));
  rn_edge_t rows = rn_GatherV2(s, data, unique.y, rn_const_int32(s, 0));
  rn_edge_t taken = rn_GatherV2(s, rows, unique.idx, rn_const_int32(s, 0));
  rt_fetch(step, rn_Sum(s, taken, rn_const_int32(s, 0)));
  rn_edge_t count =
      rn_StridedSlice(s, rn_Shape(s, unique.y), rn_const_int32_list(s, (int32_t[]){0}, 1),
                      rn_const_int32_list(s, (int32_t[]){1}, 1),
                      rn_const_int32_list(s, (int32_t[]){1}, 1), .shrink_axis_mask = 1);
  rt_fetch(step, rn_UnsortedSegmentSum(s, taken, unique.idx, count));
  rt_feed(step, fed, &data_of_step);
  rn_tensor_clear(&value);
}

RT_TEST(fold, values_are_those_of_the_graph) {
  rn_tensor_t wanted[COUNT] = {0};
  data_of_step = numbers(300, 40);
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rt_step_t step = {0};
    build(&rt, &step);
    for (int turn = 0; turn < 2; ++turn) {
      OK(rt_run(&rt, &step));
      for (int i = 0; i < COUNT; ++i) {
        if (!rn_tensor_is_set(&wanted[i])) {
          wanted[i] = step.out[i];
          step.out[i] = (rn_tensor_t){0};
          continue;
        }
        cr_assert(rn_tensor_same_shape(&step.out[i], &wanted[i]), "fetch %d", i);
        cr_assert(memcmp(step.out[i].data, wanted[i].data, rn_tensor_bytes(&wanted[i])) == 0,
                  "fetch %d", i);
      }
      rt_clear(&step);
    }
    rt_end(&rt);
  }
  for (int i = 0; i < COUNT; ++i) rn_tensor_clear(&wanted[i]);
  rn_tensor_clear(&data_of_step);
}

// What cannot be computed fails in the step, with the node's name, and only if it is asked for.
RT_TEST(fold, errors_belong_to_the_step) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  int32_t ids[2000] = {0};
  ids[1999] = 7;
  rn_Unique_out_t unique = rn_Unique(s, rn_const_int32_list(s, ids, 2000));
  rn_edge_t axis = rn_const_int32(s, 0), data = rn_ExpandDims(s, rn_const_float(s, 1), axis);
  rn_scope_name_next(s, "beyond");
  rn_edge_t beyond = rn_GatherV2(s, data, unique.y, axis);
  for (int turn = 0; turn < 2; ++turn) FAILS_WITH(rt_try(&rt, beyond), INVALID_ARGUMENT, "beyond");
  OK(rt_try(&rt, unique.idx));
  rt_end(&rt);
}
