// Changes the types that the pass mixed_precision chose, and adds Casts where types then differ.
#include "device/device.h"
#include "step/paint.h"
#include "tensor/float16.h"

typedef struct caster_t {
  rn_painter_t* p;
  const rn_op_def_t* op;  // Cast
  int32_t* made;          // by output: the node that has its value in the other type; -1: none
} caster_t;

rn_status_t rn_paint_attrs(rn_painter_t* p, int32_t index, const bool* vertices,
                           const rn_attr_value_t** out) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)node->op->attr_count, &attrs));
  for (int a = 0; a < node->op->attr_count; ++a) attrs[a] = node->attrs[a];
  for (int32_t v = p->graph.first[index]; v < p->graph.first[index + 1]; ++v) {
    const rn_type_vertex_t* vertex = &p->graph.vertices[v];
    if (!vertices[v]) continue;
    rn_attr_value_t* attr = &attrs[vertex->attr];
    if (vertex->element < 0) {
      attr->type = p->type;
      continue;
    }
    rn_dtype_t* types = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)attr->count, &types));
    for (int32_t i = 0; i < attr->count; ++i) types[i] = attr->list_type[i];
    types[vertex->element] = p->type;
    attr->list_type = types;
  }
  *out = attrs;
  return RN_OK;
}

static rn_status_t change_types(rn_painter_t* p, int32_t index) {
  bool changes = false;
  for (int32_t v = p->graph.first[index]; v < p->graph.first[index + 1]; ++v)
    changes |= p->allow[v];
  if (!changes) return RN_OK;
  rn_ir_node_t* node = rn_ir_node(p->ir, index);
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(rn_paint_attrs(p, index, p->allow, &node->attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)node->output_count, &types));
  for (int32_t o = 0; o < node->output_count; ++o)
    types[o] = p->allow[rn_type_of_output(&p->graph, index, o)] ? p->type : node->types[o];
  node->types = types;
  if (rn_ir_is_control_flow(node->op->role)) return RN_OK;
  node->kernel = rn_kernel_find(node->op, node->attrs, NULL, p->device);
  if (node->kernel) return RN_OK;
  return rn_internal("node '%.*s' (%s) has no kernel for %s", RN_STR_ARGS(node->name),
                     node->op->name, rn_dtype_name(p->type));
}

// Whether |source| has its value before the step, so that it can be converted now.
static bool is_known(const rn_ir_node_t* source, rn_ir_edge_t edge) {
  return source->constant && edge.output == 0 && source->constant->dtype == RN_FLOAT;
}

static rn_status_t convert_constant(caster_t* c, const rn_ir_node_t* source, rn_ir_node_t* out) {
  const rn_tensor_t* from = source->constant;
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_create(c->p->ir->allocator, c->p->type, rn_tensor_shape(from), &value));
  for (int64_t i = 0; i < from->count; ++i) {
    float x = RN_DATA(from, const float)[i];
    RN_DATA(&value, uint16_t)
    [i] = c->p->type == RN_HALF ? rn_float_to_half(x) : rn_float_to_bfloat16(x);
  }
  rn_str_t name = out->name;
  *out = *source;
  out->name = name;
  RN_RETURN_IF_ERROR(rn_ir_own_constant(c->p->ir, &value, out));
  out->kernel = rn_kernel_find(out->op, out->attrs, NULL, out->device->type);
  return RN_OK;
}

static const char* suffix_of(const rn_painter_t* p, rn_dtype_t to) {
  return to == RN_FLOAT ? "CastToFp32" : p->type == RN_HALF ? "CastToFp16" : "CastToBf16";
}

// Adds a node with the value of |edge| in type |to|, on the device of node |side|.
static rn_status_t add_cast(caster_t* c, rn_ir_edge_t edge, rn_dtype_t to, int32_t side,
                            int32_t* out) {
  rn_ir_t* ir = c->p->ir;
  const rn_ir_node_t *source = rn_ir_node(ir, edge.node), *near = rn_ir_node(ir, side);
  rn_dtype_t from = to == RN_FLOAT ? c->p->type : RN_FLOAT;
  const rn_attr_t given[] = {
      {RN_STR("SrcT"), {.type = from}}, {RN_STR("DstT"), {.type = to}}, RN_ATTRS_END};
  rn_ir_node_t node = {
      .op = c->op, .requested_device = near->requested_device, .device = near->device, .feed = -1};
  RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &node.name, "%.*s-%d-%s-0-AutoMixedPrecision",
                                     RN_STR_ARGS(source->name), edge.output, suffix_of(c->p, to)));
  if (to != RN_FLOAT && is_known(source, edge)) {
    rn_ir_node_t constant = node;
    RN_RETURN_IF_ERROR(convert_constant(c, source, &constant));
    if (constant.kernel) return rn_ir_add(ir, &constant, out);
  }
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, 1, 1, to, source->shapes[edge.output], &node));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(ir, c->op, NULL, given, &node.attrs));
  node.inputs[0] = edge;
  node.kernel = rn_kernel_find(c->op, node.attrs, NULL, near->device->type);
  if (!node.kernel)
    return rn_internal("%s has no Cast from %s to %s", near->device->type, rn_dtype_name(from),
                       rn_dtype_name(to));
  return rn_ir_add(ir, &node, out);
}

// Adds the nodes that bring |edge| from its type to the other one; if values are rounded only, to
// the other one and back. |*out_first| is the one that reads |edge|.
static rn_status_t add_casts(caster_t* c, rn_ir_edge_t edge, bool to_float, int32_t side,
                             int32_t* out_first, int32_t* out_last) {
  bool emulates = c->p->emulates;
  rn_dtype_t to = to_float && !emulates ? RN_FLOAT : c->p->type;
  RN_RETURN_IF_ERROR(add_cast(c, edge, to, side, out_first));
  *out_last = *out_first;
  return emulates ? add_cast(c, (rn_ir_edge_t){*out_first, 0}, RN_FLOAT, side, out_last) : RN_OK;
}

// A value that is a variable's memory may change during the step, so the Cast for node |index|
// waits for what the node waits for.
static rn_status_t wait_like(rn_ir_t* ir, int32_t cast, int32_t index) {
  for (int32_t k = 0; k < rn_ir_node(ir, index)->control_count; ++k)
    RN_RETURN_IF_ERROR(rn_ir_add_control(ir, cast, rn_ir_node(ir, index)->controls[k]));
  return RN_OK;
}

// Gives node |index| its input |i| in the type that it wants now.
static rn_status_t cast_input(caster_t* c, int32_t index, int32_t i) {
  rn_painter_t* p = c->p;
  rn_ir_edge_t edge = rn_ir_node(p->ir, index)->inputs[i];
  bool was = p->allow[rn_type_of_output(&p->graph, edge.node, edge.output)];
  bool is = p->allow[rn_type_of_input(&p->graph, index, i)];
  if (was == is && !(was && p->emulates)) return RN_OK;
  int32_t side = was ? edge.node : index, first;
  int32_t* made = &c->made[p->graph.first_output[edge.node] + edge.output];
  bool is_memory = rn_dtype_is_ref(rn_ir_node(p->ir, edge.node)->types[edge.output]);
  if (is_memory || *made < 0 ||
      rn_ir_node(p->ir, *made)->device != rn_ir_node(p->ir, side)->device) {
    RN_RETURN_IF_ERROR(add_casts(c, edge, was, side, &first, made));
    if (is_memory) RN_RETURN_IF_ERROR(wait_like(p->ir, first, index));
  }
  rn_ir_node(p->ir, index)->inputs[i] = (rn_ir_edge_t){*made, 0};
  return RN_OK;
}

rn_status_t rn_paint_rewrite(rn_painter_t* p) {
  caster_t c = {.p = p, .op = rn_op_find(RN_STR("Cast"))};
  int32_t nodes = (int32_t)p->ir->nodes.count;
  size_t outputs = 0;
  for (int32_t n = 0; n < nodes; ++n)
    if (!rn_ir_node(p->ir, n)->is_removed) outputs += (size_t)rn_ir_node(p->ir, n)->output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, outputs + 1, &c.made));
  for (size_t o = 0; o < outputs; ++o) c.made[o] = -1;
  for (int32_t n = 0; n < nodes; ++n)
    if (!p->emulates) RN_RETURN_IF_ERROR(change_types(p, n));
  for (int32_t n = 0; n < nodes; ++n) {
    int32_t inputs = rn_ir_node(p->ir, n)->is_removed ? 0 : rn_ir_node(p->ir, n)->input_count;
    for (int32_t i = 0; i < inputs; ++i) RN_RETURN_IF_ERROR(cast_input(&c, n, i));
  }
  return RN_OK;
}
