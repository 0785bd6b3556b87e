// Brings values of other frames to where gradients are built.
//
// Gradients requested inside a loop may depend on enclosing frames; values of those enter as
// invariants. Clients' rules may read any value that they know of; a backward loop gets it through
// the frames in between.
#include "grad/backward.h"
#include "runnel/ops.h"

bool rn_walk_is_around(const rn_walk_t* walk, const rn_while_loop_t* loop) {
  const rn_while_loop_t* around = walk->base;
  while (around && around != loop) around = around->parent;
  return around == loop;
}

// Brings |value| of the frame |from| into the frame |into|, which is nested in it.
static rn_edge_t enter(rn_scope_t* scope, const rn_while_loop_t* from, const rn_while_loop_t* into,
                       rn_edge_t value) {
  if (into == from) return value;
  value = enter(scope, from, into->parent, value);
  return rn_Enter(scope, value, into->frame.data, .is_constant = true,
                  .parallel_iterations = RN_SET(into->parallel_iterations));
}

rn_edge_t rn_level_reach(void* arg, rn_edge_t from) {
  rn_level_t* level = arg;
  rn_walk_t* walk = level->walk;
  if (!from.node || !rn_walk_is_forward(walk, from.node)) return from;
  const rn_while_loop_t* loop = rn_walk_frame(walk, from.node);
  if (loop == walk->base || !rn_walk_is_around(walk, loop)) return from;
  rn_note_t* note = rn_walk_note(level, from.node);
  if (!note) return RN_NO_EDGE;
  if (!note->brought) {
    rn_status_t status =
        RN_ARENA_ARRAY(&walk->arena, (size_t)from.node->output_count, &note->brought);
    if (!rn_ok(status)) {
      rn_scope_fail(level->here, status);
      return RN_NO_EDGE;
    }
  }
  rn_edge_t* slot = &note->brought[from.index];
  if (slot->node) return *slot;
  rn_edge_t copy = enter(walk->around, loop, walk->base, from);
  *slot = copy;
  note = copy.node ? rn_walk_note(level, copy.node) : NULL;
  if (note) note->origin = from;
  return copy;
}

static rn_edge_t hold(rn_level_t* level, const rn_level_t* from, rn_edge_t value) {
  if (level == from) return value;
  return rn_backward_hold(level->outer, level->backward, hold(level->outer, from, value));
}

rn_edge_t rn_level_read(rn_level_t* level, rn_edge_t value, bool is_new) {
  const rn_walk_t* walk = level->walk;
  if (!value.node || (!is_new && !rn_walk_is_forward(walk, value.node))) return value;
  const rn_while_loop_t* loop = rn_walk_frame(walk, value.node);
  rn_level_t* at = level;
  while (at->backward && (is_new || at->backward->loop != loop)) at = at->outer;
  const rn_scope_hook_t* hook = rn_scope_hook(at->scope);
  if (!is_new && hook && hook->map) value = hook->map(hook->arg, value);
  return hold(level, at, value);
}
