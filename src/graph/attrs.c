// Checks a node's attributes against the op's definition, fills in defaults, and derives the types
// of inputs and outputs.
#include <inttypes.h>

#include "graph/build.h"

rn_status_t rn_node_copy_value(rn_node_t* node, const rn_attr_value_t* value,
                               rn_attr_value_t* out) {
  bool is_plain = !value->is_list && value->kind >= RN_ATTR_INT && value->kind <= RN_ATTR_TYPE;
  if (is_plain) {
    *out = *value;
    return RN_OK;
  }
  return rn_attr_value_copy(&node->graph->arena, value, out);
}

// Starts a message about attribute values; |end_bad_value| ends it.
static rn_strbuf_t start_message(const rn_node_t* node) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, node->graph->allocator);
  return text;
}

static rn_status_t end_bad_value(const rn_node_t* node, rn_strbuf_t* text) {
  rn_strbuf_append(text, RN_STR("\n\t; NodeDef: "));
  rn_node_mention(text, node->name);
  rn_strbuf_append(text, RN_STR("; "));
  rn_op_summary(text, node->op);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, text);
}

static rn_status_t wrong_kind(const rn_node_t* node, const rn_attr_def_t* def,
                              const rn_attr_value_t* value) {
  rn_strbuf_t text = start_message(node);
  rn_strbuf_printf(&text, "AttrValue had value with type '%s' when ",
                   rn_attr_kind_name(value->kind, value->is_list));
  rn_strbuf_printf(&text, "'%s' expected\n\t for attr '%s'",
                   rn_attr_kind_name(def->kind, def->is_list), def->name);
  return end_bad_value(node, &text);
}

static rn_status_t wrong_type(const rn_node_t* node, const rn_attr_def_t* def, rn_dtype_t type) {
  rn_strbuf_t text = start_message(node);
  if (type == RN_INVALID) {
    rn_strbuf_append(&text, RN_STR("AttrValue has invalid DataType"));
  } else if (!rn_dtype_is_valid(type)) {
    rn_strbuf_printf(&text, "AttrValue has invalid DataType enum: %d", (int)type);
  } else {
    rn_strbuf_printf(&text, "AttrValue must not have reference type value of %s",
                     rn_dtype_name(type));
  }
  rn_strbuf_printf(&text, "\n\t for attr '%s'", def->name);
  return end_bad_value(node, &text);
}

static void print_quoted(rn_strbuf_t* text, rn_str_t str) {
  rn_attr_value_print(text, &(rn_attr_value_t){.kind = RN_ATTR_STRING, .s = str});
}

static rn_status_t not_allowed(const rn_node_t* node, const rn_attr_def_t* def, rn_dtype_t type,
                               rn_str_t str) {
  rn_strbuf_t text = start_message(node);
  rn_strbuf_printf(&text, "Value for attr '%s' of ", def->name);
  if (def->kind == RN_ATTR_TYPE) {
    rn_strbuf_append(&text, rn_str(rn_dtype_name(type)));
  } else {
    print_quoted(&text, str);
  }
  rn_strbuf_append(&text, RN_STR(" is not in the list of allowed values: "));
  for (int i = 0; i < def->allowed_count; i++) {
    if (i > 0) rn_strbuf_append(&text, RN_STR(", "));
    if (def->kind == RN_ATTR_TYPE) {
      rn_strbuf_append(&text, rn_str(rn_dtype_name(def->allowed_types[i])));
    } else {
      print_quoted(&text, rn_str(def->allowed_strings[i]));
    }
  }
  return end_bad_value(node, &text);
}

static rn_status_t below_minimum(const rn_node_t* node, const rn_attr_def_t* def, int64_t found) {
  rn_strbuf_t text = start_message(node);
  rn_strbuf_printf(&text, "%s for attr '%s' of %" PRId64 " must be at least minimum %" PRId64,
                   def->is_list ? "Length" : "Value", def->name, found, def->minimum);
  return end_bad_value(node, &text);
}

static bool string_allowed(const rn_attr_def_t* def, rn_str_t str) {
  for (int i = 0; i < def->allowed_count; i++) {
    if (rn_str_is(str, def->allowed_strings[i])) return true;
  }
  return false;
}

static rn_status_t check_types(const rn_node_t* node, const rn_attr_def_t* def,
                               const rn_attr_value_t* value) {
  const rn_dtype_t* types = value->is_list ? value->list_type : &value->type;
  int32_t count = value->is_list ? value->count : 1;
  for (int32_t i = 0; i < count; i++) {
    if (!rn_dtype_is_valid(types[i]) || rn_dtype_is_ref(types[i])) {
      return wrong_type(node, def, types[i]);
    }
  }
  for (int32_t i = 0; def->allowed_count && i < count; i++) {
    if (!rn_dtypes_has(def->allowed_set, types[i])) {
      return not_allowed(node, def, types[i], RN_STR(""));
    }
  }
  return RN_OK;
}

static rn_status_t check_strings(const rn_node_t* node, const rn_attr_def_t* def,
                                 const rn_attr_value_t* value) {
  const rn_str_t* strings = value->is_list ? value->list_s : &value->s;
  int32_t count = value->is_list ? value->count : 1;
  for (int32_t i = 0; def->allowed_count && i < count; i++) {
    if (!string_allowed(def, strings[i])) return not_allowed(node, def, RN_INVALID, strings[i]);
  }
  return RN_OK;
}

static rn_status_t check_value(const rn_node_t* node, const rn_attr_def_t* def,
                               rn_attr_value_t* value) {
  // A placeholder stands for a value that the caller of a function supplies.
  if (value->kind == RN_ATTR_PLACEHOLDER) return RN_OK;
  // An empty list has no element kind of its own.
  if (value->is_list && value->count == 0) value->kind = def->kind;
  if (value->kind != def->kind || value->is_list != def->is_list) {
    return wrong_kind(node, def, value);
  }
  if (def->kind == RN_ATTR_TYPE) RN_RETURN_IF_ERROR(check_types(node, def, value));
  if (def->has_minimum) {
    int64_t found = def->is_list ? value->count : value->i;
    if ((def->is_list || def->kind == RN_ATTR_INT) && found < def->minimum) {
      return below_minimum(node, def, found);
    }
  }
  return def->kind == RN_ATTR_STRING ? check_strings(node, def, value) : RN_OK;
}

static rn_status_t missing_attrs(const rn_node_t* node, int count) {
  rn_strbuf_t text = start_message(node);
  rn_strbuf_append(&text,
                   count == 1 ? RN_STR("NodeDef missing attr ") : RN_STR("NodeDef missing attrs "));
  // TensorFlow lists them in the order of its hash map: the last of the definition first.
  for (int i = node->op->attr_count - 1, found = 0; i >= 0; i--) {
    if (node->attrs[i].kind != RN_ATTR_UNSET) continue;
    rn_strbuf_printf(&text, "%s'%s'", found++ ? ", " : "", node->op->attrs[i].name);
  }
  rn_strbuf_append(&text, RN_STR(" from "));
  rn_op_summary(&text, node->op);
  rn_strbuf_append(&text, RN_STR("; NodeDef: "));
  rn_node_mention(&text, node->name);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_node_complete_attrs(rn_node_t* node) {
  int missing = 0;
  for (int i = 0; i < node->op->attr_count; i++) {
    const rn_attr_def_t* def = &node->op->attrs[i];
    rn_attr_value_t* value = &node->attrs[i];
    if (value->kind != RN_ATTR_UNSET) {
      RN_RETURN_IF_ERROR(check_value(node, def, value));
    } else if (def->has_default) {
      *value = def->default_value;
    } else {
      missing++;
    }
  }
  return missing ? missing_attrs(node, missing) : RN_OK;
}

rn_status_t rn_op_check_version(const rn_op_def_t* op, int32_t version) {
  if (!op->deprecated_at || version < op->deprecated_at) return RN_OK;
  return rn_unimplemented(
      "Op %s is not available in GraphDef version %d. It has been removed in version %d. %s.",
      op->name, (int)version, (int)op->deprecated_at, op->deprecation ? op->deprecation : "");
}

int64_t rn_node_arg_length(const rn_node_t* node, const rn_arg_def_t* arg) {
  if (arg->number_attr >= 0) {
    const rn_attr_value_t* number = &node->attrs[arg->number_attr];
    return number->kind == RN_ATTR_INT ? number->i : 0;
  }
  if (arg->type_list_attr >= 0) return node->attrs[arg->type_list_attr].count;
  return 1;
}

rn_dtype_t rn_node_arg_type(const rn_node_t* node, const rn_arg_def_t* arg, int64_t i) {
  rn_dtype_t type = rn_arg_type(arg, node->attrs, i);
  return arg->is_ref ? rn_dtype_ref(type) : type;
}

rn_status_t rn_node_make_outputs(rn_node_t* node) {
  int64_t total = 0;
  for (int i = 0; i < node->op->output_count; i++) {
    int64_t length = rn_node_arg_length(node, &node->op->outputs[i]);
    if (length < 0) {
      return rn_invalid_argument("Value for number_attr() %" PRId64 " < 0", length);
    }
    if (!rn_add_i64_ok(total, length, &total) || total > RN_MAX_OUTPUTS) {
      return rn_invalid_argument("Number of outputs is too big: %" PRId64, total);
    }
  }
  node->output_count = (int32_t)total;
  if (total == 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->graph->arena, (size_t)total, &node->outputs));
  rn_output_t* output = node->outputs;
  for (int i = 0; i < node->op->output_count; i++) {
    const rn_arg_def_t* arg = &node->op->outputs[i];
    int64_t length = rn_node_arg_length(node, arg);
    for (int64_t j = 0; j < length; j++, output++) {
      output->dtype = rn_node_arg_type(node, arg, j);
      output->shape = RN_SHAPE_UNKNOWN;
    }
  }
  return RN_OK;
}

rn_status_t rn_node_check_attrs(const rn_node_t* node) {
  for (int i = 0; i < node->op->attr_count; i++) {
    if (node->attrs[i].kind != RN_ATTR_PLACEHOLDER) continue;
    return rn_invalid_argument(
        "AttrValue had value with unexpected type 'placeholder'\n\t for attr '%s'\n\t; NodeDef: "
        "{{node %.*s}}",
        node->op->attrs[i].name, RN_STR_ARGS(node->name));
  }
  return RN_OK;
}
