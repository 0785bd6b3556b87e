// Fuses elementwise nodes of a device that compiles loops into one node, which reads and writes
// memory once.
//
// A node joins the group of its reader if all its readers are in the group, so no path leaves the
// group and comes back. All nodes of a group have one shape; what they read from outside may
// broadcast to it. The group runs in the place of its last node, the root.
//
// The attribute "program" of the new node has six numbers per operation: the code, which the rows
// of the device's kernels give (|vector_op|), the type of the result, and up to four operands:
// inputs of the node first, then results of operations, -1 for none.
#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/make.h"

#define MOST_INPUTS 24
#define MOST_OPERATIONS 64
#define MOST_OPERANDS 4
#define NUMBERS (2 + MOST_OPERANDS)  // of an operation

typedef struct fuse_loops_t {
  rn_ir_t* ir;
  const rn_op_def_t* op;
  rn_ir_uses_t* uses;  // by node
  int32_t* group;      // by node: the root of its group; -1: none
  int32_t* value;      // by node: its number in the program under construction
} fuse_loops_t;

typedef struct loops_t {
  int32_t root;
  int32_t members[MOST_OPERATIONS];  // in the order of adding: readers before what they read
  int32_t member_count;
  rn_ir_edge_t inputs[MOST_INPUTS];
  int32_t input_count;
  int64_t program[NUMBERS * MOST_OPERATIONS];
  int32_t operation_count;
} loops_t;

static rn_shape_t shape_of(const fuse_loops_t* f, rn_ir_edge_t edge) {
  return rn_ir_node(f->ir, edge.node)->shapes[edge.output];
}

static bool broadcasts(rn_shape_t from, rn_shape_t to) {
  if (!rn_shape_is_full(from) || from.rank > to.rank) return false;
  for (int d = 0; d < from.rank; ++d) {
    int64_t size = from.dims[d];
    if (size != 1 && size != to.dims[to.rank - from.rank + d]) return false;
  }
  return true;
}

static bool is_loop(const fuse_loops_t* f, const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || node->constant || !node->kernel ||
      !node->kernel->vector_op || !node->device || node->device->is_host || node->control_count ||
      node->output_count != 1 || node->input_count < 1 || node->input_count > MOST_OPERANDS ||
      !rn_shape_is_full(node->shapes[0]))
    return false;
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  if (format && !rn_str_is(format->s, "NHWC")) return false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_dtype_t type = rn_ir_node(f->ir, node->inputs[i].node)->types[node->inputs[i].output];
    if (rn_dtype_is_ref(type) || !broadcasts(shape_of(f, node->inputs[i]), node->shapes[0]))
      return false;
  }
  return true;
}

// Whether every reader of |index| is a member of the group of |root|.
static bool is_private(const fuse_loops_t* f, int32_t index, const loops_t* loops) {
  const rn_ir_uses_t* uses = &f->uses[index];
  if (uses->fetches + uses->waits > 0) return false;
  int32_t inside = 0;
  for (int32_t m = 0; m < loops->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(f->ir, loops->members[m]);
    for (int32_t i = 0; i < node->input_count; ++i) inside += node->inputs[i].node == index;
  }
  return inside == uses->reads;
}

// Adds nodes that only the group reads, until there are none.
static void grow(const fuse_loops_t* f, loops_t* loops) {
  const rn_ir_node_t* root = rn_ir_node(f->ir, loops->root);
  bool grows = true;
  while (grows) {
    grows = false;
    for (int32_t m = 0; m < loops->member_count; ++m) {
      const rn_ir_node_t* node = rn_ir_node(f->ir, loops->members[m]);
      for (int32_t i = 0; i < node->input_count; ++i) {
        int32_t source = node->inputs[i].node;
        const rn_ir_node_t* other = rn_ir_node(f->ir, source);
        if (loops->member_count == MOST_OPERATIONS || f->group[source] >= 0 ||
            other->device != root->device || !is_loop(f, other) ||
            !rn_shape_eq(other->shapes[0], root->shapes[0]) || !is_private(f, source, loops))
          continue;
        f->group[source] = loops->root;
        loops->members[loops->member_count++] = source;
        grows = true;
      }
    }
  }
}

// The number of |edge| as an input of the group; -1 if there are too many.
static int32_t input_of(loops_t* loops, rn_ir_edge_t edge) {
  for (int32_t i = 0; i < loops->input_count; ++i)
    if (loops->inputs[i].node == edge.node && loops->inputs[i].output == edge.output) return i;
  if (loops->input_count == MOST_INPUTS) return -1;
  loops->inputs[loops->input_count] = edge;
  return loops->input_count++;
}

static bool collect_inputs(const fuse_loops_t* f, loops_t* loops) {
  for (int32_t m = 0; m < loops->member_count; ++m) {
    const rn_ir_node_t* node = rn_ir_node(f->ir, loops->members[m]);
    for (int32_t i = 0; i < node->input_count; ++i)
      if (f->group[node->inputs[i].node] != loops->root && input_of(loops, node->inputs[i]) < 0)
        return false;
  }
  return true;
}

// Writes the operation of |index| after those that it reads.
static void write_operation(const fuse_loops_t* f, loops_t* loops, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  int64_t operation[NUMBERS] = {node->kernel->vector_op, node->types[0], -1, -1, -1, -1};
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    if (f->group[source] != loops->root) {
      operation[2 + i] = input_of(loops, node->inputs[i]);
      continue;
    }
    if (f->value[source] < 0) write_operation(f, loops, source);
    operation[2 + i] = loops->input_count + f->value[source];
  }
  f->value[index] = loops->operation_count;
  memcpy(&loops->program[NUMBERS * loops->operation_count++], operation, sizeof operation);
}

static rn_status_t make_attrs(const fuse_loops_t* f, const loops_t* loops,
                              const rn_attr_value_t** out) {
  const rn_ir_node_t* root = rn_ir_node(f->ir, loops->root);
  size_t length = (size_t)(NUMBERS * loops->operation_count);
  int64_t* program = NULL;
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, length, &program));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)loops->input_count, &types));
  memcpy(program, loops->program, length * sizeof *program);
  for (int32_t i = 0; i < loops->input_count; ++i)
    types[i] = rn_ir_node(f->ir, loops->inputs[i].node)->types[loops->inputs[i].output];
  const rn_attr_t given[] = {
      {RN_STR("Tin"), {.is_list = true, .count = loops->input_count, .list_type = types}},
      {RN_STR("T"), {.type = root->types[0]}},
      {RN_STR("program"), {.is_list = true, .count = (int32_t)length, .list_i = program}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(f->ir, f->op, NULL, given, out);
}

static rn_status_t rewrite(fuse_loops_t* f, loops_t* loops) {
  if (!collect_inputs(f, loops)) return RN_OK;
  write_operation(f, loops, loops->root);
  rn_ir_node_t made = *rn_ir_node(f->ir, loops->root);
  made.op = f->op;
  made.extra_count = 0;
  RN_RETURN_IF_ERROR(make_attrs(f, loops, &made.attrs));
  made.kernel = rn_kernel_find(f->op, made.attrs, NULL, made.device->type);
  if (!made.kernel) return RN_OK;
  made.input_count = loops->input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)made.input_count, &made.inputs));
  memcpy(made.inputs, loops->inputs, (size_t)made.input_count * sizeof *made.inputs);
  for (int32_t m = 0; m < loops->member_count; ++m)
    rn_ir_node(f->ir, loops->members[m])->is_removed = true;
  made.is_removed = false;
  *rn_ir_node(f->ir, loops->root) = made;
  return RN_OK;
}

static rn_status_t fuse_from(fuse_loops_t* f, int32_t index) {
  if (f->group[index] >= 0 || !is_loop(f, rn_ir_node(f->ir, index))) return RN_OK;
  loops_t* loops = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&f->ir->arena, &loops));
  loops->root = loops->members[0] = index;
  loops->member_count = 1;
  f->group[index] = index;
  grow(f, loops);
  return loops->member_count > 1 ? rewrite(f, loops) : RN_OK;
}

rn_status_t rn_pass_fuse_loops(rn_ir_t* ir) {
  fuse_loops_t f = {.ir = ir, .op = rn_op_fused_loops()};
  bool has_device = false;
  for (size_t n = 0; n < ir->nodes.count && !has_device; ++n)
    has_device = !ir->nodes.items[n].is_removed && ir->nodes.items[n].device &&
                 !ir->nodes.items[n].device->is_host;
  if (!f.op || !has_device) return RN_OK;
  size_t count = ir->nodes.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &f.group));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &f.value));
  memset(f.group, 0xff, count * sizeof *f.group);
  memset(f.value, 0xff, count * sizeof *f.value);
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &f.uses));
  int32_t *order = NULL, order_count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &order_count));
  for (int32_t i = order_count - 1; i >= 0; --i) RN_RETURN_IF_ERROR(fuse_from(&f, order[i]));
  return RN_OK;
}
