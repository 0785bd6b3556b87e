// Reads a variable once, before a loop, if the loop reads it in every iteration and does not write
// it.
//
// The pass replaces a read inside a loop, whose handle comes through an Enter, by a read outside
// whose value comes through an Enter; an Identity with the control inputs of the old read takes its
// place. Values that the loop then pushes on a stack are the same in every iteration, so a loop
// that pops them, as gradient loops do, also gets the value through an Enter. The pushes and pops
// stay, because other nodes wait for them.
#include "framework/internal_ops.h"
#include "step/make.h"

typedef struct invariants_t {
  rn_ir_t* ir;
  size_t count;          // of nodes before this pass added any
  int32_t* hoisted;      // by read: the read before the loop; -1 if none
  int32_t* read_before;  // by handle: the read before its loops; -1 if not made yet
  bool* is_written;      // by handle: written in a loop, or possibly written
} invariants_t;

static bool is_op(const rn_ir_node_t* node, const char* name) {
  return !node->is_removed && rn_ir_is_op(node, name);
}

static bool is_handle(const rn_ir_node_t* node) {
  return is_op(node, "VarHandleOp") && node->control_count == 0;
}

// The input of |index| if that is an Enter of a value outside all loops that |is_wanted| accepts;
// -1 otherwise.
static int32_t entered(const invariants_t* v, int32_t index,
                       bool (*is_wanted)(const rn_ir_node_t* node)) {
  const rn_ir_node_t* enter = rn_ir_node(v->ir, index);
  if (!rn_ir_is_constant_enter(enter)) return -1;
  return is_wanted(rn_ir_node(v->ir, enter->inputs[0].node)) ? enter->inputs[0].node : -1;
}

// Inside loops, only reads may use a handle. Its uses outside of loops are checked later.
static void find_writes(invariants_t* v) {
  for (size_t n = 0; n < v->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(v->ir, (int32_t)n);
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i) {
      int32_t source = node->inputs[i].node;
      int32_t handle =
          is_handle(rn_ir_node(v->ir, source)) ? source : entered(v, source, is_handle);
      if (handle < 0) continue;
      bool is_let_in = handle != source;
      bool passes_on = node->op->role != RN_ROLE_PLAIN && !rn_ir_is_constant_enter(node);
      if (is_let_in ? !rn_ir_is_read(node) : passes_on) v->is_written[handle] = true;
    }
  }
}

// Whether a use of |handle| other than a read comes before |read|.
static rn_status_t comes_after_write(const invariants_t* v, int32_t read, int32_t handle,
                                     bool* out) {
  rn_arena_mark_t mark = rn_arena_mark(&v->ir->arena);
  bool* is_seen = NULL;
  int32_t* stack = NULL;
  size_t depth = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->ir->arena, v->ir->nodes.count, &is_seen));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->ir->arena, v->ir->nodes.count, &stack));
  *out = false;
  is_seen[read] = true;
  stack[depth++] = read;
  while (depth > 0 && !*out) {
    const rn_ir_node_t* node = rn_ir_node(v->ir, stack[--depth]);
    for (int32_t i = 0; i < node->input_count; ++i)
      *out |=
          node->inputs[i].node == handle && !rn_ir_is_read(node) && !rn_ir_is_constant_enter(node);
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k);
      if (is_seen[source]) continue;
      is_seen[source] = true;
      stack[depth++] = source;
    }
  }
  rn_arena_rewind(&v->ir->arena, mark);
  return RN_OK;
}

// Gives |node|, whose op has the type attribute "T", one input and one output, the type and shape
// of |like|.
static rn_status_t retype(invariants_t* v, rn_ir_node_t* node, const rn_ir_node_t* like,
                          rn_ir_edge_t input, const char* ending) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = like->types[0]}}, RN_ATTRS_END};
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(v->ir, node->op, node, given, &node->attrs));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(v->ir, 1, 1, like->types[0], like->shapes[0], node));
  node->inputs[0] = input;
  node->extra_count = 0;
  node->feed = -1;
  node->requested_device = like->requested_device;
  return rn_arena_printf(&v->ir->arena, &node->name, "%.*s/%s", RN_STR_ARGS(like->name), ending);
}

// Adds an Enter of |value| into the loop of |enter|.
static rn_status_t let_in(invariants_t* v, int32_t enter, int32_t value, const rn_ir_node_t* like,
                          int32_t* out) {
  rn_ir_node_t made = *rn_ir_node(v->ir, enter);
  RN_RETURN_IF_ERROR(retype(v, &made, like, (rn_ir_edge_t){value, 0}, "_entered"));
  return rn_ir_add(v->ir, &made, out);
}

static rn_status_t hoist_read(invariants_t* v, int32_t index) {
  const rn_ir_node_t read =
      *rn_ir_node(v->ir, index);  // by value: nodes move when others are added
  int32_t enter = read.inputs[0].node, handle = entered(v, enter, is_handle), value;
  bool is_late = true;
  if (handle < 0 || v->is_written[handle]) return RN_OK;
  RN_RETURN_IF_ERROR(comes_after_write(v, index, handle, &is_late));
  if (is_late) return RN_OK;
  if (v->read_before[handle] < 0) {
    rn_ir_node_t made = read;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&v->ir->arena, &made.inputs));
    made.inputs[0] = (rn_ir_edge_t){handle, 0};
    made.control_count = 0;
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&v->ir->arena, &made.name, "%.*s/_before", RN_STR_ARGS(read.name)));
    RN_RETURN_IF_ERROR(rn_ir_add(v->ir, &made, &v->read_before[handle]));
  }
  RN_RETURN_IF_ERROR(let_in(v, enter, v->read_before[handle], &read, &value));
  rn_ir_node_t passed = read;
  passed.op = rn_op_identity();
  passed.attrs = NULL;
  RN_RETURN_IF_ERROR(retype(v, &passed, &read, (rn_ir_edge_t){value, 0}, "_passed"));
  passed.name = read.name;
  *rn_ir_node(v->ir, index) = passed;
  v->hoisted[index] = v->read_before[handle];
  return RN_OK;
}

static bool is_stack(const rn_ir_node_t* node) { return is_op(node, "StackV2"); }

enum { NOTHING = -1, DIFFERENT = -2 };

// By stack: the hoisted read that every push pushes; NOTHING or DIFFERENT if there is none.
static void find_pushed(const invariants_t* v, int32_t* pushed) {
  for (size_t n = 0; n < v->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(v->ir, (int32_t)n);
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i) {
      int32_t source = node->inputs[i].node;
      int32_t stack = is_stack(rn_ir_node(v->ir, source)) ? source : entered(v, source, is_stack);
      if (stack < 0 || rn_ir_is_constant_enter(node) || is_op(node, "StackPopV2") ||
          is_op(node, "StackCloseV2"))
        continue;
      int32_t value = DIFFERENT;
      if (is_op(node, "StackPushV2") && i == 0) value = node->inputs[1].node;
      while (value >= 0 && (size_t)value < v->count && v->hoisted[value] < 0 &&
             rn_ir_node(v->ir, value)->op->role == RN_ROLE_IDENTITY &&
             rn_ir_node(v->ir, value)->feed < 0)
        value = rn_ir_node(v->ir, value)->inputs[0].node;
      value = value >= 0 && (size_t)value < v->count ? v->hoisted[value] : DIFFERENT;
      if (value < 0 || (pushed[stack] != NOTHING && pushed[stack] != value)) value = DIFFERENT;
      pushed[stack] = value;
    }
  }
}

static rn_status_t replace_pop(invariants_t* v, int32_t index, int32_t value) {
  const rn_ir_node_t pop = *rn_ir_node(v->ir, index), read = *rn_ir_node(v->ir, value);
  int32_t let, passed;
  rn_ir_node_t like = pop;
  like.shapes = read.shapes;
  RN_RETURN_IF_ERROR(let_in(v, pop.inputs[0].node, value, &like, &let));
  rn_ir_node_t made = {.op = rn_op_identity()};
  RN_RETURN_IF_ERROR(retype(v, &made, &like, (rn_ir_edge_t){let, 0}, "_passed"));
  RN_RETURN_IF_ERROR(rn_ir_add(v->ir, &made, &passed));
  rn_ir_replace_edge(v->ir, (rn_ir_edge_t){index, 0}, (rn_ir_edge_t){passed, 0});
  return rn_ir_add_control(v->ir, passed, index);
}

rn_status_t rn_pass_hoist_variable_reads(rn_ir_t* ir) {
  invariants_t v = {.ir = ir, .count = ir->nodes.count};
  if (!rn_ir_has_role(ir, RN_ROLE_ENTER)) return RN_OK;
  int32_t* pushed = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, v.count, &v.hoisted));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, v.count, &v.read_before));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, v.count, &v.is_written));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, v.count, &pushed));
  memset(v.hoisted, 0xff, v.count * sizeof *v.hoisted);
  memset(v.read_before, 0xff, v.count * sizeof *v.read_before);
  memset(pushed, 0xff, v.count * sizeof *pushed);
  find_writes(&v);
  for (size_t n = 0; n < v.count; ++n)
    if (is_op(rn_ir_node(ir, (int32_t)n), "ReadVariableOp"))
      RN_RETURN_IF_ERROR(hoist_read(&v, (int32_t)n));
  find_pushed(&v, pushed);
  for (size_t n = 0; n < v.count; ++n) {
    if (!is_op(rn_ir_node(ir, (int32_t)n), "StackPopV2")) continue;
    int32_t stack = entered(&v, rn_ir_node(ir, (int32_t)n)->inputs[0].node, is_stack);
    if (stack >= 0 && pushed[stack] >= 0)
      RN_RETURN_IF_ERROR(replace_pop(&v, (int32_t)n, pushed[stack]));
  }
  return RN_OK;
}
