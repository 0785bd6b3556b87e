// Fuses elementwise nodes and reductions of a device that compiles loops into one node, which reads
// and writes memory once. loop_groups.h says which.
//
// The attribute "program" of the new node has six numbers per operation: the code, which the rows
// of the device's kernels give (|vector_op|), the type of the result, and up to four operands:
// inputs of the node first, then results of operations, -1 for none. "results" lists the values
// that the node gives. Reductions take out the axes from "begin" to "end".
#include "device/part.h"
#include "framework/internal_ops.h"
#include "step/loop_groups.h"
#include "step/make.h"

#define MOST_OPERATIONS 128
#define MOST_OPERANDS 4
#define NUMBERS (2 + MOST_OPERANDS)  // of an operation

typedef struct loop_writer_t {
  rn_loop_graph_t* loops;
  const rn_loop_group_t* group;
  rn_ir_edge_t inputs[RN_LOOP_INPUTS];
  int32_t input_count;
  int64_t program[NUMBERS * MOST_OPERATIONS];
  int32_t operation_count;
  int32_t value[RN_LOOP_MEMBERS];    // by member: its operation; -1: not written yet
  int32_t outputs[RN_LOOP_OUTPUTS];  // members
  int32_t output_count;
} loop_writer_t;

// The number of |edge| as an input of the node; -1 if there are too many.
static int32_t input_of(loop_writer_t* w, rn_ir_edge_t edge) {
  for (int32_t i = 0; i < w->input_count; ++i)
    if (w->inputs[i].node == edge.node && w->inputs[i].output == edge.output) return i;
  if (w->input_count == RN_LOOP_INPUTS) return -1;
  w->inputs[w->input_count] = edge;
  return w->input_count++;
}

// Whether the inputs broadcast to the group's shape: the kernel knows no other.
static bool has_shape(const loop_writer_t* w) {
  const rn_shape_t* shape = &w->group->shape;
  for (int d = 0; d < shape->rank; ++d) {
    bool is_there = shape->dims[d] == 1;
    for (int32_t i = 0; i < w->input_count && !is_there; ++i) {
      rn_shape_t in = rn_ir_node(w->loops->ir, w->inputs[i].node)->shapes[w->inputs[i].output];
      int at = d - (shape->rank - in.rank);
      is_there = at >= 0 && in.dims[at] == shape->dims[d];
    }
    if (!is_there) return false;
  }
  return true;
}

static bool collect(loop_writer_t* w) {
  const rn_loop_group_t* group = w->group;
  for (int32_t m = 0; m < group->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(w->loops->ir, group->members[m]);
    int32_t operands = rn_loop_operands(w->loops, group->members[m]);
    for (int32_t i = 0; i < operands; ++i)
      if (rn_loop_member(group, node->inputs[i].node) < 0 && input_of(w, node->inputs[i]) < 0)
        return false;
    w->value[m] = -1;
    if (!rn_loop_is_output(w->loops, group, m)) continue;
    if (w->output_count == RN_LOOP_OUTPUTS) return false;
    w->outputs[w->output_count++] = m;
  }
  return w->output_count > 0 && w->outputs[0] == 0 && has_shape(w);
}

static bool put(loop_writer_t* w, int64_t code, rn_dtype_t type, const int32_t* operands,
                int32_t count) {
  if (w->operation_count == MOST_OPERATIONS) return false;
  int64_t* row = &w->program[NUMBERS * w->operation_count++];
  row[0] = code;
  row[1] = type;
  for (int32_t k = 0; k < MOST_OPERANDS; ++k) row[2 + k] = k < count ? operands[k] : -1;
  return true;
}

// Writes the operation of member |m| after those that it reads.
static bool write_member(loop_writer_t* w, int32_t m) {
  int32_t index = w->group->members[m], count = rn_loop_operands(w->loops, index);
  const rn_ir_node_t* node = rn_ir_node(w->loops->ir, index);
  int32_t operands[RN_LOOP_INPUTS];
  if (count > RN_LOOP_INPUTS) return false;
  for (int32_t i = 0; i < count; ++i) {
    int32_t source = rn_loop_member(w->group, node->inputs[i].node);
    if (source >= 0 && w->value[source] < 0 && !write_member(w, source)) return false;
    operands[i] = source < 0 ? input_of(w, node->inputs[i]) : w->input_count + w->value[source];
  }
  int64_t code = node->kernel->vector_op;
  bool fits = true;
  if (code & RN_LOOP_FOLDS) {
    code &= ~RN_LOOP_FOLDS;
    int32_t pair[2] = {operands[0], 0};
    for (int32_t i = 1; fits && i < count; ++i) {
      pair[1] = operands[i];
      fits = put(w, code, node->types[0], pair, 2);
      pair[0] = w->input_count + w->operation_count - 1;
    }
    if (count < 2) return false;
  } else {
    fits = count <= MOST_OPERANDS && put(w, code, node->types[0], operands, count);
  }
  w->value[m] = w->operation_count - 1;
  return fits;
}

static rn_status_t make_attrs(const loop_writer_t* w, const rn_attr_value_t** out) {
  rn_ir_t* ir = w->loops->ir;
  size_t length = (size_t)(NUMBERS * w->operation_count);
  int64_t *program = NULL, *results = NULL;
  rn_dtype_t *in = NULL, *made = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, length, &program));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)w->output_count, &results));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)w->input_count, &in));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)w->output_count, &made));
  memcpy(program, w->program, length * sizeof *program);
  for (int32_t i = 0; i < w->input_count; ++i)
    in[i] = rn_ir_node(ir, w->inputs[i].node)->types[w->inputs[i].output];
  for (int32_t o = 0; o < w->output_count; ++o) {
    made[o] = rn_ir_node(ir, w->group->members[w->outputs[o]])->types[0];
    results[o] = w->input_count + w->value[w->outputs[o]];
  }
  bool reduces = w->group->reduction_count > 0;
  const rn_attr_t given[] = {
      {RN_STR("Tin"), {.is_list = true, .count = w->input_count, .list_type = in}},
      {RN_STR("Tout"), {.is_list = true, .count = w->output_count, .list_type = made}},
      {RN_STR("program"), {.is_list = true, .count = (int32_t)length, .list_i = program}},
      {RN_STR("results"), {.is_list = true, .count = w->output_count, .list_i = results}},
      {RN_STR("begin"), {.i = reduces ? w->group->axes.begin : 0}},
      {RN_STR("end"), {.i = reduces ? w->group->axes.end : 0}},
      {RN_STR("keep_dims"), {.b = reduces && w->group->axes.keeps}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(ir, rn_op_fused_loops(), NULL, given, out);
}

// The fused node; |kernel| is NULL if the device does not take it.
static rn_status_t make_node(const loop_writer_t* w, rn_ir_node_t* out) {
  rn_ir_t* ir = w->loops->ir;
  *out = *rn_ir_node(ir, w->group->members[0]);
  out->op = rn_op_fused_loops();
  out->extra_count = 0;
  RN_RETURN_IF_ERROR(make_attrs(w, &out->attrs));
  out->kernel = rn_kernel_find(out->op, out->attrs, NULL, out->device->type);
  RN_RETURN_IF_ERROR(
      rn_ir_make_edges(ir, w->input_count, w->output_count, RN_FLOAT, RN_SHAPE_SCALAR, out));
  memcpy(out->inputs, w->inputs, (size_t)w->input_count * sizeof *w->inputs);
  for (int32_t o = 0; o < w->output_count; ++o) {
    const rn_ir_node_t* member = rn_ir_node(ir, w->group->members[w->outputs[o]]);
    out->types[o] = member->types[0];
    out->shapes[o] = member->shapes[0];
  }
  return RN_OK;
}

// Counts the inputs of |node| as reads, or no longer. Copied nodes that are no longer read go.
static void count_reads(rn_loop_graph_t* loops, const rn_ir_node_t* node, int sign) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    rn_ir_uses_t* uses = &loops->uses[source];
    uses->reads += sign;
    rn_ir_node_t* other = rn_ir_node(loops->ir, source);
    if (rn_ir_use_count(uses) > 0 || loops->kind[source] == RN_LOOP_NONE || other->is_removed)
      continue;
    other->is_removed = true;
    count_reads(loops, other, -1);
  }
}

static rn_status_t rewrite(loop_writer_t* w) {
  rn_loop_graph_t* loops = w->loops;
  const rn_loop_group_t* group = w->group;
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(make_node(w, &made));
  if (!made.kernel) return RN_OK;
  int32_t root = group->members[0];
  count_reads(loops, &made, 1);
  for (int32_t m = 0; m < group->member_count; ++m)
    if (!group->is_copy[m]) rn_ir_node(loops->ir, group->members[m])->is_removed = true;
  for (int32_t m = 0; m < group->member_count; ++m)
    if (!group->is_copy[m]) count_reads(loops, rn_ir_node(loops->ir, group->members[m]), -1);
  for (int32_t o = 1; o < w->output_count; ++o) {
    int32_t member = group->members[w->outputs[o]];
    rn_ir_replace_edge(loops->ir, (rn_ir_edge_t){member, 0}, (rn_ir_edge_t){root, o});
    loops->uses[root].reads += loops->uses[member].reads;
    loops->uses[root].fetches += loops->uses[member].fetches;
    loops->held[root] += loops->held[member];
  }
  made.is_removed = false;
  *rn_ir_node(loops->ir, root) = made;
  loops->kind[root] = RN_LOOP_NONE;
  return w->output_count > 1 ? rn_loops_sort(loops) : RN_OK;
}

static rn_status_t fuse_from(rn_loop_graph_t* loops, int32_t index) {
  if (rn_ir_node(loops->ir, index)->is_removed || loops->kind[index] == RN_LOOP_NONE ||
      rn_loop_only_repeats(loops, index))
    return RN_OK;
  rn_loop_group_t* group = NULL;
  loop_writer_t* w = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&loops->ir->arena, &group));
  rn_loop_group_find(loops, index, group);
  if (group->member_count < 2) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&loops->ir->arena, &w));
  w->loops = loops;
  w->group = group;
  if (!collect(w)) return RN_OK;
  for (int32_t m = 0; m < group->member_count; ++m)
    if (w->value[m] < 0 && !write_member(w, m)) return RN_OK;
  return rewrite(w);
}

rn_status_t rn_pass_fuse_loops(rn_ir_t* ir) {
  bool has_device = false;
  for (size_t n = 0; n < ir->nodes.count && !has_device; ++n)
    has_device = !ir->nodes.items[n].is_removed && ir->nodes.items[n].device &&
                 !ir->nodes.items[n].device->is_host;
  if (!rn_op_fused_loops() || !has_device) return RN_OK;
  rn_loop_graph_t loops;
  RN_RETURN_IF_ERROR(rn_loops_init(&loops, ir));
  const int32_t *order = loops.order, count = loops.count;
  for (int32_t i = count - 1; i >= 0; --i) RN_RETURN_IF_ERROR(fuse_from(&loops, order[i]));
  return RN_OK;
}
