// Lowers functional conditionals and loops to the ops that the executor runs itself: Switch and
// Merge, and Enter, Exit, NextIteration and LoopCond. Branches and bodies become calls, which
// inline_calls.c then inlines.
#include "framework/internal_ops.h"
#include "step/calls.h"

// Adds |node|, whose op has the type attribute "T" and outputs of that type.
static rn_status_t add_plain(rn_calls_t* calls, int32_t origin, rn_calls_new_t node,
                             rn_dtype_t type, int32_t* out) {
  bool is_merge = node.op && node.op->role == RN_ROLE_MERGE;
  const rn_dtype_t types[2] = {type, is_merge ? RN_INT32 : type};
  const rn_attr_t given[] = {
      {RN_STR("T"), {.type = type}}, {RN_STR("N"), {.i = node.input_count}}, RN_ATTRS_END};
  node.types = types;
  node.given = given;
  return rn_calls_add(calls, origin, &node, out);
}

static rn_status_t add_switch(rn_calls_t* calls, int32_t origin, const char* name, int32_t number,
                              rn_ir_edge_t value, rn_ir_edge_t predicate, const int32_t* controls,
                              int32_t control_count, int32_t* out) {
  rn_ir_edge_t inputs[2] = {value, predicate};
  rn_calls_new_t node = {.op = rn_op_switch(),
                         .name = name,
                         .number = number,
                         .inputs = inputs,
                         .input_count = 2,
                         .controls = controls,
                         .control_count = control_count,
                         .output_count = 2};
  return add_plain(calls, origin, node, rn_calls_type(calls, value), out);
}

static rn_status_t add_merge(rn_calls_t* calls, int32_t origin, const char* name, int32_t number,
                             const rn_ir_edge_t* inputs, int32_t count, int32_t* out) {
  rn_calls_new_t node = {.op = rn_op_merge(),
                         .name = name,
                         .number = number,
                         .inputs = inputs,
                         .input_count = count,
                         .output_count = 2};
  return add_plain(calls, origin, node, rn_calls_type(calls, inputs[0]), out);
}

// A choice between functions: branch |b| of |count| gets args[b * arg_count …] and runs after
// pivots[b].
typedef struct lower_control_flow_choice_t {
  rn_calls_t* calls;
  int32_t node;
  rn_ir_node_t source;
  const rn_func_attr_t** branches;
  int32_t count;
  rn_ir_edge_t* args;
  int32_t arg_count;
  int32_t* pivots;
} lower_control_flow_choice_t;

static rn_status_t allocate_choice(lower_control_flow_choice_t* choice) {
  rn_arena_t* arena = &choice->calls->ir->arena;
  size_t branches = (size_t)choice->count, args = (size_t)choice->arg_count, all;
  if (!rn_mul_ok(branches, args, &all)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, branches, &choice->branches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, all, &choice->args));
  return RN_ARENA_ARRAY(arena, branches, &choice->pivots);
}

// Switches all remaining arguments: to branch |b| if |predicate| holds, else to the branches after
// it.
static rn_status_t split(lower_control_flow_choice_t* choice, int32_t b, rn_ir_edge_t predicate,
                         rn_ir_edge_t* inout_rest, rn_ir_edge_t* inout_pivot) {
  rn_calls_t* calls = choice->calls;
  const rn_ir_node_t* source = &choice->source;
  int32_t made;
  RN_RETURN_IF_ERROR(add_switch(calls, choice->node, "switch_pred", b, *inout_pivot, predicate,
                                source->controls, source->control_count, &made));
  *inout_pivot = (rn_ir_edge_t){made, 0};
  RN_RETURN_IF_ERROR(rn_calls_identity(calls, choice->node, "taken", b, (rn_ir_edge_t){made, 1},
                                       NULL, 0, &choice->pivots[b]));
  for (int32_t i = 0; i < choice->arg_count; ++i) {
    RN_RETURN_IF_ERROR(add_switch(calls, choice->node, "switch", b * choice->arg_count + i,
                                  inout_rest[i], predicate, source->controls, source->control_count,
                                  &made));
    inout_rest[i] = (rn_ir_edge_t){made, 0};
    choice->args[(size_t)b * (size_t)choice->arg_count + (size_t)i] = (rn_ir_edge_t){made, 1};
  }
  return RN_OK;
}

// Gives the remaining arguments to the last branch.
static rn_status_t give_rest(lower_control_flow_choice_t* choice, const rn_ir_edge_t* rest,
                             rn_ir_edge_t pivot) {
  int32_t last = choice->count - 1;
  for (int32_t i = 0; i < choice->arg_count; ++i)
    choice->args[(size_t)last * (size_t)choice->arg_count + (size_t)i] = rest[i];
  return rn_calls_identity(choice->calls, choice->node, "taken", last, pivot,
                           choice->count == 1 ? choice->source.controls : NULL,
                           choice->count == 1 ? choice->source.control_count : 0,
                           &choice->pivots[last]);
}

static rn_status_t add_branches(lower_control_flow_choice_t* choice, int32_t* nodes) {
  bool is_stateful = (choice->source.op->flags & RN_OP_STATEFUL) != 0;
  for (int32_t b = 0; b < choice->count; ++b)
    RN_RETURN_IF_ERROR(rn_calls_call(
        choice->calls, choice->node, "branch", b, choice->branches[b], is_stateful,
        choice->args + (size_t)b * (size_t)choice->arg_count, choice->arg_count, &choice->pivots[b],
        1, choice->source.types, choice->source.output_count, &nodes[b]));
  return RN_OK;
}

// Merges the results of the branches; the end node runs after the branch that was taken.
static rn_status_t join(lower_control_flow_choice_t* choice) {
  rn_calls_t* calls = choice->calls;
  rn_arena_t* arena = &calls->ir->arena;
  int32_t* nodes = NULL;
  rn_ir_edge_t *results = NULL, *ways = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)choice->count, &nodes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)choice->count, &ways));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)choice->source.output_count, &results));
  RN_RETURN_IF_ERROR(add_branches(choice, nodes));
  for (int32_t i = 0; i < choice->source.output_count; ++i) {
    for (int32_t b = 0; b < choice->count; ++b) ways[b] = (rn_ir_edge_t){nodes[b], i};
    RN_RETURN_IF_ERROR(
        add_merge(calls, choice->node, "merge", i, ways, choice->count, &results[i].node));
  }
  for (int32_t b = 0; b < choice->count; ++b)
    RN_RETURN_IF_ERROR(rn_calls_identity(calls, choice->node, "done", b,
                                         (rn_ir_edge_t){choice->pivots[b], 0}, &nodes[b], 1,
                                         &ways[b].node));
  for (int32_t b = 0; b < choice->count; ++b) ways[b].output = 0;
  int32_t end;
  RN_RETURN_IF_ERROR(add_merge(calls, choice->node, "end", -1, ways, choice->count, &end));
  rn_calls_replace(calls, choice->node, results, end);
  return RN_OK;
}

static const rn_func_attr_t* function_attr(const rn_ir_node_t* node, const char* name) {
  const rn_attr_value_t* value = rn_ir_attr(node, rn_str(name));
  return value && value->kind == RN_ATTR_FUNC && !value->is_list ? value->func : NULL;
}

static rn_status_t lower_if(lower_control_flow_choice_t* choice) {
  rn_ir_edge_t predicate = choice->source.inputs[0], pivot = predicate;
  choice->count = 2;
  RN_RETURN_IF_ERROR(allocate_choice(choice));
  choice->branches[0] = function_attr(&choice->source, "then_branch");
  choice->branches[1] = function_attr(&choice->source, "else_branch");
  rn_ir_edge_t* rest = choice->source.inputs + 1;
  RN_RETURN_IF_ERROR(split(choice, 0, predicate, rest, &pivot));
  RN_RETURN_IF_ERROR(give_rest(choice, rest, pivot));
  return join(choice);
}

// A scalar constant |value| of the type of branch numbers, which runs after |anchor|.
static rn_status_t add_number(lower_control_flow_choice_t* choice, int32_t value, int32_t anchor,
                              rn_ir_edge_t* out) {
  rn_ir_t* ir = choice->calls->ir;
  rn_calls_new_t node = {.op = rn_op_constant(),
                         .name = "number",
                         .number = value,
                         .controls = &anchor,
                         .control_count = 1};
  rn_tensor_t tensor = {0};
  *out = (rn_ir_edge_t){0};
  RN_RETURN_IF_ERROR(rn_calls_add(choice->calls, choice->node, &node, &out->node));
  RN_RETURN_IF_ERROR(rn_tensor_create(ir->allocator, RN_INT32, RN_SHAPE_SCALAR, &tensor));
  *RN_DATA(&tensor, int32_t) = value;
  return rn_ir_own_constant(ir, &tensor, rn_ir_node(ir, out->node));
}

// Adds a comparison of the branch number with |b|. The constant has a control edge from the choice,
// so that it is in the same frame.
static rn_status_t add_comparison(lower_control_flow_choice_t* choice, int32_t b,
                                  rn_ir_edge_t* out) {
  rn_calls_t* calls = choice->calls;
  rn_ir_edge_t inputs[2] = {choice->source.inputs[0]};
  int32_t anchor;
  RN_RETURN_IF_ERROR(
      rn_calls_identity(calls, choice->node, "index", b, inputs[0], NULL, 0, &anchor));
  RN_RETURN_IF_ERROR(add_number(choice, b, anchor, &inputs[1]));
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_INT32}}, RN_ATTRS_END};
  rn_dtype_t type = RN_BOOL;
  rn_calls_new_t node = {.op = rn_op_equal(),
                         .name = "is",
                         .number = b,
                         .given = given,
                         .inputs = inputs,
                         .input_count = 2,
                         .types = &type,
                         .output_count = 1};
  *out = (rn_ir_edge_t){0};
  return rn_calls_add(calls, choice->node, &node, &out->node);
}

static rn_status_t lower_case(lower_control_flow_choice_t* choice) {
  const rn_attr_value_t* branches = rn_ir_attr(&choice->source, RN_STR("branches"));
  choice->count = branches->count;
  RN_RETURN_IF_ERROR(allocate_choice(choice));
  for (int32_t b = 0; b < choice->count; ++b) choice->branches[b] = branches->list_func[b];
  rn_ir_edge_t pivot = choice->source.inputs[0];
  rn_ir_edge_t* rest = choice->source.inputs + 1;
  for (int32_t b = 0; b < choice->count - 1; ++b) {
    rn_ir_edge_t predicate;
    RN_RETURN_IF_ERROR(add_comparison(choice, b, &predicate));
    RN_RETURN_IF_ERROR(split(choice, b, predicate, rest, &pivot));
  }
  RN_RETURN_IF_ERROR(give_rest(choice, rest, pivot));
  return join(choice);
}

// State while one loop is lowered; arrays are indexed by loop variable.
typedef struct lower_control_flow_loop_t {
  rn_calls_t* calls;
  int32_t node;
  rn_ir_node_t source;
  const rn_func_attr_t *cond, *body;
  bool* is_invariant;
  rn_ir_edge_t* inside;  // the variable inside the loop, before the condition is evaluated
  rn_ir_edge_t* switched;
  int32_t* merges;
  int32_t pivot;    // a Merge, alive in every iteration
  int32_t rounder;  // the loop variable of |pivot|
} lower_control_flow_loop_t;

static rn_status_t add_enter(lower_control_flow_loop_t* loop, int32_t i, int32_t* out) {
  rn_calls_t* calls = loop->calls;
  rn_dtype_t type = rn_calls_type(calls, loop->source.inputs[i]);
  const rn_attr_value_t* parallel = rn_ir_attr(&loop->source, RN_STR("parallel_iterations"));
  const rn_attr_t given[] = {
      {RN_STR("T"), {.type = type}},
      {RN_STR("frame_name"), {.s = loop->source.name}},
      {RN_STR("is_constant"), {.b = loop->is_invariant[i]}},
      {parallel ? RN_STR("parallel_iterations") : RN_STR(""),
       {.i = parallel && parallel->i > 0 ? parallel->i : 1}},
      RN_ATTRS_END,
  };
  rn_calls_new_t node = {.op = rn_op_enter(),
                         .name = "enter",
                         .number = i,
                         .given = given,
                         .inputs = &loop->source.inputs[i],
                         .input_count = 1,
                         .controls = loop->source.controls,
                         .control_count = loop->source.control_count,
                         .types = &type,
                         .output_count = 1};
  return rn_calls_add(calls, loop->node, &node, out);
}

// Finds variables that the body returns unchanged: they are loop invariants. At least one variable
// must remain a real loop variable.
static rn_status_t find_invariants(lower_control_flow_loop_t* loop) {
  const rn_function_body_t* body = NULL;
  RN_RETURN_IF_ERROR(rn_function_body(loop->calls->ir->graph, loop->body, &body));
  int32_t count = 0;
  for (int32_t i = 0; i < loop->source.input_count && i < body->result_count; ++i) {
    rn_node_t* node = body->results[i].node;
    loop->is_invariant[i] = i < body->arg_count && node == body->args[i];
    count += loop->is_invariant[i];
  }
  if (count == loop->source.input_count && count > 0) loop->is_invariant[0] = false;
  return RN_OK;
}

static rn_status_t open_loop(lower_control_flow_loop_t* loop) {
  for (int32_t i = 0; i < loop->source.input_count; ++i) {
    int32_t enter;
    RN_RETURN_IF_ERROR(add_enter(loop, i, &enter));
    loop->inside[i] = (rn_ir_edge_t){enter, 0};
    if (loop->is_invariant[i]) continue;
    // The back edge is linked once the NextIteration exists.
    rn_ir_edge_t ways[2] = {{enter, 0}, {enter, 0}};
    RN_RETURN_IF_ERROR(add_merge(loop->calls, loop->node, "merge", i, ways, 2, &loop->merges[i]));
    loop->inside[i] = (rn_ir_edge_t){loop->merges[i], 0};
    loop->pivot = loop->merges[i];
    loop->rounder = i;
  }
  return RN_OK;
}

static rn_status_t add_condition(lower_control_flow_loop_t* loop, bool is_stateful,
                                 rn_ir_edge_t* out) {
  rn_calls_t* calls = loop->calls;
  rn_dtype_t type = RN_BOOL;
  int32_t call;
  RN_RETURN_IF_ERROR(rn_calls_call(calls, loop->node, "cond", -1, loop->cond, is_stateful,
                                   loop->inside, loop->source.input_count, &loop->pivot, 1, &type,
                                   1, &call));
  calls->notes.items[call].is_pivoted = true;
  rn_ir_edge_t input = {call, 0};
  rn_calls_new_t node = {.op = rn_op_loop_cond(),
                         .name = "loop_cond",
                         .number = -1,
                         .inputs = &input,
                         .input_count = 1,
                         .types = &type,
                         .output_count = 1};
  *out = (rn_ir_edge_t){0};
  return rn_calls_add(calls, loop->node, &node, &out->node);
}

static rn_status_t close_loop(lower_control_flow_loop_t* loop, int32_t body, int32_t* exits) {
  rn_calls_t* calls = loop->calls;
  for (int32_t i = 0; i < loop->source.input_count; ++i) {
    exits[i] = -1;
    if (loop->is_invariant[i]) continue;
    rn_ir_edge_t round = {body, i}, leaves = {loop->switched[i].node, 0};
    rn_dtype_t type = rn_calls_type(calls, loop->inside[i]);
    rn_calls_new_t node = {.op = rn_op_next_iteration(),
                           .name = "next",
                           .number = i,
                           .inputs = &round,
                           .input_count = 1,
                           .output_count = 1};
    int32_t made;
    RN_RETURN_IF_ERROR(add_plain(calls, loop->node, node, type, &made));
    rn_ir_node(calls->ir, loop->merges[i])->inputs[1] = (rn_ir_edge_t){made, 0};
    node.op = rn_op_exit();
    node.name = "exit";
    node.inputs = &leaves;
    RN_RETURN_IF_ERROR(add_plain(calls, loop->node, node, type, &exits[i]));
  }
  return RN_OK;
}

static rn_status_t leave_loop(lower_control_flow_loop_t* loop, const int32_t* exits) {
  rn_calls_t* calls = loop->calls;
  int32_t count = loop->source.input_count, waits = 0, end;
  rn_ir_edge_t* results = NULL;
  int32_t* left = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&calls->ir->arena, (size_t)count, &results));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&calls->ir->arena, (size_t)count, &left));
  for (int32_t i = 0; i < count; ++i)
    if (exits[i] >= 0) left[waits++] = exits[i];
  RN_RETURN_IF_ERROR(rn_calls_no_op(calls, loop->node, "end", left, waits, &end));
  for (int32_t i = 0; i < count; ++i) {
    results[i] = (rn_ir_edge_t){exits[i], 0};
    if (exits[i] < 0)  // an invariant such as a handle: its readers may rely on the loop being over
      RN_RETURN_IF_ERROR(rn_calls_identity(calls, loop->node, "output", i, loop->source.inputs[i],
                                           &end, 1, &results[i].node));
    results[i].output = 0;
  }
  rn_calls_replace(calls, loop->node, results, end);
  return RN_OK;
}

static rn_status_t lower_while(lower_control_flow_loop_t* loop) {
  rn_calls_t* calls = loop->calls;
  rn_arena_t* arena = &calls->ir->arena;
  size_t count = (size_t)loop->source.input_count;
  bool is_stateful = (loop->source.op->flags & RN_OP_STATEFUL) != 0;
  int32_t *exits = NULL, body;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &loop->is_invariant));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &loop->inside));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &loop->switched));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &loop->merges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &exits));
  RN_RETURN_IF_ERROR(find_invariants(loop));
  RN_RETURN_IF_ERROR(open_loop(loop));
  rn_ir_edge_t goes_on;
  RN_RETURN_IF_ERROR(add_condition(loop, is_stateful, &goes_on));
  // The body must get invariants only if the condition holds, too.
  for (size_t i = 0; i < count; ++i) {
    int32_t made;
    RN_RETURN_IF_ERROR(add_switch(calls, loop->node, "switch", (int32_t)i, loop->inside[i], goes_on,
                                  NULL, 0, &made));
    loop->switched[i] = (rn_ir_edge_t){made, 1};
  }
  int32_t pivot;
  RN_RETURN_IF_ERROR(rn_calls_identity(calls, loop->node, "goes_on", -1,
                                       loop->switched[loop->rounder], NULL, 0, &pivot));
  RN_RETURN_IF_ERROR(rn_calls_call(calls, loop->node, "body", -1, loop->body, is_stateful,
                                   loop->switched, loop->source.input_count, &pivot, 1,
                                   loop->source.types, loop->source.output_count, &body));
  calls->notes.items[body].is_pivoted = true;
  RN_RETURN_IF_ERROR(close_loop(loop, body, exits));
  return leave_loop(loop, exits);
}

static bool is_asked_for(const rn_ir_node_t* node) {
  const rn_attr_value_t* asked = rn_ir_attr(node, RN_STR("_lower_using_switch_merge"));
  return asked && asked->kind == RN_ATTR_BOOL && !asked->is_list && asked->b;
}

// A Switch needs a scalar bool. Functional ops accept other conditions as well; those stay
// unlowered.
static rn_status_t can_choose(const rn_calls_t* calls, const rn_ir_node_t* node, bool* out) {
  const rn_ir_node_t* source = rn_ir_node(calls->ir, node->inputs[0].node);
  rn_shape_t shape = source->shapes[node->inputs[0].output];
  bool is_scalar = !rn_shape_has_rank(shape) || shape.rank == 0;
  rn_dtype_t type = rn_calls_type(calls, node->inputs[0]);
  *out = is_scalar && type == (node->op->role == RN_ROLE_IF ? RN_BOOL : RN_INT32);
  return RN_OK;
}

static rn_status_t can_loop(const rn_calls_t* calls, const lower_control_flow_loop_t* loop,
                            bool* out) {
  *out = false;
  if (loop->source.input_count == 0 || !loop->cond || !loop->body) return RN_OK;
  const rn_function_body_t* cond = NULL;
  RN_RETURN_IF_ERROR(rn_function_body(calls->ir->graph, loop->cond, &cond));
  if (cond->result_count != 1) return RN_OK;
  const rn_output_t* result = &cond->results[0].node->outputs[cond->results[0].index];
  bool is_scalar = !rn_shape_has_rank(result->shape) || result->shape.rank == 0;
  *out = is_scalar && rn_dtype_base(result->dtype) == RN_BOOL;
  return RN_OK;
}

rn_status_t rn_calls_lower(rn_calls_t* calls, int32_t index) {
  rn_ir_node_t source = *rn_ir_node(calls->ir, index);
  bool is_asked = is_asked_for(&source);
  if (calls->options->lowering == RN_LOWER_NEVER) return RN_OK;
  if (calls->options->lowering != RN_LOWER_ALWAYS && !is_asked) return RN_OK;
  calls->notes.items[index].is_pruned |= is_asked && calls->options->prunes_branches;
  bool can = false;
  if (source.op->role == RN_ROLE_WHILE) {
    lower_control_flow_loop_t loop = {.calls = calls,
                                      .node = index,
                                      .source = source,
                                      .cond = function_attr(&source, "cond"),
                                      .body = function_attr(&source, "body")};
    RN_RETURN_IF_ERROR(can_loop(calls, &loop, &can));
    calls->can_be_dead |= can;
    return can ? lower_while(&loop) : RN_OK;
  }
  RN_RETURN_IF_ERROR(can_choose(calls, &source, &can));
  if (!can) return RN_OK;
  calls->can_be_dead = true;
  lower_control_flow_choice_t choice = {
      .calls = calls, .node = index, .source = source, .arg_count = source.input_count - 1};
  // Copied, because lowering changes the edges and the node's own must stay.
  rn_ir_edge_t* inputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&calls->ir->arena, (size_t)source.input_count, &inputs));
  for (int32_t i = 0; i < source.input_count; ++i) inputs[i] = source.inputs[i];
  choice.source.inputs = inputs;
  return source.op->role == RN_ROLE_IF ? lower_if(&choice) : lower_case(&choice);
}
