// Elementwise fusion: trees of elementwise nodes over one shape become one node that passes over
// memory once.
//
// A node joins the group of its consumer if all its consumers are in that group: nothing outside
// needs its value, and no path can leave the group and come back. The group runs where its last
// node stood. The program is a list of steps (code, a, b, out); operands are numbered: the inputs
// first, then temporaries, then the result.
#include "framework/internal_ops.h"
#include "graph/ir.h"

#define MAX_INPUTS 24
// Temporaries are blocks that should stay in the first-level cache together.
#define MAX_TEMPORARIES 8
#define MAX_STEPS 256
// What is tried when a large group has too many operands.
#define FEW_STEPS 10

typedef struct fuse_t {
  rn_ir_t* ir;
  const rn_op_def_t* op;
  int32_t* consumers;  // by node: how many inputs of others read its output 0
  bool* is_pinned;     // by node: fetched, a target, or with control edges: stays by itself
  int32_t* group;      // by node: the root of the group it was taken into; -1: none
  int32_t* inside;     // by node: how many of its consumers are in the group being built
  int32_t* stamp;      // by node: the group |inside| counts for
} fuse_t;

typedef struct group_t {
  int32_t root;
  RN_VEC(int32_t) members;  // root first, then as they were taken in
} group_t;

static rn_ir_node_t* node_at(const fuse_t* f, int32_t index) { return &f->ir->nodes.items[index]; }

static bool is_elementwise(const rn_ir_node_t* node) {
  if (node->is_removed || node->feed >= 0 || node->constant || !node->kernel ||
      node->kernel->vector_op == 0)
    return false;
  if (node->output_count != 1 || node->input_count > 2 || node->control_count > 0) return false;
  return (node->types[0] == RN_FLOAT || node->types[0] == RN_DOUBLE) &&
         rn_shape_is_full(node->shapes[0]);
}

static int64_t count_of(rn_shape_t shape) {
  int64_t count = -1;
  return rn_shape_is_full(shape) && rn_shape_count(shape, &count) ? count : -1;
}

// Operands must have the result's shape, or be one number.
static bool operands_fit(const fuse_t* f, const rn_ir_node_t* node) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = node_at(f, node->inputs[i].node);
    rn_shape_t shape = source->shapes[node->inputs[i].output];
    if (source->types[node->inputs[i].output] != node->types[0]) return false;
    if (!rn_shape_eq(shape, node->shapes[0]) && count_of(shape) != 1) return false;
  }
  return count_of(node->shapes[0]) > 0;
}

static void count_consumers(fuse_t* f) {
  for (size_t n = 0; n < f->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &f->ir->nodes.items[n];
    if (node->is_removed) continue;
    for (int32_t i = 0; i < node->input_count; ++i)
      if (node->inputs[i].node >= 0) f->consumers[node->inputs[i].node]++;
    for (int32_t i = 0; i < node->control_count; ++i) f->is_pinned[node->controls[i]] = true;
  }
  for (int32_t i = 0; i < f->ir->fetch_count; ++i)
    if (f->ir->fetches[i].node >= 0) f->is_pinned[f->ir->fetches[i].node] = true;
  for (int32_t i = 0; i < f->ir->target_count; ++i) f->is_pinned[f->ir->targets[i]] = true;
}

static bool may_join(const fuse_t* f, const group_t* group, int32_t index) {
  const rn_ir_node_t* node = node_at(f, index);
  const rn_ir_node_t* root = node_at(f, group->root);
  return f->group[index] < 0 && !f->is_pinned[index] && is_elementwise(node) &&
         node->device == root->device && node->types[0] == root->types[0] &&
         rn_shape_eq(node->shapes[0], root->shapes[0]) && operands_fit(f, node);
}

// Takes |index| in, and counts its operands' consumers.
static rn_status_t take_in(fuse_t* f, group_t* group, int32_t index) {
  f->group[index] = group->root;
  RN_RETURN_IF_ERROR(rn_vec_push(&group->members, f->ir->allocator, index));
  const rn_ir_node_t* node = node_at(f, index);
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    if (f->stamp[source] != group->root + 1) {
      f->stamp[source] = group->root + 1;
      f->inside[source] = 0;
    }
    f->inside[source]++;
  }
  return RN_OK;
}

static rn_status_t grow(fuse_t* f, group_t* group, size_t limit) {
  group->members.count = 0;
  RN_RETURN_IF_ERROR(take_in(f, group, group->root));
  for (size_t at = 0; at < group->members.count && group->members.count < limit; ++at) {
    const rn_ir_node_t* node = node_at(f, group->members.items[at]);
    for (int32_t i = 0; i < node->input_count && group->members.count < limit; ++i) {
      int32_t source = node->inputs[i].node;
      if (f->inside[source] == f->consumers[source] && may_join(f, group, source))
        RN_RETURN_IF_ERROR(take_in(f, group, source));
    }
  }
  return RN_OK;
}

// The program under construction.
typedef struct program_t {
  int64_t* code;  // four numbers a step
  int32_t step_count;
  rn_ir_edge_t inputs[MAX_INPUTS];
  int32_t input_count;
  int32_t temporary_count;
  bool is_used[MAX_TEMPORARIES];
} program_t;

// Temporaries are numbered from here until the number of inputs is known.
#define TEMPORARY 1000

static int32_t find_input(program_t* program, rn_ir_edge_t edge) {
  for (int32_t i = 0; i < program->input_count; ++i)
    if (program->inputs[i].node == edge.node && program->inputs[i].output == edge.output) return i;
  if (program->input_count == MAX_INPUTS) return -1;
  program->inputs[program->input_count] = edge;
  return program->input_count++;
}

static int32_t take_temporary(program_t* program) {
  for (int32_t t = 0; t < MAX_TEMPORARIES; ++t) {
    if (program->is_used[t]) continue;
    program->is_used[t] = true;
    if (t >= program->temporary_count) program->temporary_count = t + 1;
    return TEMPORARY + t;
  }
  return -1;
}

// Where each member's value is, and how many readers it still has.
typedef struct place_t {
  int32_t* operand;  // by node
  int32_t* readers;
} place_t;

static bool emit_step(fuse_t* f, program_t* program, place_t* place, int32_t index, int32_t root) {
  const rn_ir_node_t* node = node_at(f, index);
  int32_t operands[2] = {-1, -1};
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    operands[i] =
        f->group[source] == root ? place->operand[source] : find_input(program, node->inputs[i]);
    if (operands[i] < 0) return false;
  }
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    if (f->group[source] == root && --place->readers[source] == 0)
      program->is_used[operands[i] - TEMPORARY] = false;
  }
  int32_t out = take_temporary(program);
  if (out < 0) return false;
  place->operand[index] = out;
  place->readers[index] = f->consumers[index];
  int64_t* step = program->code + 4 * program->step_count++;
  step[0] = node->kernel->vector_op;
  step[1] = operands[0];
  step[2] = operands[1];
  step[3] = out;
  return true;
}

// Members in an order in which operands come first: depth first from the root. |order| has room for
// all of them.
static int32_t order_members(const fuse_t* f, const group_t* group, int32_t* order, int32_t* stack,
                             uint8_t* cursor) {
  int32_t count = 0, depth = 1;
  stack[0] = group->root;
  for (size_t k = 0; k < group->members.count; ++k) cursor[group->members.items[k]] = 0;
  while (depth > 0) {
    int32_t at = stack[depth - 1];
    const rn_ir_node_t* node = node_at(f, at);
    if (cursor[at] < node->input_count) {
      int32_t next = node->inputs[cursor[at]++].node;
      if (f->group[next] == group->root && cursor[next] == 0) stack[depth++] = next;
    } else {
      if (cursor[at] != 255) order[count++] = at;
      cursor[at] = 255;
      depth--;
    }
  }
  return count;
}

static rn_status_t make_attrs(fuse_t* f, const program_t* program, rn_dtype_t dtype,
                              const rn_attr_value_t** out) {
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)f->op->attr_count, &attrs));
  for (int a = 0; a < f->op->attr_count; ++a) {
    attrs[a].kind = f->op->attrs[a].kind;
    attrs[a].is_list = f->op->attrs[a].is_list;
    if (attrs[a].kind == RN_ATTR_TYPE) {
      attrs[a].type = dtype;
    } else if (attrs[a].is_list) {
      attrs[a].count = 4 * program->step_count;
      attrs[a].list_i = program->code;
    } else {
      attrs[a].i = program->input_count;
    }
  }
  *out = attrs;
  return RN_OK;
}

// Turns the root into the fused node and drops the others; if the program has too many operands,
// everything is as it was.
static rn_status_t build_group(fuse_t* f, const group_t* group, int32_t* order, int32_t* stack,
                               uint8_t* cursor, place_t* place) {
  rn_ir_t* ir = f->ir;
  int32_t count = order_members(f, group, order, stack, cursor);
  program_t program = {0};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count * 4, &program.code));
  for (int32_t i = 0; i < count; ++i) {
    if (emit_step(f, &program, place, order[i], group->root)) continue;
    for (size_t k = 0; k < group->members.count; ++k) f->group[group->members.items[k]] = -1;
    return RN_OK;
  }
  // Temporaries follow the inputs, and the result follows them; the last step writes it.
  for (int32_t i = 0; i < program.step_count * 4; ++i)
    if (i % 4 != 0 && program.code[i] >= TEMPORARY)
      program.code[i] += program.input_count - TEMPORARY;
  program.code[4 * program.step_count - 1] = program.input_count + program.temporary_count;
  rn_ir_node_t* root = node_at(f, group->root);
  rn_ir_node_t fused = *root;
  fused.op = f->op;
  fused.extra_count = 0;
  fused.input_count = program.input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)program.input_count, &fused.inputs));
  memcpy(fused.inputs, program.inputs, (size_t)program.input_count * sizeof *fused.inputs);
  RN_RETURN_IF_ERROR(make_attrs(f, &program, root->types[0], &fused.attrs));
  fused.kernel = rn_kernel_find(f->op, fused.attrs, NULL, root->kernel->device);
  if (!fused.kernel) return RN_OK;
  for (size_t k = 1; k < group->members.count; ++k)
    node_at(f, group->members.items[k])->is_removed = true;
  *root = fused;
  return RN_OK;
}

static rn_status_t fuse_from(fuse_t* f, group_t* group, size_t limit, int32_t* order,
                             int32_t* stack, uint8_t* cursor, place_t* place) {
  RN_RETURN_IF_ERROR(grow(f, group, limit));
  return group->members.count > 1 ? build_group(f, group, order, stack, cursor, place) : RN_OK;
}

static rn_status_t fuse_all(fuse_t* f) {
  size_t n = f->ir->nodes.count + 1;
  int32_t *order = NULL, *members = NULL, *stack = NULL, count = 0;
  uint8_t* cursor = NULL;
  place_t place = {0};
  RN_RETURN_IF_ERROR(rn_ir_order(f->ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, n, &members));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, n, &stack));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, n, &cursor));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, n, &place.operand));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, n, &place.readers));
  // From the last node to the first: a group's root is its last.
  group_t group = {0};
  rn_status_t status = RN_OK;
  for (int32_t i = count - 1; rn_ok(status) && i >= 0; --i) {
    int32_t index = order[i];
    if (f->group[index] >= 0 || !is_elementwise(node_at(f, index)) ||
        !operands_fit(f, node_at(f, index)))
      continue;
    group.root = index;
    status = fuse_from(f, &group, MAX_STEPS, members, stack, cursor, &place);
    if (rn_ok(status) && f->group[index] < 0)
      status = fuse_from(f, &group, FEW_STEPS, members, stack, cursor, &place);
  }
  rn_vec_free(&group.members, f->ir->allocator);
  return status;
}

rn_status_t rn_pass_fuse(rn_ir_t* ir) {
  fuse_t f = {.ir = ir, .op = rn_op_fused()};
  if (!f.op) return RN_OK;
  size_t n = ir->nodes.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.consumers));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.is_pinned));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.group));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.inside));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n, &f.stamp));
  memset(f.group, 0xff, n * sizeof *f.group);
  count_consumers(&f);
  return fuse_all(&f);
}
