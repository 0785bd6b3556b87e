// Choices between more than two branches: conditionals within conditionals, or a Case node.
#include "tensor/tstring.h"
#include "train/control/choice.h"

// The remaining choice: branch |first| and those after it; the last has no predicate.
typedef struct case_chain_t {
  const rn_edge_t* predicates;  // NULL: by |index|
  rn_edge_t index;
  const rn_branch_t* branches;  // |count|, then |*otherwise|
  int count, first;
  const rn_branch_t* otherwise;
  int result_count;
  bool is_functional;
} case_chain_t;

static int build_rest(rn_scope_t* s, rn_edge_t* out, void* arg) {
  case_chain_t* chain = arg;
  if (chain->first == chain->count) return chain->otherwise->build(s, out, chain->otherwise->arg);
  case_chain_t rest = *chain;
  rest.first++;
  rn_edge_t predicate = chain->predicates
                            ? chain->predicates[chain->first]
                            : rn_Equal(s, chain->index, rn_const_int32(s, chain->first));
  if (!rn_cond(s, predicate, chain->branches[chain->first], rn_branch(build_rest, &rest), out,
               chain->result_count, .functional = chain->is_functional))
    return 0;
  return chain->result_count;
}

static rn_edge_t text(rn_scope_t* s, const char* value) {
  rn_tensor_t tensor = {0};
  rn_status_t status =
      rn_scope_ok(s) ? rn_tensor_create(rn_scope_allocator(s), RN_STRING, RN_SHAPE_SCALAR, &tensor)
                     : RN_OK;
  if (!rn_ok(status)) rn_scope_fail(s, status);
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  if (!rn_tstring_assign(RN_DATA(&tensor, rn_tstring_t), value, strlen(value)))
    rn_scope_fail(s, rn_out_of_memory());
  rn_op_begin(s, "Const");
  rn_op_attr_type(s, "dtype", RN_STRING);
  rn_attr_value_t attr = {.kind = RN_ATTR_TENSOR, .tensor = &tensor};
  if (rn_scope_can_add(s))
    rn_scope_add_attr(s, "value", &attr);
  else
    rn_tensor_clear(&tensor);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// Makes a step fail if fewer than |least| or more than |most| predicates hold.
static void demand(rn_scope_t* s, const rn_edge_t* predicates, int count, int least, int most,
                   const char* message) {
  rn_edge_t all = rn_Pack(s, predicates, count);
  rn_edge_t sum = rn_Sum(s, rn_Cast(s, all, RN_INT32), rn_axis(s, 0));
  rn_edge_t holds = most < count ? rn_LessEqual(s, sum, rn_const_int32(s, most))
                                 : rn_GreaterEqual(s, sum, rn_const_int32(s, least));
  rn_edge_t data[2] = {text(s, message), all};
  rn_op_begin(s, "Assert");
  rn_op_input(s, holds);
  rn_op_input_list(s, data, 2);
  rn_op_attr_int(s, "summarize", count);
  rn_node_t* node = rn_op_finish(s);
  if (node) rn_scope_add_control(s, node);
}

static bool check(rn_scope_t* scope, const char* who, const rn_branch_t* branches, int branch_count,
                  const rn_branch_t* otherwise, rn_edge_t* out, int count) {
  for (int i = 0; out && i < count; ++i) out[i] = RN_NO_EDGE;
  if (!rn_scope_ok(scope)) return false;
  bool is_whole = branches && branch_count > 0 && out && count > 0;
  for (int b = 0; is_whole && b < branch_count; ++b) is_whole = branches[b].build != NULL;
  if (!is_whole || (otherwise && !otherwise->build))
    rn_refuse(scope, "%s: a branch is missing, or there are no results", who);
  return rn_scope_ok(scope);
}

// Builds the chain under |name|.
static void build(rn_scope_t* s, case_chain_t* chain, rn_edge_t* out) {
  rn_edge_t* results = NULL;
  rn_status_t status = RN_NEW_ARRAY(rn_scope_allocator(s), (size_t)chain->result_count, &results);
  if (!rn_ok(status)) {
    rn_scope_fail(s, status);
    return;
  }
  int count = build_rest(s, results, chain);
  if (count != chain->result_count)
    rn_refuse(s, "A branch of '%.*s' has %d results, expected %d", RN_STR_ARGS(rn_scope_prefix(s)),
              count, chain->result_count);
  for (int i = 0; i < chain->result_count && rn_scope_ok(s); ++i) out[i] = results[i];
  RN_FREE_ARRAY(rn_scope_allocator(s), results, (size_t)chain->result_count);
}

static bool finish(rn_scope_t* scope, rn_scope_t* here, size_t before, rn_edge_t* out, int count) {
  if (here && !rn_scope_ok(scope)) rn_scope_take_back(here, before);
  for (int i = 0; i < count && !rn_scope_ok(scope); ++i) out[i] = RN_NO_EDGE;
  rn_scope_destroy(here);
  return rn_scope_ok(scope);
}

RN_API bool rn_case_(rn_scope_t* scope, const rn_edge_t* predicates, const rn_branch_t* branches,
                     int branch_count, const rn_branch_t* otherwise, rn_edge_t* out, int count,
                     rn_cond_options_t options) {
  if (!check(scope, "case", branches, branch_count, otherwise, out, count)) return false;
  if (!predicates) rn_refuse(scope, "case: the predicates are missing");
  for (int b = 0; predicates && b < branch_count; ++b)
    if (!rn_is_predicate(scope, predicates[b], "case")) return false;
  if (!rn_scope_ok(scope)) return false;
  size_t before = rn_node_count(scope);
  rn_scope_t* here = rn_scope_child(scope, options.name ? options.name : "case");
  if (rn_scope_ok(here) && options.exclusive)
    demand(here, predicates, branch_count, 0, 1,
           "More than one condition evaluated as True but exclusive=True.  Conditions: values:");
  if (rn_scope_ok(here) && !otherwise)
    demand(here, predicates, branch_count, 1, branch_count,
           "None of conditions evaluated as True. Conditions: values:");
  case_chain_t chain = {.predicates = predicates,
                        .branches = branches,
                        .count = otherwise ? branch_count : branch_count - 1,
                        .otherwise = otherwise ? otherwise : &branches[branch_count - 1],
                        .result_count = count,
                        .is_functional = options.functional};
  if (rn_scope_ok(here)) build(here, &chain, out);
  return finish(scope, here, before, out, count);
}

static bool check_index(rn_scope_t* scope, rn_edge_t index) {
  if (!rn_is_edge(scope, index, "switch_case", "the index")) return false;
  rn_shape_t shape = rn_shape_of_edge(index);
  if (rn_edge_dtype(index) != RN_INT32 || (rn_shape_has_rank(shape) && shape.rank != 0))
    rn_refuse(scope, "switch_case: the index '%s:%d' must be a scalar int32", index.node->name.data,
              index.index);
  return rn_scope_ok(scope);
}

// All branches as functions; the last one is for indices that are out of range.
static bool call_one(rn_scope_t* scope, rn_edge_t index, const rn_branch_t* branches, int all,
                     const char* name, rn_edge_t* out, int count) {
  rn_choice_t choice = {.scope = scope, .branches = branches, .branch_count = all, .count = count};
  rn_choice_call_t call = {0};
  if (rn_choice_begin(&choice, name) && rn_choice_define(&choice, &call)) {
    rn_name_next_as(scope, choice.here);
    rn_op_begin(scope, call.is_stateful ? "Case" : "StatelessCase");
    rn_op_input(scope, index);
    rn_op_attr_func_list(scope, "branches", call.functions, all);
    rn_choice_finish(&choice, &call, out);
  }
  rn_choice_end(&choice, out);
  return rn_scope_ok(scope);
}

RN_API bool rn_switch_case_(rn_scope_t* scope, rn_edge_t index, const rn_branch_t* branches,
                            int branch_count, const rn_branch_t* otherwise, rn_edge_t* out,
                            int count, rn_cond_options_t options) {
  if (!check(scope, "switch_case", branches, branch_count, otherwise, out, count) ||
      !check_index(scope, index))
    return false;
  const char* name = options.name ? options.name : "switch_case";
  rn_branch_t* all = NULL;
  size_t all_count = (size_t)branch_count + (otherwise ? 1 : 0);
  rn_allocator_t allocator = rn_scope_allocator(scope);
  rn_status_t status = RN_NEW_ARRAY(allocator, all_count, &all);
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return false;
  }
  memcpy(all, branches, (size_t)branch_count * sizeof *all);
  if (otherwise) all[branch_count] = *otherwise;
  if (options.functional) {
    call_one(scope, index, all, (int)all_count, name, out, count);
  } else {
    size_t before = rn_node_count(scope);
    rn_scope_t* here = rn_scope_child(scope, name);
    case_chain_t chain = {.index = index,
                          .branches = all,
                          .count = (int)all_count - 1,
                          .otherwise = &all[all_count - 1],
                          .result_count = count};
    if (rn_scope_ok(here)) build(here, &chain, out);
    finish(scope, here, before, out, count);
  }
  RN_FREE_ARRAY(allocator, all, all_count);
  return rn_scope_ok(scope);
}
