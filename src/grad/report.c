// The error about an op that has no rule: names the node and the path from x to y through it.
#include "grad/walk.h"

enum { MOST_SHOWN = 8, MOST_STEPS = 1000 };

static const rn_node_t* towards_y(const rn_walk_t* walk, const rn_node_t* node) {
  for (int32_t o = 0; o < node->output_count; ++o) {
    for (size_t c = 0; c < node->outputs[o].consumers.count; ++c) {
      const rn_node_t* next = node->outputs[o].consumers.items[c].node;
      if (next->op->role != RN_ROLE_NEXT_ITERATION && rn_walk_on_way(walk, next)) return next;
    }
  }
  return NULL;
}

static const rn_node_t* towards_x(const rn_walk_t* walk, const rn_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_node_t* next = node->inputs[i].node;
    if (next->op->role != RN_ROLE_NEXT_ITERATION && rn_walk_on_way(walk, next) &&
        rn_walk_carries(walk, node, i))
      return next;
  }
  return NULL;
}

typedef const rn_node_t* (*report_step_t)(const rn_walk_t* walk, const rn_node_t* node);

// Appends the first few nodes of the path after |node|, and the last.
static void show(const rn_walk_t* walk, rn_strbuf_t* buf, const rn_node_t* node, report_step_t step,
                 int end) {
  const rn_node_t* last = NULL;
  int steps = 0;
  for (; steps < MOST_STEPS && !(walk->marks[node->id] & end); ++steps) {
    const rn_node_t* next = step(walk, node);
    if (!next) break;
    node = last = next;
    if (steps < MOST_SHOWN) rn_strbuf_printf(buf, " - '%s'", node->name.data);
  }
  if (steps > MOST_SHOWN && last) rn_strbuf_printf(buf, " … '%s'", last->name.data);
}

rn_status_t rn_walk_no_rule(const rn_walk_t* walk, const rn_node_t* node) {
  rn_strbuf_t way;
  rn_strbuf_init(&way, walk->graph->allocator);
  rn_strbuf_printf(&way, "node '%s'; towards y:", node->name.data);
  show(walk, &way, node, towards_y, RN_MARK_Y);
  rn_strbuf_append(&way, RN_STR("; towards x:"));
  show(walk, &way, node, towards_x, RN_MARK_X);
  rn_status_t status = rn_not_found(
      "No gradient defined for op: %s. Please see "
      "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on how "
      "to add C++ gradients.",
      node->op->name);
  rn_str_t text = rn_strbuf_view(&way);
  if (!walk->request->is_terse)
    status = rn_status_annotate(status, "\n\t %.*s", RN_STR_ARGS(text));
  else if (walk->options->log && text.size)
    walk->options->log(walk->options->log_arg, text.data);
  rn_strbuf_clear(&way);
  return status;
}
