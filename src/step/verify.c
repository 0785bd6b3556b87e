// The verifier of a step's graph: see verify.h.
#include "step/verify.h"

#include "device/device.h"
#include "framework/op_face.h"
#include "framework/shape_fn.h"
#include "graph/build.h"

typedef struct step_verify_t {
  rn_ir_t* ir;
  rn_ir_stage_t stage;
  rn_arena_t scratch;
  bool is_clients;
  rn_ir_excuses_t* excuses;
} step_verify_t;

#define BROKEN(node, format, ...) \
  rn_internal("node '%.*s' (%s): " format, RN_STR_ARGS((node)->name), (node)->op->name, __VA_ARGS__)

// The node at the other end of an edge must be there.
static const char* why_not_there(const step_verify_t* v, int32_t index) {
  if (index < 0 || (size_t)index >= v->ir->nodes.count) return "does not exist";
  return rn_ir_node(v->ir, index)->is_removed ? "was removed" : NULL;
}

static rn_status_t check_edge(const step_verify_t* v, const rn_ir_node_t* node, int32_t i) {
  rn_ir_edge_t edge = node->inputs[i];
  const char* why = why_not_there(v, edge.node);
  if (why) return BROKEN(node, "input %d comes from node %d, which %s", i, edge.node, why);
  const rn_ir_node_t* source = rn_ir_node(v->ir, edge.node);
  if (edge.output < 0 || edge.output >= source->output_count)
    return BROKEN(node, "input %d is output %d of '%.*s', which has %d outputs", i, edge.output,
                  RN_STR_ARGS(source->name), source->output_count);
  return RN_OK;
}

static rn_status_t check_controls(const step_verify_t* v, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(v->ir, index);
  for (int32_t i = 0; i < node->control_count; ++i) {
    const char* why = why_not_there(v, node->controls[i]);
    if (why) return BROKEN(node, "it waits for node %d, which %s", node->controls[i], why);
    if (node->controls[i] == index) return BROKEN(node, "%s", "it waits for itself");
  }
  return RN_OK;
}

static rn_dtype_t arg_type(const rn_ir_node_t* node, const rn_arg_def_t* arg, int32_t i) {
  rn_dtype_t type = rn_arg_type(arg, node->attrs, i);
  return arg->is_ref ? rn_dtype_ref(type) : type;
}

// The definition, with the node's attributes, says how many inputs it has and of which types.
static rn_status_t check_inputs(const step_verify_t* v, const rn_ir_node_t* node) {
  int32_t flat = 0;
  for (int a = 0; a < node->op->input_count; ++a) {
    const rn_arg_def_t* arg = &node->op->inputs[a];
    int32_t length = rn_arg_length(arg, node->attrs);
    for (int32_t i = 0; i < length; ++i, ++flat) {
      if (flat >= node->input_count) break;
      RN_RETURN_IF_ERROR(check_edge(v, node, flat));
      rn_ir_edge_t edge = node->inputs[flat];
      rn_dtype_t want = arg_type(node, arg, i);
      rn_dtype_t have = rn_ir_node(v->ir, edge.node)->types[edge.output];
      bool is_fed = rn_ir_node(v->ir, edge.node)->feed >= 0;  // a value may be fed for a reference
      if (!rn_dtype_fits(have, is_fed ? rn_dtype_base(want) : want))
        return BROKEN(node, "input %d ('%s') wants %s and gets %s from '%.*s'", flat, arg->name,
                      rn_dtype_name(want), rn_dtype_name(have),
                      RN_STR_ARGS(rn_ir_node(v->ir, edge.node)->name));
    }
  }
  if (flat != node->input_count)
    return BROKEN(node, "it has %d inputs; its definition asks for %d", node->input_count, flat);
  return RN_OK;
}

static rn_status_t check_outputs(const rn_ir_node_t* node) {
  int32_t flat = 0;
  for (int a = 0; a < node->op->output_count; ++a) {
    const rn_arg_def_t* arg = &node->op->outputs[a];
    int32_t length = rn_arg_length(arg, node->attrs);
    for (int32_t i = 0; i < length && flat < node->output_count; ++i, ++flat)
      if (node->types[flat] != arg_type(node, arg, i))
        return BROKEN(node, "output %d is a %s; its definition says %s", flat,
                      rn_dtype_name(node->types[flat]), rn_dtype_name(arg_type(node, arg, i)));
  }
  if (flat != node->output_count)
    return BROKEN(node, "it has %d outputs; its definition says %d", node->output_count, flat);
  return RN_OK;
}

static rn_status_t shape_error(step_verify_t* v, const rn_ir_node_t* node, size_t output,
                               rn_shape_t inferred) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, v->ir->allocator);
  rn_shape_print(&text, node->shapes[output]);
  rn_strbuf_printf(&text, " on record, ");
  rn_shape_print(&text, inferred);
  rn_status_t status = BROKEN(node, "the shape of output %zu is %.*s by its inputs' shapes", output,
                              RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
  return status;
}

// What the op's shape function concludes from the inputs' shapes, and from the values of constants
// if |with_values|; NULL if it fails.
static rn_status_t infer(step_verify_t* v, const rn_ir_node_t* node, bool with_values,
                         rn_shape_t** out) {
  rn_shape_arrays_t arrays;
  rn_shape_ctx_t ctx;
  RN_RETURN_IF_ERROR(rn_ir_shape_ctx(v->ir, node, &v->scratch, &arrays, &ctx));
  for (int32_t i = 0; !with_values && i < node->input_count; ++i) arrays.values[i] = NULL;
  rn_status_t status = rn_shape_infer(&ctx);
  *out = rn_ok(status) ? arrays.outputs : NULL;
  rn_status_free(status);
  return RN_OK;
}

// What the op's shape function concludes must agree with the shapes on record. Where it fails, or
// contradicts itself as soon as it sees the constants, a client asked for what cannot be, and the
// kernel will say so.
static rn_status_t compare_shapes(step_verify_t* v, const rn_ir_node_t* node) {
  rn_shape_t *by_shapes = NULL, *by_values = NULL;
  RN_RETURN_IF_ERROR(infer(v, node, false, &by_shapes));
  RN_RETURN_IF_ERROR(infer(v, node, true, &by_values));
  for (size_t i = 0; by_shapes && by_values && i < (size_t)node->output_count; ++i)
    if (rn_shape_compatible(by_shapes[i], by_values[i]) &&
        !rn_shape_compatible(by_shapes[i], node->shapes[i]))
      return shape_error(v, node, i, by_shapes[i]);
  return RN_OK;
}

static rn_status_t check_shapes(step_verify_t* v, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(v->ir, index);
  if (node->constant && !rn_shape_compatible(node->shapes[0], rn_tensor_shape(node->constant)))
    return BROKEN(node, "%s", "the shape on record is not that of its constant value");
  bool is_plain = node->op->role == RN_ROLE_PLAIN || node->op->role == RN_ROLE_IDENTITY;
  if (!is_plain || node->constant || v->excuses->is_excused[index]) return RN_OK;
  rn_arena_mark_t mark = rn_arena_mark(&v->scratch);
  rn_status_t status = compare_shapes(v, node);
  rn_arena_rewind(&v->scratch, mark);
  if (rn_ok(status) || !v->is_clients) return status;
  v->excuses->is_excused[index] = true;
  rn_status_free(status);
  return RN_OK;
}

static rn_status_t check_device(const step_verify_t* v, const rn_ir_node_t* node) {
  if (!node->device) return BROKEN(node, "%s", "placement gave it no device");
  if (node->kernel && strcmp(node->kernel->op, rn_op_base_name(node->op->name)) != 0)
    return BROKEN(node, "it has a kernel of %s", node->kernel->op);
  if (node->kernel && strcmp(node->kernel->device, node->device->type) != 0 &&
      strcmp(node->kernel->device, "DEFAULT") != 0)
    return BROKEN(node, "it is on a %s and has a kernel for a %s", node->device->type,
                  node->kernel->device);
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = rn_ir_node(v->ir, node->inputs[i].node);
    bool must_share = v->stage >= RN_IR_PARTITIONED || rn_ir_wants_ref(node, i);
    if (must_share && source->device != node->device)
      return BROKEN(node, "its input '%.*s' is on another device", RN_STR_ARGS(source->name));
  }
  for (int32_t i = 0; v->stage >= RN_IR_PARTITIONED && i < node->control_count; ++i)
    if (rn_ir_node(v->ir, node->controls[i])->device != node->device)
      return BROKEN(node, "'%.*s', which it waits for, is on another device",
                    RN_STR_ARGS(rn_ir_node(v->ir, node->controls[i])->name));
  return RN_OK;
}

static rn_status_t check_node(step_verify_t* v, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(v->ir, index);
  if (node->is_removed) return RN_OK;
  RN_RETURN_IF_ERROR(check_controls(v, index));
  if (node->feed >= 0) {
    if (node->input_count || node->output_count != 1 || node->feed >= v->ir->feed_count)
      return BROKEN(node, "%s", "it stands for a feed, and has inputs or not just one output");
    return v->stage >= RN_IR_PLACED ? check_device(v, node) : RN_OK;
  }
  RN_RETURN_IF_ERROR(check_inputs(v, node));
  RN_RETURN_IF_ERROR(check_outputs(node));
  RN_RETURN_IF_ERROR(check_shapes(v, index));
  return v->stage >= RN_IR_PLACED ? check_device(v, node) : RN_OK;
}

// What the step was asked for must still be there. A target may have been removed, if nothing is
// left of what it did.
static rn_status_t check_results(const step_verify_t* v) {
  for (int32_t i = 0; i < v->ir->fetch_count; ++i) {
    rn_ir_edge_t edge = v->ir->fetches[i];
    const char* why = why_not_there(v, edge.node);
    if (why) return rn_internal("fetch %d comes from node %d, which %s", i, edge.node, why);
    if (edge.output < 0 || edge.output >= rn_ir_node(v->ir, edge.node)->output_count)
      return rn_internal("fetch %d is an output that its node does not have", i);
  }
  for (int32_t i = 0; i < v->ir->target_count; ++i)
    if (v->ir->targets[i] < 0 || (size_t)v->ir->targets[i] >= v->ir->nodes.count)
      return rn_internal("target %d is node %d, which does not exist", i, v->ir->targets[i]);
  return RN_OK;
}

static rn_status_t verify(step_verify_t* v) {
  for (size_t n = 0; n < v->ir->nodes.count; ++n) RN_RETURN_IF_ERROR(check_node(v, (int32_t)n));
  RN_RETURN_IF_ERROR(check_results(v));
  int32_t *order = NULL, count = 0;
  return rn_ir_order(v->ir, &order, &count);  // finds cycles
}

static rn_status_t grow(rn_ir_t* ir, rn_ir_excuses_t* excuses) {
  bool* grown = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &grown));
  for (size_t n = 0; n < excuses->count; ++n) grown[n] = excuses->is_excused[n];
  *excuses = (rn_ir_excuses_t){ir->nodes.count, grown};
  return RN_OK;
}

rn_status_t rn_ir_verify(rn_ir_t* ir, rn_ir_stage_t stage, bool is_clients,
                         rn_ir_excuses_t* inout_excuses) {
  step_verify_t v = {.ir = ir, .stage = stage, .is_clients = is_clients, .excuses = inout_excuses};
  if (inout_excuses->count < ir->nodes.count || !inout_excuses->is_excused)
    RN_RETURN_IF_ERROR(grow(ir, inout_excuses));
  rn_arena_init(&v.scratch, ir->allocator);
  rn_status_t status = verify(&v);
  rn_arena_clear(&v.scratch);
  return status;
}
