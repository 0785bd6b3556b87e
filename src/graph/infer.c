// Shape inference for one node: collects what is known of its inputs, runs the op's shape function,
// and stores the result.
#include <inttypes.h>

#include "graph/build.h"
#include "tensor/print.h"

// Nodes with more inputs or outputs than this use heap memory for the context.
#define FEW 8
// The most Identity nodes that the search for a constant follows.
#define MAX_HOPS 64
// The most elements of a value that messages show.
#define MAX_SHOWN 256

const rn_tensor_t* rn_node_constant(const rn_node_t* node) {
  if (node->op->role != RN_ROLE_CONSTANT) return NULL;
  const rn_attr_value_t* value = rn_node_attr(node, RN_STR("value"));
  bool is_tensor = value && value->kind == RN_ATTR_TENSOR && !value->is_list && value->tensor;
  return is_tensor && value->tensor->dtype == node->outputs[0].dtype ? value->tensor : NULL;
}

static const rn_tensor_t* known_value(rn_edge_t edge) {
  for (int hops = 0; hops < MAX_HOPS && edge.node && edge.index == 0; hops++) {
    const rn_node_t* node = edge.node;
    if (node->op->role == RN_ROLE_CONSTANT) return rn_node_constant(node);
    if (node->op->role != RN_ROLE_IDENTITY || node->input_count < 1) return NULL;
    edge = node->inputs[0];
  }
  return NULL;
}

typedef struct few_arrays_t {
  rn_shape_t shapes[FEW];
  rn_dtype_t types[FEW];
  const rn_tensor_t* values[FEW];
  rn_partial_t partials[FEW];
  rn_handle_data_t handles[FEW];
  rn_shape_t out_shapes[FEW];
  rn_handle_data_t out_handles[FEW];
} few_arrays_t;

static void gather_inputs(const rn_node_t* node, rn_shape_arrays_t* arrays) {
  for (int i = 0; i < node->input_count; i++) {
    rn_edge_t edge = node->inputs[i];
    arrays->values[i] = NULL;
    arrays->partials[i] = (rn_partial_t){0};
    if (!edge.node) {  // a loop's back edge that is not linked yet: nothing is known
      arrays->inputs[i] = RN_SHAPE_UNKNOWN;
      arrays->types[i] = RN_INVALID;
      arrays->handles[i] = (rn_handle_data_t){0};
      continue;
    }
    const rn_output_t* output = &edge.node->outputs[edge.index];
    arrays->inputs[i] = output->shape;
    arrays->types[i] = output->dtype;
    arrays->handles[i] = output->handle;
    if (edge.index != 0) continue;
    arrays->partials[i] = edge.node->partial;
    uint8_t role = edge.node->op->role;
    if (role == RN_ROLE_CONSTANT || role == RN_ROLE_IDENTITY) arrays->values[i] = known_value(edge);
  }
}

static void keep_outputs(rn_node_t* node, const rn_shape_ctx_t* ctx) {
  for (int i = 0; i < node->output_count; i++) {
    node->outputs[i].shape = ctx->outputs[i];
    node->outputs[i].handle = ctx->output_handles[i];
  }
  node->partial = ctx->output_partial;
  if (!node->partial.is_known && node->op->role == RN_ROLE_IDENTITY && node->output_count > 0 &&
      node->input_count > 0) {
    node->partial = ctx->input_partials[0];
  }
}

static void print_input_shapes(rn_strbuf_t* text, const rn_shape_ctx_t* ctx) {
  rn_strbuf_append(text, RN_STR(" with input shapes: "));
  for (int i = 0; i < ctx->input_count; i++) {
    if (i > 0) rn_strbuf_append(text, RN_STR(", "));
    if (rn_shape_has_rank(ctx->inputs[i])) {
      rn_shape_print(text, ctx->inputs[i]);
    } else {
      rn_strbuf_append(text, RN_STR("?"));
    }
  }
}

static bool is_asked(uint64_t asked, int i) { return i < 64 && (asked >> i & 1); }

static void print_values(rn_strbuf_t* text, const rn_shape_ctx_t* ctx) {
  int found = 0;
  for (int i = 0; i < ctx->input_count; i++) {
    if (!is_asked(ctx->asked->values, i) || !ctx->input_values[i]) continue;
    rn_strbuf_append(text, found++ ? RN_STR(", ") : RN_STR(" and with computed input tensors: "));
    rn_strbuf_printf(text, "input[%d] = <", i);
    rn_print_values(text, ctx->input_values[i], MAX_SHOWN);
    rn_strbuf_append(text, RN_STR(">"));
  }
}

static void print_partial_shapes(rn_strbuf_t* text, const rn_shape_ctx_t* ctx) {
  int found = 0;
  for (int i = 0; i < ctx->input_count; i++) {
    const rn_partial_t* partial = &ctx->input_partials[i];
    if (!is_asked(ctx->asked->shapes, i) || !partial->is_known || partial->is_scalar) continue;
    rn_strbuf_append(text, found++
                               ? RN_STR(", ")
                               : RN_STR(" and with input tensors computed as partial shapes: "));
    rn_strbuf_printf(text, "input[%d] = [", i);
    for (int j = 0; j < partial->count; j++) {
      if (j > 0) rn_strbuf_append(text, RN_STR(","));
      if (partial->values[j] < 0) {
        rn_strbuf_append(text, RN_STR("?"));
      } else {
        rn_strbuf_printf(text, "%" PRId64, partial->values[j]);
      }
    }
    rn_strbuf_append(text, RN_STR("]"));
  }
}

// Appends the node and its input shapes to a shape function's error.
static rn_status_t explain(rn_status_t status, const rn_node_t* node, const rn_shape_ctx_t* ctx) {
  // TensorFlow reads shape tensors outside of its shape functions.
  rn_str_t message = rn_str(rn_status_message(status));
  if (rn_str_starts_with(message, RN_STR("Invalid value in tensor used for shape: "))) {
    return status;
  }
  rn_strbuf_t text;
  rn_strbuf_init(&text, node->graph->allocator);
  rn_strbuf_append(&text, RN_STR(" for '"));
  rn_node_summary(&text, node);
  rn_strbuf_append(&text, RN_STR("'"));
  print_input_shapes(&text, ctx);
  print_values(&text, ctx);
  print_partial_shapes(&text, ctx);
  rn_strbuf_append(&text, RN_STR("."));
  status = rn_status_annotate(status, "%s", rn_strbuf_view(&text).data);
  rn_strbuf_clear(&text);
  return status;
}

// Whether an attribute is a placeholder, which leaves the shapes unknown.
static bool has_placeholder(const rn_node_t* node) {
  for (int i = 0; i < node->op->attr_count; i++) {
    if (node->attrs[i].kind == RN_ATTR_PLACEHOLDER) return true;
  }
  return false;
}

// Makes a context with the inputs in |arrays| and unknown outputs.
static rn_shape_ctx_t make_context(const rn_node_t* node, const rn_shape_arrays_t* arrays,
                                   rn_shape_asked_t* asked) {
  rn_shape_ctx_t ctx = {
      .op = node->op,
      .attrs = node->attrs,
      .arena = &node->graph->arena,
      .graph_version = node->graph->producer,
      .input_count = node->input_count,
      .output_count = node->output_count,
      .asked = asked,
  };
  rn_shape_set_arrays(&ctx, arrays);
  return ctx;
}

// Infers the shapes of |node| as if nothing were known of its inputs. False if its shape function
// fails even then, for instance because of invalid attributes: kernels rely on that check.
static bool keep_misfit(rn_node_t* node, rn_shape_arrays_t* arrays) {
  rn_shape_asked_t asked = {0};
  for (int i = 0; i < node->input_count; i++) {
    arrays->inputs[i] = RN_SHAPE_UNKNOWN;
    arrays->values[i] = NULL;
    arrays->partials[i] = (rn_partial_t){0};
    arrays->handles[i] = (rn_handle_data_t){0};
  }
  rn_shape_ctx_t ctx = make_context(node, arrays, &asked);
  rn_status_t status = rn_shape_infer(&ctx);
  bool is_kept = rn_ok(status);
  if (is_kept) keep_outputs(node, &ctx);
  rn_status_free(status);
  return is_kept;
}

static rn_status_t infer(rn_node_t* node, rn_shape_arrays_t* arrays) {
  bool is_allowed = node->graph->allows_shapeless || node->graph->keeps_misfits;
  if (node->op->shape == rn_shape_fn_missing && !is_allowed) {
    return rn_invalid_argument(
        "No shape inference function exists for op '%s', did you forget to define it?",
        node->op->name);
  }
  gather_inputs(node, arrays);
  rn_shape_asked_t asked = {0};
  rn_shape_ctx_t ctx = make_context(node, arrays, &asked);
  rn_status_t status = has_placeholder(node) ? RN_OK : rn_shape_infer(&ctx);
  if (rn_ok(status)) {
    keep_outputs(node, &ctx);
    return RN_OK;
  }
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  status = explain(status, node, &ctx);
  if (!node->graph->keeps_misfits || !keep_misfit(node, arrays)) return status;
  rn_status_free(status);
  return RN_OK;
}

rn_status_t rn_node_infer_locked(rn_node_t* node) {
  if (node->input_count <= FEW && node->output_count <= FEW) {
    few_arrays_t few;
    rn_shape_arrays_t arrays = {few.shapes,  few.types,      few.values,     few.partials,
                                few.handles, few.out_shapes, few.out_handles};
    return infer(node, &arrays);
  }
  rn_arena_t scratch;
  rn_arena_init(&scratch, node->graph->allocator);
  rn_shape_arrays_t arrays;
  rn_status_t status =
      rn_shape_arrays_init(&scratch, node->input_count, node->output_count, &arrays);
  if (rn_ok(status)) status = infer(node, &arrays);
  rn_arena_clear(&scratch);
  return status;
}
