// Arguments of rn_run as a step: see run_args.h.
#include "session/run_args.h"

#include "graph/graph.h"

static rn_status_t find(rn_graph_t* graph, const rn_run_arg_t* arg, rn_edge_t* out) {
  *out = arg->key.edge;
  if (arg->key.name) RN_RETURN_IF_ERROR(rn_edge_by_name(graph, rn_str(arg->key.name), out));
  if (!out->node) return rn_invalid_argument("rn_run: an argument names neither edge nor node");
  // Edges of other graphs and targets are the session's to check.
  if (arg->kind == RN_RUN_TARGET || (out->index >= 0 && out->index < out->node->output_count))
    return RN_OK;
  return rn_invalid_argument("Node '%s' (type: '%s', num of outputs: %d) does not have output %d",
                             out->node->name.data, out->node->op->name, out->node->output_count,
                             out->index);
}

static rn_status_t shape_of(const rn_run_arg_t* arg, rn_edge_t edge, rn_shape_t* out) {
  *out = (rn_shape_t){0, arg->dims};
  while (out->rank <= RN_RUN_MAX_RANK && arg->dims[out->rank] >= 0) out->rank++;
  if (out->rank <= RN_RUN_MAX_RANK && arg->dims[out->rank] == RN_RUN_END) return RN_OK;
  return rn_invalid_argument("rn_run: the array for '%s:%d' has a bad shape: dimension %d",
                             edge.node->name.data, edge.index, out->rank);
}

static rn_status_t check_array(const rn_run_arg_t* arg, rn_edge_t edge, const void* data) {
  rn_dtype_t dtype = rn_dtype_base(edge.node->outputs[edge.index].dtype);
  if ((int)arg->dtype != (int)dtype)
    return rn_invalid_argument("rn_run: '%s:%d' has type %s, but its array has type %s",
                               edge.node->name.data, edge.index, rn_dtype_name(dtype),
                               rn_dtype_name((rn_dtype_t)arg->dtype));
  if (data) return RN_OK;
  return rn_invalid_argument("rn_run: the array for '%s:%d' is NULL", edge.node->name.data,
                             edge.index);
}

static rn_status_t add_feed(rn_args_step_t* step, const rn_run_arg_t* arg, rn_edge_t edge) {
  int32_t at = step->signature.feed_count++;
  step->feed_edges[at] = edge;
  step->feeds[at] = (const rn_tensor_t*)arg->tensor;  // a TF_Tensor begins with one
  if (arg->tensor) return RN_OK;
  rn_shape_t shape;
  rn_tensor_t* copy = &step->copies[step->copy_count];
  RN_RETURN_IF_ERROR(check_array(arg, edge, arg->from));
  RN_RETURN_IF_ERROR(shape_of(arg, edge, &shape));
  RN_RETURN_IF_ERROR(rn_tensor_create(step->allocator, (rn_dtype_t)arg->dtype, shape, copy));
  step->copy_count++;
  if (copy->count) memcpy(copy->data, arg->from, rn_tensor_bytes(copy));
  step->feeds[at] = copy;
  return RN_OK;
}

static rn_status_t add_fetch(rn_args_step_t* step, const rn_run_arg_t* arg, rn_edge_t edge) {
  rn_shape_t shape;
  if (!arg->out_tensor) {
    RN_RETURN_IF_ERROR(check_array(arg, edge, arg->to));
    RN_RETURN_IF_ERROR(shape_of(arg, edge, &shape));
  }
  int32_t at = step->signature.fetch_count++;
  step->fetch_edges[at] = edge;
  step->fetched[at] = arg;
  step->tensor_count += arg->out_tensor != NULL;
  return RN_OK;
}

static rn_status_t add(rn_args_step_t* step, rn_graph_t* graph, const rn_run_arg_t* arg) {
  rn_edge_t edge;
  RN_RETURN_IF_ERROR(find(graph, arg, &edge));
  if (arg->kind == RN_RUN_FEED) return add_feed(step, arg, edge);
  if (arg->kind == RN_RUN_FETCH) return add_fetch(step, arg, edge);
  step->targets[step->signature.target_count++] = edge.node;
  return RN_OK;
}

rn_status_t rn_args_step_init(rn_args_step_t* step, rn_graph_t* graph, rn_allocator_t allocator,
                              const rn_run_arg_t* args, size_t count) {
  *step = (rn_args_step_t){.allocator = allocator};
  rn_arena_init(&step->arena, allocator);
  if (count > INT32_MAX || (count && !args))
    return rn_invalid_argument("rn_run: bad list of %zu arguments", count);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->feed_edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->fetch_edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->targets));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->copies));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, count, &step->fetched));
  step->signature = (rn_signature_t){
      .feeds = step->feed_edges, .fetches = step->fetch_edges, .targets = step->targets};
  for (size_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(add(step, graph, &args[i]));
  if (step->signature.fetch_count + step->signature.target_count) return RN_OK;
  return rn_invalid_argument("Must specify at least one target to fetch or execute.");
}

static rn_status_t check_shape(const rn_args_step_t* step, int32_t i) {
  rn_shape_t wanted, found = rn_tensor_shape(&step->fetches[i]);
  rn_edge_t edge = step->signature.fetches[i];
  RN_RETURN_IF_ERROR(shape_of(step->fetched[i], edge, &wanted));
  if (rn_shape_eq(wanted, found)) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, step->allocator);
  rn_strbuf_printf(&text, "rn_run: '%s:%d' has shape ", edge.node->name.data, edge.index);
  rn_shape_print(&text, found);
  rn_strbuf_append(&text, RN_STR(", but its array has "));
  rn_shape_print(&text, wanted);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_args_step_deliver(rn_args_step_t* step, rn_tensor_t* tensors) {
  int32_t count = step->signature.fetch_count;
  for (int32_t i = 0; i < count; ++i)
    if (!step->fetched[i]->out_tensor) RN_RETURN_IF_ERROR(check_shape(step, i));
  for (int32_t i = 0; i < count; ++i) {
    rn_tensor_t* result = &step->fetches[i];
    if (step->fetched[i]->out_tensor) {
      *tensors++ = *result;
      *result = (rn_tensor_t){0};
    } else if (result->count) {
      memcpy(step->fetched[i]->to, result->data, rn_tensor_bytes(result));
    }
  }
  return RN_OK;
}

void rn_args_step_clear(rn_args_step_t* step) {
  for (int32_t i = 0; i < step->copy_count; ++i) rn_tensor_clear(&step->copies[i]);
  for (int32_t i = 0; i < step->signature.fetch_count; ++i) rn_tensor_clear(&step->fetches[i]);
  rn_arena_clear(&step->arena);
}
