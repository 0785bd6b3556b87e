// Gradients through loops; stacks keep the values that the backward loop needs.
#define GRAD_SUITE grad_loop
#include "../support/status.h"
#include "differences.h"
#include "runnel/gradients.h"

// To the second order: through the loop that runs backwards as well. Differences of what is itself
// a sum of many products are a little less exact.
#define TWICE(...) SHAPES(__VA_ARGS__), .is_twice = true, .tolerance = 1e-7

enum { VARS = 4 };

// A loop over VARS variables at most, built node by node: begin, the body, end.
typedef struct loop_t {
  int count;
  rn_edge_t merges[VARS], in[VARS], outs[VARS];
} loop_t;

// while (variable 0 < |limit|); variable 0 is an int32.
static loop_t begin(rn_scope_t* s, const char* frame, int limit, int count,
                    const rn_edge_t* start) {
  loop_t loop = {.count = count};
  for (int i = 0; i < count; ++i) {
    rn_edge_t enter = rn_Enter(s, start[i], frame);
    rn_edge_t both[2] = {enter, enter};
    loop.merges[i] = rn_Merge(s, both, 2).output;
  }
  rn_scope_add_control(s, loop.merges[0].node);
  rn_edge_t end = INT(limit);
  rn_scope_clear_controls(s);
  rn_edge_t cond = rn_LoopCond(s, rn_Less(s, loop.merges[0], end));
  for (int i = 0; i < count; ++i) {
    rn_Switch_out_t both = rn_Switch(s, loop.merges[i], cond);
    loop.in[i] = both.output_true;
    loop.outs[i] = rn_Exit(s, both.output_false);
  }
  rn_scope_add_control(s, loop.in[0].node);  // what follows is the body
  return loop;
}

static void end(rn_scope_t* s, loop_t* loop, const rn_edge_t* next) {
  rn_scope_clear_controls(s);
  for (int i = 0; i < loop->count; ++i) {
    rn_edge_t again = rn_NextIteration(s, next[i]);
    if (!rn_scope_ok(s)) return;
    rn_status_t status = rn_graph_update_edge(rn_scope_graph(s), again, loop->merges[i].node, 1);
    cr_assert(rn_ok(status), "%s", rn_status_message(status));
  }
}

// x = tanh(x w), five times.
static rn_edge_t repeated(rn_scope_t* s, const rn_edge_t* x, int limit) {
  rn_edge_t start[3] = {INT(0), x[0], x[1]};
  loop_t loop = begin(s, "repeated", limit, 3, start);
  rn_edge_t product = rn_MatMul(s, loop.in[1], loop.in[2]);
  rn_edge_t next[3] = {rn_AddV2(s, loop.in[0], INT(1)), rn_Tanh(s, product), loop.in[2]};
  end(s, &loop, next);
  return loop.outs[1];
}

// A gradient has the shape of its x, though it comes out of a loop.
Test(grad_loop, Shapes) {
  rn_graph_t* graph = NULL;
  rn_status_t status = rn_graph_create(rn_allocator_system(), &graph);
  OK(status);
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x[2] = {rn_Fill(s, INTS(2, 3), REAL(1)), rn_Fill(s, INTS(3, 3), REAL(1))}, dx[2];
  cr_assert(rn_gradients(s, repeated(s, x, 5), x, 2, dx), "%s", rn_scope_message(s));
  for (int i = 0; i < 2; ++i) {
    rn_shape_t shape = dx[i].node->outputs[dx[i].index].shape;
    cr_expect(rn_shape_eq(shape, x[i].node->outputs[0].shape), "of x %d", i);
  }
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

GRAD(Repeated, TWICE("2,3", "3,3"), repeated(s, x, 5))
GRAD(Once, TWICE("2,3", "3,3"), repeated(s, x, 1))
GRAD(Never, TWICE("2,3", "3,3"), repeated(s, x, 0))

// Before and after the loop there is more to differentiate, and the loop is used twice.
static rn_edge_t between(rn_scope_t* s, const rn_edge_t* x) {
  rn_edge_t inputs[2] = {rn_Square(s, x[0]), rn_Sin(s, x[1])};
  rn_edge_t y = repeated(s, inputs, 3);
  return rn_AddV2(s, rn_Mul(s, y, x[0]), rn_Exp(s, y));
}
GRAD(Between, TWICE("2,3", "3,3"), between(s, x))

// Two variables that feed each other; one of them leaves the loop.
static rn_edge_t crossed(rn_scope_t* s, const rn_edge_t* x) {
  rn_edge_t start[3] = {INT(0), x[0], x[1]};
  loop_t loop = begin(s, "crossed", 3, 3, start);
  rn_edge_t half = REAL(0.5), a = loop.in[1], b = loop.in[2];
  rn_edge_t next[3] = {rn_AddV2(s, loop.in[0], INT(1)), rn_Mul(s, a, b),
                       rn_AddV2(s, rn_Mul(s, half, a), rn_Cos(s, b))};
  end(s, &loop, next);
  return loop.outs[1];
}
GRAD(Crossed, TWICE("3", "3"), crossed(s, x))

// The number of rounds is in the values: x doubles until the counter, too, has.
static rn_edge_t counted(rn_scope_t* s, const rn_edge_t* x) {
  rn_edge_t start[2] = {INT(1), x[0]};
  loop_t loop = begin(s, "counted", 1000, 2, start);
  rn_edge_t turns = rn_Cast(s, loop.in[0], RN_DOUBLE);
  rn_edge_t next[2] = {rn_Mul(s, loop.in[0], INT(3)),
                       rn_AddV2(s, loop.in[1], rn_RealDiv(s, rn_Sin(s, loop.in[1]), turns))};
  end(s, &loop, next);
  return loop.outs[1];
}
GRAD(Counted, TWICE("2,2"), counted(s, x))

// The weight is held, not handed on: its gradient is one product after the loop, of no rows at all
// where there was no iteration.
static rn_edge_t held(rn_scope_t* s, const rn_edge_t* x, int limit) {
  rn_edge_t start[2] = {INT(0), x[0]};
  rn_edge_t weight = rn_Enter(s, x[1], "held", .is_constant = true);
  loop_t loop = begin(s, "held", limit, 2, start);
  rn_edge_t next[2] = {rn_AddV2(s, loop.in[0], INT(1)),
                       rn_Tanh(s, rn_MatMul(s, loop.in[1], weight))};
  end(s, &loop, next);
  return loop.outs[1];
}
GRAD(Held, TWICE("2,3", "3,3"), held(s, x, 3))
GRAD(HeldNever, TWICE("2,3", "3,3"), held(s, x, 0))
