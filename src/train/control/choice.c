// The choices of choice.h.
#include "train/control/choice.h"

#include <stdio.h>

bool rn_choice_begin(rn_choice_t* choice, const char* name) {
  choice->node_count = rn_node_count(choice->scope);
  choice->here = rn_scope_child(choice->scope, name);
  rn_arena_init(&choice->arena, rn_scope_allocator(choice->scope));
  rn_status_t status =
      RN_ARENA_ARRAY(&choice->arena, (size_t)choice->branch_count, &choice->results);
  for (int b = 0; b < choice->branch_count && rn_ok(status); ++b)
    status = RN_ARENA_ARRAY(&choice->arena, (size_t)choice->count, &choice->results[b]);
  if (!rn_ok(status)) rn_scope_fail(choice->scope, status);
  return choice->here && rn_scope_ok(choice->scope);
}

void rn_choice_end(rn_choice_t* choice, rn_edge_t* out) {
  bool is_ok = rn_scope_ok(choice->scope);
  if (choice->here && !is_ok) rn_scope_take_back(choice->here, choice->node_count);
  for (int i = 0; i < choice->count && !is_ok; ++i) out[i] = RN_NO_EDGE;
  rn_scope_destroy(choice->here);
  rn_vec_free(&choice->waits.nodes, rn_scope_allocator(choice->scope));
  rn_arena_clear(&choice->arena);
}

static const char* name_of(const rn_choice_t* choice, int number) {
  return !choice->is_cond ? "branch" : number ? "true_fn" : "false_fn";
}

void rn_choice_build(rn_choice_t* choice, int number, rn_region_t* region, rn_str_t prefix,
                     rn_node_t* anchor) {
  const rn_branch_t* branch = &choice->branches[number];
  const char* name = name_of(choice, number);
  rn_edge_t* results = choice->results[number];
  rn_scope_t* inside = rn_region_enter(region, prefix, anchor);
  if (!inside) return;
  int count = branch->build(inside, results, branch->arg);
  if (count != choice->count)
    rn_refuse(inside, "Branch '%.*s%s' (number %d) has %d results, expected %d",
              RN_STR_ARGS(rn_scope_prefix(choice->here)), name, number, count, choice->count);
  for (int i = 0; i < choice->count && rn_scope_ok(inside); ++i) {
    if (!results[i].node)
      rn_refuse(inside, "Branch '%.*s%s' (number %d): result %d is missing",
                RN_STR_ARGS(rn_scope_prefix(choice->here)), name, number, i);
    else if (rn_is_edge(inside, results[i], name, "a result"))
      results[i] = rn_region_map(region, results[i]);
  }
  rn_scope_destroy(inside);
}

bool rn_choice_agrees(rn_choice_t* choice) {
  int last = choice->branch_count - 1;
  for (int b = 0; b < last; ++b) {
    for (int i = 0; i < choice->count && rn_scope_ok(choice->scope); ++i) {
      rn_edge_t x = choice->results[last][i], y = choice->results[b][i];
      if (rn_edge_dtype(x) == rn_edge_dtype(y)) continue;
      rn_refuse(choice->scope,
                "The branches of '%.*s' disagree: result %d is %s in %s ('%s:%d') and %s in %s "
                "('%s:%d')",
                RN_STR_ARGS(rn_scope_prefix(choice->here)), i,
                rn_dtype_name((rn_dtype_t)rn_edge_dtype(x)), name_of(choice, last),
                x.node->name.data, x.index, rn_dtype_name((rn_dtype_t)rn_edge_dtype(y)),
                name_of(choice, b), y.node->name.data, y.index);
    }
  }
  return rn_scope_ok(choice->scope);
}

// The shape of result |i| that holds for every branch.
static rn_status_t common_shape(rn_choice_t* choice, int i, rn_shape_t* out) {
  rn_shape_t first = rn_shape_of_edge(choice->results[0][i]);
  *out = RN_SHAPE_UNKNOWN;
  if (!rn_shape_has_rank(first)) return RN_OK;
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&choice->arena, (size_t)first.rank, &dims));
  for (int d = 0; d < first.rank; ++d) dims[d] = first.dims[d];
  for (int b = 1; b < choice->branch_count; ++b) {
    rn_shape_t other = rn_shape_of_edge(choice->results[b][i]);
    if (other.rank != first.rank) return RN_OK;
    for (int d = 0; d < first.rank; ++d)
      if (dims[d] != other.dims[d]) dims[d] = RN_UNKNOWN;
  }
  *out = (rn_shape_t){first.rank, dims};
  return RN_OK;
}

static rn_status_t describe(rn_choice_t* choice, const rn_region_t* region,
                            rn_choice_call_t* call) {
  size_t inputs = region->brought.count, results = (size_t)choice->count;
  call->input_count = (int)inputs;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&choice->arena, (size_t)choice->branch_count, &call->functions));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&choice->arena, inputs, &call->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&choice->arena, results, &call->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&choice->arena, results, &call->shapes));
  for (size_t i = 0; i < inputs; ++i) call->inputs[i] = region->brought.items[i].outer;
  for (int i = 0; i < choice->count; ++i) {
    call->types[i] = rn_edge_dtype(choice->results[0][i]);
    RN_RETURN_IF_ERROR(common_shape(choice, i, &call->shapes[i]));
  }
  return RN_OK;
}

static rn_status_t define_all(rn_choice_t* choice, rn_region_t* regions, rn_choice_call_t* call) {
  // Every function takes the inputs of all of them.
  for (int b = 1; b < choice->branch_count; ++b) rn_region_share(&regions[0], &regions[b]);
  for (int b = 1; b < choice->branch_count; ++b) rn_region_share(&regions[0], &regions[b]);
  RN_RETURN_IF_ERROR(describe(choice, &regions[0], call));
  rn_edge_t* inner = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&choice->arena, (size_t)call->input_count, &inner));
  rn_str_t stem = rn_scope_prefix(choice->here);
  stem.size--;
  for (int b = choice->branch_count - 1; b >= 0; --b) {
    char kind[32];
    snprintf(kind, sizeof kind, "branch%d", b);
    if (choice->is_cond) snprintf(kind, sizeof kind, b ? "true" : "false");
    for (int i = 0; i < call->input_count; ++i)
      inner[i] = rn_region_map(&regions[b], call->inputs[i]);
    call->functions[b] =
        rn_region_define(choice->scope, &regions[b], &choice->arena, stem, kind, inner,
                         call->input_count, choice->results[b], choice->count, &call->is_stateful);
  }
  return RN_OK;
}

bool rn_choice_define(rn_choice_t* choice, rn_choice_call_t* out_call) {
  rn_scope_t* scope = choice->scope;
  rn_region_t* regions = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&choice->arena, (size_t)choice->branch_count, &regions);
  for (int k = 0; k < choice->branch_count && rn_ok(status) && rn_scope_ok(scope); ++k) {
    int b = choice->is_cond ? 1 - k : k;
    rn_region_t* region = &regions[b];
    if (rn_region_begin_function(region, choice->here, name_of(choice, b), &choice->waits))
      rn_choice_build(choice, b, region, rn_scope_prefix(region->outside), NULL);
  }
  if (rn_ok(status) && rn_scope_ok(scope) && rn_choice_agrees(choice))
    status = define_all(choice, regions, out_call);
  for (int b = 0; regions && b < choice->branch_count; ++b) rn_region_end_function(&regions[b]);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  rn_scope_take_back(choice->here, choice->node_count);
  return rn_scope_ok(scope);
}

void rn_choice_finish(rn_choice_t* choice, const rn_choice_call_t* call, rn_edge_t* out) {
  rn_scope_t* s = choice->scope;
  rn_op_input_list(s, call->inputs, call->input_count);
  rn_op_attr_type_list(s, "Tout", call->types, choice->count);
  rn_attr_shapes(s, "output_shapes", &choice->arena, call->shapes, choice->count);
  rn_op_waits(s, &choice->waits);
  rn_node_t* node = rn_op_finish(s);
  for (int i = 0; i < choice->count && node; ++i) out[i] = (rn_edge_t){node, i};
}
