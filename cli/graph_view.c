// A GraphDef as nodes and edges: see graph_view.h.
#include "cli/graph_view.h"

#include "base/map.h"

// "^a" is a control edge, "a:1" output 1, "a" output 0. A name itself holds no ':'.
static rn_str_t parse_input(rn_str_t text, int32_t* out_output) {
  *out_output = 0;
  if (text.size && text.data[0] == '^') {
    *out_output = -1;
    return rn_str_n(text.data + 1, text.size - 1);
  }
  for (size_t i = text.size; i > 0; --i) {
    int64_t number;
    if (text.data[i - 1] != ':') continue;
    if (rn_str_to_i64(rn_str_n(text.data + i, text.size - i), &number) && number >= 0 &&
        number <= INT32_MAX) {
      *out_output = (int32_t)number;
      return rn_str_n(text.data, i - 1);
    }
    break;
  }
  return text;
}

static rn_status_t link_node(rn_view_t* view, const rn_map_t* numbers, rn_view_node_t* node) {
  node->input_count = (int32_t)node->def->input.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&view->arena, node->def->input.count, &node->inputs));
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_view_edge_t* edge = &node->inputs[i];
    rn_str_t name = parse_input(node->def->input.items[i], &edge->output);
    edge->node = (int32_t)(intptr_t)rn_map_get(numbers, name) - 1;
    if (edge->node >= 0 && edge->output >= 0) view->nodes[edge->node].consumers++;
  }
  return RN_OK;
}

static bool is_function(const rn_pb_GraphDef_t* def, rn_str_t name) {
  for (uint32_t i = 0; def->library && i < def->library->function.count; ++i) {
    const rn_pb_FunctionDef_t* function = &def->library->function.items[i];
    if (function->signature && rn_str_eq(function->signature->name, name)) return true;
  }
  return false;
}

static rn_status_t fill(rn_view_t* view, rn_map_t* numbers) {
  const rn_pb_GraphDef_t* def = view->file->def;
  view->count = (int32_t)def->node.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&view->arena, def->node.count, &view->nodes));
  RN_RETURN_IF_ERROR(rn_map_reserve(numbers, def->node.count));
  for (int32_t n = 0; n < view->count; ++n) {
    rn_view_node_t* node = &view->nodes[n];
    node->def = &def->node.items[n];
    node->op = rn_op_find(node->def->op);
    node->is_function = !node->op && is_function(def, node->def->op);
    if (view->graph) node->built = rn_graph_find(view->graph, node->def->name);
    RN_RETURN_IF_ERROR(rn_map_put(numbers, node->def->name, (void*)(intptr_t)(n + 1)));
  }
  for (int32_t n = 0; n < view->count; ++n)
    RN_RETURN_IF_ERROR(link_node(view, numbers, &view->nodes[n]));
  return RN_OK;
}

rn_status_t rn_view_create(const rn_cli_t* cli, rn_cli_file_t* file, rn_view_t* out) {
  *out = (rn_view_t){.file = file};
  rn_arena_init(&out->arena, cli->allocator);
  out->why = rn_cli_import(file, &out->graph);
  rn_map_t numbers;
  rn_map_init(&numbers, cli->allocator);
  rn_status_t status = fill(out, &numbers);
  rn_map_clear(&numbers);
  return status;
}

void rn_view_clear(rn_view_t* view) {
  rn_graph_release(view->graph);
  rn_status_free(view->why);
  rn_arena_clear(&view->arena);
  *view = (rn_view_t){0};
}

void rn_view_describe(const rn_view_node_t* node, int32_t output, rn_strbuf_t* out) {
  if (!node->built || output < 0 || output >= node->built->output_count) return;
  const rn_output_t* value = &node->built->outputs[output];
  rn_strbuf_printf(out, "%s ", rn_dtype_name(value->dtype));
  if (rn_dtype_base(value->dtype) == RN_RESOURCE && value->handle.is_set) {
    rn_strbuf_printf(out, "%s ", rn_dtype_name(value->handle.dtype));
    rn_shape_print(out, value->handle.shape);
  } else {
    rn_shape_print(out, value->shape);
  }
}

const rn_tensor_t* rn_view_constant(const rn_view_node_t* node) {
  if (!node->built || node->built->op->role != RN_ROLE_CONSTANT) return NULL;
  const rn_attr_value_t* value = rn_node_attr(node->built, RN_STR("value"));
  return value && value->kind == RN_ATTR_TENSOR && !value->is_list ? value->tensor : NULL;
}
