// A scenario for conditionals and loops, as nodes and as functions.
#include "sweep.h"

typedef struct flow_t {
  rn_edge_t x;
  bool is_functional;
} flow_t;

static int square(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const flow_t* flow = arg;
  out[0] = rn_Mul(s, flow->x, flow->x);
  return 1;
}

static int more(rn_scope_t* s, rn_edge_t* out, void* arg) {
  const flow_t* flow = arg;
  out[0] = rn_AddV2(s, flow->x, rn_const_float(s, 1));
  return 1;
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 2));
}

// A conditional within the loop.
static void turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const flow_t* flow = arg;
  flow_t inner = {values[1], flow->is_functional};
  rn_edge_t is_large = rn_Less(s, flow->x, values[1]);
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  rn_cond(s, is_large, rn_branch(more, &inner), rn_branch(square, &inner), &next[1], 1,
          .functional = flow->is_functional);
  next[1] = rn_Mul(s, next[1], flow->x);
}

static void row(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const flow_t* flow = arg;
  out[0] = rn_Mul(s, in[0], flow->x);
}

// Everything, and its gradient, in a scope that is new: after an error one builds no more.
static bool build(ft_t* t, rn_edge_t* x, rn_edge_t* d) {
  rn_scope_destroy(t->scope);
  t->scope = rn_scope_create(rn_graph_of(t->graph));
  if (!t->scope) return false;
  rn_scope_t* s = t->scope;
  *x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(NULL, 0));
  rn_edge_t y = *x;
  for (int functional = 0; functional < 2; ++functional) {
    flow_t flow = {*x, functional};
    rn_edge_t starts[2] = {rn_const_int32(s, 0), y}, ends[2], chosen, rows, pair[2] = {y, *x};
    rn_while(s, goes_on, turn, &flow, starts, ends, 2, .functional = functional,
             .maximum_iterations = rn_const_int32(s, 5));
    rn_branch_t branches[2] = {rn_branch(square, &flow), rn_branch(more, &flow)};
    rn_switch_case(s, ends[0].node ? ends[0] : starts[0], branches, 2, NULL, &chosen, 1,
                   .functional = functional);
    rn_edge_t stacked = rn_Pack(s, pair, 2);
    rn_map(s, row, &flow, &stacked, 1, &rows, 1, .functional = functional, .lists = functional);
    y = rn_AddV2(s, rn_AddV2(s, ends[1], chosen), rn_Sum(s, rows, rn_const_int32(s, 0)));
  }
  bool is_derived = rn_gradients(s, y, x, 1, d);
  int code = rn_scope_code(s);
  if (rn_scope_ok(s)) FT_CHECK(t, is_derived && d->node);
  TF_SetStatus(t->status, (TF_Code)code, rn_scope_message(s));
  return rn_scope_ok(s);
}

void scenario_flow(ft_t* t) {
  rn_edge_t x = RN_NO_EDGE, d = RN_NO_EDGE;
  const float value = 0.5f;
  FT(ft_start(t));
  FT(build(t, &x, &d));
  FT(ft_tensor(&t->tensors[0], TF_FLOAT, NULL, 0, &value));
  FT(ft_session(t, 1));
  FT(ft_run(t, rn_operation_of(x.node), t->tensors[0], rn_operation_of(d.node), &t->tensors[1]));
  FT_CHECK(t, TF_TensorElementCount(t->tensors[1]) == 1);
}
