// Straight loops, which run without frames: random ones give the bits that the same plan gives in a
// traced step, where every loop runs in frames.
#include "loop_bodies.h"
#include "runnel/control_flow.h"

enum { kVars = 5, kMade = 14, kMost = 64 };

// Scalars live in an iteration's own memory; the others have buffers.
enum { kSmall = 0, kLarge = 1, kSizes = 2 };
enum { kLargeSide = 40 };

typedef struct program_t {
  uint32_t seed;
  int turns;
  bool is_nested;
  rn_edge_t outside[kSizes];  // a loop invariant of each size
} program_t;

static uint32_t any(uint32_t* seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}

static int size_of(int var) { return var % kSizes; }

// Values of a turn. Some depend on no variable.
typedef struct pool_t {
  rn_edge_t values[kSizes][kMost];
  int counts[kSizes];
} pool_t;

static void put(pool_t* pool, int size, rn_edge_t value) {
  pool->values[size][pool->counts[size]++] = value;
}

static rn_edge_t pick(pool_t* pool, int size, uint32_t* seed) {
  return pool->values[size][any(seed, (uint32_t)pool->counts[size])];
}

// The same value, forwarded twice.
static rn_edge_t reshaped(rn_scope_t* s, rn_edge_t x, int size) {
  static const int32_t square[2] = {kLargeSide / 2, 2}, line[1] = {kLargeSide}, one[2] = {1, 1};
  rn_edge_t there = rn_const_int32_list(s, size == kSmall ? one : square, 2);
  rn_edge_t back = rn_const_int32_list(s, line, size == kSmall ? 0 : 1);
  return rn_Reshape(s, rn_Reshape(s, x, there), back);
}

static void make(rn_scope_t* s, pool_t* pool, uint32_t* seed) {
  int size = (int)any(seed, kSizes);
  rn_edge_t x = pick(pool, size, seed), made;
  switch (any(seed, 8)) {
    case 0:
      made = rn_Tanh(s, rn_AddV2(s, x, pick(pool, size, seed)));
      break;
    case 1:
      made = rn_Maximum(s, x, rn_Neg(s, pick(pool, size, seed)));
      break;
    case 2:
      made = rn_Mul(s, x, rn_const_float(s, 0.5f));
      break;
    case 3:
      made = reshaped(s, x, size);
      break;
    case 4:
      made = rn_Identity(s, x);
      break;
    case 5:
      made = rn_Sub(s, x, pick(pool, kSmall, seed));
      break;
    case 6: {
      rn_edge_t mean = rn_Mean(s, pick(pool, kLarge, seed), rn_const_int32(s, 0));
      made = rn_AddV2(s, x, mean);
      break;
    }
    default:
      made = rn_Sub(s, x, pick(pool, size, seed));
      break;
  }
  put(pool, size, made);
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  const program_t* program = arg;
  uint32_t seed = program->seed;
  // Some conditions also look at another variable, which then lives until the end of a turn.
  rn_edge_t is_below = rn_Less(s, values[0], rn_const_int32(s, program->turns));
  if (any(&seed, 2)) return is_below;
  return rn_LogicalAnd(s, is_below, rn_Less(s, values[1], rn_const_float(s, 1e9f)));
}

static void body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const program_t* program = arg;
  uint32_t seed = program->seed * 2654435761u;
  pool_t pool = {0};
  for (int i = 0; i < kSizes; ++i) put(&pool, i, program->outside[i]);
  for (int v = 0; v < kVars; ++v) put(&pool, size_of(v), in[v + 1]);
  for (int i = 0; i < kMade; ++i) make(s, &pool, &seed);
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  // Often what another variable was: variables swap places.
  for (int v = 0; v < kVars; ++v) {
    out[v + 1] = pool.values[size_of(v)][1 + any(&seed, 2)];
    if (any(&seed, 3)) out[v + 1] = pick(&pool, size_of(v), &seed);
  }
}

static rn_edge_t goes_on_outside(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 3));
}

// Runs the loop with the outer loop's variables, from its own beginning.
static void outer_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  rn_edge_t starts[kVars + 1] = {rn_const_int32(s, 0)};
  memcpy(starts + 1, in + 1, kVars * sizeof *starts);
  if (!rn_while(s, goes_on, body, arg, starts, out, kVars + 1)) return;
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
}

static void compare(const program_t* shape) {
  program_t program = *shape;
  rt_t rt = rt_begin(1);
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, NULL, 0}), starts[kVars + 1],
            ends[kVars + 1];
  const int32_t side[1] = {kLargeSide};
  rn_edge_t large = rn_Fill(rt.s, rn_const_int32_list(rt.s, side, 1), x);
  program.outside[kSmall] = rn_Tanh(rt.s, x);
  program.outside[kLarge] = rn_Tanh(rt.s, large);
  starts[0] = rn_const_int32(rt.s, 0);
  for (int v = 0; v < kVars; ++v) {
    rn_edge_t factor = rn_const_float(rt.s, (float)(v + 1) / 7);
    starts[v + 1] = rn_Mul(rt.s, size_of(v) == kSmall ? x : large, factor);
  }
  cr_assert(program.is_nested
                ? rn_while(rt.s, goes_on_outside, outer_body, &program, starts, ends, kVars + 1)
                : rn_while(rt.s, goes_on, body, &program, starts, ends, kVars + 1));
  cr_assert(rn_scope_ok(rt.s), "%s", rn_scope_message(rt.s));
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
  rt_step_t steps[3] = {{.options = {.stats = &stats}}};
  rn_tensor_t fed = rt_scalar(0.7f);
  for (int k = 0; k < 3; ++k) {
    rt_feed(&steps[k], x, &fed);
    for (int v = 0; v <= kVars; ++v) rt_fetch(&steps[k], ends[v]);
    OK(rt_run(&rt, &steps[k]));
    for (int v = 0; v <= kVars; ++v) {
      const rn_tensor_t *got = &steps[k].out[v], *wanted = &steps[0].out[v];
      cr_assert_eq(got->count, wanted->count);
      cr_assert(memcmp(got->data, wanted->data, rn_tensor_bytes(wanted)) == 0,
                "seed %u, %d turns, variable %d", program.seed, program.turns, v);
    }
  }
  for (int k = 0; k < 3; ++k) rt_clear(&steps[k]);
  rn_tensor_clear(&fed);
  rn_step_stats_clear(&stats);
  rt_end(&rt);
}

RT_TEST(straight_loops, random_ones_give_the_same_bits) {
  for (uint32_t seed = 1; seed <= 150; ++seed)
    compare(&(program_t){.seed = seed, .turns = (int)(seed % 6)});
}

RT_TEST(straight_loops, random_ones_in_a_loop_give_the_same_bits) {
  for (uint32_t seed = 1; seed <= 60; ++seed)
    compare(&(program_t){.seed = seed * 77, .turns = (int)(seed % 5), .is_nested = true});
}

// A loop that runs until a variable is assigned, after an asynchronous kernel beside it: what has
// completed does not wait for the end of the loop.
static rn_edge_t is_zero(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Equal(s, values[0], rn_const_float(s, 0));
}

static void look_again(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  out[0] = rn_AddV2(s, in[0], rn_ReadVariableOp(s, *(rn_edge_t*)arg, RN_FLOAT));
}

RT_TEST(straight_loops, what_completes_beside_goes_on) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;  // which would read the variable before the loop
  rn_edge_t variable = rn_VarHandleOp(rt.s, RN_FLOAT, NULL, 0);
  rn_node_t* reset = rn_AssignVariableOp(rt.s, variable, rn_const_float(rt.s, 0));
  rn_edge_t x = rt_placeholder(&rt, "x"), later = rt_op(rt.s, "TestAsync", x);
  rn_node_t* assign = rn_AssignVariableOp(rt.s, variable, later);
  rn_edge_t start = rn_const_float(rt.s, 0), end;
  cr_assert(rn_while(rt.s, is_zero, look_again, &variable, &start, &end, 1));
  for (int turn = 0; turn < 5; ++turn) {
    rt_do(&rt, reset);
    rn_tensor_t fed = rt_scalar(4);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, end);
    rt_target(&step, assign);
    OK(rt_run(&rt, &step));
    cr_assert_neq(rt_value(&step.out[0]), 0);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  rt_end(&rt);
}
