// Reads the contents of tables in a step of the session that filled them: see freeze_tables.h.
#include "saved_model/freeze_tables.h"

#include "framework/kernel.h"
#include "step/ir.h"

typedef struct freeze_tables_fill_t {
  rn_session_t* session;
  rn_graph_t* graph;
  rn_arena_t* arena;
  RN_VEC(rn_node_t*) imports;
} freeze_tables_fill_t;

static bool is_table(const rn_ir_node_t* node) {
  return node->feed < 0 && node->output_count == 1 && node->types[0] == RN_RESOURCE &&
         rn_op_attr_index(node->op, RN_STR("key_dtype")) >= 0 &&
         rn_op_attr_index(node->op, RN_STR("value_dtype")) >= 0;
}

static rn_attr_t type_attr(const char* name, rn_dtype_t type) {
  return (rn_attr_t){rn_str(name), {.kind = RN_ATTR_TYPE, .type = type}};
}

// Adds a node, named after the table.
static rn_status_t add(freeze_tables_fill_t* f, const rn_node_t* table, const char* suffix,
                       rn_node_spec_t spec, rn_node_t** out) {
  RN_RETURN_IF_ERROR(
      rn_arena_printf(f->arena, &spec.name, "%.*s/%s", RN_STR_ARGS(table->name), suffix));
  return rn_graph_add_unique(f->graph, &spec, out);
}

static rn_status_t add_constant(freeze_tables_fill_t* f, const rn_node_t* table, const char* suffix,
                                const rn_tensor_t* value, rn_edge_t* out) {
  rn_attr_t attrs[] = {type_attr("dtype", value->dtype),
                       {RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = value}}};
  rn_node_spec_t spec = {.op = RN_STR("Const"), .attrs = attrs, .attr_count = 2};
  out->index = 0;
  return add(f, table, suffix, spec, &out->node);
}

// Two constants and the node that fills the table with them.
static rn_status_t add_import(freeze_tables_fill_t* f, rn_node_t* table,
                              const rn_tensor_t contents[2]) {
  rn_edge_t inputs[3] = {{table, 0}};
  rn_node_spec_t spec = {.op = RN_STR("LookupTableImportV2"), .inputs = inputs, .input_count = 3};
  rn_node_t* import = NULL;
  RN_RETURN_IF_ERROR(add_constant(f, table, "keys", &contents[0], &inputs[1]));
  RN_RETURN_IF_ERROR(add_constant(f, table, "values", &contents[1], &inputs[2]));
  RN_RETURN_IF_ERROR(add(f, table, "fill", spec, &import));
  return rn_vec_push(&f->imports, f->graph->allocator, import);
}

static rn_status_t add_fill(freeze_tables_fill_t* f, rn_node_t* table, rn_dtype_t keys,
                            rn_dtype_t values) {
  rn_edge_t handle = {table, 0};
  rn_attr_t attrs[] = {type_attr("Tkeys", keys), type_attr("Tvalues", values)};
  rn_node_spec_t spec = {.op = RN_STR("LookupTableExportV2"),
                         .inputs = &handle,
                         .input_count = 1,
                         .attrs = attrs,
                         .attr_count = 2};
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(add(f, table, "contents", spec, &node));
  rn_edge_t outputs[2] = {{node, 0}, {node, 1}};
  rn_signature_t reading = {.fetches = outputs, .fetch_count = 2};
  rn_tensor_t contents[2] = {{0}};
  RN_RETURN_IF_ERROR(rn_session_run(f->session, &reading, NULL, contents, NULL));
  rn_status_t status = add_import(f, table, contents);
  rn_tensor_clear(&contents[0]);
  rn_tensor_clear(&contents[1]);
  return status;
}

static rn_status_t add_fills(freeze_tables_fill_t* f, const rn_ir_t* ir, rn_node_t** out_fill) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    rn_node_t* table = is_table(node) ? rn_graph_find(f->graph, node->name) : NULL;
    if (table)
      RN_RETURN_IF_ERROR(add_fill(f, table, rn_ir_attr(node, RN_STR("key_dtype"))->type,
                                  rn_ir_attr(node, RN_STR("value_dtype"))->type));
  }
  if (!f->imports.count) return RN_OK;
  rn_node_spec_t spec = {.op = RN_STR("NoOp"),
                         .name = RN_STR("init_tables"),
                         .controls = f->imports.items,
                         .control_count = (int32_t)f->imports.count};
  return rn_graph_add_unique(f->graph, &spec, out_fill);
}

rn_status_t rn_freeze_tables(rn_session_t* session, const rn_signature_t* signature,
                             rn_node_t** out_fill) {
  rn_graph_t* graph = rn_session_graph(session);
  rn_ir_t* ir = NULL;
  *out_fill = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  freeze_tables_fill_t f = {.session = session, .graph = graph, .arena = &ir->arena};
  rn_status_t status = add_fills(&f, ir, out_fill);
  rn_vec_free(&f.imports, graph->allocator);
  rn_ir_destroy(ir);
  return status;
}
