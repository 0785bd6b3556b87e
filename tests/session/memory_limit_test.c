// Tensors of a session stay within RUNNEL_MAX_MEMORY: a step that wants more fails with
// RESOURCE_EXHAUSTED before anything is allocated, and the session goes on.
#include "util.h"

static rn_tensor_t sizes(int64_t first, int64_t second) {
  const int64_t dims[] = {2};
  rn_tensor_t tensor = {0};
  OK(rn_tensor_create(rn_allocator_system(), RN_INT64, (rn_shape_t){1, dims}, &tensor));
  RN_DATA(&tensor, int64_t)[0] = first;
  RN_DATA(&tensor, int64_t)[1] = second;
  return tensor;
}

// Runs |out| with |first| and |second| fed to |in|.
static rn_status_t run(rt_t* rt, rn_edge_t in, rn_edge_t out, int64_t first, int64_t second) {
  rn_tensor_t fed = sizes(first, second);
  rt_step_t step = {0};
  rt_feed(&step, in, &fed);
  rt_fetch(&step, out);
  rn_status_t status = rt_run(rt, &step);
  rn_tensor_clear(&step.out[0]);
  rn_tensor_clear(&fed);
  return status;
}

static const char wanted[] = "RUNNEL_MAX_MEMORY=<bytes>";

// Each op makes as many elements as its input says.
RT_TEST(memory_limit, sizes_from_outside) {
  setenv("RUNNEL_MAX_MEMORY", "16777216", 1);
  rt_t rt = rt_begin(1);
  rn_edge_t in = rn_Placeholder(rt.s, RN_INT64);
  rn_edge_t one = rn_const_float(rt.s, 1), row = rn_Reshape(rt.s, one, rn_OnesLike(rt.s, in));
  const rn_edge_t outs[] = {
      rn_Fill(rt.s, in, one),
      rn_BroadcastTo(rt.s, one, in),
      rn_Tile(rt.s, row, in),
      rn_RandomUniform(rt.s, in, RN_FLOAT),
      rn_RandomStandardNormal(rt.s, in, RN_FLOAT),
      rn_Empty(rt.s, rn_Cast(rt.s, in, RN_INT32), RN_FLOAT),
  };
  for (size_t i = 0; i < sizeof outs / sizeof *outs; ++i) {
    FAILS_WITH(run(&rt, in, outs[i], 1 << 20, 1 << 20), RESOURCE_EXHAUSTED, wanted);
    FAILS_WITH(run(&rt, in, outs[i], 2049, 2048), RESOURCE_EXHAUSTED, wanted);
    OK(run(&rt, in, outs[i], 1024, 1024));
  }
  rt_end(&rt);
  unsetenv("RUNNEL_MAX_MEMORY");
}

// What is in use counts: two tensors that fit alone do not fit together.
RT_TEST(memory_limit, sums) {
  setenv("RUNNEL_MAX_MEMORY", "16777216", 1);
  rt_t rt = rt_begin(1);
  rn_edge_t in = rn_Placeholder(rt.s, RN_INT64), one = rn_const_float(rt.s, 1);
  rn_edge_t both[] = {rn_Fill(rt.s, in, one), rn_RandomUniform(rt.s, in, RN_FLOAT)};
  rn_edge_t sum = rn_ConcatV2(rt.s, both, 2, rn_const_int32(rt.s, 0));
  FAILS_WITH(run(&rt, in, sum, 1024, 2048), RESOURCE_EXHAUSTED, wanted);
  OK(run(&rt, in, sum, 512, 1024));
  rt_end(&rt);
  unsetenv("RUNNEL_MAX_MEMORY");
}

// A fetched value is made in the memory of what it is computed from, however many elementwise ops
// are between, so its size is needed once: initial values of variables are made in this way.
RT_TEST(memory_limit, fetched_in_place) {
  setenv("RUNNEL_MAX_MEMORY", "16777216", 1);
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    int64_t dims[2] = {1536, 2048};  // 12 MiB
    rn_edge_t shape = rn_const(rt.s, RN_INT64, (int64_t[]){2}, 1, dims);
    rn_edge_t x = rn_RandomUniform(rt.s, shape, RN_FLOAT), scale = rn_const_float(rt.s, 2);
    rn_edge_t y = rn_Neg(rt.s, rn_AddV2(rt.s, rn_Mul(rt.s, x, scale), scale));
    rt_step_t step = {0};
    rt_fetch(&step, y);
    for (int turn = 0; turn < 2; ++turn) {
      OK(rt_run(&rt, &step));
      const float* got = RN_DATA(&step.out[0], float);
      for (int64_t i = 0; i < step.out[0].count; ++i)
        cr_assert(got[i] <= -2 && got[i] >= -4, "element %lld is %g", (long long)i, (double)got[i]);
      rt_clear(&step);
    }
    rt_end(&rt);
  }
  unsetenv("RUNNEL_MAX_MEMORY");
}

// Other reasons for the same code say nothing of memory.
RT_TEST(memory_limit, other_reasons) {
  rt_t rt = rt_begin(1);
  rn_edge_t in = rn_Placeholder(rt.s, RN_INT64), one = rn_const_float(rt.s, 1);
  rn_status_t status = run(&rt, in, rn_Fill(rt.s, in, one), INT64_MAX, INT64_MAX);
  cr_assert_not(rn_ok(status));
  cr_assert_null(strstr(rn_status_message(status), "RUNNEL_MAX_MEMORY"));
  rn_status_free(status);
  rt_end(&rt);
}
