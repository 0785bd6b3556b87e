// runnel ops --json: the ops, for programs.
#include "cli/json.h"
#include "cli/ops.h"
#include "framework/kernel.h"
#include "framework/op_face.h"

static json_t* args_of(const rn_op_def_t* op, const rn_arg_def_t* args, int count) {
  json_t* list = json_array();
  for (int i = 0; i < count; ++i) {
    const rn_arg_def_t* arg = &args[i];
    json_t* row = json_pack("{s:s, s:b}", "name", arg->name, "is_ref", arg->is_ref);
    if (arg->type_list_attr >= 0)
      json_object_set_new(row, "type_list_attr", json_string(op->attrs[arg->type_list_attr].name));
    else if (arg->type_attr >= 0)
      json_object_set_new(row, "type_attr", json_string(op->attrs[arg->type_attr].name));
    else
      json_object_set_new(row, "type", json_string(rn_dtype_name(arg->type)));
    if (arg->number_attr >= 0)
      json_object_set_new(row, "number_attr", json_string(op->attrs[arg->number_attr].name));
    json_array_append_new(list, row);
  }
  return list;
}

static json_t* attr_of(const rn_attr_def_t* attr) {
  json_t* row = json_pack("{s:s, s:s}", "name", attr->name, "type",
                          rn_attr_kind_name(attr->kind, attr->is_list));
  if (attr->has_minimum) json_object_set_new(row, "minimum", json_integer(attr->minimum));
  if (attr->allowed_count) {
    json_t* allowed = json_array();
    for (int i = 0; i < attr->allowed_count; ++i)
      json_array_append_new(
          allowed, json_string(attr->kind == RN_ATTR_TYPE ? rn_dtype_name(attr->allowed_types[i])
                                                          : attr->allowed_strings[i]));
    json_object_set_new(row, "allowed", allowed);
  }
  if (attr->has_default) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_default());
    rn_attr_value_print(&text, &attr->default_value);
    json_object_set_new(row, "default", rn_cli_json_str(rn_strbuf_view(&text)));
    rn_strbuf_clear(&text);
  }
  return row;
}

typedef struct kernels_t {
  const char* op;
  json_t* list;
} kernels_t;

static rn_status_t add_kernel(const rn_kernel_def_t* def, void* arg) {
  kernels_t* kernels = arg;
  if (strcmp(def->op, kernels->op) != 0) return RN_OK;
  json_t *types = json_object(), *host = json_array();
  for (int i = 0; i < 4 && def->types[i].attr; ++i) {
    json_t* names = json_array();
    for (rn_dtype_t t = 1; t < RN_DTYPE_COUNT; ++t)
      if (rn_dtypes_has(def->types[i].types, t))
        json_array_append_new(names, json_string(rn_dtype_name(t)));
    json_object_set_new(types, def->types[i].attr, names);
  }
  for (int i = 0; def->host_args && def->host_args[i]; ++i)
    json_array_append_new(host, json_string(def->host_args[i]));
  json_t* row = json_pack("{s:s, s:o, s:o, s:s}", "device", def->device, "types", types,
                          "host_arguments", host, "file", rn_cli_kernel_place(def));
  if (def->label) json_object_set_new(row, "label", json_string(def->label));
  json_array_append_new(kernels->list, row);
  return RN_OK;
}

json_t* rn_cli_op_json(const rn_op_def_t* op, const rn_cli_op_place_t* place, bool is_built_in) {
  json_t* attributes = json_array();
  for (int i = 0; i < op->attr_count; ++i)
    json_array_append_new(attributes, attr_of(&op->attrs[i]));
  kernels_t kernels = {.op = rn_op_base_name(op->name), .list = json_array()};
  rn_status_free(rn_kernel_each(add_kernel, &kernels));  // never fails
  json_t* root = json_pack(
      "{s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:b, s:b, s:o}", "name", op->name, "summary",
      op->summary, "family", place->family, "inputs", args_of(op, op->inputs, op->input_count),
      "outputs", args_of(op, op->outputs, op->output_count), "attributes", attributes,
      "is_stateful", !!(op->flags & RN_OP_STATEFUL), "has_gradient", op->grad != NULL,
      "is_run_by_executor", is_built_in, "kernels", kernels.list);
  if (root)
    json_object_set_new(
        root, "files",
        json_pack("{s:s, s:s, s:s, s:s}", "definition", place->definition, "shape_function",
                  place->shapes, "gradient", place->gradient, "cases", place->cases));
  if (root && op->deprecated_at)
    json_object_set_new(root, "deprecated_from_version", json_integer(op->deprecated_at));
  return root;
}
