// Builds the node for a group of elementwise nodes. Its program is a list of steps (code, a, b,
// out) over numbered operands: inputs first, then temporaries, then results. See
// fuse_elementwise.c.
//
// The program reads the outputs of a Split in place, from the matrix that it splits, and writes the
// inputs of a ConcatV2 root directly into the result.
#include "step/fuse.h"

#define MAX_INPUTS 24
#define MAX_RESULTS 16
// All temporaries together should fit into the first-level cache, one block each.
#define MAX_TEMPORARIES 8

// An input: all of |edge| if |first| is -1, else the part that begins at element |first|.
typedef struct fuse_program_input_t {
  rn_ir_edge_t edge;
  int64_t first;
} fuse_program_input_t;

// The program under construction.
typedef struct program_t {
  const rn_fuse_group_t* group;
  int64_t* code;  // four numbers per step
  int32_t step_count;
  fuse_program_input_t inputs[MAX_INPUTS];
  int32_t input_count;
  int32_t temporary_count;
  bool is_used[MAX_TEMPORARIES];
  int32_t result_count;  // the root or its parts, then members that other nodes read as well
  int32_t members[MAX_RESULTS];  // by result: the member that computes it
} program_t;

// Temporaries and results are numbered from here until the number of inputs is known.
#define TEMPORARY 1000
#define RESULT 2000

// Where the value of |edge| is in memory: in part of a matrix if a Split produces it.
static fuse_program_input_t origin_of(const rn_fuse_t* f, const rn_fuse_group_t* group,
                                      rn_ir_edge_t edge) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, edge.node);
  const fuse_program_input_t whole = {edge, -1};
  if ((node->op != f->split && node->op != f->split_v) || node->feed >= 0 || !group->is_large ||
      group->shape.rank != 2 || node->device != rn_ir_node(f->ir, group->root)->device ||
      !rn_shape_eq(node->shapes[edge.output], group->shape))
    return whole;
  const bool is_even = node->op == f->split;
  const rn_ir_edge_t matrix = node->inputs[is_even ? 1 : 0];
  const int axis = rn_ir_matrix_axis(f->ir, node->inputs[is_even ? 0 : 2]);
  const int64_t columns = group->shape.dims[1];
  if (matrix.node < 0 || axis < 0 || (axis == 1 && columns < RN_FUSE_COLUMNS)) return whole;
  int64_t before = 0;  // rows, or columns
  for (int32_t o = 0; o < edge.output; ++o) {
    if (node->shapes[o].rank != 2 || node->shapes[o].dims[axis] < 0) return whole;
    before += node->shapes[o].dims[axis];
  }
  return (fuse_program_input_t){matrix, axis == 0 ? before * columns : before};
}

static int32_t find_input(const rn_fuse_t* f, program_t* program, rn_ir_edge_t edge) {
  const fuse_program_input_t input = origin_of(f, program->group, edge);
  for (int32_t i = 0; i < program->input_count; ++i) {
    const fuse_program_input_t* other = &program->inputs[i];
    if (other->edge.node == input.edge.node && other->edge.output == input.edge.output &&
        other->first == input.first)
      return i;
  }
  if (program->input_count == MAX_INPUTS) return -1;
  program->inputs[program->input_count] = input;
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

// The operand that |index| writes: a result if it is the root, a part of it, or read outside the
// group; else a temporary. -1 if none is left.
static int32_t place_of(const rn_fuse_t* f, program_t* program, int32_t index) {
  for (int32_t r = 0; r < program->result_count; ++r)
    if (program->members[r] == index) return RESULT + r;
  if (f->inside[index] == f->consumers[index]) return take_temporary(program);
  if (program->result_count == MAX_RESULTS) return -1;
  program->members[program->result_count] = index;
  return RESULT + program->result_count++;
}

static bool emit_step(rn_fuse_t* f, program_t* program, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  const int32_t root = program->group->root;
  int32_t operands[2] = {-1, -1};
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    operands[i] =
        f->group[source] == root ? f->operand[source] : find_input(f, program, node->inputs[i]);
    if (operands[i] < 0) return false;
  }
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    if (f->group[source] == root && --f->readers[source] == 0 && operands[i] < RESULT)
      program->is_used[operands[i] - TEMPORARY] = false;
  }
  int32_t out = place_of(f, program, index);
  if (out < 0) return false;
  f->operand[index] = out;
  f->readers[index] = f->inside[index];
  int64_t* step = program->code + 4 * program->step_count++;
  step[0] = node->kernel->vector_op;
  step[1] = operands[0];
  step[2] = operands[1];
  step[3] = out;
  return true;
}

// Orders members so that operands come first, depth first from the root.
static int32_t order_members(const rn_fuse_t* f, const rn_fuse_group_t* group) {
  int32_t count = 0, depth = 1;
  f->stack[0] = group->root;
  for (size_t k = 0; k < group->members.count; ++k) f->cursor[group->members.items[k]] = 0;
  while (depth > 0) {
    int32_t at = f->stack[depth - 1];
    const rn_ir_node_t* node = rn_ir_node(f->ir, at);
    if (f->cursor[at] < node->input_count) {
      int32_t next = node->inputs[f->cursor[at]++].node;
      if (f->group[next] == group->root && f->cursor[next] == 0) f->stack[depth++] = next;
    } else {
      if (f->cursor[at] != 255) f->order[count++] = at;
      f->cursor[at] = 255;
      depth--;
    }
  }
  return count;
}

// Writes the steps; false if there are too many operands.
static bool emit_steps(rn_fuse_t* f, program_t* program, int32_t count) {
  const rn_fuse_group_t* group = program->group;
  const rn_ir_node_t* root = rn_ir_node(f->ir, group->root);
  program->result_count = group->parts ? group->parts : 1;
  program->members[0] = group->root;
  for (int32_t i = 0; i < group->parts; ++i) program->members[i] = root->inputs[i].node;
  for (int32_t i = 0; i < count; ++i)
    if ((!group->parts || f->order[i] != group->root) && !emit_step(f, program, f->order[i]))
      return false;
  for (int32_t i = 0; i < program->step_count * 4; ++i) {
    if (i % 4 == 0 || program->code[i] < TEMPORARY) continue;
    bool is_result = program->code[i] >= RESULT;
    program->code[i] += program->input_count - (is_result ? RESULT : TEMPORARY) +
                        (is_result ? program->temporary_count : 0);
  }
  return true;
}

// Number of outputs; the parts of the root together are one.
static int32_t output_count(const program_t* program) {
  return program->result_count - (program->group->parts ? program->group->parts - 1 : 0);
}
static int32_t result_of(const program_t* program, int32_t output) {
  return program->group->parts && output > 0 ? output + program->group->parts - 1 : output;
}

static bool is_plain(const program_t* program) {
  for (int32_t i = 0; i < program->input_count; ++i)
    if (program->inputs[i].first >= 0) return false;
  return program->result_count == 1 && !program->group->parts;
}

static rn_status_t make_lists(rn_arena_t* arena, const program_t* program, int64_t** out_firsts,
                              int64_t** out_parts) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)program->input_count, out_firsts));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)output_count(program), out_parts));
  for (int32_t i = 0; i < program->input_count; ++i) (*out_firsts)[i] = program->inputs[i].first;
  for (int32_t o = 0; o < output_count(program); ++o)
    (*out_parts)[o] = o == 0 && program->group->parts ? program->group->parts : 1;
  return RN_OK;
}

static rn_status_t make_attrs(const rn_fuse_t* f, const program_t* program, const rn_op_def_t* op,
                              rn_dtype_t dtype, const rn_attr_value_t** out) {
  int64_t *firsts = NULL, *parts = NULL;
  RN_RETURN_IF_ERROR(make_lists(&f->ir->arena, program, &firsts, &parts));
  rn_shape_t shape = program->group->shape;
  int32_t outputs = output_count(program), steps = program->step_count;
  const rn_attr_t given[] = {
      {RN_STR("T"), {.type = dtype}},
      {RN_STR("N"), {.i = program->input_count}},
      {RN_STR("M"), {.i = outputs}},
      {RN_STR("temporaries"), {.i = program->temporary_count}},
      {RN_STR("dims"), {.count = shape.rank, .list_i = shape.dims}},
      {RN_STR("firsts"), {.count = program->input_count, .list_i = firsts}},
      {RN_STR("parts"), {.count = outputs, .list_i = parts}},
      {RN_STR("program"), {.count = 4 * steps, .list_i = program->code}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(f->ir, op, NULL, given, out);
}

// Redirects readers of |member| to output |output| of |root|; inputs of the group itself are
// dropped.
static void redirect(const rn_fuse_t* f, int32_t member, int32_t root, int32_t output) {
  for (int32_t r = f->first[member]; r < f->first[member + 1]; ++r) {
    int32_t reader = f->group[f->reads[r]] >= 0 ? f->group[f->reads[r]] : f->reads[r];
    if (reader == root) continue;
    rn_ir_node_t* node = rn_ir_node(f->ir, reader);
    for (int32_t i = 0; i < node->input_count; ++i)
      if (node->inputs[i].node == member) node->inputs[i] = (rn_ir_edge_t){root, output};
  }
}

static rn_status_t make_outputs(const rn_fuse_t* f, const program_t* program, rn_ir_node_t* fused) {
  const rn_ir_node_t* root = rn_ir_node(f->ir, program->group->root);
  fused->output_count = output_count(program);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)fused->output_count, &fused->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, (size_t)fused->output_count, &fused->shapes));
  for (int32_t o = 0; o < fused->output_count; ++o) {
    fused->types[o] = root->types[0];
    fused->shapes[o] = o == 0 ? root->shapes[0] : program->group->shape;
  }
  return RN_OK;
}

static void dissolve(const rn_fuse_t* f, const rn_fuse_group_t* group) {
  for (size_t k = 0; k < group->members.count; ++k) f->group[group->members.items[k]] = -1;
}

rn_status_t rn_fuse_build(rn_fuse_t* f, const rn_fuse_group_t* group) {
  rn_ir_t* ir = f->ir;
  int32_t count = order_members(f, group);
  program_t program = {.group = group};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count * 4, &program.code));
  if (!emit_steps(f, &program, count)) {
    dissolve(f, group);
    return RN_OK;
  }
  rn_ir_node_t* root = rn_ir_node(f->ir, group->root);
  rn_ir_node_t fused = *root;
  fused.op = is_plain(&program) ? f->one : f->many;
  fused.extra_count = 0;
  fused.input_count = program.input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)program.input_count, &fused.inputs));
  for (int32_t i = 0; i < program.input_count; ++i) fused.inputs[i] = program.inputs[i].edge;
  RN_RETURN_IF_ERROR(make_outputs(f, &program, &fused));
  RN_RETURN_IF_ERROR(make_attrs(f, &program, fused.op, root->types[0], &fused.attrs));
  fused.kernel = rn_kernel_find(fused.op, fused.attrs, NULL, root->kernel->device);
  if (!fused.kernel) {
    dissolve(f, group);
    return RN_OK;
  }
  for (size_t k = 1; k < group->members.count; ++k)
    rn_ir_node(f->ir, group->members.items[k])->is_removed = true;
  // A matrix that is read past its Split has one more reader than |reads| lists.
  for (int32_t i = 0; i < program.input_count; ++i)
    if (program.inputs[i].first >= 0) f->is_pinned[program.inputs[i].edge.node] = true;
  *root = fused;
  for (int32_t o = 1; o < fused.output_count; ++o)
    redirect(f, program.members[result_of(&program, o)], group->root, o);
  return RN_OK;
}
