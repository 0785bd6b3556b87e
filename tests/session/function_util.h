// Functions for tests of steps: the ways of running them, and building them in a few lines.
#ifndef RUNNEL_TESTS_SESSION_FUNCTION_UTIL_H_
#define RUNNEL_TESTS_SESSION_FUNCTION_UTIL_H_

#include "framework/function.h"
#include "function/function.h"
#include "runnel/function.h"
#include "util.h"

// The ways of running functions, each with one thread and with several.
typedef struct way_t {
  bool keeps_calls;
  rn_lowering_t lowering;
  int threads;
} way_t;

static const way_t ways[] = {
    {false, RN_LOWER_NEVER, 1}, {false, RN_LOWER_ALWAYS, 1}, {true, RN_LOWER_NEVER, 1},
    {true, RN_LOWER_ALWAYS, 1}, {false, RN_LOWER_NEVER, 3},  {false, RN_LOWER_ALWAYS, 3},
    {true, RN_LOWER_NEVER, 3},  {true, RN_LOWER_ALWAYS, 3},
};
enum { WAYS = sizeof ways / sizeof *ways };

static RT_UNUSED rt_t begin(const way_t* way) {
  rt_t rt = rt_begin(way->threads);
  rt.options.calls =
      (rn_calls_options_t){.keeps_calls = way->keeps_calls, .lowering = way->lowering};
  return rt;
}

static const int one_float[] = {RN_FLOAT};
static const int two_floats[] = {RN_FLOAT, RN_FLOAT};

// A function under construction: a graph whose placeholders become its arguments.
typedef struct fn_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_edge_t args[4];
  int arg_count;
} fn_t;

static RT_UNUSED fn_t fn_begin(rt_t* rt, int arg_count) {
  fn_t fn = {.arg_count = arg_count};
  OK(rn_graph_create(rn_allocator_system(), &fn.graph));
  fn.s = rn_scope_create(fn.graph);
  // Nodes whose op is a function need it at hand.
  for (size_t i = 0; i < rn_graph_function_count(rt->graph); ++i) {
    rn_function_t* known = rn_graph_function_at(rt->graph, i);
    OK(rn_graph_add_function(fn.graph, known, NULL));
    rn_function_release(known);
  }
  for (int i = 0; i < arg_count; ++i) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    rn_scope_name_next(fn.s, name);
    fn.args[i] = rn_Placeholder(fn.s, RN_FLOAT);
  }
  return fn;
}

static RT_UNUSED void fn_end_with(fn_t* fn, rt_t* rt, const char* name, const rn_edge_t* results,
                                  int count, rn_node_t* control) {
  cr_assert(rn_scope_ok(fn->s), "%s: %s", name, rn_scope_message(fn->s));
  rn_function_spec_t spec = {.graph = fn->graph,
                             .name = rn_str(name),
                             .node_count = -1,
                             .inputs = fn->args,
                             .input_count = fn->arg_count,
                             .outputs = results,
                             .output_count = count,
                             .controls = &control,
                             .control_count = control != NULL};
  rn_function_t* function = NULL;
  OK(rn_function_create(&spec, &function));
  OK(rn_graph_add_function(rt->graph, function, NULL));
  rn_function_release(function);
  rn_scope_destroy(fn->s);
  rn_graph_release(fn->graph);
}

static RT_UNUSED void fn_end(fn_t* fn, rt_t* rt, const char* name, rn_edge_t result) {
  fn_end_with(fn, rt, name, &result, 1, NULL);
}

// A node of |op| with one input.
static RT_UNUSED rn_edge_t apply(rn_scope_t* s, const char* op, rn_edge_t x) {
  rn_op_begin(s, op);
  rn_op_input(s, x);
  return (rn_edge_t){rn_op_finish(s), 0};
}

static RT_UNUSED rn_edge_t call(rn_scope_t* s, const char* name, rn_edge_t x) {
  return rn_edge_at(rn_StatefulPartitionedCall(s, &x, 1, one_float, 1, name), 0);
}

// x * y + x
static RT_UNUSED void make_f(rt_t* rt) {
  fn_t fn = fn_begin(rt, 2);
  fn_end(&fn, rt, "f", rn_Add(fn.s, rn_Mul(fn.s, fn.args[0], fn.args[1]), fn.args[0]));
}

#endif  // RUNNEL_TESTS_SESSION_FUNCTION_UTIL_H_
