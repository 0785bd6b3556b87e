// A step's graph for people: see ir_print.h.
#include "step/ir_print.h"

#include "device/device.h"

static void print_type(const rn_ir_node_t* node, int32_t output, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%s", rn_dtype_name(node->types[output]));
  rn_shape_print(out, node->shapes[output]);
}

static void print_node(const rn_ir_t* ir, int32_t index, rn_strbuf_t* out) {
  const rn_ir_node_t* node = rn_ir_node(ir, index);
  rn_strbuf_printf(out, "%5d %.*s = %s(", index, RN_STR_ARGS(node->name),
                   node->feed >= 0 ? "feed" : node->op->name);
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    rn_strbuf_printf(out, "%s%d", i ? ", " : "", edge.node);
    if (edge.output) rn_strbuf_printf(out, ":%d", edge.output);
    if (edge.node >= 0)
      rn_strbuf_printf(out, " %.*s", RN_STR_ARGS(rn_ir_node(ir, edge.node)->name));
  }
  rn_strbuf_printf(out, ")");
  for (int32_t i = 0; i < node->control_count; ++i)
    rn_strbuf_printf(out, "%s%d", i ? ", " : " after ", node->controls[i]);
  for (int32_t i = 0; i < node->output_count; ++i) {
    rn_strbuf_printf(out, "%s", i ? ", " : " -> ");
    print_type(node, i, out);
  }
  if (node->constant) rn_strbuf_printf(out, " constant");
  if (node->device) rn_strbuf_printf(out, " on %.*s", RN_STR_ARGS(node->device->name));
  rn_strbuf_printf(out, "\n");
}

// The order of execution; where the graph is broken, the order of numbers.
static int32_t order_of(rn_ir_t* ir, int32_t** out_order) {
  int32_t count = 0;
  rn_status_t status = rn_ir_order(ir, out_order, &count);
  bool is_ordered = rn_ok(status);
  rn_status_free(status);
  if (!is_ordered) *out_order = NULL;
  return is_ordered ? count : (int32_t)ir->nodes.count;
}

void rn_ir_print(rn_ir_t* ir, rn_strbuf_t* out) {
  int32_t* order = NULL;
  int32_t count = order_of(ir, &order);
  for (int32_t i = 0; i < count; ++i) {
    int32_t index = order ? order[i] : i;
    if (!rn_ir_node(ir, index)->is_removed) print_node(ir, index, out);
  }
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    rn_strbuf_printf(out, "%s%d:%d", i ? ", " : "fetches ", ir->fetches[i].node,
                     ir->fetches[i].output);
  for (int32_t i = 0; i < ir->target_count; ++i)
    rn_strbuf_printf(out, "%s%d",
                     i                 ? ", "
                     : ir->fetch_count ? "; targets "
                                       : "targets ",
                     ir->targets[i]);
  rn_strbuf_printf(out, "\n");
}

static void print_quoted(rn_str_t text, rn_strbuf_t* out) {
  for (size_t i = 0; i < text.size; ++i)
    rn_strbuf_printf(out, text.data[i] == '"' || text.data[i] == '\\' ? "\\%c" : "%c",
                     text.data[i]);
}

void rn_ir_print_dot(rn_ir_t* ir, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "digraph step {\n  rankdir=BT; node [shape=box, fontname=sans];\n");
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed) continue;
    rn_strbuf_printf(out, "  n%zu [label=\"", n);
    print_quoted(node->name, out);
    rn_strbuf_printf(out, "\\n%s\"%s];\n", node->feed >= 0 ? "feed" : node->op->name,
                     node->feed >= 0        ? ", style=rounded"
                     : node->constant       ? ", style=dashed"
                     : !rn_ir_is_pure(node) ? ", penwidth=2"
                                            : "");
    for (int32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i].node < 0) continue;
      rn_strbuf_printf(out, "  n%d -> n%zu [label=\"", node->inputs[i].node, n);
      print_type(rn_ir_node(ir, node->inputs[i].node), node->inputs[i].output, out);
      rn_strbuf_printf(out, "\"];\n");
    }
    for (int32_t i = 0; i < node->control_count; ++i)
      rn_strbuf_printf(out, "  n%d -> n%zu [style=dotted];\n", node->controls[i], n);
  }
  rn_strbuf_printf(out, "}\n");
}
