// Lets sums that a loop accumulates add several matmuls at a time.
//
// The gradient of a weight that a loop reads is accumulated as c + a b in every iteration, and
// passing over c costs more than the matmul. If only the loop itself uses the sum, the pass makes
// the loop variable a variant that keeps operands and adds several matmuls at a time. Enter, Merge,
// Switch, NextIteration and Exit carry the variant; a _BeginSum before the loop and an _EndSum
// after it convert from and to a matrix. The matmuls are added in the order of the iterations, so
// the bits do not change.
#include "framework/internal_ops.h"
#include "step/make.h"

typedef struct sums_t {
  rn_ir_t* ir;
  const rn_op_def_t *add, *begin, *later, *end;
  rn_ir_uses_t* uses;  // by node
} sums_t;

// The nodes that a sum passes through.
typedef struct round_t {
  int32_t enter, merge, fork, add, next, exit;
  int32_t passed;  // an Identity between |fork| and |add|; -1 if none
} round_t;

// Number of inputs and fetches that read a node; control edges do not count, since they do not use
// the value.
static int32_t reads(const sums_t* s, int32_t index) {
  return s->uses[index].reads + s->uses[index].fetches;
}

static bool has_role(const sums_t* s, int32_t index, rn_op_role_t role) {
  return index >= 0 && rn_ir_is_role(rn_ir_node(s->ir, index), role);
}

// The node of |role| that reads output |output| of |index|; -1 if there is none.
static int32_t reader_of(const sums_t* s, int32_t index, int32_t output, rn_op_role_t role) {
  for (size_t n = 0; n < s->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &s->ir->nodes.items[n];
    if (!node->is_removed && node->op->role == role && node->input_count > 0 &&
        node->inputs[0].node == index && node->inputs[0].output == output)
      return (int32_t)n;
  }
  return -1;
}

// Whether only its own loop uses the sum that |index| adds to.
static bool find_round(const sums_t* s, int32_t index, round_t* round) {
  round->add = index;
  rn_ir_edge_t sum = rn_ir_node(s->ir, index)->inputs[0];
  round->passed = has_role(s, sum.node, RN_ROLE_IDENTITY) ? sum.node : -1;
  if (round->passed >= 0) sum = rn_ir_node(s->ir, sum.node)->inputs[0];
  if (sum.output != 1 || !has_role(s, sum.node, RN_ROLE_SWITCH)) return false;
  round->fork = sum.node;
  round->merge = rn_ir_node(s->ir, round->fork)->inputs[0].node;
  if (!has_role(s, round->merge, RN_ROLE_MERGE) ||
      rn_ir_node(s->ir, round->merge)->input_count != 2 ||
      rn_ir_node(s->ir, round->fork)->inputs[0].output != 0)
    return false;
  const rn_ir_edge_t* inputs = rn_ir_node(s->ir, round->merge)->inputs;
  int from = has_role(s, inputs[0].node, RN_ROLE_ENTER) ? 0 : 1;
  round->enter = inputs[from].node;
  round->next = inputs[1 - from].node;
  if (!has_role(s, round->enter, RN_ROLE_ENTER) ||
      !has_role(s, round->next, RN_ROLE_NEXT_ITERATION) ||
      rn_ir_node(s->ir, round->next)->inputs[0].node != index)
    return false;
  round->exit = reader_of(s, round->fork, 0, RN_ROLE_EXIT);
  if (round->exit < 0 || reads(s, round->fork) != 2) return false;
  const rn_device_t* device = rn_ir_node(s->ir, index)->device;
  const int32_t once[5] = {round->enter, round->merge, round->add, round->next, round->passed};
  for (int i = 0; i < (round->passed >= 0 ? 5 : 4); ++i)
    if (reads(s, once[i]) != 1 || rn_ir_node(s->ir, once[i])->device != device) return false;
  return rn_ir_node(s->ir, round->fork)->device == device &&
         rn_ir_node(s->ir, round->exit)->device == device;
}

// Makes the outputs of the node that carry the sum variants.
static rn_status_t carry_sum(const sums_t* s, int32_t index, int32_t outputs) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = RN_VARIANT}}, RN_ATTRS_END};
  rn_ir_node_t* node = rn_ir_node(s->ir, index);
  const rn_ir_node_t before = *node;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(s->ir, node->op, &before, given, &node->attrs));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(s->ir, node->input_count, node->output_count, RN_VARIANT,
                                      RN_SHAPE_SCALAR, node));
  node->inputs = before.inputs;
  for (int32_t o = outputs; o < node->output_count; ++o) {
    node->types[o] = before.types[o];
    node->shapes[o] = before.shapes[o];
  }
  return RN_OK;
}

static rn_status_t put_off(sums_t* s, int32_t index) {
  round_t round;
  if (!find_round(s, index, &round)) return RN_OK;
  const rn_ir_node_t add = *rn_ir_node(s->ir, index);  // a copy, because adding nodes moves them
  rn_ir_node_t begin, end, later = add;
  RN_RETURN_IF_ERROR(rn_ir_make_node(s->ir, s->begin, &add, NULL, 1, RN_SHAPE_SCALAR, &begin));
  RN_RETURN_IF_ERROR(rn_ir_make_node(s->ir, s->end, &add, NULL, 1, add.shapes[0], &end));
  begin.inputs[0] = rn_ir_node(s->ir, round.enter)->inputs[0];
  begin.types[0] = RN_VARIANT;
  end.inputs[0] = (rn_ir_edge_t){round.exit, 0};
  later.op = s->later;
  later.extra_count = 0;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(s->ir, s->later, &add, NULL, &later.attrs));
  later.kernel = rn_kernel_find(s->later, later.attrs, NULL, add.kernel->device);
  if (!begin.kernel || !end.kernel || !later.kernel) return RN_OK;
  int32_t begun, ended;
  RN_RETURN_IF_ERROR(rn_ir_add(s->ir, &begin, &begun));
  RN_RETURN_IF_ERROR(rn_ir_add(s->ir, &end, &ended));
  rn_ir_replace_edge(s->ir, (rn_ir_edge_t){round.exit, 0}, (rn_ir_edge_t){ended, 0});
  rn_ir_node(s->ir, ended)->inputs[0] = (rn_ir_edge_t){round.exit, 0};
  const rn_attr_value_t* attrs = later.attrs;
  *rn_ir_node(s->ir, index) = later;
  RN_RETURN_IF_ERROR(carry_sum(s, index, 1));
  rn_ir_node(s->ir, index)->attrs = attrs;  // T is the operands' type
  RN_RETURN_IF_ERROR(carry_sum(s, round.enter, 1));
  RN_RETURN_IF_ERROR(carry_sum(s, round.merge, 1));
  RN_RETURN_IF_ERROR(carry_sum(s, round.fork, 2));
  if (round.passed >= 0) RN_RETURN_IF_ERROR(carry_sum(s, round.passed, 1));
  RN_RETURN_IF_ERROR(carry_sum(s, round.next, 1));
  RN_RETURN_IF_ERROR(carry_sum(s, round.exit, 1));
  rn_ir_edge_t* entered = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&s->ir->arena, 1, &entered));
  *entered = (rn_ir_edge_t){begun, 0};
  rn_ir_node(s->ir, round.enter)->inputs = entered;
  return RN_OK;
}

rn_status_t rn_pass_sum_loop_matmuls(rn_ir_t* ir) {
  sums_t s = {.ir = ir,
              .add = rn_op_add_product(),
              .begin = rn_op_begin_sum(),
              .later = rn_op_add_later(),
              .end = rn_op_end_sum()};
  size_t count = ir->nodes.count;
  bool has_sums = false;
  for (size_t n = 0; n < count; ++n)
    has_sums |= ir->nodes.items[n].op == s.add && !ir->nodes.items[n].is_removed;
  if (!has_sums || !s.begin || !s.later || !s.end) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &s.uses));
  for (size_t n = 0; n < count; ++n)
    if (ir->nodes.items[n].op == s.add && !ir->nodes.items[n].is_removed)
      RN_RETURN_IF_ERROR(put_off(&s, (int32_t)n));
  return RN_OK;
}
