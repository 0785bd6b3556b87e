// Conditionals: Switch and Merge, or an If node and two functions.
#include "train/control/choice.h"

// A conditional built from Switch and Merge nodes.
typedef struct cond_t {
  rn_choice_t* choice;
  rn_edge_t predicate;
  RN_VEC(rn_brought_t) switched;  // outer edges, and the Switch that serves both branches
} cond_t;

typedef struct side_t {
  cond_t* cond;
  int number;
} side_t;

static rn_node_t* switch_for(cond_t* cond, rn_edge_t outer) {
  for (size_t i = 0; i < cond->switched.count; ++i) {
    rn_brought_t known = cond->switched.items[i];
    if (known.outer.node == outer.node && known.outer.index == outer.index) return known.inner.node;
  }
  rn_scope_t* s = cond->choice->here;
  rn_op_begin(s, rn_dtype_is_ref(outer.node->outputs[outer.index].dtype) ? "RefSwitch" : "Switch");
  rn_op_input(s, outer);
  rn_op_input(s, cond->predicate);
  rn_brought_t fresh = {outer, {rn_op_finish(s), 0}};
  rn_status_t status = rn_vec_push(&cond->switched, rn_scope_allocator(s), fresh);
  if (!rn_ok(status)) rn_scope_fail(s, status);
  return fresh.inner.node;
}

static rn_edge_t bring(rn_region_t* region, rn_edge_t outer) {
  const side_t* side = region->arg;
  return (rn_edge_t){switch_for(side->cond, outer), side->number};
}

static void build(rn_choice_t* choice, rn_edge_t predicate, rn_edge_t* out) {
  rn_scope_t* s = choice->here;
  rn_Switch_out_t way = rn_Switch(s, predicate, predicate);
  rn_node_t* anchors[2] = {NULL, rn_Identity(s, way.output_true, .name = "switch_t").node};
  anchors[0] = rn_Identity(s, way.output_false, .name = "switch_f").node;
  cond_t cond = {.choice = choice, .predicate = rn_Identity(s, predicate, .name = "pred_id")};
  for (int number = 1; number >= 0 && rn_scope_ok(s); --number) {
    side_t side = {&cond, number};
    rn_region_t region = {.outside = s, .bring = bring, .arg = &side, .has_open_borders = true};
    rn_region_note(&region, anchors[number]);
    rn_choice_build(choice, number, &region, rn_scope_prefix(s), anchors[number]);
    rn_region_clear(&region);
  }
  rn_vec_free(&cond.switched, rn_scope_allocator(s));
  if (!rn_scope_ok(s) || !rn_choice_agrees(choice)) return;
  for (int i = 0; i < choice->count; ++i) {
    rn_edge_t pair[2] = {choice->results[0][i], choice->results[1][i]};
    out[i] = rn_Merge(s, pair, 2).output;
  }
}

static void call(rn_choice_t* choice, rn_edge_t predicate, rn_edge_t* out) {
  rn_choice_call_t call = {0};
  if (!rn_choice_define(choice, &call)) return;
  rn_scope_t* s = choice->scope;
  rn_name_next_as(s, choice->here);
  rn_op_begin(s, call.is_stateful ? "If" : "StatelessIf");
  rn_op_input(s, predicate);
  rn_op_attr_func(s, "then_branch", call.functions[1]);
  rn_op_attr_func(s, "else_branch", call.functions[0]);
  rn_choice_finish(choice, &call, out);
}

RN_API bool rn_cond_(rn_scope_t* scope, rn_edge_t predicate, rn_branch_t then,
                     rn_branch_t otherwise, rn_edge_t* out, int count, rn_cond_options_t options) {
  for (int i = 0; out && i < count; ++i) out[i] = RN_NO_EDGE;
  if (!rn_scope_ok(scope)) return false;
  if (!then.build || !otherwise.build || !out || count <= 0) {
    rn_refuse(scope, "cond: a branch is missing, or there are no results");
    return false;
  }
  if (!rn_is_predicate(scope, predicate, "cond")) return false;
  const char* name = options.name ? options.name : "cond";
  rn_branch_t branches[2] = {otherwise, then};
  rn_choice_t choice = {
      .scope = scope, .branches = branches, .branch_count = 2, .is_cond = true, .count = count};
  if (rn_choice_begin(&choice, name)) {
    if (options.functional)
      call(&choice, predicate, out);
    else
      build(&choice, predicate, out);
  }
  rn_choice_end(&choice, out);
  return rn_scope_ok(scope);
}
