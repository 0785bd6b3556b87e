// Infers shapes of values in loops.
//
// A loop variable may change its shape, so the graph, like TensorFlow's, leaves it unknown. Most
// variables keep theirs. So assume that all do, infer the body, drop the assumption for variables
// that leave it with another shape, and repeat until the rest holds. By induction, no iteration
// changes those shapes. The graph is not changed; only the walk uses the result.
#include "grad/walk.h"

// The nodes of one nest of loops, with a backup of what the graph records for them.
typedef struct refine_t {
  rn_walk_t* walk;
  rn_arena_t arena;
  size_t count;
  rn_node_t** nodes;
  rn_output_t** outputs;  // as they were
  rn_partial_t* partials;
  uint8_t* is_assumed;  // by node id, for Enter and Merge nodes: the shape is assumed to be the
                        // initial one
} refine_t;

static bool is_within(const rn_while_loop_t* loop, const rn_while_loop_t* nest) {
  while (loop && loop != nest) loop = loop->parent;
  return loop != NULL;
}

static rn_status_t gather(refine_t* r, const rn_while_loop_t* nest) {
  const rn_while_loops_t* loops = &r->walk->loops;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->arena, loops->order.count, &r->nodes));
  for (size_t i = 0; i < loops->order.count; ++i)
    if (is_within(rn_while_loop_of(loops, loops->order.items[i]), nest))
      r->nodes[r->count++] = loops->order.items[i];
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->arena, r->count, &r->outputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->arena, r->count, &r->partials));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->arena, r->walk->node_count, &r->is_assumed));
  for (size_t i = 0; i < r->count; ++i) {
    size_t outputs = (size_t)r->nodes[i]->output_count;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->arena, outputs, &r->outputs[i]));
    if (outputs) memcpy(r->outputs[i], r->nodes[i]->outputs, outputs * sizeof **r->outputs);
    r->partials[i] = r->nodes[i]->partial;
  }
  return RN_OK;
}

static void restore(const refine_t* r, size_t i) {
  rn_node_t* node = r->nodes[i];
  for (int32_t o = 0; o < node->output_count; ++o) {
    node->outputs[o].shape = r->outputs[i][o].shape;
    node->outputs[o].handle = r->outputs[i][o].handle;
  }
  node->partial = r->partials[i];
}

// Infers the body once with the current assumptions.
static void infer_all_locked(refine_t* r) {
  for (size_t i = 0; i < r->count; ++i) {
    rn_node_t* node = r->nodes[i];
    rn_status_t status = rn_node_infer_locked(node);
    bool is_pop =
        rn_walk_pair(r->walk, node) != NULL;  // the graph alone knows the shape that it pops
    if (!rn_ok(status) || is_pop) restore(r, i);
    rn_status_free(status);
    if (!r->is_assumed[node->id]) continue;
    node->outputs[0].shape = node->inputs[0].node->outputs[node->inputs[0].index].shape;
    node->partial = (rn_partial_t){0};
  }
}

// Drops assumptions that do not hold; true if there were any.
static bool give_up(refine_t* r, const rn_while_loop_t* nest, bool all) {
  const rn_while_loops_t* loops = &r->walk->loops;
  bool any = false;
  for (size_t l = 0; l < loops->all.count; ++l) {
    const rn_while_loop_t* loop = loops->all.items[l];
    for (size_t v = 0; is_within(loop, nest) && v < loop->vars.count; ++v) {
      const rn_while_loop_var_t* var = &loop->vars.items[v];
      if (!r->is_assumed[var->merge->id]) continue;
      rn_edge_t next = var->next->inputs[0];
      rn_shape_t kept = next.node->outputs[next.index].shape;
      bool holds = rn_shape_is_full(kept) && rn_shape_eq(kept, var->merge->outputs[0].shape);
      if (holds && !all) continue;
      r->is_assumed[var->merge->id] = r->is_assumed[var->enter->id] = 0;
      any = true;
    }
  }
  return any;
}

static rn_status_t assume(refine_t* r, const rn_while_loop_t* nest) {
  const rn_while_loops_t* loops = &r->walk->loops;
  for (size_t l = 0; l < loops->all.count; ++l) {
    rn_while_loop_t* loop = loops->all.items[l];
    if (!is_within(loop, nest)) continue;
    loop->is_refined = true;
    RN_RETURN_IF_ERROR(rn_while_loop_complete(loop));
    for (size_t v = 0; v < loop->vars.count; ++v) {
      const rn_while_loop_var_t* var = &loop->vars.items[v];
      // In every loop that a client library builds, the Enter is the Merge's first input.
      if (!var->next || var->merge->inputs[0].node != var->enter) continue;
      r->is_assumed[var->enter->id] = r->is_assumed[var->merge->id] = 1;
    }
  }
  return RN_OK;
}

static rn_status_t take(refine_t* r, rn_level_t* level) {
  for (size_t i = 0; i < r->count; ++i) {
    rn_node_t* node = r->nodes[i];
    rn_note_t* note = rn_walk_note(level, node);
    if (!note) return rn_walk_status(level);
    size_t outputs = (size_t)node->output_count;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&r->walk->arena, outputs, &note->shapes));
    for (size_t o = 0; o < outputs; ++o) note->shapes[o] = node->outputs[o].shape;
  }
  return RN_OK;
}

enum { MOST_ROUNDS = 6 };

static rn_status_t refine(refine_t* r, rn_level_t* level, rn_while_loop_t* nest) {
  RN_RETURN_IF_ERROR(gather(r, nest));
  RN_RETURN_IF_ERROR(assume(r, nest));
  rn_mutex_lock(&r->walk->graph->mutex);
  for (int round = 0;; ++round) {
    infer_all_locked(r);
    if (!give_up(r, nest, round >= MOST_ROUNDS)) break;
  }
  rn_status_t status = take(r, level);
  for (size_t i = 0; i < r->count; ++i) restore(r, i);
  rn_mutex_unlock(&r->walk->graph->mutex);
  return status;
}

rn_status_t rn_refine_shapes(rn_level_t* level, rn_while_loop_t* loop) {
  if (loop->is_refined) return RN_OK;
  refine_t r = {.walk = level->walk};
  rn_arena_init(&r.arena, level->walk->graph->allocator);
  rn_status_t status = refine(&r, level, loop);
  rn_arena_clear(&r.arena);
  return status;
}
