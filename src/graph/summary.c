// Descriptions of nodes and ops in messages, in TensorFlow's form, which clients show and search
// for.
#include <inttypes.h>

#include "graph/build.h"

void rn_node_mention(rn_strbuf_t* buf, rn_str_t name) {
  rn_strbuf_append(buf, RN_STR("{{node "));
  rn_strbuf_append(buf, name);
  rn_strbuf_append(buf, RN_STR("}}"));
}

static int attr_total(const rn_node_t* node) { return node->op->attr_count + node->extra_count; }

static rn_str_t attr_name(const rn_node_t* node, int i) {
  int own = node->op->attr_count;
  return i < own ? rn_str(node->op->attrs[i].name) : node->extras[i - own].name;
}

static const rn_attr_value_t* attr_value(const rn_node_t* node, int i) {
  int own = node->op->attr_count;
  return i < own ? &node->attrs[i] : &node->extras[i - own].value;
}

// The attribute whose name comes next after |previous| (the first one if that is -1); -1 if there
// is none. Quadratic, for messages only.
static int next_attr(const rn_node_t* node, int previous) {
  int best = -1;
  for (int i = 0; i < attr_total(node); i++) {
    if (previous >= 0) {
      int order = rn_str_compare(attr_name(node, i), attr_name(node, previous));
      if (order < 0 || (order == 0 && i <= previous)) continue;
    }
    if (best < 0 || rn_str_compare(attr_name(node, i), attr_name(node, best)) < 0) best = i;
  }
  return best;
}

static void print_attrs(rn_strbuf_t* buf, const rn_node_t* node) {
  bool is_first = true;
  for (int i = next_attr(node, -1); i >= 0; i = next_attr(node, i)) {
    const rn_attr_value_t* value = attr_value(node, i);
    if (value->kind == RN_ATTR_UNSET) continue;
    if (!is_first) rn_strbuf_append(buf, RN_STR(", "));
    is_first = false;
    rn_strbuf_append(buf, attr_name(node, i));
    rn_strbuf_append(buf, RN_STR("="));
    rn_attr_value_print(buf, value);
  }
  if (node->device.size) {
    rn_strbuf_append(buf, is_first ? RN_STR("_device=\"") : RN_STR(", _device=\""));
    rn_strbuf_append(buf, node->device);
    rn_strbuf_append(buf, RN_STR("\""));
  }
}

static void print_inputs(rn_strbuf_t* buf, const rn_node_t* node) {
  const char* comma = "";
  for (int i = 0; i < node->input_count; i++) {
    rn_edge_t edge = node->inputs[i];
    rn_strbuf_append(buf, rn_str(comma));
    comma = ", ";
    if (!edge.node) continue;  // a loop's back edge that is not linked yet
    rn_strbuf_append(buf, edge.node->name);
    if (edge.index > 0) rn_strbuf_printf(buf, ":%d", edge.index);
  }
  for (size_t i = 0; i < node->controls.count; i++) {
    rn_strbuf_printf(buf, "%s^", comma);
    comma = ", ";
    rn_strbuf_append(buf, node->controls.items[i]->name);
  }
}

void rn_node_summary(rn_strbuf_t* buf, const rn_node_t* node) {
  rn_node_mention(buf, node->name);
  rn_strbuf_printf(buf, " = %s[", node->op->name);
  print_attrs(buf, node);
  rn_strbuf_append(buf, RN_STR("]("));
  print_inputs(buf, node);
  rn_strbuf_append(buf, RN_STR(")"));
}

static void print_args(rn_strbuf_t* buf, const rn_op_def_t* op, const rn_arg_def_t* args,
                       int count) {
  for (int i = 0; i < count; i++) {
    const rn_arg_def_t* arg = &args[i];
    rn_strbuf_printf(buf, "%s%s:%s", i > 0 ? ", " : "", arg->name, arg->is_ref ? "Ref(" : "");
    if (arg->number_attr >= 0) rn_strbuf_printf(buf, "%s*", op->attrs[arg->number_attr].name);
    if (arg->type_attr >= 0) {
      rn_strbuf_append(buf, rn_str(op->attrs[arg->type_attr].name));
    } else if (arg->type_list_attr < 0) {  // lists of mixed types show nothing, as in stock
      rn_strbuf_append(buf, rn_str(rn_dtype_name(arg->type)));
    }
    if (arg->is_ref) rn_strbuf_append(buf, RN_STR(")"));
  }
}

static void print_allowed(rn_strbuf_t* buf, const rn_attr_def_t* def) {
  rn_strbuf_append(buf, RN_STR(",allowed=["));
  for (int i = 0; i < def->allowed_count; i++) {
    rn_attr_value_t value = {.kind = def->kind};
    if (def->kind == RN_ATTR_TYPE) {
      value.type = def->allowed_types[i];
    } else {
      value.s = rn_str(def->allowed_strings[i]);
    }
    if (i > 0) rn_strbuf_append(buf, RN_STR(", "));
    rn_attr_value_print(buf, &value);
  }
  rn_strbuf_append(buf, RN_STR("]"));
}

void rn_op_summary(rn_strbuf_t* buf, const rn_op_def_t* op) {
  rn_strbuf_printf(buf, "Op<name=%s; signature=", op->name);
  print_args(buf, op, op->inputs, op->input_count);
  rn_strbuf_append(buf, RN_STR(" -> "));
  print_args(buf, op, op->outputs, op->output_count);
  for (int i = 0; i < op->attr_count; i++) {
    const rn_attr_def_t* def = &op->attrs[i];
    rn_strbuf_printf(buf, "; attr=%s:%s", def->name, rn_attr_kind_name(def->kind, def->is_list));
    if (def->has_default) {
      rn_strbuf_append(buf, RN_STR(",default="));
      rn_attr_value_print(buf, &def->default_value);
    }
    if (def->has_minimum) rn_strbuf_printf(buf, ",min=%" PRId64, def->minimum);
    if (def->allowed_count) print_allowed(buf, def);
  }
  if (op->flags & RN_OP_COMMUTATIVE) rn_strbuf_append(buf, RN_STR("; is_commutative=true"));
  if (op->flags & RN_OP_AGGREGATE) rn_strbuf_append(buf, RN_STR("; is_aggregate=true"));
  if (op->flags & RN_OP_STATEFUL) rn_strbuf_append(buf, RN_STR("; is_stateful=true"));
  if (op->flags & RN_OP_ALLOWS_UNINITIALIZED) {
    rn_strbuf_append(buf, RN_STR("; allows_uninitialized_input=true"));
  }
  if (op->flags & RN_OP_DISTRIBUTED) {
    rn_strbuf_append(buf, RN_STR("; is_distributed_communication=true"));
  }
  rn_strbuf_append(buf, RN_STR(">"));
}
