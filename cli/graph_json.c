// runnel graph --json: the graph in figures, for programs.
#include "cli/graph_stats.h"
#include "cli/json.h"

static json_t* end_of(const rn_view_node_t* node) {
  json_t* end = json_pack("{s:o}", "name", rn_cli_json_str(node->def->name));
  if (!node->built || node->built->output_count < 1) return end;
  const rn_output_t* output = &node->built->outputs[0];
  json_object_set_new(end, "dtype", json_string(rn_dtype_name(output->dtype)));
  json_object_set_new(end, "shape", rn_cli_json_shape(output->shape));
  return end;
}

static json_t* ends_of(const rn_view_t* view, bool (*is_end)(const rn_view_node_t* node)) {
  json_t* ends = json_array();
  for (int32_t n = 0; n < view->count; ++n)
    if (is_end(&view->nodes[n])) json_array_append_new(ends, end_of(&view->nodes[n]));
  return ends;
}

static json_t* ops_of(const rn_tallies_t* tallies) {
  json_t* ops = json_array();
  for (size_t i = 0; i < tallies->items.count; ++i) {
    const rn_tally_t* tally = &tallies->items.items[i];
    json_array_append_new(
        ops,
        json_pack("{s:o, s:I, s:b, s:b, s:b}", "op", rn_cli_json_str(tally->name), "nodes",
                  (json_int_t)tally->count, "is_function", tally->is_function, "is_known",
                  !tally->is_unknown, "has_kernel", !tally->is_unknown && !tally->lacks_kernel));
  }
  return ops;
}

static json_t* devices_of(const rn_tallies_t* tallies) {
  json_t* devices = json_array();
  for (size_t i = 0; i < tallies->items.count; ++i)
    json_array_append_new(
        devices, json_pack("{s:o, s:I}", "device", rn_cli_json_str(tallies->items.items[i].name),
                           "nodes", (json_int_t)tallies->items.items[i].count));
  return devices;
}

rn_status_t rn_figures_print_json(const rn_view_t* view, const rn_figures_t* f) {
  const rn_pb_GraphDef_t* def = view->file->def;
  json_t* edges = json_pack("{s:I, s:I, s:I}", "data", (json_int_t)f->data, "control",
                            (json_int_t)f->control, "dangling", (json_int_t)f->dangling);
  json_t* parameters = json_pack("{s:I, s:I, s:I, s:I, s:I}", "variables", (json_int_t)f->variables,
                                 "elements", (json_int_t)f->elements, "variables_of_unknown_size",
                                 (json_int_t)f->unsized, "constants", (json_int_t)f->constants,
                                 "constant_elements", (json_int_t)f->constant_elements);
  json_t* root = json_pack(
      "{s:o, s:I, s:s, s:i, s:i, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "file",
      rn_cli_json_str(rn_str(view->file->path)), "bytes", (json_int_t)view->file->bytes.size,
      "format", view->file->is_text ? "text" : "binary", "version",
      def->versions ? def->versions->producer : 0, "nodes", view->count, "edges", edges,
      "functions", (json_int_t)(def->library ? def->library->function.count : 0), "parameters",
      parameters, "inputs", ends_of(view, rn_view_is_input), "outputs",
      ends_of(view, rn_view_is_output), "devices", devices_of(&f->devices), "ops", ops_of(&f->ops));
  if (root && !view->graph)
    json_object_set_new(root, "import_error",
                        rn_cli_json_str(rn_str(rn_status_message(view->why))));
  return rn_cli_json_print(root);
}
