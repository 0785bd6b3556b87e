// Names and values of `runnel run`: see run_inputs.h.
#include "cli/run_inputs.h"

#include <stdio.h>

#include "cli/expr.h"
#include "cli/value.h"

static rn_status_t find_node(const rn_cli_run_t* job, const char* option, rn_str_t name,
                             rn_node_t** out) {
  *out = rn_graph_find(job->graph, name);
  if (*out) return RN_OK;
  return rn_not_found(
      "%s %.*s: the graph has no node of that name; 'runnel %s %s' lists inputs and outputs",
      option, RN_STR_ARGS(name), job->is_model ? "saved_model show" : "graph", job->path);
}

// Whether the model's signature has a port of this name.
static bool find_port(const rn_cli_run_t* job, rn_str_t name, bool is_feed, rn_edge_t* out) {
  const rn_port_t* ports = is_feed ? job->model.inputs : job->model.outputs;
  int32_t count = is_feed ? job->model.input_count : job->model.output_count;
  for (int32_t i = 0; job->is_model && i < count; ++i) {
    if (!rn_str_eq(ports[i].name, name)) continue;
    *out = ports[i].edge;
    return true;
  }
  return false;
}

// "name" or "name:1". A node's name has no ':' in it.
static rn_status_t find_edge(const rn_cli_run_t* job, const char* option, rn_str_t text,
                             bool is_feed, rn_edge_t* out) {
  if (find_port(job, text, is_feed, out)) return RN_OK;
  rn_str_t rest = text, name = rn_str_split(&rest, ':');
  int64_t index = 0;
  if (name.size != text.size && (!rn_str_to_i64(rest, &index) || index < 0 || index > INT32_MAX))
    return rn_cli_usage(job->cli, "%s %.*s: ':' needs the number of an output after it", option,
                        RN_STR_ARGS(text));
  RN_RETURN_IF_ERROR(find_node(job, option, name, &out->node));
  out->index = (int)index;
  if (index < out->node->output_count) return RN_OK;
  return rn_invalid_argument(
      "'%s': %s %.*s: the node (%s) has %d outputs; use --target for those "
      "that have none",
      job->path, option, RN_STR_ARGS(text), out->node->op->name, out->node->output_count);
}

// Whether a placeholder declares a shape that |value| does not have. Sessions accept any shape;
// like TensorFlow's Python client, this checks before the step.
static rn_status_t check_shape(const rn_cli_run_t* job, rn_edge_t edge, const rn_tensor_t* value) {
  rn_shape_t declared = edge.node->outputs[edge.index].shape;
  if (edge.node->op->role != RN_ROLE_PLACEHOLDER ||
      rn_shape_compatible(declared, rn_tensor_shape(value)))
    return RN_OK;
  rn_strbuf_t got, wanted;
  rn_strbuf_init(&got, job->cli->allocator);
  rn_strbuf_init(&wanted, job->cli->allocator);
  rn_shape_print(&got, rn_tensor_shape(value));
  rn_shape_print(&wanted, declared);
  rn_status_t status = rn_invalid_argument("the value has shape %s, but the graph expects %s",
                                           rn_strbuf_view(&got).data, rn_strbuf_view(&wanted).data);
  rn_strbuf_clear(&got);
  rn_strbuf_clear(&wanted);
  return status;
}

// A file of integers may feed a quantized placeholder.
static rn_status_t fit(const rn_cli_run_t* job, rn_edge_t edge, rn_tensor_t* value) {
  rn_dtype_t wanted = rn_dtype_base(edge.node->outputs[edge.index].dtype);
  bool is_quantised = rn_dtype_stored(wanted) != wanted;
  if (is_quantised && rn_dtype_is_integer(value->dtype) &&
      rn_dtype_size(value->dtype) == rn_dtype_size(wanted))
    value->dtype = (uint8_t)wanted;
  if (value->dtype == wanted) return check_shape(job, edge, value);
  return rn_invalid_argument("the value is %s, but the graph expects %s",
                             rn_dtype_name(value->dtype), rn_dtype_name(wanted));
}

// Parses |text|, "NAME=VALUE" from |option|, with |read| and feeds the value.
static rn_status_t resolve_feed(rn_cli_run_t* job, const char* option, rn_str_t text,
                                rn_cli_reader_t read) {
  rn_cli_t* cli = job->cli;
  rn_str_t name, value_text;
  rn_edge_t edge;
  RN_RETURN_IF_ERROR(rn_cli_split(cli, option, text, &name, &value_text));
  RN_RETURN_IF_ERROR(find_edge(job, option, name, true, &edge));
  rn_dtype_t wanted = rn_dtype_base(edge.node->outputs[edge.index].dtype);
  rn_tensor_t value;
  RN_RETURN_IF_ERROR(
      rn_cli_prefix(read(cli, value_text, wanted, &value), "%s %.*s: ", option, RN_STR_ARGS(name)));
  rn_status_t status =
      rn_cli_prefix(fit(job, edge, &value), "%s %.*s: ", option, RN_STR_ARGS(name));
  if (rn_ok(status)) status = rn_vec_push(&job->feeds, cli->allocator, edge);
  if (rn_ok(status)) status = rn_vec_push(&job->values, cli->allocator, value);
  if (!rn_ok(status)) rn_tensor_clear(&value);
  return status;
}

// Reads --feed and its equivalents in saved_model_cli.
static rn_status_t resolve_feeds(rn_cli_run_t* job) {
  static const struct {
    const char* option;
    rn_cli_reader_t read;
  } lists[] = {{"--inputs", rn_cli_read_file},
               {"--input_exprs", rn_cli_read_expr},
               {"--input_examples", rn_cli_read_examples}};
  size_t at = 0;
  for (const char* text; (text = rn_cli_each(job->cli, "--feed", &at));)
    RN_RETURN_IF_ERROR(resolve_feed(job, "--feed", rn_str(text), rn_cli_value));
  for (size_t i = 0; job->cli->verb && i < sizeof lists / sizeof *lists; ++i) {
    at = 0;
    for (const char* text; (text = rn_cli_each(job->cli, lists[i].option, &at));) {
      rn_str_t rest = rn_str(text), item;
      while (rn_cli_next_input(&rest, &item))
        RN_RETURN_IF_ERROR(resolve_feed(job, lists[i].option, item, lists[i].read));
    }
  }
  return RN_OK;
}

rn_status_t rn_cli_run_resolve(rn_cli_run_t* job) {
  rn_allocator_t allocator = job->cli->allocator;
  rn_edge_t edge;
  rn_node_t* node;
  size_t at = 0;
  RN_RETURN_IF_ERROR(resolve_feeds(job));
  for (size_t i = 0; i < job->fetch_texts.count; ++i) {
    const rn_cli_run_fetch_t* fetch = &job->fetch_texts.items[i];
    RN_RETURN_IF_ERROR(
        find_edge(job, fetch->file.size ? "--save" : "--fetch", rn_str(fetch->name), false, &edge));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->fetches, allocator, edge));
  }
  at = 0;
  for (const char* name; (name = rn_cli_each(job->cli, "--target", &at));) {
    RN_RETURN_IF_ERROR(find_node(job, "--target", rn_str(name), &node));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->targets, allocator, node));
  }
  at = 0;
  for (const char* name; (name = rn_cli_each(job->cli, "--init", &at));) {
    RN_RETURN_IF_ERROR(find_node(job, "--init", rn_str(name), &node));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->inits, allocator, node));
  }
  return RN_ARENA_ARRAY(&job->arena, job->fetches.count, &job->results);
}

static bool is_fed(const rn_cli_run_t* job, rn_edge_t edge) {
  for (size_t i = 0; i < job->feeds.count; ++i)
    if (job->feeds.items[i].node == edge.node && job->feeds.items[i].index == edge.index)
      return true;
  return false;
}

rn_status_t rn_cli_run_name_inputs(const rn_cli_run_t* job, rn_status_t status) {
  rn_strbuf_t names;
  bool is_cause = false;
  if (rn_ok(status) || !job->is_model) return status;
  rn_strbuf_init(&names, job->cli->allocator);
  for (int32_t i = 0; i < job->model.input_count; ++i) {
    const rn_port_t* input = &job->model.inputs[i];
    rn_str_t node = input->edge.node->name;
    char quoted[300];
    if (is_fed(job, input->edge) || input->edge.node->input_count) continue;
    snprintf(quoted, sizeof quoted, "placeholder tensor '%.*s'", RN_STR_ARGS(node));
    is_cause |= strstr(rn_status_message(status), quoted) != NULL;
    const rn_output_t* output = &input->edge.node->outputs[input->edge.index];
    rn_strbuf_printf(&names, "%s'%.*s' (%s ", names.size ? ", " : "", RN_STR_ARGS(input->name),
                     rn_dtype_name(output->dtype));
    rn_shape_print(&names, output->shape);
    rn_strbuf_append(&names, RN_STR(")"));
  }
  if (is_cause) {
    rn_status_free(status);
    status = rn_invalid_argument(
        "the signature '%.*s' of '%s' needs a value for %s; write --feed NAME=VALUE or --feed "
        "NAME=@FILE.npy",
        RN_STR_ARGS(job->model.signature), job->path, rn_strbuf_view(&names).data);
  }
  rn_strbuf_clear(&names);
  return status;
}
