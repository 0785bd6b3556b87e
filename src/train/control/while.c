// Loops: Enter, Merge, Switch, NextIteration and Exit, or a While node and two functions.
#include "runnel/control_flow.h"
#include "train/control/region.h"

// A loop under construction; arrays are indexed by loop variable.
typedef struct while_loop_t {
  rn_scope_t* scope;  // the client's
  rn_scope_t* here;   // under it, "while/"
  rn_condition_t condition;
  rn_body_t body;
  void* arg;
  const rn_while_options_t* options;
  const rn_edge_t* starts;
  int count;
  rn_arena_t arena;
  rn_shape_t* shapes;  // shape invariants
  const char* frame;
  rn_waits_t waits;
  rn_edge_t *merged, *current, *next, *left;
} while_loop_t;

static rn_edge_t enter(while_loop_t* loop, rn_edge_t edge, bool is_constant) {
  int parallel = loop->options->parallel_iterations;
  bool is_ref = rn_dtype_is_ref(edge.node->outputs[edge.index].dtype);
  rn_scope_t* s = loop->here;
  rn_op_begin(s, is_ref && is_constant ? "RefEnter" : "Enter");
  rn_op_input(s, edge);
  rn_op_attr_string(s, "frame_name", loop->frame);
  rn_op_attr_bool(s, "is_constant", is_constant);
  rn_op_attr_int(s, "parallel_iterations", parallel > 0 ? parallel : 10);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// In a loop around this one the constant may be alive after the last iteration: nothing in this
// loop runs for its sake, and passes move what is computed from it to the front of both loops.
static rn_edge_t bring_constant(rn_region_t* region, rn_edge_t outer) {
  const rn_scope_hook_t* around = rn_scope_hook(region->outside);
  rn_scope_hook_t loose = around ? *around : (rn_scope_hook_t){0};
  loose.is_always_alive = NULL;
  if (around) rn_scope_set_hook(region->outside, &loose);
  rn_edge_t inner = enter(region->arg, outer, true);
  rn_scope_set_hook(region->outside, around);
  return inner;
}

static void set_shape(rn_scope_t* s, rn_edge_t edge, rn_shape_t shape) {
  rn_status_t status = edge.node ? rn_graph_set_shape(rn_scope_graph(s), edge, shape) : RN_OK;
  if (!rn_ok(status)) rn_scope_fail(s, status);
}

// Whether |shape| fits |invariant|.
static bool is_covered(rn_shape_t shape, rn_shape_t invariant) {
  if (!rn_shape_has_rank(invariant)) return true;
  if (shape.rank != invariant.rank) return false;
  for (int d = 0; d < shape.rank; ++d)
    if (invariant.dims[d] >= 0 && shape.dims[d] != invariant.dims[d]) return false;
  return true;
}

static void refuse_shape(while_loop_t* loop, int i, rn_edge_t next, bool is_start) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_scope_allocator(loop->scope));
  rn_strbuf_printf(&text, "Loop '%.*s': value %d ", RN_STR_ARGS(rn_scope_prefix(loop->here)), i);
  if (is_start) {
    rn_strbuf_printf(&text, "starts as '%s:%d' of shape ", next.node->name.data, next.index);
    rn_shape_print(&text, rn_shape_of_edge(next));
    rn_strbuf_append(&text, RN_STR(", which its shape invariant "));
    rn_shape_print(&text, loop->shapes[i]);
    rn_strbuf_append(&text, RN_STR(" does not allow"));
  } else {
    rn_strbuf_printf(&text, "('%s:%d') enters with shape ", loop->starts[i].node->name.data,
                     loop->starts[i].index);
    rn_shape_print(&text, loop->shapes[i]);
    rn_strbuf_append(&text, RN_STR(", but has shape "));
    rn_shape_print(&text, rn_shape_of_edge(next));
    rn_strbuf_printf(&text, " after one iteration ('%s:%d'); use a less specific shape invariant",
                     next.node->name.data, next.index);
  }
  rn_scope_fail(loop->scope, rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text));
}

// Checks that the body's result for value |i| may enter the next iteration.
static bool check_next(while_loop_t* loop, rn_scope_t* inside, int i, rn_edge_t next) {
  if (!next.node) {
    rn_refuse(loop->scope, "Loop '%.*s': the body does not return value %d",
              RN_STR_ARGS(rn_scope_prefix(loop->here)), i);
    return false;
  }
  if (!rn_is_edge(inside, next, "while", "a result of the body")) return false;
  rn_edge_t start = loop->starts[i];
  if (rn_edge_dtype(next) != rn_edge_dtype(start))
    rn_refuse(loop->scope,
              "Loop '%.*s': value %d ('%s:%d') is %s, but %s after one iteration ('%s:%d')",
              RN_STR_ARGS(rn_scope_prefix(loop->here)), i, start.node->name.data, start.index,
              rn_dtype_name((rn_dtype_t)rn_edge_dtype(start)),
              rn_dtype_name((rn_dtype_t)rn_edge_dtype(next)), next.node->name.data, next.index);
  else if (!is_covered(rn_shape_of_edge(next), loop->shapes[i]))
    refuse_shape(loop, i, next, false);
  return rn_scope_ok(inside);
}

static void begin(while_loop_t* loop, rn_region_t* region) {
  rn_scope_t* s = loop->here;
  for (int i = 0; i < loop->count && rn_scope_ok(s); ++i) {
    loop->current[i] = enter(loop, loop->starts[i], false);
    rn_region_note(region, loop->current[i].node);
    set_shape(s, loop->current[i], loop->shapes[i]);
  }
}

static void merge(while_loop_t* loop, rn_scope_t* inside) {
  for (int i = 0; i < loop->count; ++i) {
    rn_edge_t both[2] = {loop->current[i], loop->current[i]};
    loop->merged[i] = rn_Merge(inside, both, 2).output;
  }
}

// Builds the condition and the Switch nodes that it controls.
static void decide(while_loop_t* loop, rn_region_t* region) {
  rn_str_t prefix = rn_scope_prefix(loop->here);
  rn_scope_t* inside = rn_region_enter(region, prefix, NULL);
  if (inside) merge(loop, inside);
  region->hook.anchor = loop->merged[0].node;
  rn_edge_t go = RN_NO_EDGE;
  if (rn_scope_ok(inside)) go = loop->condition(inside, loop->merged, loop->arg);
  if (inside && rn_is_predicate(inside, go, "while")) {
    rn_op_begin(inside, "LoopCond");
    rn_op_input(inside, go);
    if (loop->options->no_back_prop) rn_op_attr_bool(inside, "_back_prop", false);
    if (loop->options->swap_memory) rn_op_attr_bool(inside, "_swap_memory", true);
    rn_edge_t condition = {rn_op_finish(inside), 0};
    for (int i = 0; i < loop->count; ++i) {
      rn_Switch_out_t way = rn_Switch(inside, loop->merged[i], condition);
      loop->left[i] = way.output_false;
      loop->current[i] = way.output_true;
    }
    for (int i = 0; i < loop->count; ++i) loop->current[i] = rn_Identity(inside, loop->current[i]);
  }
  rn_scope_destroy(inside);
}

static void go_round(while_loop_t* loop, rn_region_t* region) {
  rn_scope_t* inside = rn_region_enter(region, rn_scope_prefix(loop->here), loop->current[0].node);
  if (!inside) return;
  loop->body(inside, loop->current, loop->next, loop->arg);
  for (int i = 0; i < loop->count && rn_scope_ok(inside); ++i) {
    if (!check_next(loop, inside, i, loop->next[i])) break;
    rn_edge_t next = rn_NextIteration(inside, loop->next[i]);
    rn_status_t status =
        next.node ? rn_graph_update_edge(rn_scope_graph(inside), next, loop->merged[i].node, 1)
                  : RN_OK;
    if (!rn_ok(status)) rn_scope_fail(inside, status);
  }
  rn_scope_destroy(inside);
}

static rn_status_t build_frame(while_loop_t* loop, rn_edge_t* out) {
  rn_str_t frame;
  RN_RETURN_IF_ERROR(rn_arena_printf(&loop->arena, &frame, "%.*s%s",
                                     RN_STR_ARGS(rn_scope_prefix(loop->here)), "while_context"));
  loop->frame = frame.data;
  rn_region_t region = {
      .outside = loop->here, .bring = bring_constant, .arg = loop, .is_loop = true};
  begin(loop, &region);
  if (rn_scope_ok(loop->here)) decide(loop, &region);
  if (rn_scope_ok(loop->here)) go_round(loop, &region);
  rn_region_clear(&region);
  for (int i = 0; i < loop->count && rn_scope_ok(loop->here); ++i)
    out[i] = rn_Exit(loop->here, loop->left[i]);
  return RN_OK;
}

// The placeholders of the loop variables, followed by those of captured values.
static rn_status_t arguments(while_loop_t* loop, rn_region_t* region, const rn_edge_t* values,
                             rn_edge_t** out) {
  size_t count = (size_t)loop->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&loop->arena, count + region->brought.count, out));
  memcpy(*out, values, count * sizeof **out);
  for (size_t i = 0; i < region->brought.count; ++i)
    (*out)[count + i] = region->brought.items[i].inner;
  return RN_OK;
}

// A scope in which the values of an iteration are arguments.
static rn_scope_t* enter_function(while_loop_t* loop, rn_region_t* region, const char* name,
                                  rn_edge_t* values) {
  if (!rn_region_begin_function(region, loop->here, name, &loop->waits)) return NULL;
  for (int i = 0; i < loop->count; ++i) {
    values[i] = rn_placeholder_like(region->outside, loop->starts[i], loop->shapes[i]);
    rn_region_note(region, values[i].node);
  }
  return rn_region_enter(region, rn_scope_prefix(region->outside), NULL);
}

static rn_edge_t build_condition(while_loop_t* loop, rn_region_t* region) {
  rn_edge_t go = RN_NO_EDGE;
  rn_scope_t* inside = enter_function(loop, region, "cond", loop->merged);
  if (rn_scope_ok(inside)) go = loop->condition(inside, loop->merged, loop->arg);
  if (inside && rn_is_predicate(inside, go, "while")) go = rn_region_map(region, go);
  rn_scope_destroy(inside);
  return go;
}

static void build_body(while_loop_t* loop, rn_region_t* region) {
  rn_scope_t* inside = enter_function(loop, region, "body", loop->current);
  if (rn_scope_ok(inside)) loop->body(inside, loop->current, loop->next, loop->arg);
  for (int i = 0; inside && i < loop->count && rn_scope_ok(inside); ++i)
    if (check_next(loop, inside, i, loop->next[i]))
      loop->next[i] = rn_region_map(region, loop->next[i]);
  rn_scope_destroy(inside);
}

// The parts of a While node; the nodes of its functions have been removed from the graph.
typedef struct call_t {
  const char *condition, *body;
  rn_edge_t* inputs;
  rn_shape_t* shapes;
  int count;
  bool is_stateful;
} call_t;

static rn_status_t define(while_loop_t* loop, rn_region_t* condition, rn_region_t* body,
                          rn_edge_t go, call_t* call) {
  rn_str_t stem = rn_scope_prefix(loop->here);
  stem.size--;
  rn_region_share(condition, body);
  size_t own = (size_t)loop->count, extra = condition->brought.count;
  rn_edge_t *in = NULL, *inner = NULL, *results = NULL;
  call->count = (int)(own + extra);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&loop->arena, own + extra, &call->shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&loop->arena, own + extra, &call->inputs));
  memcpy(call->inputs, loop->starts, own * sizeof *call->inputs);
  memcpy(call->shapes, loop->shapes, own * sizeof *call->shapes);
  RN_RETURN_IF_ERROR(arguments(loop, condition, loop->merged, &in));
  RN_RETURN_IF_ERROR(arguments(loop, body, loop->current, &inner));
  RN_RETURN_IF_ERROR(arguments(loop, body, loop->next, &results));
  for (size_t i = 0; i < extra; ++i) {
    rn_edge_t outer = condition->brought.items[i].outer;
    call->inputs[own + i] = outer;
    call->shapes[own + i] = rn_shape_of_edge(outer);
    inner[own + i] = results[own + i] = rn_region_map(body, outer);
  }
  call->condition = rn_region_define(loop->scope, condition, &loop->arena, stem, "cond", in,
                                     call->count, &go, 1, &call->is_stateful);
  call->body = rn_region_define(loop->scope, body, &loop->arena, stem, "body", inner, call->count,
                                results, call->count, &call->is_stateful);
  return RN_OK;
}

static rn_status_t build_functions(while_loop_t* loop, call_t* call) {
  rn_region_t condition = {0}, body = {0};
  rn_edge_t go = build_condition(loop, &condition);
  if (rn_scope_ok(loop->scope)) build_body(loop, &body);
  rn_status_t status = rn_scope_ok(loop->scope) ? define(loop, &condition, &body, go, call) : RN_OK;
  rn_region_end_function(&condition);
  rn_region_end_function(&body);
  return status;
}

static void add_while(while_loop_t* loop, const call_t* call, rn_edge_t* out) {
  rn_scope_t* s = loop->scope;
  if (!rn_scope_ok(s)) return;
  int parallel = loop->options->parallel_iterations;
  rn_name_next_as(s, loop->here);
  rn_op_begin(s, call->is_stateful ? "While" : "StatelessWhile");
  rn_op_input_list(s, call->inputs, call->count);
  rn_op_attr_func(s, "cond", call->condition);
  rn_op_attr_func(s, "body", call->body);
  rn_op_attr_int(s, "parallel_iterations", parallel > 0 ? parallel : 10);
  rn_attr_shapes(s, "output_shapes", &loop->arena, call->shapes, call->count);
  if (loop->options->no_back_prop) rn_op_attr_bool(s, "_back_prop", false);
  if (loop->options->swap_memory) rn_op_attr_bool(s, "_swap_memory", true);
  rn_op_waits(s, &loop->waits);
  rn_node_t* node = rn_op_finish(s);
  for (int i = 0; i < loop->count && node; ++i) out[i] = (rn_edge_t){node, i};
}

static rn_status_t prepare(while_loop_t* loop) {
  size_t count = (size_t)loop->count;
  rn_edge_t** lists[] = {&loop->merged, &loop->current, &loop->next, &loop->left};
  for (int i = 0; i < 4; ++i) RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&loop->arena, count, lists[i]));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&loop->arena, count, &loop->shapes));
  const rn_opt_shape_t* invariants = loop->options->invariants;
  for (int i = 0; i < loop->count; ++i) {
    loop->shapes[i] = rn_shape_of_edge(loop->starts[i]);
    if (!invariants || !invariants[i].is_set) continue;
    if (invariants[i].rank > RN_MAX_RANK || (invariants[i].rank > 0 && !invariants[i].dims))
      return rn_invalid_argument("while: shape invariant %d is invalid", i);
    loop->shapes[i] =
        (rn_shape_t){invariants[i].rank < 0 ? -1 : invariants[i].rank, invariants[i].dims};
    if (!is_covered(rn_shape_of_edge(loop->starts[i]), loop->shapes[i])) {
      refuse_shape(loop, i, loop->starts[i], true);
      break;
    }
  }
  return RN_OK;
}

static bool build(while_loop_t* loop, rn_edge_t* out) {
  rn_scope_t* scope = loop->scope;
  const char* name = loop->options->name ? loop->options->name : "while";
  bool is_functional = loop->options->functional;
  size_t before = rn_node_count(scope);
  loop->here = rn_scope_child(scope, name);
  rn_arena_init(&loop->arena, rn_scope_allocator(scope));
  rn_status_t status = loop->here ? prepare(loop) : RN_OK;
  call_t call = {0};
  if (rn_ok(status) && rn_scope_ok(loop->here))
    status = is_functional ? build_functions(loop, &call) : build_frame(loop, out);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  if (loop->here && (is_functional || !rn_scope_ok(scope))) rn_scope_take_back(loop->here, before);
  if (is_functional) add_while(loop, &call, out);
  rn_scope_destroy(loop->here);
  rn_vec_free(&loop->waits.nodes, rn_scope_allocator(scope));
  rn_arena_clear(&loop->arena);
  for (int i = 0; i < loop->count && !rn_scope_ok(scope); ++i) out[i] = RN_NO_EDGE;
  return rn_scope_ok(scope);
}

// A loop that counts its iterations: the counter is the first loop variable.
typedef struct counted_t {
  rn_condition_t condition;
  rn_body_t body;
  void* arg;
  rn_edge_t limit;
} counted_t;

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  counted_t* counted = arg;
  rn_edge_t is_below = rn_Less(s, values[0], counted->limit);
  rn_edge_t go = counted->condition(s, values + 1, counted->arg);
  return rn_is_predicate(s, go, "while") ? rn_LogicalAnd(s, is_below, go) : go;
}

static void count_turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  counted_t* counted = arg;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  counted->body(s, values + 1, next + 1, counted->arg);
}

// Inserts the counter at the front of every array indexed by loop variable.
static void build_counted(while_loop_t* loop, rn_edge_t* out) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_scope_allocator(loop->scope));
  size_t count = (size_t)loop->count;
  rn_edge_t *starts = NULL, *ends = NULL;
  rn_opt_shape_t* invariants = NULL;
  size_t before = rn_node_count(loop->scope);
  rn_scope_t* here = rn_scope_child(loop->scope, "iteration_counter");
  rn_status_t status = RN_ARENA_ARRAY(&arena, count + 1, &starts);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, count + 1, &ends);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, count + 1, &invariants);
  if (rn_ok(status)) {
    rn_while_options_t options = *loop->options;
    counted_t counted = {loop->condition, loop->body, loop->arg, options.maximum_iterations};
    if (options.invariants) memcpy(invariants + 1, options.invariants, count * sizeof *invariants);
    memcpy(starts + 1, loop->starts, count * sizeof *starts);
    starts[0] = rn_const_int32(here, 0);
    options.invariants = invariants;
    while_loop_t all = {.scope = loop->scope,
                        .condition = goes_on,
                        .body = count_turn,
                        .arg = &counted,
                        .options = &options,
                        .starts = starts,
                        .count = loop->count + 1};
    if (rn_scope_ok(loop->scope) && build(&all, ends)) memcpy(out, ends + 1, count * sizeof *out);
  }
  if (!rn_ok(status)) rn_scope_fail(loop->scope, status);
  if (here && !rn_scope_ok(loop->scope)) rn_scope_take_back(here, before);
  rn_scope_destroy(here);
  rn_arena_clear(&arena);
}

static bool check_limit(rn_scope_t* scope, rn_edge_t limit) {
  if (!rn_is_edge(scope, limit, "while", "the limit on iterations")) return false;
  rn_shape_t shape = rn_shape_of_edge(limit);
  if (rn_edge_dtype(limit) != RN_INT32 || (rn_shape_has_rank(shape) && shape.rank != 0))
    rn_refuse(scope, "while: the limit on iterations '%s:%d' must be a scalar int32",
              limit.node->name.data, limit.index);
  return rn_scope_ok(scope);
}

RN_API bool rn_while_(rn_scope_t* scope, rn_condition_t condition, rn_body_t body, void* arg,
                      const rn_edge_t* starts, rn_edge_t* out, int count,
                      rn_while_options_t options) {
  for (int i = 0; out && i < count; ++i) out[i] = RN_NO_EDGE;
  if (!rn_scope_ok(scope)) return false;
  if (!condition || !body || !starts || !out || count <= 0) {
    rn_refuse(scope, "while: the condition, the body or the values are missing");
    return false;
  }
  for (int i = 0; i < count; ++i)
    if (!rn_is_edge(scope, starts[i], "while", "an initial value")) return false;
  while_loop_t loop = {.scope = scope,
                       .condition = condition,
                       .body = body,
                       .arg = arg,
                       .options = &options,
                       .starts = starts,
                       .count = count};
  if (!options.maximum_iterations.node) return build(&loop, out);
  if (!check_limit(scope, options.maximum_iterations)) return false;
  build_counted(&loop, out);
  return rn_scope_ok(scope);
}
