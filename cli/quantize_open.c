// The model of `runnel quantize` as one frozen graph: see quantize.h.
#include <stdio.h>

#include "cli/quantize.h"
#include "saved_model/freeze.h"
#include "wire/decode.h"

static void session_options(const rn_cli_quant_t* q, rn_session_options_t* out) {
  rn_session_options_init(out);
  out->intra_threads = out->inter_threads = (int)rn_cli_number(q->cli, "--threads", 0);
  out->allow_soft_placement = true;
}

static bool is_name_char(char c, bool is_first) {
  bool is_word =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  return is_word || (!is_first && (c == '_' || c == '/' || c == '-'));
}

static bool is_taken(const rn_cli_quant_t* q, rn_str_t node) {
  for (int32_t i = 0; i < q->input_count; ++i)
    if (rn_str_eq(q->inputs[i].node, node)) return true;
  for (int32_t i = 0; i < q->output_count; ++i)
    if (rn_str_eq(q->outputs[i].node, node)) return true;
  return false;
}

// The node of a port has the port's name, if that can be the name of a node and is not taken.
static rn_status_t name_port(rn_cli_quant_t* q, rn_cli_quant_port_t* port, bool is_output) {
  char* text = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(&q->arena, port->name.size + 2, (void**)&text));
  size_t size = 0;
  if (!port->name.size || !is_name_char(port->name.data[0], true)) text[size++] = '.';
  for (size_t i = 0; i < port->name.size; ++i)
    text[size++] = is_name_char(port->name.data[i], false) ? port->name.data[i] : '_';
  rn_str_t name = {text, size};
  for (int n = 1; is_taken(q, name); ++n)
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&q->arena, &name, "%s_%s_%d", text, is_output ? "output" : "input", n));
  port->node = name;
  return RN_OK;
}

// Sets the ports of a signature to |inputs| and |outputs|, edges with their names.
static rn_status_t set_ports(rn_cli_quant_t* q, const rn_port_t* inputs, int32_t input_count,
                             const rn_port_t* outputs, int32_t output_count) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)input_count, &q->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)output_count, &q->outputs));
  for (int32_t i = 0; i < input_count + output_count; ++i) {
    bool is_output = i >= input_count;
    const rn_port_t* port = is_output ? &outputs[i - input_count] : &inputs[i];
    const rn_output_t* value = &port->edge.node->outputs[port->edge.index];
    rn_cli_quant_port_t made = {.dtype = rn_dtype_base(value->dtype)};
    RN_RETURN_IF_ERROR(rn_shape_copy(&q->arena, value->shape, &made.shape));
    RN_RETURN_IF_ERROR(rn_arena_str(&q->arena, port->name, &made.name));
    RN_RETURN_IF_ERROR(name_port(q, &made, is_output));
    if (is_output)
      q->outputs[q->output_count++] = made;
    else
      q->inputs[q->input_count++] = made;
  }
  return RN_OK;
}

static rn_status_t freeze(rn_cli_quant_t* q, rn_session_t* session, const rn_port_t* inputs,
                          int32_t input_count, const rn_port_t* outputs, int32_t output_count) {
  RN_RETURN_IF_ERROR(set_ports(q, inputs, input_count, outputs, output_count));
  rn_edge_t* edges = NULL;
  rn_str_t *names = NULL, fill;
  size_t count = (size_t)(input_count + output_count);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &names));
  for (int32_t i = 0; i < input_count; ++i) {
    edges[i] = inputs[i].edge;
    names[i] = q->inputs[i].node;
  }
  for (int32_t i = 0; i < output_count; ++i) {
    edges[input_count + i] = outputs[i].edge;
    names[input_count + i] = q->outputs[i].node;
  }
  rn_freeze_options_t options = {.inputs = edges,
                                 .input_names = names,
                                 .input_count = input_count,
                                 .outputs = edges + input_count,
                                 .output_names = names + input_count,
                                 .output_count = output_count,
                                 .folds_batch_norms = true};
  RN_RETURN_IF_ERROR(rn_cli_at(rn_freeze(session, &options, &q->frozen_bytes, &fill), q->path));
  RN_RETURN_IF_ERROR(rn_arena_str(&q->arena, fill, &q->fill));
  return RN_PB_DECODE(GraphDef, rn_strbuf_view(&q->frozen_bytes), NULL, &q->arena, &q->frozen);
}

static rn_status_t open_model(rn_cli_quant_t* q) {
  const rn_cli_t* cli = q->cli;
  rn_session_options_t session;
  session_options(q, &session);
  RN_RETURN_IF_ERROR(rn_cli_model_open(cli, q->path, rn_cli_text(cli, "--tags"), &q->model));
  RN_RETURN_IF_ERROR(rn_cli_model_load(cli, &q->model, &session, NULL));
  RN_RETURN_IF_ERROR(rn_cli_model_use(cli, &q->model, rn_cli_text(cli, "--signature")));
  RN_RETURN_IF_ERROR(rn_arena_str(&q->arena, q->model.signature, &q->signature));
  return freeze(q, q->model.session, q->model.inputs, q->model.input_count, q->model.outputs,
                q->model.output_count);
}

static bool is_read(const rn_node_t* node) {
  if (node->control_consumers.count) return true;
  for (int32_t i = 0; i < node->output_count; ++i)
    if (node->outputs[i].consumers.count) return true;
  return false;
}

// The inputs of a GraphDef are its placeholders; the outputs those of --output_node, or what no
// node reads.
static rn_status_t graph_ports(rn_cli_quant_t* q, rn_graph_t* graph, bool is_output,
                               rn_port_t** out, int32_t* out_count) {
  const rn_cli_t* cli = q->cli;
  rn_port_t* ports = NULL;
  size_t at = 0;
  *out_count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, graph->nodes.count + cli->given.count, &ports));
  *out = ports;
  for (const char* name; is_output && (name = rn_cli_each(cli, "--output-node", &at));) {
    rn_port_t* port = &ports[(*out_count)++];
    port->name = rn_str(name);
    RN_RETURN_IF_ERROR(rn_cli_prefix(rn_edge_by_name(graph, port->name, &port->edge),
                                     "'%s': --output-node %s: ", q->path, name));
    if (port->edge.index >= port->edge.node->output_count)
      return rn_not_found("'%s': --output-node %s: the node has %d outputs", q->path, name,
                          port->edge.node->output_count);
  }
  if (*out_count) return RN_OK;
  for (size_t n = 0; n < graph->nodes.count; ++n) {
    rn_node_t* node = graph->nodes.items[n];
    bool is_input = node->op->role == RN_ROLE_PLACEHOLDER;
    if (!node->output_count || is_input == is_output || (is_output && is_read(node))) continue;
    ports[(*out_count)++] = (rn_port_t){.name = node->name, .edge = {node, 0}};
  }
  return RN_OK;
}

static rn_status_t freeze_graph(rn_cli_quant_t* q, rn_graph_t* graph) {
  rn_session_options_t options;
  rn_session_t* session = NULL;
  rn_port_t *inputs = NULL, *outputs = NULL;
  int32_t input_count = 0, output_count = 0;
  session_options(q, &options);
  RN_RETURN_IF_ERROR(graph_ports(q, graph, false, &inputs, &input_count));
  RN_RETURN_IF_ERROR(graph_ports(q, graph, true, &outputs, &output_count));
  if (!output_count)
    return rn_invalid_argument(
        "'%s': every node is read by another one: name the results with "
        "--output-node",
        q->path);
  RN_RETURN_IF_ERROR(rn_session_create(graph, &options, q->cli->env, q->cli->allocator, &session));
  rn_status_t status = freeze(q, session, inputs, input_count, outputs, output_count);
  rn_session_destroy(session);
  return status;
}

static rn_status_t open_graph(rn_cli_quant_t* q) {
  rn_graph_t* graph = NULL;
  if (rn_cli_has(q->cli, "--signature") || rn_cli_has(q->cli, "--tags"))
    return rn_cli_usage(q->cli, "--signature and --tags are for SavedModels");
  q->signature = RN_STR("serving_default");
  RN_RETURN_IF_ERROR(rn_cli_load(q->cli, q->path, &q->file));
  RN_RETURN_IF_ERROR(rn_cli_import(&q->file, &graph));
  rn_status_t status = freeze_graph(q, graph);
  rn_graph_release(graph);
  return status;
}

rn_status_t rn_cli_quant_net_open(rn_cli_quant_t* q, rn_pb_GraphDef_t* def,
                                  rn_cli_quant_net_t* out) {
  rn_session_options_t options;
  session_options(q, &options);
  rn_cli_file_t file = {.path = q->path, .allocator = q->cli->allocator, .def = def};
  RN_RETURN_IF_ERROR(rn_cli_import(&file, &out->graph));
  RN_RETURN_IF_ERROR(
      rn_session_create(out->graph, &options, q->cli->env, q->cli->allocator, &out->session));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)q->input_count, &out->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)q->output_count, &out->outputs));
  for (int32_t i = 0; i < q->input_count; ++i)
    RN_RETURN_IF_ERROR(rn_edge_by_name(out->graph, q->inputs[i].node, &out->inputs[i]));
  for (int32_t i = 0; i < q->output_count; ++i)
    RN_RETURN_IF_ERROR(rn_edge_by_name(out->graph, q->outputs[i].node, &out->outputs[i]));
  if (!q->fill.size) return RN_OK;
  rn_node_t* fill = rn_graph_find(out->graph, q->fill);
  rn_signature_t signature = {.targets = &fill, .target_count = 1};
  return rn_cli_at(rn_session_run(out->session, &signature, NULL, NULL, NULL), q->path);
}

void rn_cli_quant_net_clear(rn_cli_quant_net_t* net) {
  rn_session_destroy(net->session);
  rn_graph_release(net->graph);
}

rn_status_t rn_cli_quant_open(rn_cli_quant_t* q) {
  bool is_model = rn_cli_is_folder(q->cli, q->path);
  if (is_model && rn_cli_has(q->cli, "--output-node"))
    return rn_cli_usage(q->cli, "--output-node is for GraphDefs; a SavedModel has signatures");
  RN_RETURN_IF_ERROR(is_model ? open_model(q) : open_graph(q));
  return rn_cli_quant_net_open(q, q->frozen, &q->plain);
}

// A part of |whole|, examples [begin, begin + count), without a copy.
static rn_status_t part_of(const rn_tensor_t* whole, int64_t begin, int64_t count,
                           rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK];
  if (whole->rank == 0) return rn_tensor_share(whole, out);
  memcpy(dims, rn_tensor_dims(whole), whole->rank * sizeof *dims);
  dims[0] = count;
  RN_RETURN_IF_ERROR(rn_tensor_init(out, whole->dtype, (rn_shape_t){whole->rank, dims}));
  size_t each = rn_tensor_bytes(whole) / (size_t)rn_tensor_dim(whole, 0);
  out->data = RN_DATA(whole, char) + (size_t)begin * each;
  return RN_OK;
}

rn_status_t rn_cli_quant_step(rn_cli_quant_t* q, const rn_cli_quant_net_t* net,
                              const rn_edge_t* fetches, int32_t fetch_count, int64_t begin,
                              int64_t count, rn_tensor_t* results) {
  rn_arena_mark_t mark = rn_arena_mark(&q->arena);
  rn_tensor_t* values = NULL;
  const rn_tensor_t** feeds = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)q->input_count, &values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)q->input_count, &feeds));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < q->input_count; ++i) {
    status = part_of(&q->data.inputs[i], begin, count, &values[i]);
    feeds[i] = &values[i];
  }
  rn_signature_t signature = {.feeds = net->inputs,
                              .feed_count = q->input_count,
                              .fetches = fetches,
                              .fetch_count = fetch_count};
  if (rn_ok(status)) status = rn_session_run(net->session, &signature, feeds, results, NULL);
  for (int32_t i = 0; i < q->input_count; ++i) rn_tensor_clear(&values[i]);
  rn_arena_rewind(&q->arena, mark);
  return rn_cli_prefix(status, "'%s' on examples %lld to %lld: ", q->path, (long long)begin,
                       (long long)(begin + count - 1));
}
