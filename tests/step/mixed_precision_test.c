// Mixed precision: which nodes are computed in 16 bits, where Casts stand, and that steps stay
// right.
//
// What is expected of each graph is what stock TensorFlow does with it (auto_mixed_precision_cpu
// without emulation; TF_CPP_VMODULE=auto_mixed_precision=2 shows it).
#include "step/precision.h"

#include <math.h>
#include <stdlib.h>

#include "device/device.h"
#include "graph_of_step.h"
#include "runnel/control_flow.h"
#include "tensor/float16.h"

// The graph of |step| on a CPU after the pass.
static rn_ir_t* convert(rt_t* rt, rt_step_t* step, const rn_precision_t* precision) {
  static rn_device_t cpu = {.type = "CPU", .is_host = true};
  rn_ir_t* ir = graph_of_step(rt, step);
  for (size_t n = 0; n < ir->nodes.count; ++n) ir->nodes.items[n].device = &cpu;
  OK(rn_pass_mixed_precision(ir, precision, rn_env_system()));
  return ir;
}

static rn_dtype_t type_of(const rn_ir_t* ir, rn_edge_t edge) {
  rn_str_t name = edge.node->name;
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (rn_str_eq(ir->nodes.items[n].name, name)) return ir->nodes.items[n].types[edge.index];
  cr_assert(false, "there is no %.*s", RN_STR_ARGS(name));
  return 0;
}

#define IS(edge, type) \
  cr_assert_eq(type_of(ir, edge), type, "%s is %s", #edge, rn_dtype_name(type_of(ir, edge)))

static const rn_precision_t half = {.cpu = RN_HALF}, bfloat16 = {.cpu = RN_BFLOAT16};

typedef struct chain_t {
  rn_edge_t x, first, bias, relu, second, more, exp, after, sum;
} chain_t;

// Two products with a bias and a ReLU between them; then what may not be in 16 bits.
static chain_t chain(rt_t* rt, rt_step_t* step) {
  rn_scope_t* s = rt->s;
  chain_t c;
  float numbers[16];
  for (int i = 0; i < 16; ++i) numbers[i] = 0.3f * (float)(i - 7);
  int64_t square[2] = {4, 4}, row[1] = {4};
  rn_edge_t w = rn_const(s, RN_FLOAT, square, 2, numbers);
  c.x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(2, 4));
  c.first = rn_MatMul(s, c.x, w);
  c.bias = rn_BiasAdd(s, c.first, rn_const(s, RN_FLOAT, row, 1, numbers));
  c.relu = rn_Relu(s, c.bias);
  c.second = rn_MatMul(s, c.relu, w);
  c.more = rn_Tanh(s, c.second);
  c.exp = rn_Exp(s, c.more);
  c.after = rn_Mul(s, c.exp, c.second);
  c.sum = rn_Sum(s, c.after, rn_const_int32(s, 1));
  rt_feed(step, c.x, NULL);
  rt_fetch(step, c.sum);
  return c;
}

RT_TEST(mixed_precision, paints_as_stock) {
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  chain_t c = chain(&rt, &step);
  rn_ir_t* ir = convert(&rt, &step, &half);
  IS(c.x, RN_FLOAT);
  IS(c.first, RN_HALF);
  IS(c.bias, RN_HALF);
  IS(c.relu, RN_HALF);
  IS(c.second, RN_HALF);
  IS(c.more, RN_HALF);    // on the infer list, after a product
  IS(c.exp, RN_FLOAT);    // denied
  IS(c.after, RN_FLOAT);  // on the infer list, after a denied one
  IS(c.sum, RN_FLOAT);
  // x to half; the second product and the tanh to float. The constants are converted at once.
  cr_assert_eq(count_nodes(ir, "Cast"), 3);
  rn_ir_destroy(ir);
  rt_end(&rt);
}

RT_TEST(mixed_precision, fetches_and_targets_keep_their_types) {
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  chain_t c = chain(&rt, &step);
  rt_fetch(&step, c.second);
  rt_target(&step, c.bias.node);
  rn_ir_t* ir = convert(&rt, &step, &half);
  IS(c.first, RN_HALF);
  IS(c.bias, RN_FLOAT);
  IS(c.second, RN_FLOAT);
  rn_ir_destroy(ir);
  rt_end(&rt);
}

// Sums are on the infer list for bfloat16 on CPUs, and denied elsewhere.
RT_TEST(mixed_precision, lists_differ_by_type) {
  for (int is_bfloat16 = 0; is_bfloat16 < 2; ++is_bfloat16) {
    rt_t rt = rt_begin(1);
    rt_step_t step = {0};
    chain_t c = chain(&rt, &step);
    rn_edge_t sum = rn_Sum(rt.s, c.first, rn_const_int32(rt.s, 0));
    rt_fetch(&step, rn_Neg(rt.s, sum));
    rn_ir_t* ir = convert(&rt, &step, is_bfloat16 ? &bfloat16 : &half);
    IS(c.first, is_bfloat16 ? RN_BFLOAT16 : RN_HALF);
    IS(sum, is_bfloat16 ? RN_BFLOAT16 : RN_FLOAT);
    rn_ir_destroy(ir);
    rt_end(&rt);
  }
}

#define PREFIX "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

RT_TEST(mixed_precision, environment_changes_the_lists) {
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  chain_t c = chain(&rt, &step);
  setenv(PREFIX "DENYLIST_REMOVE", "Exp", 1);
  setenv(PREFIX "INFERLIST_ADD", "Exp,NoSuchOp", 1);
  rn_ir_t* ir = convert(&rt, &step, &half);
  IS(c.exp, RN_HALF);
  rn_ir_destroy(ir);
  setenv(PREFIX "LEVEL", "treat_infer_as_deny", 1);
  ir = convert(&rt, &step, &half);
  IS(c.bias, RN_FLOAT);
  IS(c.relu, RN_HALF);
  IS(c.more, RN_FLOAT);
  rn_ir_destroy(ir);
  setenv(PREFIX "LEVEL", "TENSOR_CORES_ONLY", 1);
  ir = convert(&rt, &step, &half);
  IS(c.relu, RN_FLOAT);
  IS(c.second, RN_HALF);
  rn_ir_destroy(ir);
  setenv(PREFIX "LEVEL", "UNSAFE_FORCE_ALL", 1);
  ir = convert(&rt, &step, &half);
  IS(c.exp, RN_HALF);
  IS(c.after, RN_HALF);
  rn_ir_destroy(ir);
  rn_paint_lists_t lists;
  FAILS_WITH(rn_paint_lists_init(true, &lists), INVALID_ARGUMENT, "UNSAFE_FORCE_ALL");
  unsetenv(PREFIX "LEVEL");
  // An op on two lists: nothing is converted.
  setenv(PREFIX "ALLOWLIST_ADD", "Exp", 1);
  FAILS_WITH(rn_paint_lists_init(false, &lists), INVALID_ARGUMENT, "conflicting entries");
  ir = convert(&rt, &step, &half);
  IS(c.first, RN_FLOAT);
  rn_ir_destroy(ir);
  rt_end(&rt);
}

// A Cast to float for a product makes 16 bits at once.
RT_TEST(mixed_precision, casts_of_the_client_change) {
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  int64_t square[2] = {2, 2};
  float w[4] = {1, 2, 3, 4};
  rn_edge_t x = rn_Placeholder(rt.s, RN_UINT8, .shape = RN_SHAPE(3, 2));
  rn_edge_t cast = rn_Cast(rt.s, x, RN_FLOAT);
  rn_edge_t product = rn_MatMul(rt.s, cast, rn_const(rt.s, RN_FLOAT, square, 2, w));
  rt_feed(&step, x, NULL);
  rt_fetch(&step, rn_Neg(rt.s, product));
  rn_ir_t* ir = convert(&rt, &step, &half);
  IS(cast, RN_HALF);
  IS(product, RN_HALF);
  cr_assert_eq(count_nodes(ir, "Cast"), 2);
  rn_ir_destroy(ir);
  rt_end(&rt);
}

// Values that are rounded are those of the types.
RT_TEST(mixed_precision, emulation_rounds) {
  rt_t rt = rt_begin(1);
  rt.options.precision = (rn_precision_t){.cpu = RN_HALF, .emulates_cpu = true};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = RN_SHAPE(1, 1));
  int64_t one[2] = {1, 1};
  rn_edge_t y = rn_MatMul(rt.s, x, rn_const(rt.s, RN_FLOAT, one, 2, &(float){1}));
  rn_edge_t fetch = rn_Exp(rt.s, y);
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, one}, &value));
  *RN_DATA(&value, float) = 1.0001f;
  rt_step_t step = {0};
  rt_feed(&step, x, &value);
  rt_fetch(&step, fetch);
  OK(rt_run(&rt, &step));
  cr_assert_float_eq(*RN_DATA(&step.out[0], float), expf(1), 1e-6f);
  rt_clear(&step);
  rn_tensor_clear(&value);
  rt_end(&rt);
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* in, void* arg) {
  (void)arg;
  return rn_Less(s, in[0], rn_const_int32(s, 4));
}

typedef struct loop_t {
  rn_edge_t w;
  bool denies;     // the carried value goes through an op that is denied
  bool has_lists;  // values are read from one tensor list and written to another
} loop_t;

static void body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const loop_t* loop = arg;
  rn_edge_t shape = rn_const_int32_list(s, (int32_t[]){2, 4}, 2);
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  rn_edge_t x = in[1];
  if (loop->has_lists) x = rn_AddV2(s, x, rn_TensorListGetItem(s, in[2], in[0], shape, RN_FLOAT));
  x = rn_Tanh(s, rn_MatMul(s, x, loop->w));
  out[1] = loop->denies ? rn_Log(s, rn_Exp(s, x)) : x;
  if (!loop->has_lists) return;
  out[2] = in[2];
  out[3] = rn_TensorListSetItem(s, in[3], in[0], out[1]);
}

// Runs the loop and fetches the sum of its last value, and of all of them if there are lists.
static void run_loop(loop_t loop, const rn_precision_t* precision, float out[2]) {
  rt_t rt = rt_begin(1);
  rt.options.precision = *precision;
  rn_scope_t* s = rt.s;
  float numbers[32];
  for (int i = 0; i < 32; ++i) numbers[i] = 0.05f * (float)(i % 11 - 5);
  rn_edge_t feed = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(4, 2, 4));
  rn_edge_t x = rn_Slice(s, feed, rn_const_int32_list(s, (int32_t[]){0, 0, 0}, 3),
                         rn_const_int32_list(s, (int32_t[]){1, 2, 4}, 3));
  x = rn_Reshape(s, x, rn_const_int32_list(s, (int32_t[]){2, 4}, 2));
  int64_t square[2] = {4, 4}, all[3] = {4, 2, 4};
  loop.w = rn_const(s, RN_FLOAT, square, 2, numbers);
  rn_edge_t shape = rn_const_int32_list(s, (int32_t[]){2, 4}, 2);
  rn_edge_t starts[4] = {rn_const_int32(s, 0), x}, ends[4];
  if (loop.has_lists) {
    starts[2] = rn_TensorListFromTensor(s, rn_Neg(s, feed), shape);
    starts[3] = rn_TensorListReserve(s, shape, rn_const_int32(s, 4), RN_FLOAT);
  }
  cr_assert(rn_while(s, goes_on, body, &loop, starts, ends, loop.has_lists ? 4 : 2));
  rt_step_t step = {0};
  rt_fetch(&step, rn_Sum(s, ends[1], rn_const_int32_list(s, (int32_t[]){0, 1}, 2)));
  if (loop.has_lists) {
    rn_edge_t stacked = rn_TensorListStack(s, ends[3], shape, RN_FLOAT, .num_elements = RN_SET(4));
    rn_edge_t product = rn_BatchMatMulV2(s, stacked, loop.w);
    rt_fetch(&step, rn_Sum(s, product, rn_const_int32_list(s, (int32_t[]){0, 1, 2}, 3)));
  }
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){3, all}, &value));
  for (int i = 0; i < 32; ++i) RN_DATA(&value, float)[i] = 0.1f * (float)(i % 7);
  rt_feed(&step, feed, &value);
  OK(rt_run(&rt, &step));
  for (int i = 0; i < step.fetch_count; ++i) out[i] = *RN_DATA(&step.out[i], float);
  rt_clear(&step);
  rn_tensor_clear(&value);
  rt_end(&rt);
}

RT_TEST(mixed_precision, loops_and_tensor_lists) {
  setenv("RUNNEL_VERIFY", "1", 1);
  for (int kind = 0; kind < 4; ++kind) {
    loop_t loop = {.denies = kind & 1, .has_lists = kind & 2};
    float plain[2] = {0}, mixed[2] = {0};
    run_loop(loop, &(rn_precision_t){0}, plain);
    run_loop(loop, &half, mixed);
    for (int i = 0; i < 2; ++i)
      cr_assert_float_eq(mixed[i], plain[i], 0.01f, "%d: %g and %g", kind, mixed[i], plain[i]);
    cr_assert_neq(mixed[0], plain[0], "nothing was rounded");
    run_loop(loop, &bfloat16, mixed);
    for (int i = 0; i < 2; ++i)
      cr_assert_float_eq(mixed[i], plain[i], 0.05f, "%d: %g and %g", kind, mixed[i], plain[i]);
  }
}

// A reference variable is read by an Identity; the variable stays a float.
RT_TEST(mixed_precision, variables_stay_floats) {
  setenv("RUNNEL_VERIFY", "1", 1);
  rt_t rt = rt_begin(1);
  rt.options.precision = half;
  int64_t square[2] = {2, 2};
  float numbers[4] = {1, 2.0001f, 3, 4};
  rn_edge_t variable = rn_VariableV2(rt.s, square, 2, RN_FLOAT);
  rn_edge_t start = rn_const(rt.s, RN_FLOAT, square, 2, numbers);
  rt_do(&rt, rn_Assign(rt.s, variable, start).node);
  rn_edge_t x = rn_const(rt.s, RN_FLOAT, square, 2, (float[]){1, 0, 0, 1});
  rn_edge_t read = rn_Identity(rt.s, variable);
  rn_edge_t product = rn_MatMul(rt.s, read, rn_MatMul(rt.s, variable, x));
  rn_scope_t* s = rt.s;
  rn_edge_t sum = rn_Sum(s, product, rn_const_int32_list(s, (int32_t[]){0, 1}, 2));
  rn_edge_t changed = rn_AssignSub(s, variable, rn_Mul(s, read, rn_const_float(s, 0.5f)));
  rt_step_t step = {0};
  rt_fetch(&step, sum);
  OK(rt_run(&rt, &step));
  cr_assert_float_eq(*RN_DATA(&step.out[0], float), 54, 0.1f);
  rt_clear(&step);
  rt_step_t next = {0};
  rt_fetch(&next, changed);
  OK(rt_run(&rt, &next));
  cr_assert_eq(RN_DATA(&next.out[0], float)[1], 2.0001f * 0.5f);
  rt_clear(&next);
  rt_end(&rt);
}
