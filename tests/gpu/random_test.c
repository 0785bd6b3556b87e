// Random numbers of a GPU, emulated here, against the CPU's: more numbers than the grid has
// threads, and several steps, so that streams go on where they ended.
#include <math.h>

#include "util.h"

#define COUNT 150003
#define STEPS 3

typedef rn_edge_t (*random_make_t)(rn_scope_t* s, rn_edge_t shape);

static double number_at(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return RN_DATA(tensor, float)[i];
    case RN_DOUBLE:
      return RN_DATA(tensor, double)[i];
    default:
      return (double)RN_DATA(tensor, int64_t)[i];
  }
}

static rn_edge_t made_on(rt_t* rt, const char* device, rn_edge_t shape, random_make_t make) {
  rn_scope_set_device(rt->s, device);
  rn_edge_t made = make(rt->s, shape);
  rn_scope_set_device(rt->s, NULL);
  return made;
}

// Whether |make| gives the same numbers on both, up to |tolerance|.
static void compare(random_make_t make, double tolerance) {
  rt_t rt = rt_begin(1);
  const int32_t size = COUNT;
  rn_edge_t shape = rn_const_int32_list(rt.s, &size, 1);
  rn_edge_t cpu = made_on(&rt, "/cpu:0", shape, make);
  rn_edge_t gpu = made_on(&rt, "/gpu:0", shape, make);
  double last = 0;
  for (int turn = 0; turn < STEPS; ++turn) {
    rt_step_t step = {0};
    rt_fetch(&step, cpu);
    rt_fetch(&step, gpu);
    OK(rt_run(&rt, &step));
    cr_assert_eq(step.out[0].count, COUNT);
    for (int64_t i = 0; i < COUNT; ++i) {
      double a = number_at(&step.out[0], i), b = number_at(&step.out[1], i);
      cr_assert(fabs(a - b) <= tolerance, "turn %d, number %lld: %.17g and %.17g", turn,
                (long long)i, a, b);
    }
    cr_assert_neq(number_at(&step.out[1], 0), last);
    last = number_at(&step.out[1], 0);
    rt_clear(&step);
  }
  rt_end(&rt);
}

static rn_edge_t uniform(rn_scope_t* s, rn_edge_t shape) {
  return rn_RandomUniform(s, shape, RN_FLOAT, .seed = 3, .seed2 = 5);
}
RT_TEST(gpu_random, uniform) { compare(uniform, 0); }

static rn_edge_t normal(rn_scope_t* s, rn_edge_t shape) {
  return rn_RandomStandardNormal(s, shape, RN_FLOAT, .seed = 3, .seed2 = 5);
}
RT_TEST(gpu_random, normal) { compare(normal, 1e-5); }

static rn_edge_t truncated(rn_scope_t* s, rn_edge_t shape) {
  return rn_TruncatedNormal(s, shape, RN_DOUBLE, .seed = 3, .seed2 = 5);
}
RT_TEST(gpu_random, truncated) { compare(truncated, 1e-12); }

static rn_edge_t integers(rn_scope_t* s, rn_edge_t shape) {
  return rn_RandomUniformInt(s, shape, rn_const_scalar(s, RN_INT64, -7),
                             rn_const_scalar(s, RN_INT64, 1e15), .seed = 3, .seed2 = 5);
}
RT_TEST(gpu_random, integers) { compare(integers, 0); }
